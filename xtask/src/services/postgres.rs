//! A PostgreSQL of one's own: started from the installed programs, on a free port, in a folder of its own.

use std::fmt;
use std::fs;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::account::{Account, command_as};
use super::process::{
    POLL, children_of, end_of_log, free_ports, is_free, is_running, send_signal, wait_for_exit, wait_until_ready,
};
use super::{ServiceError, Watchdog, folder};
use crate::environment;

const SERVICE: &str = "PostgreSQL";

/// The account that Debian's package makes.
const USER: &str = "postgres";

/// A start takes 1 to 3 s; a recovery after a kill, on a busy machine, more.
const READY_LIMIT: Duration = Duration::from_mins(1);

/// A fast shutdown writes one checkpoint.
const STOP_LIMIT: Duration = Duration::from_secs(15);

/// Between asking for a free port and binding it someone else may take it; three times in a row is not chance.
const PORT_ATTEMPTS: u32 = 3;

/// Many small pools at once, one a test.
const MAX_CONNECTIONS: u32 = 300;

/// What a crash of the machine may cost. A crash of the server costs nothing either way: what was committed has at
/// least been handed to the operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Everything: for tests, whose data nobody needs.
    Fast,
    /// Nothing.
    Safe,
}

/// Whether the data outlives the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Data {
    Throwaway,
    Kept,
}

/// A private server, on a free port of the loopback address. Only its user `postgres` exists, with a random password.
#[derive(Debug)]
pub struct PrivatePostgres {
    bin: PathBuf,
    folder: PathBuf,
    account: Option<Account>,
    data: Data,
    durability: Durability,
    port: u16,
    url: String,
    server: Option<Child>,
    watchdog: Watchdog,
}

impl PrivatePostgres {
    /// Starts one whose data is gone when this is dropped or the process ends. `root` is the workspace's folder.
    ///
    /// # Errors
    /// Where the server is not installed, or does not start; then with the end of its log.
    pub fn start(root: &Path, durability: Durability) -> Result<Self, ServiceError> {
        let bin = installed_bin().ok_or(ServiceError::NotInstalled { service: SERVICE })?;
        let account = Account::for_service(SERVICE, USER)?;
        let folder = folder::create_fresh(root, "postgres", account)?;
        let watchdog = Watchdog::start(Some(&folder))?;
        Self::prepare_and_start(bin, folder, account, watchdog, (Data::Throwaway, durability))
    }

    /// Starts one that keeps its data in `folder`, and takes up what an earlier one left there, however that ended.
    ///
    /// # Errors
    /// As [`PrivatePostgres::start`], and where another process uses the folder.
    pub fn start_keeping(folder: &Path) -> Result<Self, ServiceError> {
        let bin = installed_bin().ok_or(ServiceError::NotInstalled { service: SERVICE })?;
        let account = Account::for_service(SERVICE, USER)?;
        let folder = folder::create_kept(folder, account)?;
        wait_until_unused(&folder)?;
        let watchdog = Watchdog::start(None)?;
        Self::prepare_and_start(bin, folder, account, watchdog, (Data::Kept, Durability::Safe))
    }

    fn prepare_and_start(
        bin: PathBuf,
        folder: PathBuf,
        account: Option<Account>,
        watchdog: Watchdog,
        (data, durability): (Data, Durability),
    ) -> Result<Self, ServiceError> {
        let mut postgres = Self {
            bin,
            folder,
            account,
            data,
            durability,
            port: 0,
            url: String::new(),
            server: None,
            watchdog,
        };
        let password = postgres.prepare()?;
        let mut attempt = 0;
        loop {
            attempt += 1;
            let [port] = free_ports()?;
            postgres.port = port;
            postgres.url = format!("postgres://postgres:{password}@127.0.0.1:{port}/postgres");
            match postgres.launch() {
                Err(ServiceError::Died { .. }) if attempt < PORT_ATTEMPTS && !is_free(port) => {}
                outcome => return outcome.map(|()| postgres),
            }
        }
    }

    /// The server as user `postgres`, database `postgres`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The same user, another database.
    #[must_use]
    pub fn url_of(&self, database: &str) -> String {
        super::url::with_database(&self.url, database)
    }

    /// One of the programs that came with the server.
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }

    /// `kill -9` of the server and of all its processes, as when the machine loses it. The data stays.
    pub fn kill(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        let children = children_of(server.id());
        let _ = server.kill();
        send_signal(&children, "KILL");
        let _ = server.wait();
        self.watchdog.forget(server.id(), self.last_signal());
        let start = Instant::now();
        while children.iter().any(|pid| is_running(*pid)) && start.elapsed() < STOP_LIMIT {
            thread::sleep(POLL);
        }
    }

    /// Stops the server in order, ending its sessions. The data stays.
    pub fn stop(&mut self) {
        if let Some(server) = &mut self.server {
            send_signal(&[server.id()], "INT");
            if wait_for_exit(server, STOP_LIMIT).is_some() {
                let pid = server.id();
                self.server = None;
                self.watchdog.forget(pid, self.last_signal());
            }
        }
        self.kill();
    }

    /// Starts the server again, on the same port and data. One that still runs is stopped first.
    ///
    /// # Errors
    /// Where it does not start; then with the end of its log.
    pub fn restart(&mut self) -> Result<(), ServiceError> {
        self.stop();
        self.launch()
    }

    /// Makes the database cluster, unless an earlier run did. Returns the password.
    fn prepare(&mut self) -> Result<String, ServiceError> {
        let data = self.folder.join("data");
        let password_file = self.folder.join("password");
        if data.join("PG_VERSION").exists() {
            return fs::read_to_string(&password_file).map_err(ServiceError::file("reading", password_file));
        }
        let password = folder::random_hex(16)?;
        folder::write_private(&password_file, &password, self.account)?;
        // Of the locales with UTF-8, only this one is part of every Debian; where it is not there, C does.
        match self.initdb("C.UTF-8") {
            Err(ServiceError::Program { .. }) => self.initdb("C")?,
            outcome => outcome?,
        }
        Ok(password)
    }

    /// Under another name first: what was cut short is never taken for a cluster.
    fn initdb(&mut self, locale: &str) -> Result<(), ServiceError> {
        let unfinished = self.folder.join("data.new");
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).map_err(ServiceError::file("removing", &unfinished))?;
        }
        let log = self.folder.join("initdb.log");
        let mut command = self.command("initdb", &log)?;
        command.args([
            "--username=postgres",
            "--auth=scram-sha-256",
            "--pwfile=password",
            "--encoding=UTF8",
        ]);
        command
            .arg(format!("--locale={locale}"))
            .arg("--pgdata")
            .arg(&unfinished);
        if self.durability == Durability::Fast {
            command.arg("--no-sync");
        }
        let mut initdb = command
            .spawn()
            .map_err(ServiceError::file("starting", self.program("initdb")))?;
        self.watchdog.watch(initdb.id(), "KILL")?;
        let status = initdb
            .wait()
            .map_err(ServiceError::file("waiting for", self.program("initdb")))?;
        self.watchdog.forget(initdb.id(), "KILL");
        if !status.success() {
            return Err(ServiceError::Program {
                program: "initdb".to_owned(),
                output: end_of_log(&log),
            });
        }
        fs::rename(&unfinished, self.folder.join("data")).map_err(ServiceError::file("renaming", unfinished))
    }

    fn launch(&mut self) -> Result<(), ServiceError> {
        let log = self.folder.join("postgres.log");
        let mut command = self.command("postgres", &log)?;
        let port = self.port;
        let mut set = |setting: String| {
            command.arg("-c").arg(setting);
        };
        set("listen_addresses=127.0.0.1".to_owned());
        set(format!("port={port}"));
        set("unix_socket_directories=".to_owned());
        set(format!("max_connections={MAX_CONNECTIONS}"));
        if self.durability == Durability::Fast {
            // `synchronous_commit` stays on: without it a killed server loses what it has confirmed.
            set("fsync=off".to_owned());
            set("full_page_writes=off".to_owned());
        }
        let data = self.folder.join("data");
        command.arg("-D").arg(&data);

        let mut server = command
            .spawn()
            .map_err(ServiceError::file("starting", self.program("postgres")))?;
        self.watchdog.watch(server.id(), self.last_signal())?;
        let lock_file = data.join("postmaster.pid");
        let started = wait_until_ready(SERVICE, &mut server, READY_LIMIT, &log, |pid| is_ready(&lock_file, pid));
        self.server = Some(server);
        if started.is_err() {
            self.kill();
        }
        started
    }

    fn command(&self, program: &str, log: &Path) -> Result<Command, ServiceError> {
        let log = File::create(log).map_err(ServiceError::file("creating", log))?;
        let errors = log.try_clone().map_err(ServiceError::file("opening", &self.folder))?;
        let mut command = command_as(self.account, self.program(program));
        // Settings of the person's own client must not reach a server that is not theirs.
        for variable in ["PGDATA", "PGPORT", "PGHOST", "PGUSER", "PGOPTIONS", "PGPASSWORD"] {
            command.env_remove(variable);
        }
        command
            .env("HOME", &self.folder)
            .current_dir(&self.folder)
            .stdout(log)
            .stderr(Stdio::from(errors));
        Ok(command)
    }

    /// How the server is asked to end when nobody waits for it: at once, unless its data is kept.
    fn last_signal(&self) -> &'static str {
        match self.data {
            Data::Throwaway => "QUIT",
            Data::Kept => "INT",
        }
    }
}

impl fmt::Display for PrivatePostgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = fs::read_to_string(self.folder.join("data/PG_VERSION")).unwrap_or_default();
        let Self { folder, port, .. } = self;
        write!(
            f,
            "a private PostgreSQL {} on port {port}, in {}",
            version.trim(),
            folder.display()
        )
    }
}

impl Drop for PrivatePostgres {
    /// The watchdog removes the folder.
    fn drop(&mut self) {
        match self.data {
            Data::Throwaway => self.kill(),
            Data::Kept => self.stop(),
        }
    }
}

/// Whether [`PrivatePostgres`] can be had.
pub(crate) fn is_installed() -> bool {
    installed_bin().is_some()
}

/// The newest of Debian's versions, else the one that `PATH` leads to.
fn installed_bin() -> Option<PathBuf> {
    let is_server = |bin: &PathBuf| bin.join("postgres").is_file() && bin.join("initdb").is_file();
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions
        .filter_map(|entry| {
            Some((
                entry.file_name().to_str()?.parse::<u32>().ok()?,
                entry.path().join("bin"),
            ))
        })
        .filter(|(_, bin)| is_server(bin))
        .max_by_key(|(version, _)| *version);
    newest
        .map(|(_, bin)| bin)
        .or_else(|| environment::search_path().into_iter().find(is_server))
}

/// The server says so itself, in the last line of its lock file; connecting would need its protocol.
fn is_ready(lock_file: &Path, pid: u32) -> bool {
    let Ok(content) = fs::read_to_string(lock_file) else {
        return false;
    };
    let mut lines = content.lines().map(str::trim);
    lines.next() == Some(pid.to_string().as_str()) && lines.next_back() == Some("ready")
}

/// After a kill the watchdog of that run may still be stopping its server: waits for it. A lock file that a lost
/// server left is removed, since its number may be another process's by now.
fn wait_until_unused(folder: &Path) -> Result<(), ServiceError> {
    let data = folder.join("data");
    let lock_file = data.join("postmaster.pid");
    let start = Instant::now();
    loop {
        let content = fs::read_to_string(&lock_file).unwrap_or_default();
        let owner = content.lines().next().and_then(|line| line.trim().parse::<u32>().ok());
        let is_live =
            |pid: u32| is_running(pid) && fs::read_link(format!("/proc/{pid}/cwd")).ok() == Some(data.clone());
        match owner {
            Some(pid) if is_live(pid) && start.elapsed() < STOP_LIMIT => thread::sleep(POLL),
            Some(pid) if is_live(pid) => {
                return Err(ServiceError::InUse {
                    folder: folder.to_path_buf(),
                    pid,
                });
            }
            Some(_) => return fs::remove_file(&lock_file).map_err(ServiceError::file("removing", lock_file)),
            None => return Ok(()),
        }
    }
}

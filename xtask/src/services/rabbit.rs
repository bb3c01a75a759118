//! A RabbitMQ of one's own: started from the installed programs, on free ports, in a folder of its own, with its own
//! epmd (the name server of Erlang nodes), so that no other node on the machine is seen or touched.

use std::fmt;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::account::{Account, command_as};
use super::process::{children_of, free_ports, is_free, send_signal, wait_for_exit, wait_until_ready};
use super::{ServiceError, Watchdog, folder};

const SERVICE: &str = "RabbitMQ";

/// The account that Debian's package makes.
const USER: &str = "rabbitmq";

/// 5 s on an idle machine; a fresh clone's first build may be using every core.
const READY_LIMIT: Duration = Duration::from_mins(2);

/// A clean stop flushes its queues.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// Between asking for free ports and binding them someone else may take one; three times in a row is not chance.
const PORT_ATTEMPTS: u32 = 3;

/// How a client of AMQP 0-9-1 opens a connection. A broker that is up answers with a frame.
const PROTOCOL_HEADER: &[u8] = b"AMQP\x00\x00\x09\x01";

/// Of a loopback connection to a broker that may be just starting.
const PROBE_LIMIT: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy)]
struct Ports {
    amqp: u16,
    distribution: u16,
    epmd: u16,
}

/// A private broker, on a free port of the loopback address. Its only user is `guest`, with a random password.
#[derive(Debug)]
pub struct PrivateRabbit {
    sbin: PathBuf,
    folder: PathBuf,
    account: Option<Account>,
    ports: Ports,
    url: String,
    epmd: Option<Child>,
    broker: Option<Child>,
    watchdog: Watchdog,
}

impl PrivateRabbit {
    /// Starts one whose data is gone when this is dropped or the process ends. `root` is the workspace's folder.
    ///
    /// # Errors
    /// Where the broker is not installed, or does not start; then with the end of its log.
    pub fn start(root: &Path) -> Result<Self, ServiceError> {
        let sbin = installed_sbin().ok_or(ServiceError::NotInstalled { service: SERVICE })?;
        let account = Account::for_service(SERVICE, USER)?;
        let folder = folder::create_fresh(root, "rabbitmq", account)?;
        let watchdog = Watchdog::start(Some(&folder))?;
        let ports = Ports {
            amqp: 0,
            distribution: 0,
            epmd: 0,
        };
        let mut rabbit = Self {
            sbin,
            folder,
            account,
            ports,
            url: String::new(),
            epmd: None,
            broker: None,
            watchdog,
        };

        let password = folder::random_hex(16)?;
        let mut attempt = 0;
        loop {
            attempt += 1;
            let [amqp, distribution, epmd] = free_ports()?;
            rabbit.ports = Ports {
                amqp,
                distribution,
                epmd,
            };
            rabbit.url = format!("amqp://guest:{password}@127.0.0.1:{amqp}/%2f");
            rabbit.write_configuration(&password)?;
            match rabbit.launch() {
                Err(ServiceError::Died { .. }) if attempt < PORT_ATTEMPTS && !rabbit.ports_are_free() => {}
                outcome => return outcome.map(|()| rabbit),
            }
        }
    }

    /// The broker's default virtual host.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// `kill -9` of the broker. What it had on disk stays.
    pub fn kill(&mut self) {
        let Some(mut broker) = self.broker.take() else { return };
        let helpers = children_of(broker.id());
        let _ = broker.kill();
        let _ = broker.wait();
        self.watchdog.forget(broker.id(), "KILL");
        send_signal(&helpers, "KILL");
    }

    /// Stops the broker in order. Its durable queues and their persistent messages stay.
    pub fn stop(&mut self) {
        if let Some(broker) = &mut self.broker {
            send_signal(&[broker.id()], "TERM");
            if wait_for_exit(broker, STOP_LIMIT).is_some() {
                let pid = broker.id();
                self.broker = None;
                self.watchdog.forget(pid, "KILL");
            }
        }
        self.kill();
    }

    /// Starts the broker again, on the same port and with what it had on disk. One that still runs is stopped first.
    ///
    /// # Errors
    /// Where it does not start; then with the end of its log.
    pub fn restart(&mut self) -> Result<(), ServiceError> {
        self.stop();
        self.launch()
    }

    fn write_configuration(&self, password: &str) -> Result<(), ServiceError> {
        let log = self.folder.join("log/rabbit.log");
        let port = self.ports.amqp;
        let settings = format!(
            "listeners.tcp.1 = 127.0.0.1:{port}\n\
             default_user = guest\n\
             default_pass = {password}\n\
             vm_memory_high_watermark.absolute = 512MiB\n\
             disk_free_limit.absolute = 50MB\n\
             log.file = {}\n\
             log.file.level = warning\n",
            log.display()
        );
        folder::write_private(&self.folder.join("rabbitmq.conf"), &settings, self.account)?;
        folder::write_private(&self.folder.join("enabled_plugins"), "[].\n", self.account)?;
        folder::write_private(
            &self.folder.join(".erlang.cookie"),
            &folder::random_hex(16)?,
            self.account,
        )
    }

    fn launch(&mut self) -> Result<(), ServiceError> {
        self.launch_epmd()?;
        let program = self.sbin.join("rabbitmq-server");
        let log = self.folder.join("stdout.log");
        let mut command = self.command(&program, &log)?;
        self.set_environment(&mut command);
        let mut broker = command.spawn().map_err(ServiceError::file("starting", program))?;
        self.watchdog.watch(broker.id(), "KILL")?;
        let port = self.ports.amqp;
        let started = wait_until_ready(SERVICE, &mut broker, READY_LIMIT, &log, |_| speaks_amqp(port));
        self.broker = Some(broker);
        if started.is_err() {
            self.kill();
            self.stop_epmd();
        }
        started
    }

    /// Else the Erlang node would start one that detaches itself and is left over at the end.
    fn launch_epmd(&mut self) -> Result<(), ServiceError> {
        if let Some(epmd) = &mut self.epmd
            && matches!(epmd.try_wait(), Ok(None))
        {
            return Ok(());
        }
        self.stop_epmd();
        let mut command = self.command(Path::new("epmd"), &self.folder.join("epmd.log"))?;
        command.args(["-address", "127.0.0.1", "-port", &self.ports.epmd.to_string()]);
        let epmd = command.spawn().map_err(ServiceError::file("starting", "epmd"))?;
        self.watchdog.watch(epmd.id(), "KILL")?;
        self.epmd = Some(epmd);
        Ok(())
    }

    fn stop_epmd(&mut self) {
        let Some(mut epmd) = self.epmd.take() else { return };
        let _ = epmd.kill();
        let _ = epmd.wait();
        self.watchdog.forget(epmd.id(), "KILL");
    }

    fn set_environment(&self, command: &mut Command) {
        let in_folder = |name: &str| self.folder.join(name);
        let Ports {
            amqp,
            distribution,
            epmd,
        } = self.ports;
        command
            .env("RABBITMQ_CONF_ENV_FILE", "/dev/null")
            .env("RABBITMQ_NODENAME", format!("private{amqp}@localhost"))
            .env("RABBITMQ_NODE_PORT", amqp.to_string())
            .env("RABBITMQ_DIST_PORT", distribution.to_string())
            .env("RABBITMQ_CONFIG_FILE", in_folder("rabbitmq.conf"))
            .env("RABBITMQ_ADVANCED_CONFIG_FILE", in_folder("advanced.config"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", in_folder("enabled_plugins"))
            .env("RABBITMQ_MNESIA_BASE", in_folder("mnesia"))
            .env("RABBITMQ_LOG_BASE", in_folder("log"))
            .env("RABBITMQ_PID_FILE", in_folder("pid"))
            // Two schedulers that sleep when idle: many of these may run beside a build.
            .env(
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
                "-kernel inet_dist_use_interface {127,0,0,1} +S 2:2 +sbwt none",
            )
            .env("ERL_EPMD_PORT", epmd.to_string())
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            // Makes the script become the Erlang machine instead of waiting for it, so that the process known here is
            // the broker itself.
            .env("RUNNING_UNDER_SYSTEMD", "true")
            .env_remove("NOTIFY_SOCKET");
    }

    fn command(&self, program: &Path, log: &Path) -> Result<Command, ServiceError> {
        let log = File::create(log).map_err(ServiceError::file("creating", log))?;
        let errors = log.try_clone().map_err(ServiceError::file("opening", &self.folder))?;
        let mut command = command_as(self.account, program);
        command
            .env("HOME", &self.folder)
            .current_dir(&self.folder)
            .stdout(log)
            .stderr(Stdio::from(errors));
        Ok(command)
    }

    fn ports_are_free(&self) -> bool {
        let Ports {
            amqp,
            distribution,
            epmd,
        } = self.ports;
        [amqp, distribution, epmd].into_iter().all(is_free)
    }
}

impl fmt::Display for PrivateRabbit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let home = self
            .sbin
            .parent()
            .and_then(Path::file_name)
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let version = home.trim_start_matches("rabbitmq_server-");
        write!(
            f,
            "a private RabbitMQ {version} on port {}, in {}",
            self.ports.amqp,
            self.folder.display()
        )
    }
}

impl Drop for PrivateRabbit {
    /// The watchdog removes the folder.
    fn drop(&mut self) {
        self.kill();
        self.stop_epmd();
    }
}

/// Whether [`PrivateRabbit`] can be had.
pub(crate) fn is_installed() -> bool {
    installed_sbin().is_some()
}

/// The newest of the installed versions. Not the script on `PATH`: that one becomes another user by itself.
fn installed_sbin() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/rabbitmq/lib").into_iter().flatten().flatten();
    let parse = |name: &str| -> Option<Vec<u32>> {
        name.strip_prefix("rabbitmq_server-")?
            .split('.')
            .map(|part| part.parse().ok())
            .collect()
    };
    versions
        .filter_map(|entry| Some((parse(entry.file_name().to_str()?)?, entry.path().join("sbin"))))
        .filter(|(_, sbin)| sbin.join("rabbitmq-server").is_file())
        .max_by(|(one, _), (other, _)| one.cmp(other))
        .map(|(_, sbin)| sbin)
}

/// Whether a broker answers on the port. Its listener opens last, when all the rest is up.
pub(crate) fn speaks_amqp(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let Ok(mut stream) = TcpStream::connect_timeout(&address, PROBE_LIMIT) else {
        return false;
    };
    let mut answer = [0];
    stream.set_read_timeout(Some(PROBE_LIMIT)).is_ok()
        && stream.write_all(PROTOCOL_HEADER).is_ok()
        && stream.read_exact(&mut answer).is_ok()
}

//! Where everything is measured: one PostgreSQL and one RabbitMQ for all, durable as in production, and the contestants on them.

use crate::{
    load::Route,
    people::{self, People},
    proc::{self, Cast, Pid},
};
use anyhow::{Context as _, bail, ensure};
use std::{
    fs::File,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use url::Url;
use xtask::services::{Durability, PrivatePostgres, PrivateRabbit, Watchdog, random_hex, send_signal, wait_for_exit};

/// A process that is not ready by then never is.
const READY_LIMIT: Duration = Duration::from_mins(1);
/// A process that was asked to stop is killed after this.
const STOP_LIMIT: Duration = Duration::from_secs(10);
/// The database of ours, and that of the peers, whose user has the same name.
const OURS: &str = "ours";
const PEER: &str = "peer";

/// Whom is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Contestant {
    Ours,
    /// The Nest peer as it comes.
    Stock,
    /// The Nest peer with `TCP_NODELAY` and named statements.
    Tuned,
    /// The floor, a statement at a time.
    Seq,
    /// The floor, with what is independent in one round trip.
    Pipe,
}

impl Contestant {
    pub(crate) const ALL: [Self; 5] = [Self::Ours, Self::Stock, Self::Tuned, Self::Seq, Self::Pipe];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Stock => "stock peer",
            Self::Tuned => "tuned peer",
            Self::Seq => "floor seq",
            Self::Pipe => "floor pipe",
        }
    }
}

/// The services, and where the programs are.
pub(crate) struct Stand {
    postgres: PrivatePostgres,
    rabbit: PrivateRabbit,
    /// The release build of ours.
    server: PathBuf,
    /// The folder of the built peers.
    peers: Option<PathBuf>,
    logs: PathBuf,
    secret: String,
    postmaster: Pid,
    broker: Pid,
}

impl Stand {
    /// Starts the services and fills the databases. `root` is the workspace's folder.
    pub(crate) fn start(root: &Path, server: PathBuf, peers: Option<PathBuf>) -> anyhow::Result<Self> {
        let postgres = PrivatePostgres::start(root, Durability::Safe)?;
        eprintln!("postgres   {postgres}, fsync on");
        let rabbit = PrivateRabbit::start(root)?;
        eprintln!("rabbitmq   {rabbit}");
        let port = Url::parse(rabbit.url())?.port().context("the broker has a port")?;
        let broker = proc::erlang_with(&format!("private{port}@localhost"))?;
        let logs = root.join("target/bench/logs");
        std::fs::create_dir_all(&logs).with_context(|| format!("creating {}", logs.display()))?;
        let mut stand = Self {
            postgres,
            rabbit,
            server,
            peers,
            logs,
            secret: random_hex(32)?,
            postmaster: 0,
            broker,
        };
        stand.find_postmaster()?;
        stand.fill()?;
        Ok(stand)
    }

    fn find_postmaster(&mut self) -> anyhow::Result<()> {
        let folder = self.sql("postgres", &["SHOW data_directory"])?;
        let lock = std::fs::read_to_string(Path::new(&folder).join("postmaster.pid"))?;
        self.postmaster = lock.lines().next().unwrap_or_default().trim().parse()?;
        Ok(())
    }

    /// From now on the database counts statements, which costs it a little.
    pub(crate) fn count_statements(&mut self) -> anyhow::Result<()> {
        let library = "ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'";
        self.sql("postgres", &[library])?;
        self.postgres.restart()?;
        self.find_postmaster()?;
        let plans = "ALTER SYSTEM SET pg_stat_statements.track_planning = on";
        self.sql("postgres", &[plans, "SELECT pg_reload_conf()"])?;
        self.sql(OURS, &["CREATE EXTENSION pg_stat_statements"]).map(drop)
    }

    /// What the database did in so many calls since it was last asked, the dearest first: how often a call each statement was
    /// run and planned, and the microseconds a call of planning and of running it.
    pub(crate) fn statements(&self, calls: usize) -> anyhow::Result<String> {
        let query = format!(
            "SELECT format('%s run  %s planned  %s + %s µs  %s', round(calls / {calls}.0, 2), round(plans / {calls}.0, 2),
                           round((total_plan_time * 1000 / {calls})::numeric, 1), round((total_exec_time * 1000 / {calls})::numeric, 1),
                           left(regexp_replace(query, '[[:space:]]+', ' ', 'g'), 100))
               FROM pg_stat_statements WHERE userid = 'school_app'::regrole
              ORDER BY total_plan_time + total_exec_time DESC LIMIT 12"
        );
        let statements = self.sql(OURS, &[&query])?;
        self.sql(OURS, &["SELECT pg_stat_statements_reset()"])?;
        Ok(statements)
    }

    fn fill(&self) -> anyhow::Result<()> {
        self.sql("postgres", &["CREATE DATABASE ours"])?;
        let migrated = self.ours("migrate", "")?.stdout(Stdio::null()).status()?;
        ensure!(migrated.success(), "`server migrate` failed");
        self.file(&self.postgres.url_of(OURS), include_str!("school.sql"))?;
        let Some(peers) = &self.peers else { return Ok(()) };
        self.sql(
            "postgres",
            &[
                "CREATE ROLE peer LOGIN PASSWORD 'peer'",
                "CREATE DATABASE peer OWNER peer",
            ],
        )?;
        for name in ["schema.sql", "seed.sql"] {
            let file = peers.join("nestjs-hop/sql").join(name);
            let sql = std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
            self.file(&self.peer_url()?, &sql)?;
        }
        Ok(())
    }

    pub(crate) fn amqp_url(&self) -> &str {
        self.rabbit.url()
    }

    /// The database of ours, as its owner.
    pub(crate) fn database_url(&self) -> String {
        self.postgres.url_of(OURS)
    }

    fn peer_url(&self) -> anyhow::Result<String> {
        let mut url = Url::parse(&self.postgres.url_of(PEER))?;
        let set = url.set_username(PEER).and_then(|()| url.set_password(Some(PEER)));
        set.ok().context("a database's address takes a user")?;
        Ok(url.into())
    }

    /// Everybody who calls a contestant.
    pub(crate) fn people(&self, contestant: Contestant) -> anyhow::Result<People> {
        let (database, identities, campuses, secret) = match contestant {
            Contestant::Ours => (OURS, people::OURS, "campuses", Some(self.secret.as_str())),
            Contestant::Stock | Contestant::Tuned | Contestant::Seq | Contestant::Pipe => {
                (PEER, people::PEERS, "hop.campus", None)
            }
        };
        let campuses = format!("SELECT id FROM {campuses} WHERE school_id = md5('school6')::uuid ORDER BY name");
        People::of(
            &self.sql(database, &[identities])?,
            &self.sql(database, &[&campuses])?,
            secret,
        )
    }

    /// The tables as filled, so that reads find the same few pages whatever was measured before.
    pub(crate) fn clean(&self, contestant: Contestant) -> anyhow::Result<()> {
        let statements: &[&str] = match contestant {
            Contestant::Ours => &[
                "ALTER TABLE audit_log DISABLE TRIGGER append_only; TRUNCATE audit_log, tool_calls;
                 ALTER TABLE audit_log ENABLE ALWAYS TRIGGER append_only",
                "DELETE FROM departments WHERE name LIKE 'bench %'",
                "VACUUM (TRUNCATE, ANALYZE) departments",
            ],
            Contestant::Stock | Contestant::Tuned | Contestant::Seq | Contestant::Pipe => &[
                "TRUNCATE hop.audit_log",
                "DELETE FROM hop.department WHERE name LIKE 'bench %'",
                "VACUUM (TRUNCATE, ANALYZE) hop.department",
            ],
        };
        self.sql(database_of(contestant), statements).map(drop)
    }

    /// How many departments were made since, and how many audit rows there are.
    pub(crate) fn rows(&self, contestant: Contestant) -> anyhow::Result<(usize, usize)> {
        let schema = if contestant == Contestant::Ours {
            "public.departments"
        } else {
            "hop.department"
        };
        let audit = if contestant == Contestant::Ours {
            "public.audit_log"
        } else {
            "hop.audit_log"
        };
        let made = format!("SELECT count(*) FROM {schema} WHERE name LIKE 'bench %'");
        let counts = self.sql(
            database_of(contestant),
            &[&made, &format!("SELECT count(*) FROM {audit}")],
        )?;
        let (made, audited) = counts.split_once('\n').context("two counts")?;
        Ok((made.trim().parse()?, audited.trim().parse()?))
    }

    fn psql(&self, url: &str) -> Command {
        let mut psql = Command::new(self.postgres.program("psql"));
        psql.args(["-XqAt", "-v", "ON_ERROR_STOP=1", url]);
        psql
    }

    fn sql(&self, database: &str, statements: &[&str]) -> anyhow::Result<String> {
        let mut psql = self.psql(&self.postgres.url_of(database));
        for statement in statements {
            psql.args(["-c", statement]);
        }
        let output = psql.output().context("starting psql")?;
        ensure!(
            output.status.success(),
            "psql: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    fn file(&self, url: &str, sql: &str) -> anyhow::Result<()> {
        let mut psql = self
            .psql(url)
            .arg("--single-transaction")
            .stdin(Stdio::piped())
            .spawn()?;
        psql.stdin.take().context("psql reads")?.write_all(sql.as_bytes())?;
        ensure!(psql.wait()?.success(), "psql failed");
        Ok(())
    }

    /// A command of ours, with the names on the broker under a prefix.
    fn ours(&self, subcommand: &str, prefix: &str) -> anyhow::Result<Command> {
        ensure!(
            self.server.is_file(),
            "{} is not there: build it first",
            self.server.display()
        );
        let mut command = Command::new(&self.server);
        command
            .arg(subcommand)
            .env_clear()
            .env("DATABASE_URL", self.postgres.url_of(OURS))
            .env("AMQP_URL", self.amqp_url())
            .env("GRANT_SECRET", &self.secret)
            .env("QUEUE_PREFIX", prefix);
        Ok(command)
    }

    /// Starts ours under a prefix of its own.
    pub(crate) fn start_ours(&self, prefix: &str) -> anyhow::Result<Serving> {
        let route = Route::Governed {
            exchange: format!("{prefix}agent.tools"),
        };
        let sessions = format!("school_app {OURS}");
        self.serve(self.ours("serve", prefix)?, &format!("ours{prefix}"), route, sessions)
    }

    /// Starts a contestant and waits until it is ready.
    pub(crate) fn start_contestant(&self, contestant: Contestant) -> anyhow::Result<Serving> {
        if contestant == Contestant::Ours {
            return self.start_ours("");
        }
        let peers = self.peers.as_ref().context("the peers are not built")?;
        let queue = format!("bench.{}", contestant.name().replace(' ', "."));
        let floor = |mode: &str| {
            let mut floor = Command::new(peers.join("amqp-floor/target/release/amqp-floor"));
            // not its own transport, which knows but one broker
            floor.args(["serve", "--mode", mode, "--queue", &queue, "--lapin"]);
            floor
        };
        let mut command = match contestant {
            Contestant::Seq => floor("seq"),
            Contestant::Pipe => floor("pipe"),
            Contestant::Ours | Contestant::Stock | Contestant::Tuned => {
                let mut node = Command::new("node");
                node.arg(peers.join("nestjs-hop/dist/main.js"))
                    .env("PEER_QUEUE", &queue);
                if contestant == Contestant::Tuned {
                    node.env("PEER_NODELAY", "1").env("PEER_PREPARED", "1");
                }
                node
            }
        };
        command
            .env("DATABASE_URL", self.peer_url()?)
            .env("AMQP_URL", self.amqp_url());
        let route = Route::Bare { queue };
        self.serve(command, contestant.name(), route, format!("{PEER} {PEER}"))
    }

    fn serve(&self, mut command: Command, name: &str, route: Route, sessions: String) -> anyhow::Result<Serving> {
        let log = File::create(self.logs.join(format!("{}.log", name.replace(' ', "-"))))?;
        let begin = Instant::now();
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn();
        let mut child = spawned.with_context(|| format!("starting {name}"))?;
        let mut watchdog = Watchdog::start(None)?;
        watchdog.watch(child.id(), "KILL")?;
        let output = child.stdout.take().context("its output is piped")?;
        let cast = Cast {
            server: child.id(),
            driver: std::process::id(),
            broker: self.broker,
            postmaster: self.postmaster,
            sessions,
        };
        let mut serving = Serving {
            child,
            watchdog,
            route,
            cast,
            ready_after: Duration::ZERO,
        };
        wait_until_ready(output, name)?;
        serving.ready_after = begin.elapsed();
        Ok(serving)
    }
}

const fn database_of(contestant: Contestant) -> &'static str {
    match contestant {
        Contestant::Ours => OURS,
        Contestant::Stock | Contestant::Tuned | Contestant::Seq | Contestant::Pipe => PEER,
    }
}

/// Reads a process's output up to the line that says `ready`, and throws away what comes after it.
fn wait_until_ready(output: std::process::ChildStdout, name: &str) -> anyhow::Result<()> {
    let (said, ready) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = String::new();
        while output.read_line(&mut line).is_ok_and(|size| size > 0) {
            if line.contains("ready") {
                let _ = said.send(());
            }
            line.clear();
        }
        let _ = output.read(&mut []);
    });
    if ready.recv_timeout(READY_LIMIT).is_err() {
        bail!("{name} did not become ready; see target/bench/logs");
    }
    Ok(())
}

/// A contestant that takes calls; killed when it is dropped.
pub(crate) struct Serving {
    child: Child,
    watchdog: Watchdog,
    pub(crate) route: Route,
    pub(crate) cast: Cast,
    /// From its start to its ready line.
    pub(crate) ready_after: Duration,
}

impl Serving {
    /// The memory that it holds, and the most it ever held, in KiB.
    pub(crate) fn memory_kb(&self) -> anyhow::Result<(u64, u64)> {
        proc::memory_kb(self.child.id())
    }

    pub(crate) fn terminate(&self) {
        send_signal(&[self.child.id()], "TERM");
    }

    /// Waits for its end; whether it ended in order.
    pub(crate) fn wait(&mut self) -> bool {
        wait_for_exit(&mut self.child, STOP_LIMIT).is_some_and(|status| status.success())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.watchdog.forget(self.child.id(), "KILL");
    }
}

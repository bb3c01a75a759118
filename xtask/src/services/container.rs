//! A service in a container, where the server is not installed and Docker answers.

use std::fmt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::process::POLL;
use super::{ServiceError, Watchdog, folder, rabbit};

const POSTGRES_IMAGE: &str = "postgres:17";
const RABBIT_IMAGE: &str = "rabbitmq:4";

/// Without the pull, which has no limit but the person's patience.
const READY_LIMIT: Duration = Duration::from_mins(2);

/// A container that ends with this process; its data is never kept.
#[derive(Debug)]
pub(crate) struct Container {
    image: &'static str,
    id: String,
    port: u16,
    url: String,
    _watchdog: Watchdog,
}

impl Container {
    /// A database server.
    pub(crate) fn postgres() -> Result<Self, ServiceError> {
        let password = folder::random_hex(16)?;
        let set = format!("POSTGRES_PASSWORD={password}");
        // `synchronous_commit` stays on: without it a killed server loses what it has confirmed.
        let settings = [
            "-c",
            "fsync=off",
            "-c",
            "full_page_writes=off",
            "-c",
            "max_connections=300",
        ];
        let mut container = Self::run(POSTGRES_IMAGE, 5432, &set, &settings)?;
        container.url = format!("postgres://postgres:{password}@127.0.0.1:{}/postgres", container.port);
        let id = container.id.clone();
        // By TCP: while the image's first-run scripts work, the server listens on its local socket only.
        let probe = [
            "exec",
            &id,
            "pg_isready",
            "--quiet",
            "--host=127.0.0.1",
            "--username=postgres",
        ];
        container.wait_until_ready("PostgreSQL", |_| docker(&probe).is_ok())?;
        Ok(container)
    }

    /// A broker.
    pub(crate) fn rabbit() -> Result<Self, ServiceError> {
        let password = folder::random_hex(16)?;
        let set = format!("RABBITMQ_DEFAULT_PASS={password}");
        let mut container = Self::run(RABBIT_IMAGE, 5672, &set, &[])?;
        // Not `guest`: that user may come from the broker's own loopback address only.
        container.url = format!("amqp://local:{password}@127.0.0.1:{}/%2f", container.port);
        container.wait_until_ready("RabbitMQ", rabbit::speaks_amqp)?;
        Ok(container)
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    fn run(image: &'static str, port: u16, set: &str, arguments: &[&str]) -> Result<Self, ServiceError> {
        let mut watchdog = Watchdog::start(None)?;
        let publish = format!("127.0.0.1::{port}");
        let fixed = ["run", "--rm", "--detach", "--publish", &publish, "--env", set];
        let user = ["--env", "RABBITMQ_DEFAULT_USER=local", image];
        let id = docker(&[&fixed, &user[..], arguments].concat())?;
        watchdog.watch_container(&id)?;
        let published = docker(&["port", &id, &port.to_string()])?;
        let port = published
            .lines()
            .next()
            .and_then(|line| line.rsplit_once(':')?.1.parse().ok());
        let port = port.ok_or(ServiceError::Program {
            program: "docker port".to_owned(),
            output: published,
        })?;
        Ok(Self {
            image,
            id,
            port,
            url: String::new(),
            _watchdog: watchdog,
        })
    }

    fn wait_until_ready(&self, service: &'static str, is_ready: impl Fn(u16) -> bool) -> Result<(), ServiceError> {
        let start = Instant::now();
        while !is_ready(self.port) {
            if start.elapsed() > READY_LIMIT {
                let log = docker(&["logs", "--tail", "15", &self.id]).unwrap_or_default();
                return Err(ServiceError::NotReady {
                    service,
                    limit_s: READY_LIMIT.as_secs(),
                    log,
                });
            }
            thread::sleep(POLL);
        }
        Ok(())
    }
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a container of {} on port {}, without kept data",
            self.image, self.port
        )
    }
}

/// Whether there is a Docker engine, not only its client.
pub(crate) fn docker_answers() -> bool {
    docker(&["version", "--format", "{{.Server.Version}}"]).is_ok()
}

/// Runs the client and returns what it printed. Its progress (of a pull) goes to the person.
fn docker(arguments: &[&str]) -> Result<String, ServiceError> {
    let mut command = Command::new("docker");
    command.args(arguments).stdin(Stdio::null());
    let is_run = arguments.first() == Some(&"run");
    if is_run {
        command.stderr(Stdio::inherit());
    }
    let output = command.output().map_err(ServiceError::file("running", "docker"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let program = format!("docker {}", arguments.first().unwrap_or(&""));
    Err(ServiceError::Program {
        program,
        output: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

//! Finds or starts a PostgreSQL and a RabbitMQ: for `cargo xtask`, and for every test that needs one.
//!
//! Each service on its own, in this order: its variable (`DATABASE_URL`, `AMQP_URL`); a private instance of the
//! installed server, on free ports of the loopback address; a container, where Docker answers. The machine's own
//! running servers are never touched. Whatever is started ends with the process that started it, however that ends.

mod account;
mod container;
mod error;
mod folder;
mod install;
mod postgres;
mod process;
mod rabbit;
mod url;
mod watchdog;

use std::path::Path;
use std::process::Command;
use std::thread;

pub use error::ServiceError;
pub use folder::random_hex;
pub use postgres::{Durability, PrivatePostgres};
pub use process::{send_signal, wait_for_exit};
pub use rabbit::PrivateRabbit;
pub use watchdog::Watchdog;

use crate::environment;
use container::Container;

/// Whether a missing server may be installed by the system's package manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Install {
    /// Yes, with `apt-get`, on Debian and Ubuntu.
    Allowed,
    /// No: what is missing is an error that says how to go on.
    Never,
}

/// A database server and a broker. Those that were started here stop when this is dropped, or when the process ends.
#[derive(Debug)]
pub struct Services {
    postgres: Postgres,
    rabbit: Rabbit,
}

impl Services {
    /// Finds or starts both, with a database of its own that is gone afterwards.
    ///
    /// `root` is the workspace's folder. Says on standard error what was chosen, one line a service.
    ///
    /// # Errors
    /// Where there is no way to a service, the error names the remedies; else what went wrong with the chosen way.
    pub fn find_or_start(root: &Path, install: Install) -> Result<Self, ServiceError> {
        Self::start(root, install, None)
    }

    /// The same, but a private database keeps its data in `data` from one run to the next.
    ///
    /// # Errors
    /// As [`Services::find_or_start`], and where another process uses `data`.
    pub fn find_or_start_keeping(root: &Path, install: Install, data: &Path) -> Result<Self, ServiceError> {
        Self::start(root, install, Some(data))
    }

    fn start(root: &Path, install: Install, data: Option<&Path>) -> Result<Self, ServiceError> {
        let (postgres, rabbit) = choose(install)?;
        thread::scope(|scope| {
            let postgres = scope.spawn(|| Postgres::start(postgres, root, data));
            let rabbit = Rabbit::start(rabbit, root);
            let postgres = postgres
                .join()
                .map_err(|_| ServiceError::Panicked { service: "PostgreSQL" })?;
            Ok(Self {
                postgres: postgres?,
                rabbit: rabbit?,
            })
        })
    }

    /// The database as its owner, a superuser unless `DATABASE_URL` says otherwise.
    #[must_use]
    pub fn database_url(&self) -> &str {
        match &self.postgres {
            Postgres::Given(url) => url,
            Postgres::Private(server) => server.url(),
            Postgres::Container(container) => container.url(),
        }
    }

    /// The same server and user, another database.
    #[must_use]
    pub fn database_url_of(&self, database: &str) -> String {
        url::with_database(self.database_url(), database)
    }

    /// The broker.
    #[must_use]
    pub fn amqp_url(&self) -> &str {
        match &self.rabbit {
            Rabbit::Given(url) => url,
            Rabbit::Private(broker) => broker.url(),
            Rabbit::Container(container) => container.url(),
        }
    }

    /// `psql`, connected to `database` as the owner.
    #[must_use]
    pub fn psql(&self, database: &str) -> Command {
        let url = self.database_url_of(database);
        let mut command = match &self.postgres {
            Postgres::Given(_) => Command::new("psql"),
            Postgres::Private(server) => Command::new(server.program("psql")),
            Postgres::Container(container) => {
                let mut command = Command::new("docker");
                command.args([
                    "exec",
                    "--interactive",
                    container.id(),
                    "psql",
                    "--username=postgres",
                    "--dbname",
                ]);
                command.arg(database);
                return command;
            }
        };
        command.arg(url);
        command
    }
}

/// How a service is had.
#[derive(Debug, Clone)]
enum Way {
    Given(String),
    Private,
    Container,
}

#[derive(Debug)]
enum Postgres {
    Given(String),
    Private(PrivatePostgres),
    Container(Container),
}

impl Postgres {
    fn start(way: Way, root: &Path, data: Option<&Path>) -> Result<Self, ServiceError> {
        match way {
            Way::Given(url) => {
                let address = url::require_answer("DATABASE_URL", &url, 5432)?;
                eprintln!("postgres   the one of DATABASE_URL, at {address}");
                Ok(Self::Given(url))
            }
            Way::Private => {
                let server = match data {
                    Some(data) => PrivatePostgres::start_keeping(data)?,
                    None => PrivatePostgres::start(root, Durability::Fast)?,
                };
                eprintln!("postgres   {server}");
                Ok(Self::Private(server))
            }
            Way::Container => {
                let container = Container::postgres()?;
                eprintln!("postgres   {container}");
                Ok(Self::Container(container))
            }
        }
    }
}

#[derive(Debug)]
enum Rabbit {
    Given(String),
    Private(PrivateRabbit),
    Container(Container),
}

impl Rabbit {
    fn start(way: Way, root: &Path) -> Result<Self, ServiceError> {
        match way {
            Way::Given(url) => {
                let address = url::require_answer("AMQP_URL", &url, 5672)?;
                eprintln!("rabbitmq   the one of AMQP_URL, at {address}");
                Ok(Self::Given(url))
            }
            Way::Private => {
                let broker = PrivateRabbit::start(root)?;
                eprintln!("rabbitmq   {broker}");
                Ok(Self::Private(broker))
            }
            Way::Container => {
                let container = Container::rabbit()?;
                eprintln!("rabbitmq   {container}");
                Ok(Self::Container(container))
            }
        }
    }
}

/// The way to each service, before anything is started: so that all that is missing is said at once.
fn choose(install: Install) -> Result<(Way, Way), ServiceError> {
    let find = |variable: &str, installed: bool| match environment::variable(variable) {
        Some(url) => Some(Way::Given(url)),
        None => installed.then_some(Way::Private),
    };
    let find_both = || {
        (
            find("DATABASE_URL", postgres::is_installed()),
            find("AMQP_URL", rabbit::is_installed()),
        )
    };

    let mut found = find_both();
    if install == Install::Allowed {
        let missing = missing_of(&found, "postgresql", "rabbitmq-server");
        if !missing.is_empty() && install::is_supported() {
            install::install(&missing)?;
            found = find_both();
        }
    }
    if (found.0.is_none() || found.1.is_none()) && container::docker_answers() {
        found.0 = found.0.or(Some(Way::Container));
        found.1 = found.1.or(Some(Way::Container));
    }
    match found {
        (Some(postgres), Some(rabbit)) => Ok((postgres, rabbit)),
        found => Err(ServiceError::Missing {
            services: missing_of(&found, "PostgreSQL", "RabbitMQ").join(" and no "),
            variables: missing_of(&found, "DATABASE_URL", "AMQP_URL").join(" and "),
        }),
    }
}

fn missing_of(found: &(Option<Way>, Option<Way>), postgres: &'static str, rabbit: &'static str) -> Vec<&'static str> {
    let postgres = found.0.is_none().then_some(postgres);
    let rabbit = found.1.is_none().then_some(rabbit);
    postgres.into_iter().chain(rabbit).collect()
}

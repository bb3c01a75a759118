//! The operator's commands. The exit status is 0 only when what was asked for was done, or waits for somebody's yes.

mod approvals;
mod audit;
mod authz;
mod call;
mod chat;
mod registry;
mod serve;

use self::approvals::ApprovalsCommand;
use crate::{
    config::{self, AuthConfig, Config, LogConfig, OwnerConfig, RoleUrls},
    db::{
        Database, migrate,
        seed::{self, Seeded},
    },
    dispatch::Wanted,
    grant::Door,
    http::auth::mint,
};
use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use serde_json::Value;
use std::{
    io::{IsTerminal, Write},
    process::ExitCode,
    time::Duration,
};

/// The governed tool server of a school.
#[derive(Debug, Parser)]
#[command(name = "server", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Take tool calls off the broker until SIGTERM or Ctrl-C.
    Serve,
    /// Bring the database up to date and set the passwords of its roles. Needs `DATABASE_URL` of the owner.
    Migrate,
    /// Fill an empty database with the two demo schools. Needs `DATABASE_URL` of the owner.
    Seed,
    /// Show every tool of the registry.
    Tools {
        /// As JSON, with the schemas.
        #[arg(long)]
        json: bool,
    },
    /// Call one tool through the broker, as somebody, and print the reply.
    Call {
        /// The tool's name, such as `list_departments`, or its event.
        tool: String,
        #[command(flatten)]
        person: Person,
        /// The arguments, as a JSON object.
        #[arg(long, default_value = "{}", value_parser = json)]
        args: Value,
        /// An idempotency key, to repeat a call: the text after the colon of an earlier one. Needs --turn.
        #[arg(long, requires = "turn")]
        key: Option<String>,
        /// The turn of the call that is repeated.
        #[arg(long)]
        turn: Option<uuid::Uuid>,
    },
    /// Ask the agents something, as somebody, and print the answer.
    Ask {
        /// What to ask.
        message: String,
        #[command(flatten)]
        person: Person,
    },
    /// Talk with the agents, as somebody, at the HTTP door of a local stack. Needs `AUTH_SECRET`.
    Chat {
        #[command(flatten)]
        person: Person,
        /// The door; that of `HTTP_URL` without it.
        #[arg(long)]
        url: Option<String>,
    },
    /// Print a bearer token for somebody at the HTTP door: for a local stack, which knows no other way to sign in. Needs `AUTH_SECRET`.
    Token {
        /// The person's e-mail address.
        #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
        email: String,
        /// For how many hours it lasts.
        #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u8).range(1..=168))]
        hours: u8,
    },
    /// Look at calls that wait for somebody's yes, and decide in their name.
    #[command(subcommand)]
    Approvals(ApprovalsCommand),
    /// Look at the audit log.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Ask what somebody may do, and why.
    #[command(subcommand)]
    Authz(AuthzCommand),
}

#[derive(Debug, Subcommand)]
enum AuditCommand {
    /// Print the newest rows.
    Tail {
        /// Go on printing rows as they are written.
        #[arg(long, short)]
        follow: bool,
        /// Only this school's, by its slug.
        #[arg(long)]
        school: Option<String>,
        /// A JSON object a line.
        #[arg(long)]
        json: bool,
        /// How many rows to begin with.
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(0..=1000))]
        rows: u16,
    },
}

#[derive(Debug, Subcommand)]
enum AuthzCommand {
    /// Print which rules match a tool's gate, and the verdict, without running the tool.
    Explain {
        /// The person's e-mail address.
        #[arg(long)]
        user: String,
        /// The tool's name or event.
        #[arg(long)]
        tool: String,
        /// The school, for somebody who works in several.
        #[arg(long)]
        school: Option<String>,
        /// The campus that the person works in, by id or name.
        #[arg(long)]
        campus: Option<String>,
        /// Arguments, as a JSON object: checked against the tool's schema.
        #[arg(long, value_parser = json)]
        args: Option<Value>,
    },
}

/// As whom, and where.
#[derive(Debug, Args)]
struct Person {
    /// The person's e-mail address.
    #[arg(long = "as", value_name = "E-MAIL")]
    email: String,
    /// The school, for somebody who works in several.
    #[arg(long)]
    school: Option<String>,
    /// The campus to work in, by id or name; the whole school without it.
    #[arg(long)]
    campus: Option<String>,
}

impl Person {
    fn wants(self, door: Door, lasts: Duration) -> Wanted {
        Wanted {
            email: self.email,
            school: self.school,
            campus: self.campus,
            door,
            lasts,
            turn: None,
        }
    }
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))
}

/// The whole of the binary.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    log();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error.into()),
    };
    match runtime.block_on(run(cli.command)) {
        Ok(code) => code,
        Err(error) => failed(&error),
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    // a closed pipe is the reader's way of saying enough
    let is_enough = |cause: &std::io::Error| cause.kind() == std::io::ErrorKind::BrokenPipe;
    if error.downcast_ref().is_some_and(is_enough) {
        return ExitCode::FAILURE;
    }
    let _ = writeln!(std::io::stderr(), "server: {error:#}");
    ExitCode::FAILURE
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Serve => serve::serve(Config::from_env()?).await?,
        Command::Migrate => {
            migrate::migrate(&OwnerConfig::from_env()?).await.context("migrating")?;
            print("The database is up to date.")?;
        }
        Command::Seed => seed(&OwnerConfig::from_env()?).await?,
        Command::Tools { json } => registry::tools(json)?,
        Command::Call {
            tool,
            person,
            args,
            key,
            turn,
        } => {
            return call::call(
                Config::from_env()?,
                call::Asked {
                    tool,
                    person,
                    args,
                    repeat: turn.zip(key),
                },
            )
            .await;
        }
        Command::Ask { message, person } => return call::ask(Config::from_env()?, message, person).await,
        Command::Chat { person, url } => {
            let url = url.unwrap_or_else(config::door_url);
            return chat::chat(&AuthConfig::from_env()?, person, &url).await;
        }
        Command::Token { email, hours } => {
            let minted = mint(&AuthConfig::from_env()?, &email, Duration::from_hours(hours.into()));
            print(&minted.context("AUTH_SECRET")?)?;
        }
        Command::Approvals(command) => return approvals::approvals(Config::from_env()?, command).await,
        Command::Audit(AuditCommand::Tail {
            follow,
            school,
            json,
            rows,
        }) => {
            let tail = audit::Tail {
                follow,
                school,
                json,
                rows,
            };
            audit::tail(&RoleUrls::from_env()?, tail).await?;
        }
        Command::Authz(AuthzCommand::Explain {
            user,
            tool,
            school,
            campus,
            args,
        }) => {
            let person = Person {
                email: user,
                school,
                campus,
            };
            return authz::explain(Config::from_env()?, person, &tool, args).await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn seed(config: &OwnerConfig) -> anyhow::Result<()> {
    let mut connection = migrate::connect(config).await?;
    match seed::seed(&mut connection)
        .await
        .context("seeding; is the database migrated?")?
    {
        Seeded::Now {
            schools,
            people,
            students,
        } => print(&format!(
            "Seeded {schools} schools with {people} people and {students} students."
        )),
        Seeded::Already => print("There are schools already; nothing was changed."),
    }
}

fn connect(roles: &RoleUrls) -> anyhow::Result<Database> {
    Database::connect_lazily(roles).context("a database URL cannot be read")
}

/// A text of a model or of a row as a terminal may have it: lines stay lines, and whatever else steers a terminal is shown.
fn harmless(text: &str) -> String {
    let shown = |character: char| match character {
        '\n' | '\t' => character.to_string(),
        _ if character.is_control() => character.escape_unicode().to_string(),
        _ => character.to_string(),
    };
    text.chars().map(shown).collect()
}

/// The same for a text that is JSON, and stays so: in it a character that steers stands in a text only.
fn harmless_json(json: &str) -> String {
    let shown = |character: char| match character {
        '\n' => character.to_string(),
        _ if character.is_control() => format!("\\u{:04x}", u32::from(character)),
        _ => character.to_string(),
    };
    json.chars().map(shown).collect()
}

fn print(line: &str) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}

fn log() {
    use tracing_subscriber::EnvFilter;
    let LogConfig { filter, json } = LogConfig::from_env();
    let (parsed, problem) = match EnvFilter::try_new(&filter) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new("info"), Some(error)),
    };
    let stderr = std::io::stderr;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(parsed)
        .with_ansi(stderr().is_terminal())
        .with_writer(stderr);
    if json {
        builder.json().init();
    } else {
        builder.init();
    }
    if let Some(error) = problem {
        tracing::warn!(%error, "LOG cannot be read; logging at info");
    }
}

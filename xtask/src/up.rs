//! `cargo xtask up`: the stack on this machine, from nothing to the line that says what to type next.

use std::cell::RefCell;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};
use xtask::environment;
use xtask::services::{Install, Services, random_hex, send_signal, wait_for_exit};

use crate::cargo::{binaries, cargo, describe, root};
use crate::signals::Interrupt;
use crate::stack::Stack;

/// Between two looks at whether the person has had enough.
const POLL: Duration = Duration::from_millis(100);

/// A build or a migration that is interrupted ends quickly.
const INTERRUPT_LIMIT: Duration = Duration::from_secs(10);

/// Variables of the server and the worker that the second shell needs as the first one has them.
const PASSED_ON: [&str; 9] = [
    "APP_DATABASE_URL",
    "PLATFORM_DATABASE_URL",
    "DIRECTORY_DATABASE_URL",
    "REQUIRE_GRANT",
    "AUTH_JWKS_URL",
    "AUTH_ISSUER",
    "AUTH_AUDIENCE",
    "QUEUE_PREFIX",
    "LOG",
];

/// Starts everything, waits for Ctrl-C, stops everything.
pub(crate) fn up(install: Install) -> anyhow::Result<()> {
    let interrupt = Interrupt::listen()?;
    let folder = root().join("target/stack");
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let _lock = lock(&folder)?;
    // One of a killed run names ports that are no longer ours.
    let _ = fs::remove_file(folder.join("env"));

    let services = Services::find_or_start_keeping(root(), install, &folder.join("postgres"))?;
    interrupt.check()?;
    eprintln!("build      server, worker, scripted-model");
    let packages = [
        "--package",
        "server",
        "--package",
        "worker",
        "--package",
        "scripted-model",
    ];
    run(cargo(&[&["build"], &packages[..]].concat()), &interrupt)?;

    let mut environment = Environment::new(&folder, &services)?;
    eprintln!("migrate    the database, and seed it once");
    run(environment.command("server", &["migrate"]), &interrupt)?;
    run(environment.command("server", &["seed"]), &interrupt)?;

    let mut stack = Stack::new(&folder)?;
    let started = start(&mut stack, &environment, &interrupt);
    let outcome = started.and_then(|url| {
        environment.variables.push(("HTTP_URL", url));
        let file = environment.write(&folder)?;
        println!("\n{}", ready_text(&file));
        let outcome = stack.wait(&interrupt);
        eprintln!();
        // What it names is about to be gone.
        let _ = fs::remove_file(file);
        outcome
    });
    stack.stop();
    eprintln!("stopping   services");
    drop(services);
    match outcome {
        Err(error) if !interrupt.is_set() => Err(error),
        Ok(()) | Err(_) => {
            eprintln!("stopped    all that was started; the database of a private PostgreSQL is kept in target/stack");
            Ok(())
        }
    }
}

/// Starts the services and nothing else.
pub(crate) fn services_only(install: Install) -> anyhow::Result<()> {
    let interrupt = Interrupt::listen()?;
    let services = Services::find_or_start(root(), install)?;
    println!("export DATABASE_URL={}", quote(services.database_url()));
    println!("export AMQP_URL={}", quote(services.amqp_url()));
    while !interrupt.is_set() {
        thread::sleep(POLL);
    }
    Ok(())
}

/// Starts the processes; answers where people come in.
fn start(stack: &mut Stack, environment: &Environment, interrupt: &Interrupt) -> anyhow::Result<String> {
    let mut worker = environment.command("worker", &[]);
    if is_set("OPENAI_API_KEY") || is_set("OPENAI_BASE_URL") {
        eprintln!("model      the one of OPENAI_BASE_URL and OPENAI_API_KEY");
    } else {
        let address = |line: &str| Some(line.split_once("listening on ")?.1.trim().to_owned());
        let url = stack.start(
            "scripted-model",
            environment.command("scripted-model", &[]),
            interrupt,
            address,
        )?;
        eprintln!("model      a scripted demo at {url}: set OPENAI_API_KEY or OPENAI_BASE_URL for a real one");
        worker.env("OPENAI_BASE_URL", url).env("MODEL", "scripted-demo");
    }
    eprintln!("start      server");
    let door = RefCell::new(String::new());
    stack.start("server", environment.command("server", &["serve"]), interrupt, |line| {
        if line.starts_with("http://") {
            line.trim().clone_into(&mut door.borrow_mut());
        }
        says_ready(line)
    })?;
    eprintln!("start      worker");
    stack.start("worker", worker, interrupt, says_ready)?;
    Ok(door.into_inner())
}

/// The word, not part of another ("already").
fn says_ready(line: &str) -> Option<()> {
    line.split(|c: char| !c.is_alphanumeric())
        .any(|word| word == "ready")
        .then_some(())
}

fn is_set(variable: &str) -> bool {
    environment::variable(variable).is_some()
}

/// What the processes of the stack, and the second shell, are given.
struct Environment {
    binaries: PathBuf,
    variables: Vec<(&'static str, String)>,
}

impl Environment {
    fn new(folder: &Path, services: &Services) -> anyhow::Result<Self> {
        let mut variables = vec![
            ("DATABASE_URL", services.database_url().to_owned()),
            ("AMQP_URL", services.amqp_url().to_owned()),
            ("GRANT_SECRET", secret(folder, "GRANT_SECRET")?),
            (
                "HTTP_ADDR",
                environment::variable("HTTP_ADDR").unwrap_or_else(|| "127.0.0.1:0".to_owned()),
            ),
        ];
        if !is_set("AUTH_JWKS_URL") {
            variables.push(("AUTH_SECRET", secret(folder, "AUTH_SECRET")?));
        }
        variables.extend(
            PASSED_ON
                .into_iter()
                .filter_map(|name| Some((name, environment::variable(name)?))),
        );
        Ok(Self {
            binaries: binaries()?,
            variables,
        })
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.binaries.join(program));
        command
            .args(arguments)
            .current_dir(root())
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// For `. target/stack/env`.
    fn write(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        let export = |(name, value): &(&str, String)| format!("export {name}={}", quote(value));
        let mut lines: Vec<String> = self.variables.iter().map(export).collect();
        lines.push(format!(
            "export PATH={}:\"$PATH\"\n",
            quote(&self.binaries.display().to_string())
        ));
        let file = folder.join("env");
        write_private(&file, &lines.join("\n"))?;
        Ok(file)
    }
}

/// Kept, so that what was signed before a restart is still good after it.
fn secret(folder: &Path, variable: &str) -> anyhow::Result<String> {
    if let Some(secret) = environment::variable(variable) {
        return Ok(secret);
    }
    let file = folder.join(variable.to_lowercase().replace('_', "-"));
    if let Ok(secret) = fs::read_to_string(&file) {
        return Ok(secret);
    }
    let secret = random_hex(32)?;
    write_private(&file, &secret)?;
    Ok(secret)
}

fn write_private(file: &Path, text: &str) -> anyhow::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let written = options
        .open(file)
        .and_then(|mut opened| opened.write_all(text.as_bytes()));
    written.with_context(|| format!("writing {}", file.display()))
}

/// One stack a folder. The lock goes with this process, however it ends.
fn lock(folder: &Path) -> anyhow::Result<fs::File> {
    let file = folder.join("lock");
    let lock = fs::File::create(&file).with_context(|| format!("creating {}", file.display()))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(fs::TryLockError::WouldBlock) => bail!("`cargo xtask up` runs in this folder already"),
        Err(fs::TryLockError::Error(error)) => Err(error).with_context(|| format!("locking {}", file.display())),
    }
}

/// Runs a command to its end, unless the person has had enough.
fn run(mut command: Command, interrupt: &Interrupt) -> anyhow::Result<()> {
    let words = describe(&command);
    let mut child = command
        .stdin(Stdio::null())
        .spawn()
        .with_context(|| format!("starting `{words}`"))?;
    loop {
        if interrupt.is_set() {
            send_signal(&[child.id()], "TERM");
            if wait_for_exit(&mut child, INTERRUPT_LIMIT).is_none() {
                let _ = child.kill();
            }
        }
        interrupt.check()?;
        if let Some(status) = wait_for_exit(&mut child, POLL) {
            if status.success() {
                return Ok(());
            }
            bail!("`{words}` failed ({status})");
        }
    }
}

fn ready_text(file: &Path) -> String {
    let file = file.strip_prefix(root()).unwrap_or(file).display();
    format!(
        r#"Ready. In a second shell, in this folder:

  . {file}
  server chat --as head@hilltop.example
  server audit tail --follow
  psql "$DATABASE_URL" -c "select name, created_at from departments order by created_at desc limit 5"

Logs: target/stack/*.log. Ctrl-C here stops everything."#
    )
}

/// For a POSIX shell.
fn quote(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::{quote, says_ready};

    #[test]
    fn ready_is_a_word() {
        assert!(says_ready("2026-01-01 INFO server: ready, 128 calls at once").is_some());
        assert!(says_ready("queue agent.tools already exists").is_none());
    }

    #[test]
    fn quoted_values_survive_a_shell() {
        assert_eq!(quote("it's"), r"'it'\''s'");
    }
}

//! `cargo xtask up`: the stack on this machine, from nothing to the line that says what to type next.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use xtask::environment;
use xtask::services::{Install, Services, random_hex};

use crate::cargo::root;
use crate::programs::{Programs, quote, write_private};
use crate::signals::Interrupt;
use crate::stack::{Stack, lock};

/// Between two looks at whether the person has had enough.
const POLL: Duration = Duration::from_millis(100);

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
    let _lock = lock(&folder, "cargo xtask up")?;
    // One of a killed run names ports that are no longer ours.
    let _ = fs::remove_file(folder.join("env"));

    let services = Services::find_or_start_keeping(root(), install, &folder.join("postgres"))?;
    interrupt.check()?;
    let mut programs = Programs::build(&["server", "worker", "scripted-model"], &interrupt)?;
    programs.set(settings(&folder, &services)?);
    programs.fill_database(&interrupt)?;

    let mut stack = Stack::new(&folder)?;
    let started = start(&mut stack, &programs, &interrupt);
    let outcome = started.and_then(|url| {
        programs.set([("HTTP_URL", url)]);
        let file = programs.write_environment(&folder)?;
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
fn start(stack: &mut Stack, programs: &Programs, interrupt: &Interrupt) -> anyhow::Result<String> {
    let scripted = if is_set("OPENAI_API_KEY") || is_set("OPENAI_BASE_URL") {
        eprintln!("model      the one of OPENAI_BASE_URL and OPENAI_API_KEY");
        None
    } else {
        let address = |line: &str| Some(line.split_once("listening on ")?.1.trim().to_owned());
        let url = stack.start(
            "scripted-model",
            programs.command("scripted-model", &[]),
            interrupt,
            address,
        )?;
        let address = url.trim_start_matches("http://").trim_end_matches("/v1");
        stack.keep_at("scripted-model", "SCRIPTED_MODEL_ADDR", address);
        eprintln!("model      a scripted demo at {url}: set OPENAI_API_KEY or OPENAI_BASE_URL for a real one");
        Some(url)
    };
    let door = programs.start_server(stack, interrupt)?;
    let model = scripted.as_deref().map(|url| (url, "scripted-demo"));
    programs.start_worker(model, stack, interrupt)?;
    Ok(door)
}

fn is_set(variable: &str) -> bool {
    environment::variable(variable).is_some()
}

/// What the processes of the stack, and the second shell, are given.
fn settings(folder: &Path, services: &Services) -> anyhow::Result<Vec<(&'static str, String)>> {
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
    Ok(variables)
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

fn ready_text(file: &Path) -> String {
    let file = file.strip_prefix(root()).unwrap_or(file).display();
    format!(
        r#"Ready. In a second shell, in this folder:

  . {file}
  server chat --as head@hilltop.example
  server audit tail --follow
  psql "$DATABASE_URL" -c "select name, created_at from departments order by created_at desc limit 5"

Logs: target/stack/*.log. What ends by itself is started anew. Ctrl-C here stops everything."#
    )
}

//! The project's own programs: built, given their settings, and started in the order in which they need each other.

use std::cell::RefCell;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use xtask::services::{send_signal, wait_for_exit};

use crate::cargo::{binaries, cargo, describe, root};
use crate::signals::Interrupt;
use crate::stack::Stack;

/// Between two looks at whether the person has had enough.
const POLL: Duration = Duration::from_millis(100);

/// A build or a migration that is interrupted ends quickly.
const INTERRUPT_LIMIT: Duration = Duration::from_secs(10);

/// The built programs, and what each of them is given.
pub(crate) struct Programs {
    folder: PathBuf,
    variables: Vec<(&'static str, String)>,
    /// Of the person's own environment, what must not reach them.
    hidden: &'static [&'static str],
}

impl Programs {
    /// Builds these packages; their settings are to follow.
    pub(crate) fn build(packages: &[&str], interrupt: &Interrupt) -> anyhow::Result<Self> {
        eprintln!("build      {}", packages.join(", "));
        let mut build = cargo(&["build"]);
        for package in packages {
            build.args(["--package", package]);
        }
        build.stdin(Stdio::null());
        run(build, interrupt)?;
        Ok(Self {
            folder: binaries()?,
            variables: Vec::new(),
            hidden: &[],
        })
    }

    /// From now on, each has these variables.
    pub(crate) fn set(&mut self, variables: impl IntoIterator<Item = (&'static str, String)>) {
        self.variables.extend(variables);
    }

    /// From now on, none has these of the person's own environment.
    pub(crate) fn hide(&mut self, variables: &'static [&'static str]) {
        self.hidden = variables;
    }

    /// One of them, with nothing to read.
    pub(crate) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.folder.join(program));
        command.args(arguments).current_dir(root()).stdin(Stdio::null());
        for name in self.hidden {
            command.env_remove(name);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Brings the database up to date, with the demo schools in it.
    pub(crate) fn fill_database(&self, interrupt: &Interrupt) -> anyhow::Result<()> {
        eprintln!("migrate    the database, and seed it once");
        run(self.command("server", &["migrate"]), interrupt)?;
        run(self.command("server", &["seed"]), interrupt)
    }

    /// Starts the server; answers where people come in.
    pub(crate) fn start_server(&self, stack: &mut Stack, interrupt: &Interrupt) -> anyhow::Result<String> {
        eprintln!("start      server");
        let door = RefCell::new(String::new());
        stack.start("server", self.command("server", &["serve"]), interrupt, |line| {
            if line.starts_with("http://") {
                line.trim().clone_into(&mut door.borrow_mut());
            }
            says_ready(line)
        })?;
        let door = door.into_inner();
        stack.keep_at("server", "HTTP_ADDR", door.trim_start_matches("http://"));
        Ok(door)
    }

    /// Starts a worker that asks the model at `model`, or the one of its own environment.
    pub(crate) fn start_worker(
        &self,
        model: Option<(&str, &str)>,
        stack: &mut Stack,
        interrupt: &Interrupt,
    ) -> anyhow::Result<()> {
        eprintln!("start      worker");
        let mut worker = self.command("worker", &[]);
        if let Some((url, name)) = model {
            worker.env("OPENAI_BASE_URL", url).env("MODEL", name);
        }
        stack.start("worker", worker, interrupt, says_ready)
    }

    /// Writes what a second shell needs to be one of them: for `. <folder>/env`.
    pub(crate) fn write_environment(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        let export = |(name, value): &(&str, String)| format!("export {name}={}", quote(value));
        let mut lines: Vec<String> = self.variables.iter().map(export).collect();
        lines.push(format!(
            "export PATH={}:\"$PATH\"\n",
            quote(&self.folder.display().to_string())
        ));
        let file = folder.join("env");
        write_private(&file, &lines.join("\n"))?;
        Ok(file)
    }
}

/// Runs a command to its end, unless the person has had enough.
pub(crate) fn run(mut command: Command, interrupt: &Interrupt) -> anyhow::Result<()> {
    let words = describe(&command);
    let mut child = command.spawn().with_context(|| format!("starting `{words}`"))?;
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

/// Writes a file that only who runs this can read.
pub(crate) fn write_private(file: &Path, text: &str) -> anyhow::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let written = options
        .open(file)
        .and_then(|mut opened| opened.write_all(text.as_bytes()));
    written.with_context(|| format!("writing {}", file.display()))
}

/// For a POSIX shell.
pub(crate) fn quote(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

/// The word, not part of another ("already").
fn says_ready(line: &str) -> Option<()> {
    line.split(|c: char| !c.is_alphanumeric())
        .any(|word| word == "ready")
        .then_some(())
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

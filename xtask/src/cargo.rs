//! How this crate starts cargo, and where things are.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use xtask::environment;

/// The workspace's folder.
pub(crate) fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}

/// Where cargo puts the programs that it builds: it has put this one there, too.
pub(crate) fn binaries() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("where is this program?")?;
    let folder = program.parent().context("this program is in no folder")?;
    Ok(folder.to_path_buf())
}

/// A cargo that runs in the workspace, and reads queries from `.sqlx`: a `DATABASE_URL` leads to a database for tests,
/// which has no tables.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(environment::variable("CARGO").unwrap_or_else(|| "cargo".to_owned()));
    command.args(arguments).current_dir(root()).env("SQLX_OFFLINE", "true");
    for variable in environment::package_variables() {
        command.env_remove(variable);
    }
    command
}

/// Runs a command to its end, and says which one failed.
pub(crate) fn run(mut command: Command) -> anyhow::Result<()> {
    let status = command
        .status()
        .with_context(|| format!("starting {}", describe(&command)))?;
    if !status.success() {
        bail!("`{}` failed ({status})", describe(&command));
    }
    Ok(())
}

/// The command as a person would type it.
pub(crate) fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

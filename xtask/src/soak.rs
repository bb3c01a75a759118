//! `cargo xtask soak`: turns with a scripted model while servers, workers, the broker and the database are killed under them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail};

use crate::cargo::{cargo, root, run};

/// The programs that another version brings.
const PROGRAMS: [&str; 2] = ["server", "worker"];

/// What is to be done.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many turns
    #[arg(long, default_value_t = 500)]
    turns: u64,
    /// After how many seconds no more turns are begun; 0 for as long as it takes
    #[arg(long, default_value_t = 0)]
    seconds: u64,
    /// What chance comes from; another each time where it is left out
    #[arg(long)]
    seed: Option<u64>,
    /// A commit of which one of the two servers and one of the two workers are, on this one's database: a rolling upgrade
    #[arg(long, value_name = "COMMIT")]
    beside: Option<String>,
}

/// Runs it. Its services are of its own, since it loses them.
pub(crate) fn soak(options: &Options) -> anyhow::Result<()> {
    let numbers = [options.turns, options.seconds, options.seed.unwrap_or_else(some_seed)];
    let mut test = cargo(&["test", "--quiet", "--package", "e2e", "--test", "soak", "--"]);
    test.args(numbers.map(|number| number.to_string()));
    if let Some(commit) = &options.beside {
        test.args(build_at(commit)?);
    }
    run(test)
}

/// Builds the programs of a commit, and answers where they are. Their build folder is kept.
fn build_at(commit: &str) -> anyhow::Result<[PathBuf; 2]> {
    let folder = root().join("target/beside");
    let tree = folder.join("tree");
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    if tree.exists() {
        fs::remove_dir_all(&tree).with_context(|| format!("removing {}", tree.display()))?;
    }
    fs::create_dir(&tree).with_context(|| format!("creating {}", tree.display()))?;
    extract(commit, &tree)?;
    let target = folder.join("target");
    let mut build = cargo(&["build"]);
    for program in PROGRAMS {
        build.args(["--package", program]);
    }
    build.current_dir(&tree).env("CARGO_TARGET_DIR", &target);
    run(build)?;
    Ok(PROGRAMS.map(|program| target.join("debug").join(program)))
}

/// Writes the files of a commit to a folder. They are as old as now: cargo goes by that.
fn extract(commit: &str, folder: &Path) -> anyhow::Result<()> {
    let mut archive = Command::new("git");
    archive
        .args(["archive", commit])
        .current_dir(root())
        .stdout(Stdio::piped());
    let mut archive = archive.spawn().context("starting git")?;
    let files = archive.stdout.take().context("git writes nothing")?;
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--touch"]).current_dir(folder).stdin(files);
    run(tar)?;
    if !archive.wait().context("waiting for git")?.success() {
        bail!("git knows no commit `{commit}`");
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a seed that is another each time")]
fn some_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::from(since.subsec_micros())
}

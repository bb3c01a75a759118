//! `cargo xtask bench`: builds ours and the peers, and measures them in turn; or lists in schools of two sizes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use crate::cargo::{cargo, describe, root, run};
use crate::peers;

/// How it is measured.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Three short rounds instead of five
    #[arg(long)]
    quick: bool,
    /// How many seconds to wait in all for other processes to leave the machine alone
    #[arg(long, default_value_t = 0)]
    patience: u64,
    /// Only drives ours, each event for so many seconds; says which processes, for a profiler, and what the database did
    #[arg(long, value_name = "SECONDS")]
    hold: Option<u64>,
    /// Measures something else: each list's page in a small school and in one of 20,000 students
    #[arg(long, conflicts_with_all = ["quick", "patience", "hold", "peers"])]
    lists: bool,
}

/// Measures. Without peers, ours alone.
pub(crate) fn bench(peers: Option<&Path>, options: &Options) -> anyhow::Result<()> {
    if options.lists {
        return run(cargo(&["bench", "--package", "e2e", "--bench", "lists"]));
    }
    if let Some(peers) = peers {
        peers::build_nest(peers)?;
        peers::build_floor(peers)?;
    } else {
        eprintln!("peers      none: ours is measured alone, since there is no --peers");
    }
    let mut bench = Command::new(build()?);
    bench
        .arg("--server")
        .arg(root().join("target/release/server"))
        .arg("--out")
        .arg(peers::folder())
        .args(["--patience", &options.patience.to_string()]);
    if let Some(seconds) = options.hold {
        bench.args(["--hold", &seconds.to_string()]);
    }
    if options.quick {
        bench.arg("--quick");
    }
    if peers.is_some() {
        bench.arg("--peers").arg(peers::folder());
    }
    run(bench)
}

/// Builds the server and the benchmark of it from one state of the sources, and answers where the benchmark is.
fn build() -> anyhow::Result<PathBuf> {
    let packages = ["--package", "server", "--package", "benches"];
    let targets = ["--bin", "server", "--bench", "hop"];
    let format = "--message-format=json-render-diagnostics";
    let mut build = cargo(&[&["build", "--release", format], &packages[..], &targets[..]].concat());
    let words = describe(&build);
    let output = build.stderr(Stdio::inherit()).output().context("starting cargo")?;
    if !output.status.success() {
        bail!("`{words}` failed ({})", output.status);
    }
    let messages = String::from_utf8(output.stdout).context("cargo's messages are not UTF-8")?;
    let of_hop = |line: &&str| line.contains(r#""kind":["bench"]"#);
    let executable = messages
        .lines()
        .find(of_hop)
        .and_then(|line| line.split_once(r#""executable":""#)?.1.split_once('"'));
    let (path, _) = executable.context("cargo has not said where the benchmark is")?;
    Ok(PathBuf::from(path))
}

//! `cargo xtask bench`: builds ours and the peers, and measures them in turn.

use std::path::Path;

use crate::cargo::{cargo, root, run};
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
}

/// Measures. Without peers, ours alone.
pub(crate) fn bench(peers: Option<&Path>, options: &Options) -> anyhow::Result<()> {
    if let Some(peers) = peers {
        peers::build_nest(peers)?;
        peers::build_floor(peers)?;
    } else {
        eprintln!("peers      none: ours is measured alone, since there is no --peers");
    }
    run(cargo(&[
        "build",
        "--release",
        "--package",
        "server",
        "--package",
        "benches",
        "--bin",
        "server",
    ]))?;
    let target = root().join("target");
    let mut bench = cargo(&["bench", "--package", "benches", "--bench", "hop", "--"]);
    bench
        .arg("--server")
        .arg(target.join("release/server"))
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

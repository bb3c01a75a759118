//! `cargo xtask soak`: takes how many turns, for how many seconds at most (0: as long as it takes), and the seed. Prints what was done,
//! and fails where anything was found.

#![allow(clippy::expect_used, reason = "a script that fails at the first surprise")]

use e2e::soak::{Plan, Programs, run};
use std::{process::ExitCode, time::Duration};

const PROGRAMS: Programs = Programs {
    server: env!("CARGO_BIN_EXE_server-under-test"),
    worker: env!("CARGO_BIN_EXE_worker-under-test"),
};

#[tokio::main]
async fn main() -> ExitCode {
    let numbers: Vec<u64> = std::env::args()
        .skip(1)
        .filter_map(|number| number.parse().ok())
        .collect();
    let [turns, seconds, seed] = numbers[..].try_into().expect("turns, seconds, seed");
    let plan = Plan {
        turns: usize::try_from(turns).expect("not as many"),
        limit: (seconds > 0).then_some(Duration::from_secs(seconds)),
        seed,
        people: 16,
        kill_every: (500, 3000),
        restarts: true,
        quiet: false,
    };
    let outcome = run(plan, PROGRAMS).await;
    println!("{}", outcome.table);
    for finding in &outcome.findings {
        println!("found      {finding}");
    }
    if outcome.findings.is_empty() {
        println!("nothing was lost, and nothing done twice");
        return ExitCode::SUCCESS;
    }
    println!("again with: cargo xtask soak --turns {turns} --seed {seed}");
    ExitCode::FAILURE
}

//! `cargo xtask soak`: takes how many turns, for how many seconds at most (0: as long as it takes), the seed, and the server and the worker
//! of another version, if they are to be there as well. Prints what was done, and fails where anything was found.

#![allow(clippy::expect_used, reason = "a script that fails at the first surprise")]

use e2e::soak::{Plan, Programs, run};
use std::{process::ExitCode, time::Duration};

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|number| number.parse().ok());
    let numbers = (number(0), number(1), number(2));
    let (Some(turns), Some(seconds), Some(seed)): (Option<u64>, Option<u64>, Option<u64>) = numbers else {
        panic!("turns, seconds, seed");
    };
    let own = Programs {
        server: env!("CARGO_BIN_EXE_server-under-test").to_owned(),
        worker: env!("CARGO_BIN_EXE_worker-under-test").to_owned(),
    };
    let other = match arguments.get(3..).unwrap_or_default() {
        [] => own.clone(),
        [server, worker] => Programs {
            server: server.clone(),
            worker: worker.clone(),
        },
        _ => panic!("a server and a worker"),
    };
    let plan = Plan {
        turns: usize::try_from(turns).expect("not as many"),
        limit: (seconds > 0).then_some(Duration::from_secs(seconds)),
        seed,
        people: 16,
        kill_every: (500, 3000),
        restarts: true,
        quiet: false,
    };
    let outcome = run(plan, [own, other]).await;
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

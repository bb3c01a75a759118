//! A short soak; `cargo xtask soak` runs a long one, and loses the broker and the database as well.

use e2e::soak::{Plan, Programs, run};

#[tokio::test(flavor = "multi_thread")]
async fn loses_and_repeats_nothing() {
    let plan = Plan {
        turns: 20,
        limit: None,
        seed: 1,
        people: 8,
        kill_every: (500, 1500),
        restarts: false,
        quiet: true,
    };
    let programs = Programs {
        server: env!("CARGO_BIN_EXE_server-under-test").to_owned(),
        worker: env!("CARGO_BIN_EXE_worker-under-test").to_owned(),
    };
    let outcome = run(plan, [programs.clone(), programs]).await;
    eprintln!("{}", outcome.table);
    assert!(outcome.findings.is_empty(), "{:#?}", outcome.findings);
}

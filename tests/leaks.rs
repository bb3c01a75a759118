//! Leaks: with a mark in every text of every row, thousands of drawn calls, and no mark anywhere but where it may be.
//!
//! Faults 3, 4, 5, 9, 10, 38 and 54 show here, whichever way in they take: nobody is asked how a leak may come about. What may be
//! seen is worked out in `reach` from the seeded facts, not by the product's own rules.

#[path = "leaks/actors.rs"]
mod actors;
#[path = "leaks/draw.rs"]
mod draw;
#[path = "leaks/facts.rs"]
mod facts;
#[path = "leaks/logs.rs"]
mod logs;
#[path = "leaks/marking.rs"]
mod marking;
#[path = "leaks/marks.rs"]
mod marks;
#[path = "leaks/reach.rs"]
mod reach;
#[path = "leaks/settle.rs"]
mod settle;
#[path = "leaks/theatre.rs"]
mod theatre;

use draw::Drawn;
use logs::{on, runtime_with_logs};
use proptest::{
    collection::vec,
    strategy::Strategy,
    test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner},
};
use std::{io::Write as _, sync::Arc};
use theatre::Theatre;
use tokio::runtime::Runtime;
use uuid::Uuid;

/// Calls of a run.
const CALLS: usize = 3_000;
/// The most calls of one case, which is what a failure is shrunk from.
const CASE: usize = 100;
/// The seed of the draw, in hexadecimal, to repeat a run that failed.
const SEED_VARIABLE: &str = "LEAKS_SEED";

#[test]
fn no_reply_no_audit_row_and_no_log_line_holds_a_mark_of_elsewhere() {
    let (runtime, logs) = runtime_with_logs();
    let theatre = Arc::new(on(&runtime, Theatre::open(logs)));
    let seed = seed();
    say(&format!("leaks: {CALLS} calls, {SEED_VARIABLE}={}", hex(&seed)));
    let found = play(&runtime, &theatre, &seed);
    assert!(
        found.is_ok(),
        "{SEED_VARIABLE}={} shows a leak:\n{}",
        hex(&seed),
        found.unwrap_err()
    );
    let swept = Arc::clone(&theatre);
    let minted = on(&runtime, async move {
        swept.judge_tables().await?;
        swept.judge_dispatch().await
    });
    assert!(minted.unwrap() > 50, "turns begin");
    assert_there_was_something_to_see(&theatre);
    on(&runtime, async move { Arc::into_inner(theatre).unwrap().stage.finish().await });
}

/// A test that finds nothing has looked at something.
fn assert_there_was_something_to_see(theatre: &Theatre) {
    let tally = theatre.tally.lock().unwrap();
    say(&format!("{tally:#?}"));
    for tool in contract::RPC_AGENT_TOOLS {
        let name = tool.definition.name;
        let (data, errors) = tally.by_tool.get(name).copied().unwrap_or_default();
        assert!(data > 5 && errors > 5, "{name} answered {data} times with data and {errors} times with an error");
    }
    let owners = tally.seen.len();
    assert_eq!(owners, 9, "marks of both schools, all campuses and the operator were seen: {:?}", tally.seen);
    assert!(tally.log_lines > tally.calls, "calls were logged: {} lines", tally.log_lines);
    assert!(tally.audit_rows > 100, "writes were made: {}", tally.audit_rows);
}

/// Draws cases and runs them until there were enough calls; a case that fails is shrunk.
fn play(runtime: &Runtime, theatre: &Arc<Theatre>, seed: &[u8; 32]) -> Result<(), Leak> {
    let config = Config {
        failure_persistence: None,
        max_shrink_iters: 600,
        ..Config::default()
    };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, seed));
    let cases = vec(draw::call(&theatre.deck), 1..=CASE);
    let mut calls = 0;
    while calls < CALLS {
        let case = cases.new_tree(&mut runner).unwrap();
        calls += proptest::strategy::ValueTree::current(&case).len();
        let run = |calls: Vec<Drawn>| {
            let theatre = Arc::clone(theatre);
            on(runtime, async move { theatre.run(&calls).await }).map_err(TestCaseError::fail)
        };
        match runner.run_one(case, run) {
            Ok(_) => {}
            Err(TestError::Fail(reason, calls)) => {
                return Err(Leak {
                    reason: reason.message().to_owned(),
                    calls,
                });
            }
            Err(TestError::Abort(reason)) => panic!("the draw was given up: {reason}"),
        }
    }
    Ok(())
}

/// The smallest case that was found to leak.
#[derive(Debug)]
struct Leak {
    reason: String,
    calls: Vec<Drawn>,
}

impl std::fmt::Display for Leak {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}\nafter these calls:", self.reason)?;
        self.calls.iter().try_for_each(|call| writeln!(f, "  {call:?}"))
    }
}

fn seed() -> [u8; 32] {
    #[expect(clippy::disallowed_methods, reason = "the test's own variable, which repeats a run that failed")]
    let given = std::env::var(SEED_VARIABLE);
    let mut seed = [0; 32];
    match given {
        Ok(text) => {
            assert_eq!(text.len(), 64, "{SEED_VARIABLE} is 64 hexadecimal digits");
            for (at, byte) in seed.iter_mut().enumerate() {
                *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap();
            }
        }
        Err(_) => {
            seed[..16].copy_from_slice(Uuid::new_v4().as_bytes());
            seed[16..].copy_from_slice(Uuid::new_v4().as_bytes());
        }
    }
    seed
}

fn hex(seed: &[u8]) -> String {
    seed.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Says something that shows in a run that passes as well.
fn say(text: &str) {
    writeln!(std::io::stderr(), "{text}").unwrap();
}

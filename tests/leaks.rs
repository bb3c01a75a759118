//! Leaks: with a mark in every text of every row, thousands of drawn calls, and no mark anywhere but where it may be.
//!
//! Faults 3, 4, 5, 9, 10, 38 and 54 show here, whichever way in they take: nobody is asked how a leak may come about. What may be
//! seen is worked out in `reach` and `sight` from the seeded facts, not by the product's own rules.

mod actors;
mod catalog;
mod draw;
mod facts;
mod ids;
mod logs;
mod marking;
mod marks;
mod reach;
mod settle;
mod sight;
mod theatre;

use draw::Drawn;
use logs::{on, runtime_with_logs};
use proptest::{
    collection::vec,
    strategy::{Strategy, ValueTree},
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
/// The same where a leak is planted, which needs few to show.
const CASE_OF_PLANTED: usize = 20;
/// The seed of the draw, in hexadecimal, to repeat a run that failed.
const SEED_VARIABLE: &str = "LEAKS_SEED";

#[test]
fn no_reply_no_audit_row_and_no_log_line_holds_a_mark_of_elsewhere() {
    let (runtime, logs) = runtime_with_logs();
    let theatre = Arc::new(runtime.block_on(Theatre::open(logs)));
    let seed = seed();
    say(&format!("leaks: {CALLS} calls, {SEED_VARIABLE}={}", hex(&seed)));
    for example in draw::every_example(&theatre.deck) {
        let theatre = Arc::clone(&theatre);
        on(&runtime, async move { theatre.run(&[example]).await }).unwrap();
    }
    let found = play(&runtime, &theatre, &seed, CASE);
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
    on(&runtime, async move {
        Arc::into_inner(theatre).unwrap().stage.finish().await;
    });
}

/// Leaks to be found: what makes them, what undoes them, and what must be said of them.
const PLANTED: &[(&str, &str, &str)] = &[
    (
        "CREATE POLICY planted ON departments FOR SELECT TO school_app USING (true)",
        "DROP POLICY planted ON departments",
        "the reply holds a mark of",
    ),
    (
        "ALTER TABLE staff DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE staff ENABLE ROW LEVEL SECURITY",
        "the reply holds a mark of",
    ),
    (
        "UPDATE role_permissions SET condition = NULL WHERE action = 'LIST' AND resource = 'DEPARTMENT'
            AND condition IS NOT NULL",
        r#"UPDATE role_permissions p SET condition = '{"campusId": "$own"}' FROM roles r
            WHERE r.school_id = p.school_id AND r.id = p.role_id AND r.rank <= 30
              AND p.action = 'LIST' AND p.resource = 'DEPARTMENT'"#,
        "the reply holds a mark of",
    ),
    (
        "CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'no department is called %', new.name; END $$;
         CREATE TRIGGER planted BEFORE INSERT ON departments FOR EACH ROW EXECUTE FUNCTION planted()",
        "DROP FUNCTION planted CASCADE",
        "the log holds",
    ),
    (
        "CREATE TABLE kept AS SELECT * FROM enrolments;
         UPDATE enrolments e SET stream_id = mine.id
           FROM streams mine JOIN class_teachers t ON t.school_id = mine.school_id AND t.stream_id = mine.id
          WHERE mine.school_id = e.school_id AND mine.campus_academic_year_id = e.campus_academic_year_id AND mine.id <> e.stream_id",
        "UPDATE enrolments e SET stream_id = kept.stream_id FROM kept WHERE kept.school_id = e.school_id AND kept.id = e.id",
        "from students",
    ),
    (
        "CREATE TABLE kept_assessments AS SELECT school_id, id, subject_id FROM assessments;
         UPDATE assessments a SET subject_id = t.subject_id FROM subject_teachers t
          WHERE t.school_id = a.school_id AND t.stream_id = a.stream_id AND t.subject_id <> a.subject_id",
        "UPDATE assessments a SET subject_id = kept.subject_id
           FROM kept_assessments kept WHERE kept.school_id = a.school_id AND kept.id = a.id",
        "from assessments",
    ),
    (
        "CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
            $$ BEGIN new.arguments := jsonb_build_object('n', (SELECT name FROM schools WHERE id <> new.school_id)); RETURN new; END $$;
         CREATE TRIGGER planted BEFORE INSERT ON audit_log FOR EACH ROW EXECUTE FUNCTION planted()",
        "DROP FUNCTION planted CASCADE",
        "an audit row of",
    ),
];

#[test]
fn a_planted_leak_is_found_and_shrunk_to_the_one_call_that_shows_it() {
    let (runtime, logs) = runtime_with_logs();
    let theatre = Arc::new(runtime.block_on(Theatre::open(logs)));
    for (plant, uproot, wanted) in PLANTED {
        runtime.block_on(theatre.stage.arrange(plant));
        let Err(leak) = play(&runtime, &theatre, &[7; 32], CASE_OF_PLANTED) else {
            panic!("not found: {plant}");
        };
        assert!(leak.reason.contains(wanted), "{plant} shows as {leak}");
        assert_eq!(leak.calls.len(), 1, "{leak}");
        runtime.block_on(theatre.stage.arrange(uproot));
    }
    let found = runtime.block_on(theatre.judge_tables());
    assert!(
        found.unwrap_err().contains("audit_log"),
        "what was planted last has stayed"
    );
}

/// A test that finds nothing has looked at something.
fn assert_there_was_something_to_see(theatre: &Theatre) {
    let tally = theatre.tally.lock().unwrap();
    let answers: usize = tally.by_tool.values().map(|(data, _)| data).sum();
    say(&format!(
        "leaks: {} calls, {answers} answered with data, {} marks in replies, {} audit rows, {} log lines",
        tally.calls,
        tally.seen.values().sum::<usize>(),
        tally.audit_rows,
        tally.log_lines
    ));
    for tool in contract::RPC_AGENT_TOOLS {
        let name = tool.definition.name;
        let (data, errors) = tally.by_tool.get(name).copied().unwrap_or_default();
        assert!(
            data > 0 && errors > 0,
            "{name} answered {data} times with data and {errors} times with an error"
        );
    }
    let owners = tally.seen.len();
    assert_eq!(
        owners, 9,
        "marks of both schools, all campuses and the operator were seen: {:?}",
        tally.seen
    );
    assert!(
        tally.log_lines > tally.calls,
        "calls were logged: {} lines",
        tally.log_lines
    );
    assert!(tally.audit_rows > 30, "writes were made: {}", tally.audit_rows);
}

/// Draws cases of at most so many calls and runs them until there were enough; a case that fails is shrunk.
fn play(runtime: &Runtime, theatre: &Arc<Theatre>, seed: &[u8; 32], case: usize) -> Result<(), Leak> {
    let config = Config {
        failure_persistence: None,
        max_shrink_iters: 300,
        ..Config::default()
    };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, seed));
    let cases = vec(draw::call(&theatre.deck), 1..=case);
    let mut calls = 0;
    while calls < CALLS {
        let case = cases.new_tree(&mut runner).unwrap();
        calls += case.current().len();
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

/// The seed that was asked for, or a new one.
fn seed() -> [u8; 32] {
    #[expect(
        clippy::disallowed_methods,
        reason = "the test's own variable, which repeats a run that failed"
    )]
    let given = std::env::var(SEED_VARIABLE).ok();
    let text = given.unwrap_or_else(|| format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple()));
    let mut seed = [0; 32];
    for (at, byte) in seed.iter_mut().enumerate() {
        let digits = text.get(2 * at..2 * at + 2).expect("a seed has 64 hexadecimal digits");
        *byte = u8::from_str_radix(digits, 16).expect("a seed has 64 hexadecimal digits");
    }
    seed
}

fn hex(seed: &[u8; 32]) -> String {
    let half = |at: usize| Uuid::from_slice(&seed[at..at + 16]).unwrap().simple();
    format!("{}{}", half(0), half(16))
}

/// Says something that shows in a run that passes as well.
fn say(text: &str) {
    std::io::stderr().write_all(format!("{text}\n").as_bytes()).unwrap();
}

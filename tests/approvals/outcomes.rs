//! How it is told that something was not done: as an outcome that somebody or time brought about, and not as a malfunction, which a
//! model would look into and a person would wait out.

use super::{Asked, SECRET, TOOL, args, first, status};
use crate::{http::Server, working::Working};
use e2e::{Stage, fixtures::HILLTOP, stage::error};
use scripted_model::{Reply, Script};
use serde_json::{Value, json};
use server::decision::Ruling;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::process::Command;

/// What a malfunction is told by, and what invites to do the same once more.
const OF_MALFUNCTIONS: [&str; 7] = [
    "error",
    "fail",
    "infrastructure",
    "retry",
    "try again",
    "problem",
    "went wrong",
];
/// That it was not done, in the words that are used for it.
const NOT_DONE: [&str; 3] = ["not done", "Nothing is done", "stays undone"];
/// That nobody is to be asked for it again, in the words that are used for it.
const NOT_AGAIN: [&str; 3] = ["Do not ask again", "Do not repeat it", "do not call it again"];

/// Whether the same may be asked for again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    No,
    /// By the person, in a turn of their own.
    IfWanted,
}

fn assert_told_as_an_outcome(what: &str, text: &str, again: Again) {
    let has = |words: &[&str]| words.iter().any(|words| text.contains(words));
    assert!(has(&NOT_DONE), "{what}: {text}");
    assert_eq!(has(&NOT_AGAIN), again == Again::No, "{what}: {text}");
    let lower = text.to_lowercase();
    for word in OF_MALFUNCTIONS {
        assert!(!lower.contains(word), "{what}, {word}: {text}");
    }
}

/// fault 39
#[tokio::test]
async fn of_a_decision_or_none_are_no_malfunctions() {
    let silent = Asked::new().await;
    silent.decide("admin", Ruling::reject(None).unwrap()).await.unwrap();
    let rejected = error(silent.again().await);
    assert_told_as_an_outcome("rejected", &rejected, Again::No);
    let asked_before = error(first(&silent.stage, &silent.admin, args(), "2").await);
    assert_told_as_an_outcome("asked before", &asked_before, Again::No);
    silent.stage.finish().await;

    let reasoned = Asked::new().await;
    let reason = Ruling::reject(Some("Not before the inspection.".into())).unwrap();
    reasoned.decide("admin", reason).await.unwrap();
    let rejected = error(reasoned.again().await);
    assert!(rejected.contains("Not before the inspection."), "{rejected}");
    assert_told_as_an_outcome("rejected with a reason", &rejected, Again::No);
    reasoned.stage.finish().await;

    let over = "created_at = now() - interval '2 days', expires_at = now() - interval '1 second'";
    let leave = format!(
        "UPDATE users SET active = false WHERE email = '{}'",
        HILLTOP.email("admin")
    );
    for (what, change) in [("expired", format!("UPDATE approvals SET {over}")), ("revoked", leave)] {
        let asked = Asked::new().await;
        asked.stage.arrange(&change).await;
        asked
            .stage
            .decisions()
            .look_after(Duration::from_mins(2))
            .await
            .unwrap();
        assert_eq!(status(&asked.stage, asked.id).await, what);
        let result = sqlx::query_scalar("SELECT result ->> 'error' FROM approvals WHERE id = $1").bind(asked.id);
        let result: String = result.fetch_one(&mut asked.stage.owner().await).await.unwrap();
        assert_told_as_an_outcome(what, &result, Again::No);
        asked.stage.finish().await;
    }
}

/// A model that calls the tool and says that it waits; with what it read of the call, and what it was told before anything else.
fn calling(read: &Arc<Mutex<Vec<(String, String)>>>) -> Script {
    let read = Arc::clone(read);
    Script::function(move |request| {
        let messages = request["messages"].as_array().expect("a conversation");
        let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
        let Some(result) = messages.iter().rfind(|message| message["role"] == "tool") else {
            return Reply::call(TOOL, args().to_string());
        };
        read.lock().unwrap().push((text(result), text(&messages[0])));
        Reply::text("I see.")
    })
}

/// fault 39: where no turn waits for it, the model reads that somebody decides elsewhere
#[tokio::test]
async fn of_a_call_that_nobody_waits_for_are_no_malfunctions() {
    let stage = Stage::new().await;
    let read = Arc::default();
    let (serving, worker) = (stage.serve().await, Working::with(&stage, calling(&read)).await);
    Command::new(env!("CARGO_BIN_EXE_server-under-test"))
        .args(["ask", "Delete it", "--as", &HILLTOP.email("admin")])
        .env_clear()
        .envs(stage.variables())
        .output()
        .await
        .unwrap();
    let (result, _) = read.lock().unwrap().pop().expect("it was called");
    assert_told_as_an_outcome("pending", &result, Again::No);
    worker.stop().await;
    serving.stop().await;
    stage.finish().await;
}

/// fault 39: what a model reads in a turn that goes on, and what its person reads where it does not
#[tokio::test]
async fn of_a_turn_that_waited_are_no_malfunctions() {
    let stage = Stage::with(&[SECRET]).await;
    let read = Arc::default();
    let (server, worker) = (Server::on(&stage).await, Working::with(&stage, calling(&read)).await);
    let admin = server.person(&stage, &HILLTOP.email("admin")).await;
    let begin = async || {
        let turn = admin.turn(&admin.thread(&json!({})).await, "Delete it").await;
        stage
            .until("SELECT count(*) FROM turns WHERE status = 'waiting'", 1)
            .await;
        turn
    };
    begin().await;
    stage
        .arrange("UPDATE approvals SET created_at = now() - interval '2 days', expires_at = now() - interval '1 day'")
        .await;
    stage
        .until("SELECT count(*) FROM turns WHERE status = 'answered'", 1)
        .await;
    let (result, prompt) = read.lock().unwrap().pop().expect("it goes on");
    let envelope: Value = serde_json::from_str(&result).expect("a result is an envelope");
    assert_told_as_an_outcome(
        "expired",
        envelope["error"].as_str().expect("it was not done"),
        Again::No,
    );
    // the envelope has one place for all that was not done: what stands around it says how to read this
    assert!(prompt.contains("look for no cause"), "{prompt}");

    let turn = begin().await;
    stage
        .arrange("UPDATE turns SET deadline_at = now() - interval '1 hour' WHERE status = 'waiting'")
        .await;
    let events = admin.follow(&turn, None).await.all().await;
    let outcome = events.last().expect("an end").data["outcome"]["error"].clone();
    assert_told_as_an_outcome(
        "nobody answered",
        outcome.as_str().expect("it was not done"),
        Again::IfWanted,
    );
    worker.stop().await;
    server.process.kill().await;
    stage.finish().await;
}

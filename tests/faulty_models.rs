//! What a person sees when the model's endpoint fails: a clear end of the turn, nothing of the provider's, and a thread that goes on.

use crate::http::{Event, Server, Visitor};
use e2e::{Stage, fixtures::HILLTOP, process::Process};
use reqwest::StatusCode;
use scripted_model::{Reply, Script, ScriptedModel};
use serde_json::{Value, json};
use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use tokio::time::timeout;

/// What the endpoint says of itself, which no person is to read.
const OF_THE_PROVIDER: &str = "org-4711 overloaded";

/// What the person said last.
fn said(request: &Value) -> &str {
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let last = messages.iter().rev().find(|message| message["role"] == "user");
    last.and_then(|message| message["content"].as_str()).unwrap_or_default()
}

/// Whether the person has just spoken, and no tool has answered since.
fn is_asked(request: &Value) -> bool {
    let last = request["messages"].as_array().and_then(|messages| messages.last());
    last.is_some_and(|message| message["role"] == "user")
}

/// An endpoint that fails as it is told to by the message.
fn endpoint() -> Script {
    let refused = AtomicUsize::new(0);
    let body = json!({"error": {"message": OF_THE_PROVIDER, "type": "server_error"}}).to_string();
    Script::function(move |request| match said(request) {
        "busy" if refused.fetch_add(1, Ordering::Relaxed) == 0 => Reply::status(429, &body).header("retry-after", "0"),
        "down" => Reply::status(500, &body),
        "empty" => Reply::raw(json!({"choices": []}).to_string()),
        "nothing" => Reply::nothing(),
        "torn" => Reply::nothing()
            .and_call(Some("a"), "create_department", r#"{"name": "Never made"}"#)
            .torn_after(2),
        "hang" => Reply::hanging(),
        "unknown" if is_asked(request) => Reply::call("drop_table", r#"{"name": "departments"}"#),
        other => Reply::text(format!("You said: {other}")),
    })
}

async fn say(visitor: &Visitor, thread: &str, message: &str) -> Vec<Event> {
    let turn = visitor.turn(thread, message).await;
    visitor.follow(&turn, None).await.all().await
}

fn outcome(events: &[Event]) -> &Value {
    &events.last().expect("a turn has an end").data["outcome"]
}

#[tokio::test]
async fn end_a_turn_clearly_and_the_thread_goes_on() {
    let stage = Stage::with(&[("AUTH_SECRET", "signs the tokens of these tests only!")]).await;
    let model = ScriptedModel::start(endpoint()).await.expect("the model listens");
    let url = model.base_url();
    let more = [("OPENAI_BASE_URL", url.as_str()), ("MODEL", "faulty")];
    let worker = Process::start(env!("CARGO_BIN_EXE_worker-under-test"), &[], &stage, &more).await;
    let server = Server::on(&stage).await;
    let head = server.person(&stage, &HILLTOP.email("head")).await;
    let thread = head.thread(&json!({})).await;

    let events = say(&head, &thread, "busy").await;
    assert_eq!(outcome(&events)["answer"], "You said: busy", "it is asked again");
    for (message, told) in [
        ("down", "cannot be reached"),
        ("empty", "could not process"),
        ("nothing", "gave no answer"),
        ("torn", "broke off"),
    ] {
        let events = say(&head, &thread, message).await;
        let error = outcome(&events)["error"]
            .as_str()
            .unwrap_or_else(|| panic!("{message}: {events:?}"));
        assert!(error.contains(told), "{message}: {error}");
        let next = say(&head, &thread, &format!("after {message}")).await;
        assert_eq!(outcome(&next)["answer"], format!("You said: after {message}"));
    }
    assert_eq!(
        stage
            .count("SELECT count(*) FROM departments WHERE name = 'Never made'")
            .await,
        0
    );

    let events = say(&head, &thread, "unknown").await;
    let refused = events
        .iter()
        .find(|event| event.kind == "tool_ended")
        .expect("the call is told of");
    assert!(
        refused.data["error"]
            .as_str()
            .is_some_and(|text| text.contains("no tool")),
        "{refused:?}"
    );
    assert!(outcome(&events)["answer"].is_string(), "{events:?}");

    let turn = head.turn(&thread, "hang").await;
    let mut events = head.follow(&turn, None).await;
    assert_eq!(events.next().await.expect("it begins").kind, "started");
    let (status, _) = head.post(&format!("/v1/turns/{turn}/cancel"), &json!({})).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let ended = timeout(Duration::from_secs(10), events.all())
        .await
        .expect("it is stopped at once");
    assert!(outcome(&ended)["cancelled"].is_string(), "{ended:?}");
    let next = say(&head, &thread, "after all").await;
    assert_eq!(outcome(&next)["answer"], "You said: after all");

    let everything: String = sqlx::query_scalar("SELECT string_agg(event::text, ' ') FROM turn_events")
        .fetch_one(&mut stage.owner().await)
        .await
        .expect("there are events");
    assert!(!everything.contains(OF_THE_PROVIDER), "{everything}");
    worker.kill().await;
    server.process.kill().await;
    stage.finish().await;
}

//! What a turn tells of itself.

use super::*;
use contract::turn::{JournalEntry, PastTurn, ToolOutcome};

/// The events as their kinds, with who did it.
fn kinds(events: &[TurnEvent]) -> Vec<String> {
    let kind = |event: &TurnEvent| {
        let event = serde_json::to_value(event).unwrap();
        let word = |member: &str| event[member].as_str().unwrap_or_default().to_owned();
        format!("{} {} {}", word("type"), word("agent"), word("toolCallId"))
            .trim_end()
            .to_owned()
    };
    events.iter().map(kind).collect()
}

/// What is kept of the supervisor's conversation, as the thread's next turn reads it.
fn kept(collected: &Collected) -> Vec<Value> {
    let message = |entry: JournalEntry| match entry {
        JournalEntry::Answer { within, message, .. } => within.is_empty().then_some(message),
        JournalEntry::Result {
            tool_call_id, content, ..
        } => {
            let message = json!({"role": "tool", "tool_call_id": tool_call_id, "content": content});
            (!tool_call_id.contains('/')).then_some(message)
        }
    };
    collected.kept().into_iter().filter_map(message).collect()
}

#[tokio::test]
async fn every_step_is_told_in_order_and_the_end_last() {
    let calls = Reply::nothing()
        .and_call(Some("a"), "create_department", r#"{"name": "Drama", "limit": 50}"#)
        .and_call(Some("b"), "drop_table", "{}");
    let stage = stage(Script::queue([calls, Reply::text("Done.")])).await;
    let (answer, told) = stage.told(&message("Create", Duration::from_secs(20))).await;
    assert_eq!(
        kinds(&told.events()),
        [
            "started",
            "usage Rover",
            "tool_started Rover a",
            "tool_started Rover b",
            "tool_ended Rover b",
            "tool_ended Rover a",
            "text Rover",
            "usage Rover",
            "ended",
        ]
    );
    let outcome = answer.outcome;
    let events = told.events();
    assert_eq!(events.last(), Some(&TurnEvent::Ended { outcome }));
    let ended: Vec<&ToolOutcome> = events
        .iter()
        .filter_map(|event| {
            let TurnEvent::ToolEnded { outcome, .. } = event else {
                return None;
            };
            Some(outcome)
        })
        .collect();
    assert!(
        matches!(ended.as_slice(), [ToolOutcome::Error(_), ToolOutcome::ScopeContext(_)]),
        "{ended:?}"
    );
}

#[tokio::test]
async fn what_is_kept_is_what_the_model_read_and_its_answer() {
    let call = Reply::nothing().and_call(Some("a"), "create_department", r#"{"name": "Drama"}"#);
    let stage = stage(Script::queue([call, Reply::text("Done.")])).await;
    let (_, told) = stage.told(&message("Create", Duration::from_secs(20))).await;
    let request = stage.server.requests().pop().unwrap();
    let mut read = request["messages"].as_array().unwrap()[2..].to_vec();
    read.push(json!({"role": "assistant", "content": "Done."}));
    assert_eq!(kept(&told), read);
}

#[tokio::test]
async fn a_thread_goes_on_where_it_ended() {
    let call = Reply::nothing().and_call(Some("a"), "create_department", r#"{"name": "Drama"}"#);
    let stage = stage(Script::queue([call, Reply::text("Done."), Reply::text("Drama.")])).await;
    let (_, told) = stage.told(&message("Create", Duration::from_secs(20))).await;
    let mut next = message("What was it called?", Duration::from_secs(20));
    next.history = ThreadHistory {
        turns: vec![PastTurn {
            message: "Create".into(),
            messages: kept(&told),
        }],
        left_out: 3,
    };
    let (answer, _) = stage.told(&next).await;
    assert_eq!(answer.outcome, TurnOutcome::Answer("Drama.".into()));
    let request = stage.server.requests().pop().unwrap();
    let roles: Vec<_> = request["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].clone())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "assistant", "user"]);
    assert!(
        request["messages"][0]["content"]
            .as_str()
            .unwrap()
            .contains("3 older messages")
    );
}

#[tokio::test]
async fn a_specialists_doings_are_told_under_its_name_and_not_kept() {
    let replies = [
        Reply::nothing().and_call(Some("a"), TASK, r#"{"agent": "Angie", "task": "List them"}"#),
        Reply::nothing().and_call(Some("a"), "list_my_classrooms", "{}"),
        Reply::text("Two streams."),
        Reply::text("You have two."),
    ];
    let stage = stage(Script::queue(replies)).await;
    let mut message = message("Which streams are mine?", Duration::from_secs(20));
    message.context.capabilities.is_class_teacher = true;
    let (_, told) = stage.told(&message).await;
    assert_eq!(
        kinds(&told.events()),
        [
            "started",
            "usage Rover",
            "tool_started Rover a",
            "delegated Angie a",
            "usage Angie",
            "tool_started Angie a/a",
            "tool_ended Angie a/a",
            "text Angie",
            "usage Angie",
            "tool_ended Rover a",
            "text Rover",
            "usage Rover",
            "ended",
        ]
    );
    let roles: Vec<_> = kept(&told).iter().map(|message| message["role"].clone()).collect();
    assert_eq!(roles, ["assistant", "tool", "assistant"]);
}

#[tokio::test]
async fn an_error_is_told_as_the_end() {
    let stage = stage(Script::queue([Reply::nothing()])).await;
    let (answer, told) = stage.told(&message("Hello", Duration::from_secs(20))).await;
    assert_eq!(kinds(&told.events()), ["started", "usage Rover", "ended"]);
    assert!(error(&answer).contains("no answer") && kept(&told).is_empty());
}

#[tokio::test]
async fn an_answer_without_an_end_is_cut() {
    let stage = stage(Script::queue([Reply::text("\u{e9}".repeat(100_000))])).await;
    let answer = stage.run("Hello").await;
    let TurnOutcome::Answer(text) = answer.outcome else {
        unreachable!("an answer")
    };
    assert!((60_000..=64 * 1024).contains(&text.len()), "{}", text.len());
}

#[tokio::test]
async fn what_a_success_shows_is_told_unless_it_is_too_long() {
    let stage = stage(Script::queue([])).await;
    let (message, collected) = (
        message("Hello", Duration::from_secs(20)),
        Arc::new(Collected::default()),
    );
    let turn = Turn::of(&stage.runner, &message, Journal::default(), collected.clone());
    let show = Agent::supervisor(&turn).writer("a");
    assert!(show(json!({"banner": 1})).is_ok() && show(json!("x".repeat(100_000))).is_ok());
    let shown = TurnEvent::Shown {
        agent: "Rover".into(),
        tool_call_id: "a".into(),
        event: json!({"banner": 1}),
    };
    assert_eq!(collected.events(), [shown]);
}

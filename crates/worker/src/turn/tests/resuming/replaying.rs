//! What a run goes through again counts as it did, and is not told again.

use super::*;
use contract::turn::MAX_REPORTED_EVENTS;

/// Runs a turn that is kept, on from these entries, with a model that follows a function of what it reads.
async fn run_on(script: impl Fn(&Value) -> Reply + Send + Sync + 'static, kept: &[JournalEntry]) -> (Stage, Run) {
    let stage = stage(Script::function(script)).await;
    let mut message = message("Go", Duration::from_secs(20));
    message.dispatch = 1;
    let collected = Arc::new(Collected::default());
    let journal = Journal::of(kept.to_vec());
    let ended = stage
        .runner
        .run(&message, journal, collected.clone(), Cancellation::never())
        .await;
    let run = Run {
        outcome: ended.unwrap().outcome,
        collected,
    };
    (stage, run)
}

struct Run {
    outcome: TurnOutcome,
    collected: Arc<Collected>,
}

fn results(request: &Value) -> usize {
    let messages = request["messages"].as_array().unwrap().iter();
    messages.filter(|message| message["role"] == "tool").count()
}

/// Three times the same call, one of them with broken arguments beside it, and an answer.
fn repeating(request: &Value) -> Reply {
    match results(request) {
        0 => Reply::nothing()
            .and_call(Some("a"), "create_department", r#"{"name": "Drama"}"#)
            .and_call(Some("a"), "create_department", "{\"name\": "),
        2 | 3 => Reply::call("create_department", r#"{"name": "Drama"}"#),
        _ => Reply::text("Done."),
    }
}

#[tokio::test]
async fn from_every_prefix_of_what_was_kept_the_rest_follows() {
    let (_, whole) = run_on(repeating, &[]).await;
    let kept = whole.collected.kept();
    assert_eq!(kept.len(), 8, "{kept:?}");
    for place in 0..=kept.len() {
        let before = &kept[..place];
        let (stage, run) = run_on(repeating, before).await;
        assert_eq!(run.outcome, whole.outcome, "after {place}");
        assert_eq!([before, &run.collected.kept()].concat(), kept, "after {place}");
        let answers = before
            .iter()
            .filter(|entry| matches!(entry, JournalEntry::Answer { .. }))
            .count();
        assert_eq!(stage.server.requests().len(), 4 - answers, "after {place}");
    }
    let refused = kept
        .iter()
        .filter(|entry| matches!(entry, JournalEntry::Result { content, .. } if content.contains("twice before")));
    assert_eq!(
        refused.count(),
        1,
        "the third time, also where the first two were before: {kept:?}"
    );
}

#[tokio::test]
async fn what_was_told_is_not_told_again() {
    let (_, whole) = run_on(repeating, &[]).await;
    let kept = whole.collected.kept();
    let (_, again) = run_on(repeating, &kept).await;
    let outcome = whole.outcome;
    assert_eq!(
        again.collected.events(),
        [TurnEvent::Started {}, TurnEvent::Ended { outcome }]
    );
    assert!(whole.collected.events().len() < MAX_REPORTED_EVENTS);
}

/// An answer that was kept, with a call that has a result.
fn step(step: u32, tokens: u64, bytes: usize) -> [JournalEntry; 2] {
    let id = format!("c{step}");
    let function = json!({"name": "list_departments", "arguments": json!({"limit": step}).to_string()});
    let message = json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "function": function}]});
    let answer = JournalEntry::Answer {
        within: String::new(),
        step,
        message,
        tokens,
    };
    let result = JournalEntry::Result {
        tool_call_id: id,
        content: "x".repeat(bytes),
        succeeded: true,
    };
    [answer, result]
}

#[tokio::test]
async fn steps_tokens_and_bytes_of_before_count() {
    let call = |_: &Value| Reply::call("create_department", r#"{"name": "Drama"}"#);
    let steps: Vec<_> = (1..MAX_STEPS).flat_map(|number| step(number, 1, 1)).collect();
    let dear = step(1, ledger::MAX_TOKENS + 1, 1);
    let long: Vec<_> = (1..3).flat_map(|number| step(number, 1, ledger::MAX_BYTES)).collect();
    for (kept, asked, said) in [
        (steps.as_slice(), 1, "8 steps"),
        (&dear, 0, "too much"),
        (&long, 0, "too much"),
    ] {
        let (stage, run) = run_on(call, kept).await;
        let TurnOutcome::Error(text) = run.outcome else {
            unreachable!("{:?}", run.outcome)
        };
        assert!(text.contains(said) && !text.contains("may have been done"), "{text}");
        assert_eq!(stage.server.requests().len(), asked, "{said}");
        assert!(stage.calls.lock().unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_specialists_finished_work_counts_though_it_is_not_gone_through() {
    let task = json!({"id": "t", "function": {"name": TASK, "arguments": r#"{"agent": "Angie", "task": "Do it"}"#}});
    let made = json!({"id": "a", "function": {"name": "create_department", "arguments": r#"{"name": "Drama"}"#}});
    let answer = |within: &str, call: &Value| JournalEntry::Answer {
        within: within.into(),
        step: 1,
        message: json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        tokens: 1,
    };
    let result = |id: &str| JournalEntry::Result {
        tool_call_id: id.into(),
        content: "{}".into(),
        succeeded: true,
    };
    let kept = [answer("", &task), answer("t", &made), result("t/a"), result("t")];
    let stage = stage(Script::function(|_| Reply::nothing())).await;
    let mut message = message("Go", Duration::from_secs(20));
    message.dispatch = 1;
    message.context.capabilities.is_class_teacher = true;
    let reporter = Arc::new(Collected::default());
    let (journal, never) = (Journal::of(kept.to_vec()), Cancellation::never());
    let ended = stage.runner.run(&message, journal, reporter, never).await.unwrap();
    assert!(error(&ended).contains("may have been done"), "{ended:?}");
    assert_eq!(stage.server.requests().len(), 1, "only the supervisor is asked");
}

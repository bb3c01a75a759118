//! A turn comes to an end, whatever the model does.

use super::*;
use crate::model::{Completion, ToolCall};
use crate::{model::Usage, turn::ledger::MAX_TOKENS};
use futures_util::future::BoxFuture;

/// fault 60
#[tokio::test]
async fn a_model_in_circles_is_stopped() {
    let stage = stage(Script::function(|_| {
        Reply::call("create_department", r#"{"name": "Drama"}"#)
    }))
    .await;
    let answer = stage.run("Create").await;
    assert!(
        error(&answer).contains("8 steps") && error(&answer).contains("may have been done"),
        "{answer:?}"
    );
    assert_eq!(stage.server.requests().len(), MAX_STEPS as usize);
    assert_eq!(
        answer.tool_calls.len(),
        MAX_STEPS as usize - 1,
        "calls whose results nobody reads are not made"
    );
}

#[tokio::test]
async fn a_turn_that_outgrows_its_bound_is_stopped() {
    let of_size = |bytes: usize| Reply::call("create_department", json!({"name": "x".repeat(bytes)}).to_string());
    let growing = stage(Script::function(move |_| of_size(300 * 1024))).await;
    let answer = growing.run("Create").await;
    assert!(
        error(&answer).contains("too much") && error(&answer).contains("may have been done"),
        "{answer:?}"
    );
    assert_eq!(growing.server.requests().len(), 2);

    let at_once = stage(Script::queue([of_size(1024 * 1024)])).await;
    let answer = at_once.run("Create").await;
    assert!(
        error(&answer).contains("too much") && !error(&answer).contains("may have been done"),
        "{answer:?}"
    );
    assert!(
        at_once.calls.lock().unwrap().is_empty(),
        "calls that are too long are not made"
    );
}

#[tokio::test]
async fn a_turn_ends_by_its_deadline_and_says_what_may_have_been_done() {
    let replies = [
        Reply::call("create_department", r#"{"name": "Drama"}"#),
        Reply::text("late").after(Duration::from_secs(30)),
    ];
    let stage = stage(Script::queue(replies)).await;
    let begun = std::time::Instant::now();
    let answer = stage.run_message(&message("Create", Duration::from_millis(1500))).await;
    assert!(begun.elapsed() < Duration::from_millis(1500));
    assert!(
        error(&answer).contains("not enough time") && error(&answer).contains("may have been done"),
        "{answer:?}"
    );
    let late = stage.run_message(&message("Create", Duration::ZERO)).await;
    assert!(error(&late).contains("not enough time"));
    assert_eq!(
        stage.server.requests().len(),
        2,
        "a turn whose time is over asks no model"
    );
}

/// fault 60
#[tokio::test]
async fn the_same_call_is_refused_the_third_time() {
    let again = || Reply::call("list_departments", r#"{"limit": 1}"#);
    let other = Reply::call("list_departments", r#"{"limit": 2}"#);
    let stage = stage(Script::queue([again(), again(), again(), other, Reply::text("Sorry")])).await;
    let answer = stage.run("List").await;
    let results = stage.results();
    let refused: Vec<bool> = results
        .iter()
        .map(|text| text.contains("twice before in this turn"))
        .collect();
    assert_eq!(refused, [false, false, true, false], "{results:?}");
    assert_eq!(stage.calls.lock().unwrap().len(), 3);
    let done: Vec<bool> = answer.tool_calls.iter().map(|call| call.succeeded).collect();
    assert_eq!(done, [true, true, false, true]);
}

#[tokio::test]
async fn more_calls_at_once_than_a_model_makes_are_not_run() {
    let calls = (0..20).fold(Reply::nothing(), |reply, limit| {
        reply.and_call(None, "list_departments", json!({"limit": limit}).to_string())
    });
    let stage = stage(Script::queue([calls, Reply::text("Done")])).await;
    stage.run("List").await;
    assert_eq!(stage.calls.lock().unwrap().len(), 16);
    assert_eq!(stage.results().len(), 20, "each call has a result");
}

/// A model that counts its tokens, and calls one more tool each time.
struct Dear(Mutex<u64>);

impl ChatModel for Dear {
    fn ask<'a>(
        &'a self,
        _messages: &'a [Value],
        _tools: &'a [Value],
        _deadline_ms: i64,
        _on_text: OnText<'a>,
    ) -> BoxFuture<'a, Result<Completion, ModelError>> {
        let mut asked = self.0.lock().unwrap();
        *asked += 1;
        let call = ToolCall {
            name: "get_agent_map".into(),
            arguments: json!({"query": asked.to_string()}).to_string(),
            ..ToolCall::default()
        };
        let answered = Completion {
            calls: vec![call],
            usage: Some(Usage {
                input_tokens: MAX_TOKENS / 2,
                output_tokens: 1,
            }),
            ..Completion::default()
        };
        Box::pin(async move { Ok(answered) })
    }
}

#[tokio::test]
async fn a_turn_that_costs_too_much_is_stopped() {
    let caller = InProcessToolCaller::new(|_, _, _| async { AgentToolResult::error("unused") });
    let runner = TurnRunner::new(Dear(Mutex::default()), Arc::new(caller));
    let collected = Arc::new(Collected::default());
    let message = message("What can you do?", Duration::from_secs(20));
    let (journal, never) = (Journal::default(), Cancellation::never());
    let answer = runner.run(&message, journal, collected.clone(), never).await.unwrap();
    assert!(error(&answer).contains("too much"), "{answer:?}");
    let spent: Vec<u64> = collected
        .events()
        .into_iter()
        .filter_map(|event| {
            let TurnEvent::Usage { input_tokens, .. } = event else {
                return None;
            };
            Some(input_tokens)
        })
        .collect();
    assert_eq!(spent, [MAX_TOKENS / 2; 2]);
}

//! A turn that somebody stops.

use super::*;
use tokio::{sync::watch, time::sleep};

/// Stops a turn as soon as this many calls were begun.
async fn stopped_after(stage: &Stage, calls: usize, reason: Stop) -> (TurnAnswer, Vec<TurnEvent>) {
    let (stop, stopped) = watch::channel(None);
    let collected = Arc::new(Collected::default());
    let message = message("Create", Duration::from_secs(20));
    let running = stage.runner.run(
        &message,
        Journal::default(),
        collected.clone(),
        Cancellation::when(stopped),
    );
    let stopping = async {
        while stage.calls.lock().unwrap().len() < calls || stage.server.requests().is_empty() {
            sleep(Duration::from_millis(5)).await;
        }
        stop.send_replace(Some(reason));
    };
    let (answer, ()) = tokio::join!(running, stopping);
    (answer.unwrap(), collected.events())
}

fn slow(tool: &str) -> Reply {
    Reply::call(tool, json!({"name": "Drama", "limit": 60_000}).to_string())
}

fn cancelled(answer: &TurnAnswer) -> &str {
    match &answer.outcome {
        TurnOutcome::Cancelled(text) => text,
        TurnOutcome::Answer(text) | TurnOutcome::Error(text) => unreachable!("not stopped: {text}"),
    }
}

#[tokio::test]
async fn ends_at_once_and_says_what_may_have_been_done() {
    for (tool, changed) in [("create_department", true), ("list_departments", false)] {
        let stage = stage(Script::queue([slow(tool), Reply::text("Done")])).await;
        let begun = std::time::Instant::now();
        let (answer, events) = stopped_after(&stage, 1, Stop::Cancelled).await;
        assert!(begun.elapsed() < Duration::from_secs(10), "it waits for nothing");
        assert_eq!(cancelled(&answer).contains("may have been done"), changed, "{answer:?}");
        assert_eq!(cancelled(&answer).contains("before anything was changed"), !changed);
        assert_eq!(stage.server.requests().len(), 1, "the model is not asked again");
        assert_eq!(answer.tool_calls.len(), 1);
        let outcome = answer.outcome;
        assert_eq!(events.last(), Some(&TurnEvent::Ended { outcome }));
    }
}

#[tokio::test]
async fn says_so_when_the_schools_tokens_are_used_up() {
    let stage = stage(Script::queue([slow("create_department")])).await;
    let (answer, _) = stopped_after(&stage, 1, Stop::OverBudget).await;
    assert!(
        error(&answer).contains("in a day is used up") && error(&answer).contains("may have been done"),
        "{answer:?}"
    );
}

#[tokio::test]
async fn calls_nothing_when_it_comes_while_the_model_thinks() {
    let thinking = slow("create_department").after(Duration::from_mins(1));
    let stage = stage(Script::queue([thinking])).await;
    let (answer, _) = stopped_after(&stage, 0, Stop::Cancelled).await;
    assert!(cancelled(&answer).contains("before anything was changed"));
    assert!(stage.calls.lock().unwrap().is_empty() && answer.tool_calls.is_empty());
}

#[tokio::test]
async fn asks_no_model_when_it_came_before_the_turn() {
    let stage = stage(Script::queue([Reply::text("Hi")])).await;
    let collected = Arc::new(Collected::default());
    let (_stop, stopped) = watch::channel(Some(Stop::Cancelled));
    let message = message("Hello", Duration::from_secs(20));
    let answer = stage
        .runner
        .run(
            &message,
            Journal::default(),
            collected.clone(),
            Cancellation::when(stopped),
        )
        .await
        .unwrap();
    assert!(cancelled(&answer).contains("before anything was changed"));
    assert!(stage.server.requests().is_empty());
    assert_eq!(collected.events().len(), 1, "only its end is told");
}

#[tokio::test]
async fn goes_on_when_nobody_is_left_who_could_stop_it() {
    let stage = stage(Script::queue([Reply::text("Hi").after(Duration::from_millis(50))])).await;
    let (stop, stopped) = watch::channel(None);
    drop(stop);
    let message = message("Hello", Duration::from_secs(20));
    let answer = stage
        .runner
        .run(
            &message,
            Journal::default(),
            Arc::new(Unreported),
            Cancellation::when(stopped),
        )
        .await
        .unwrap();
    assert_eq!(answer.outcome, TurnOutcome::Answer("Hi".into()));
}

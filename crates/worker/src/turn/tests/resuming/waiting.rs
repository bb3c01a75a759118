//! A turn that waits for the person.

use super::*;
use contract::{envelope::PendingApproval, turn::JournalEntry};
use futures_util::future::BoxFuture;

#[tokio::test]
async fn goes_on_waiting_until_all_is_answered_in_whatever_order() {
    let expected = outcome(&World::new(Storing::AtOnce, Vec::new())).await;
    for order in [["t/which", "where"], ["where", "t/which"]] {
        let world = World::new(Storing::AtOnce, Vec::new());
        assert_eq!(world.run().await, Some(None), "it waits");
        assert_eq!(world.open(), ["t/which", "where"]);
        for id in order {
            assert_eq!(world.run().await, Some(None), "it goes on waiting");
            world.answer(id);
        }
        assert_eq!(outcome(&world).await, expected, "{order:?}");
    }
}

#[tokio::test]
async fn in_a_specialist_lets_it_go_on_where_it_asked() {
    let world = World::new(Storing::Late, Vec::new());
    assert_eq!(world.run().await, Some(None));
    let angie = |world: &World| {
        let names = world.read().into_iter().map(|(name, _)| name);
        names.filter(|name| name.starts_with('t')).collect::<Vec<_>>()
    };
    assert_eq!(angie(&world), ["t#1"]);
    world.answer("t/which");
    assert_eq!(
        world.run().await,
        Some(None),
        "the supervisor's own question is still open"
    );
    assert_eq!(angie(&world), ["t#1", "t#2", "t#3"]);
    assert_eq!(world.open(), ["where"]);
}

/// Books that take nothing.
struct Away;

impl Reporter for Away {
    fn event(&self, _event: TurnEvent) {}

    fn keep(&self, _entry: JournalEntry) {}

    fn all_taken(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

/// A run of a turn of which this was kept, that comes past nothing of it: its books are away.
async fn ended_at_once(kept: Vec<JournalEntry>, time: Duration, stop: Option<Stop>) -> TurnAnswer {
    let stage = stage(Script::queue([])).await;
    let mut message = message("Go", time);
    message.dispatch = 2;
    let (_stop, stopped) = tokio::sync::watch::channel(stop);
    let (journal, stop) = (Journal::of(kept), Cancellation::when(stopped));
    let ended = stage.runner.run(&message, journal, Arc::new(Away), stop).await;
    assert!(stage.server.requests().is_empty());
    ended.expect("it ends")
}

/// The department was made before it waited, whether or not what came of that was kept.
#[tokio::test]
async fn ends_when_it_is_stopped_meanwhile() {
    let world = World::new(Storing::AtOnce, Vec::new());
    assert_eq!(world.run().await, Some(None));
    let kept = world.stored();
    let is_result = |entry: &JournalEntry| entry.name().starts_with('=');
    let without_results = kept.iter().filter(|entry| !is_result(entry)).cloned().collect();
    let stop = Some(Stop::Cancelled);
    for (kept, changed) in [(kept, true), (without_results, true), (Vec::new(), false)] {
        let ended = ended_at_once(kept, Duration::from_secs(20), stop).await;
        let TurnOutcome::Cancelled(text) = ended.outcome else {
            unreachable!("{ended:?}")
        };
        assert_eq!(text.contains("may have been done"), changed, "{text}");
        assert_eq!(text.contains("before anything was changed"), !changed, "{text}");
    }
}

#[tokio::test]
async fn says_what_may_have_been_done_when_there_is_no_time_left() {
    let world = World::new(Storing::AtOnce, Vec::new());
    assert_eq!(world.run().await, Some(None));
    let ended = ended_at_once(world.stored(), Duration::ZERO, None).await;
    assert!(
        error(&ended).contains("not enough time") && error(&ended).contains("may have been done"),
        "{ended:?}"
    );
    let ended = ended_at_once(world.stored(), Duration::ZERO, Some(Stop::OverBudget)).await;
    assert!(error(&ended).contains("may have been done"), "{ended:?}");
}

fn names_of(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["function"]["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn is_only_for_turns_that_are_kept() {
    let question = || Reply::call(ASK_USER, r#"{"question": "Which one?"}"#);
    let stage = stage(Script::queue([
        question(),
        Reply::text("I cannot ask."),
        Reply::text("Hi."),
    ]))
    .await;
    let answer = stage.run("Go").await;
    assert_eq!(answer.outcome, TurnOutcome::Answer("I cannot ask.".into()));
    assert!(!answer.tool_calls[0].succeeded);
    stage.told(&message("Go", Duration::from_secs(20))).await;
    let [without, refused, with] = stage.server.requests().try_into().unwrap();
    assert!(!names_of(&without).contains(&ASK_USER) && names_of(&with).contains(&ASK_USER));
    assert!(
        refused["messages"][3]["content"]
            .as_str()
            .unwrap()
            .contains("There is no tool")
    );
}

#[tokio::test]
async fn a_question_that_says_nothing_is_an_error_and_asks_nobody() {
    let question = || Reply::call(ASK_USER, r#"{"question": " "}"#);
    let stage = stage(Script::queue([question(), Reply::text("Sorry.")])).await;
    let (answer, told) = stage.told(&message("Go", Duration::from_secs(20))).await;
    assert_eq!(answer.outcome, TurnOutcome::Answer("Sorry.".into()));
    assert!(
        !told
            .events()
            .iter()
            .any(|event| matches!(event, TurnEvent::Asked { .. }))
    );
}

#[tokio::test]
async fn an_approval_that_nobody_waits_for_is_told_as_not_done() {
    let tools = InProcessToolCaller::new(|_, _, _| async {
        AgentToolResult::Pending {
            pending: PendingApproval {
                approval_id: Uuid::from_u128(5),
                preview: json!({}),
                expires_at: chrono::DateTime::UNIX_EPOCH,
            },
            scope_context: "One department.".into(),
        }
    });
    let mut stage = stage(Script::queue([
        Reply::call("delete_department", r#"{"departmentId": "x"}"#),
        Reply::text("It waits."),
    ]))
    .await;
    stage.runner.caller = Arc::new(tools);
    let answer = stage.run("Go").await;
    assert_eq!(answer.outcome, TurnOutcome::Answer("It waits.".into()));
    assert!(!answer.tool_calls[0].succeeded, "it is not done");
    let result = stage.results().pop().unwrap();
    for part in [
        "Nothing is done yet",
        &Uuid::from_u128(5).to_string(),
        "One department.",
    ] {
        assert!(result.contains(part), "{part} in {result}");
    }
}

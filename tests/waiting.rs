//! Turns that wait and go on: claims, what is kept, questions and their answers, the budget, and what a server that died left behind.
//! The worker is this test.

use crate::http::{Server, Visitor};
use contract::turn::{
    JournalEntry, ReportTaken, TurnClaimed, TurnEvent, TurnMessage, TurnOutcome, TurnReport, result_name,
};
use e2e::{Stage, broker::Peer, fixtures::HILLTOP};
use reqwest::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

const AUTH: (&str, &str) = ("AUTH_SECRET", "signs the tokens of these tests only!");

struct Scene {
    stage: Stage,
    server: Server,
    head: Visitor,
    worker: Peer,
    thread: String,
}

impl Scene {
    async fn new() -> Self {
        Self::with(&[AUTH]).await
    }

    async fn with(settings: &[(&str, &str)]) -> Self {
        let stage = Stage::with(settings).await;
        let server = Server::on(&stage).await;
        let head = server.person(&stage, &HILLTOP.email("head")).await;
        let worker = stage.peer().await;
        let thread = head.thread(&json!({})).await;
        Self {
            stage,
            server,
            head,
            worker,
            thread,
        }
    }

    /// Says something, and takes the turn's message.
    async fn said(&self) -> TurnMessage {
        self.head.turn(&self.thread, "Please do it.").await;
        self.worker.take_turn().await
    }

    async fn claim(&self, turn: &TurnMessage) -> (u32, Vec<JournalEntry>) {
        match self.worker.claim(turn, Uuid::new_v4(), false).await {
            TurnClaimed::Granted { attempt, journal } => (attempt, journal),
            TurnClaimed::Refused {} => panic!("the turn is refused"),
        }
    }

    async fn is_refused(&self, turn: &TurnMessage, run: Uuid) {
        assert_eq!(self.worker.claim(turn, run, false).await, TurnClaimed::Refused {});
    }

    async fn answer(&self, turn: &TurnMessage, call: &str, answer: &str) -> (StatusCode, Value) {
        let path = format!("/v1/turns/{}/answers", turn.turn_id);
        self.head
            .post(&path, &json!({"toolCallId": call, "answer": answer}))
            .await
    }

    async fn status(&self, turn: &TurnMessage) -> String {
        let (_, turn) = self.head.get(&format!("/v1/turns/{}", turn.turn_id)).await;
        turn["status"].as_str().expect("a turn has a status").to_owned()
    }

    async fn finish(self) {
        self.worker.leave().await;
        self.server.process.kill().await;
        self.stage.finish().await;
    }
}

fn report(turn: &TurnMessage, attempt: u32, first: u32, events: Vec<TurnEvent>) -> TurnReport {
    TurnReport {
        turn_id: turn.turn_id,
        grant: turn.grant.clone(),
        attempt,
        run: None,
        first,
        events,
        journal: Vec::new(),
    }
}

fn asked(call: &str, choices: &[&str]) -> TurnEvent {
    TurnEvent::Asked {
        agent: "Angie".into(),
        tool_call_id: call.into(),
        question: format!("What about {call}?"),
        choices: choices.iter().map(ToString::to_string).collect(),
    }
}

fn said(within: &str, step: u32) -> JournalEntry {
    JournalEntry::Answer {
        within: within.into(),
        step,
        message: json!({"role": "assistant", "content": format!("{within} {step}")}),
        tokens: 1,
    }
}

fn answers(journal: &[JournalEntry]) -> Vec<(String, Value)> {
    let results = journal.iter().filter_map(|entry| match entry {
        JournalEntry::Result {
            tool_call_id, content, ..
        } => {
            let envelope: Value = serde_json::from_str(content).expect("a result is an envelope");
            Some((tool_call_id.clone(), envelope["data"]["answer"].clone()))
        }
        JournalEntry::Answer { .. } => None,
    });
    results.collect()
}

#[tokio::test]
async fn are_given_to_one_run_with_all_that_was_kept() {
    let scene = Scene::new().await;
    let turn = scene.said().await;
    let (first, second) = (Uuid::new_v4(), Uuid::new_v4());
    let granted = |attempt, journal| TurnClaimed::Granted { attempt, journal };
    assert_eq!(scene.worker.claim(&turn, first, false).await, granted(1, vec![]));
    assert_eq!(
        scene.worker.claim(&turn, first, false).await,
        granted(1, vec![]),
        "asked again"
    );
    scene.is_refused(&turn, second).await;
    let mut kept = report(&turn, 1, 1, vec![TurnEvent::Started {}]);
    kept.journal = vec![said("", 1), said("call_1", 1)];
    for _ in 0..2 {
        assert_eq!(scene.worker.tell(&kept).await, ReportTaken::GoOn);
    }
    assert_eq!(scene.stage.count("SELECT count(*) FROM turn_messages").await, 2);

    // the first is lost: the turn comes by a message of its own, and nobody who had it gets it back
    assert_eq!(scene.worker.claim(&turn, second, true).await, TurnClaimed::Refused {});
    let next = scene.worker.take_turn().await;
    scene.is_refused(&next, first).await;
    scene.is_refused(&turn, Uuid::new_v4()).await;
    let (attempt, journal) = scene.claim(&next).await;
    assert_eq!((attempt, journal.len()), (2, 2));
    assert_eq!(
        scene.worker.tell(&report(&turn, 1, 2, vec![])).await,
        ReportTaken::Superseded
    );
    let done = TurnEvent::Ended {
        outcome: TurnOutcome::Answer("Done.".into()),
    };
    scene.worker.tell(&report(&next, 2, 1, vec![done])).await;
    assert_eq!(scene.status(&next).await, "answered");
    scene.is_refused(&next, Uuid::new_v4()).await;
    scene.finish().await;
}

/// The lost run may be alive, and not know; and the person may answer before there is another.
#[tokio::test]
async fn are_nobodys_between_two_runs() {
    let scene = Scene::new().await;
    let turn = scene.said().await;
    scene.claim(&turn).await;
    scene.worker.tell(&report(&turn, 1, 1, vec![asked("a", &[])])).await;
    let claimed = scene.worker.claim(&turn, Uuid::new_v4(), true).await;
    assert_eq!(claimed, TurnClaimed::Refused {});
    let next = scene.worker.take_turn().await;
    let mut late = report(&turn, 1, 2, vec![]);
    late.journal = vec![said("", 2)];
    assert_eq!(scene.worker.tell(&late).await, ReportTaken::Superseded);
    assert_eq!(scene.answer(&turn, "a", "Yes").await.0, StatusCode::ACCEPTED);
    let (attempt, journal) = scene.claim(&next).await;
    assert_eq!((attempt, answers(&journal)), (2, vec![("a".to_owned(), json!("Yes"))]));
    assert_eq!(journal.len(), 1, "nothing of what came late");
    let done = TurnEvent::Ended {
        outcome: TurnOutcome::Answer("Done.".into()),
    };
    scene.worker.tell(&report(&next, 2, 1, vec![done])).await;
    let events = scene.head.follow(&turn.turn_id.to_string(), None).await.all().await;
    let kinds: Vec<_> = events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["asked", "answered", "ended"]);
    scene.finish().await;
}

/// fault 29: each answer goes to its question, in whatever order they come
#[tokio::test]
async fn go_on_when_every_question_is_answered() {
    let scene = Scene::new().await;
    for order in [["a", "b"], ["b", "a"]] {
        let turn = scene.said().await;
        scene.claim(&turn).await;
        let waits = vec![asked("a", &[]), asked("b", &["Yes", "No"]), TurnEvent::Waiting {}];
        scene.worker.tell(&report(&turn, 1, 1, waits.clone())).await;
        assert_eq!(scene.worker.tell(&report(&turn, 1, 1, waits)).await, ReportTaken::GoOn);
        assert_eq!(scene.status(&turn).await, "waiting");
        scene.is_refused(&turn, Uuid::new_v4()).await;

        let (status, problem) = scene.answer(&turn, "b", "Perhaps").await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{problem}");
        assert_eq!(scene.answer(&turn, "c", "Yes").await.0, StatusCode::NOT_FOUND);
        let given = |call: &str| if call == "a" { "On Monday" } else { "No" };
        let [first, second] = order;
        assert_eq!(scene.answer(&turn, first, given(first)).await.0, StatusCode::ACCEPTED);
        assert_eq!(scene.status(&turn).await, "waiting", "for the other");
        assert_eq!(scene.answer(&turn, first, given(first)).await.0, StatusCode::CONFLICT);
        assert_eq!(scene.answer(&turn, second, given(second)).await.0, StatusCode::ACCEPTED);

        let next = scene.worker.take_turn().await;
        assert_eq!((next.turn_id, next.dispatch), (turn.turn_id, 2));
        assert_ne!(next.grant, turn.grant, "with a grant of its own");
        let (attempt, journal) = scene.claim(&next).await;
        let mut told = answers(&journal);
        told.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(
            (attempt, told),
            (
                2,
                vec![("a".to_owned(), json!("On Monday")), ("b".to_owned(), json!("No"))]
            )
        );
        let done = TurnEvent::Ended {
            outcome: TurnOutcome::Answer("Done.".into()),
        };
        scene.worker.tell(&report(&next, 2, 1, vec![done])).await;
        let events = scene.head.follow(&turn.turn_id.to_string(), None).await.all().await;
        let kinds: Vec<_> = events.iter().map(|event| event.kind.as_str()).collect();
        assert_eq!(kinds, ["asked", "asked", "waiting", "answered", "answered", "ended"]);
        let answered = events[3..5]
            .iter()
            .map(|event| (&event.data["toolCallId"], &event.data["answer"]));
        let expected = order.map(|call| (json!(call), json!(given(call))));
        assert!(
            answered.eq(expected.iter().map(|(call, answer)| (call, answer))),
            "{events:?}"
        );
    }
    scene.finish().await;
}

/// An answer can come while others of the step are still at work.
#[tokio::test]
async fn do_not_wait_for_what_is_answered_already() {
    let scene = Scene::new().await;
    let turn = scene.said().await;
    scene.claim(&turn).await;
    scene.worker.tell(&report(&turn, 1, 1, vec![asked("a", &[])])).await;
    assert_eq!(scene.answer(&turn, "a", "At once").await.0, StatusCode::ACCEPTED);
    assert_eq!(scene.status(&turn).await, "running");
    scene
        .worker
        .tell(&report(&turn, 1, 2, vec![TurnEvent::Waiting {}]))
        .await;
    let next = scene.worker.take_turn().await;
    let (_, journal) = scene.claim(&next).await;
    assert_eq!(answers(&journal), [("a".to_owned(), json!("At once"))]);
    assert_eq!(journal[0].name(), result_name("a"));
    scene.finish().await;
}

#[tokio::test]
async fn are_answered_by_their_person_only() {
    let scene = Scene::new().await;
    let turn = scene.said().await;
    scene.claim(&turn).await;
    let waits = vec![asked("a", &[]), TurnEvent::Waiting {}];
    scene.worker.tell(&report(&turn, 1, 1, waits)).await;
    let path = format!("/v1/turns/{}/answers", turn.turn_id);
    let answer = json!({"toolCallId": "a", "answer": "Yes"});
    let other = scene.server.person(&scene.stage, &HILLTOP.email("admin")).await;
    assert_eq!(other.post(&path, &answer).await.0, StatusCode::NOT_FOUND);
    for body in [
        json!({"toolCallId": "a", "answer": " "}),
        json!({"toolCallId": "a", "answer": "\u{0}"}),
        json!({"toolCallId": "a", "answer": "x".repeat(4001)}),
        json!({"toolCallId": "a"}),
        json!({"toolCallId": "a", "answer": "Yes", "approve": true}),
    ] {
        assert_eq!(scene.head.post(&path, &body).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    }
    assert_eq!(scene.status(&turn).await, "waiting");
    assert_eq!(scene.head.post(&path, &answer).await.0, StatusCode::ACCEPTED);
    scene.finish().await;
}

#[tokio::test]
async fn end_at_once_when_they_are_stopped() {
    let scene = Scene::new().await;
    let turn = scene.said().await;
    scene.claim(&turn).await;
    let waits = vec![asked("a", &[]), TurnEvent::Waiting {}];
    scene.worker.tell(&report(&turn, 1, 1, waits)).await;
    let cancel = format!("/v1/turns/{}/cancel", turn.turn_id);
    assert_eq!(scene.head.post(&cancel, &json!({})).await.0, StatusCode::ACCEPTED);
    assert_eq!(scene.status(&turn).await, "cancelled");
    assert_eq!(scene.answer(&turn, "a", "Yes").await.0, StatusCode::CONFLICT);
    scene.said().await;
    scene.finish().await;
}

#[tokio::test]
async fn tell_a_run_that_they_are_to_be_stopped() {
    let scene = Scene::new().await;
    let turn = scene.said().await;
    scene.claim(&turn).await;
    let cancel = format!("/v1/turns/{}/cancel", turn.turn_id);
    assert_eq!(scene.head.post(&cancel, &json!({})).await.0, StatusCode::ACCEPTED);
    let taken = scene
        .worker
        .tell(&report(&turn, 1, 1, vec![TurnEvent::Started {}]))
        .await;
    assert_eq!(taken, ReportTaken::Cancelled);
    scene.finish().await;
}

#[tokio::test]
async fn end_when_nobody_answers() {
    let scene = Scene::new().await;
    let turn = scene.said().await;
    scene.claim(&turn).await;
    let waits = vec![asked("a", &[]), TurnEvent::Waiting {}];
    scene.worker.tell(&report(&turn, 1, 1, waits)).await;
    scene
        .stage
        .arrange("UPDATE turns SET deadline_at = now() - interval '1 hour'")
        .await;
    let events = scene.head.follow(&turn.turn_id.to_string(), None).await.all().await;
    let outcome = &events.last().expect("an end").data["outcome"];
    assert!(
        outcome["error"].as_str().unwrap().contains("nobody gave one in time"),
        "{outcome}"
    );
    scene.finish().await;
}

/// A server that died between the dispatch and its message leaves a turn that another sends.
#[tokio::test]
async fn are_sent_again_by_whoever_looks_next() {
    let scene = Scene::new().await;
    let turn = scene.said().await;
    scene
        .stage
        .arrange("UPDATE turns SET sent = false, dispatched_at = now() - interval '1 minute'")
        .await;
    let again = scene.worker.take_turn().await;
    assert_eq!((again.turn_id, again.dispatch), (turn.turn_id, turn.dispatch));
    scene.claim(&again).await;
    scene.is_refused(&turn, Uuid::new_v4()).await;
    scene.finish().await;
}

#[tokio::test]
async fn end_where_their_person_may_not_come_in_any_more() {
    let scene = Scene::new().await;
    let turn = scene.said().await;
    scene.claim(&turn).await;
    let waits = vec![asked("a", &[]), TurnEvent::Waiting {}];
    scene.worker.tell(&report(&turn, 1, 1, waits)).await;
    let leave = format!("UPDATE staff SET active = false WHERE id = '{}'", HILLTOP.staff("head"));
    scene.stage.arrange(&leave).await;
    assert_eq!(scene.answer(&turn, "a", "Yes").await.0, StatusCode::FORBIDDEN);
    scene
        .stage
        .arrange("UPDATE turns SET status = 'running', sent = false, dispatched_at = now() - interval '1 minute'")
        .await;
    let failed = "SELECT count(*) FROM turns WHERE status = 'failed' AND outcome LIKE '%may not come in%'";
    scene.stage.until(failed, 1).await;
    scene.finish().await;
}

#[tokio::test]
async fn use_a_schools_tokens_of_the_day_and_no_more() {
    let scene = Scene::with(&[AUTH, ("DAILY_TOKENS", "100")]).await;
    let turn = scene.said().await;
    scene.claim(&turn).await;
    let usage = |tokens| TurnEvent::Usage {
        agent: "Rover".into(),
        input_tokens: tokens,
        output_tokens: 1,
    };
    for _ in 0..2 {
        let taken = scene.worker.tell(&report(&turn, 1, 1, vec![usage(59)])).await;
        assert_eq!(taken, ReportTaken::GoOn, "60 of 100, however often it is told");
    }
    let taken = scene.worker.tell(&report(&turn, 1, 2, vec![usage(39)])).await;
    assert_eq!(taken, ReportTaken::OverBudget);
    assert_eq!(
        scene.stage.count("SELECT sum(tokens)::bigint FROM turn_tokens").await,
        100
    );
    let done = TurnEvent::Ended {
        outcome: TurnOutcome::Error("Over.".into()),
    };
    scene.worker.tell(&report(&turn, 1, 3, vec![done])).await;
    let path = format!("/v1/threads/{}/turns", scene.thread);
    let (status, problem) = scene.head.post(&path, &json!({"message": "More"})).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{problem}");
    let elsewhere = scene
        .server
        .person(&scene.stage, &e2e::fixtures::RIVERSIDE.email("head"))
        .await;
    let thread = elsewhere.thread(&json!({})).await;
    elsewhere.turn(&thread, "Another school's").await;
    scene.finish().await;
}

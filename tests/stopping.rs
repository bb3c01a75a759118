//! Turns that end without an answer of their agents: what was done by then is told, and nothing is done after. The worker is this test.

mod races;

use crate::http::{Server, Visitor};
use contract::{
    envelope::PendingApproval,
    turn::{JournalEntry, TurnClaimed, TurnEvent, TurnMessage, TurnOutcome, TurnReport},
};
use e2e::{
    Person, Stage,
    broker::Peer,
    fixtures::HILLTOP,
    stage::{data, error, incoming, pending},
};
use reqwest::StatusCode;
use serde_json::{Value, json};
use server::{conversation, decision::Ruling, grant::Door, hooks};
use std::time::Duration;
use tokio::time::timeout;
use uuid::Uuid;

const AUTH: (&str, &str) = ("AUTH_SECRET", "signs the tokens of these tests only!");
const NOTHING: &str = "Nothing was changed.";
const MADE: &str = "Done before that: create_department. Nothing else was changed.";

struct Scene {
    stage: Stage,
    server: Server,
    admin: Visitor,
    worker: Peer,
    thread: String,
}

/// A turn that this test has claimed as its worker.
struct Begun {
    turn: TurnMessage,
    /// Its person, with the turn's grant.
    person: Person,
}

impl Scene {
    async fn new() -> Self {
        let stage = Stage::with(&[AUTH]).await;
        let server = Server::on(&stage).await;
        let admin = server.person(&stage, &HILLTOP.email("admin")).await;
        let worker = stage.peer().await;
        let thread = admin.thread(&json!({})).await;
        Self {
            stage,
            server,
            admin,
            worker,
            thread,
        }
    }

    /// Begins a turn whose model calls these tools at once: ids in the turn, and names.
    async fn begin(&self, calls: &[(&str, &str)]) -> Begun {
        self.admin.turn(&self.thread, "Please do it.").await;
        let turn = self.worker.take_turn().await;
        let claimed = self.worker.claim(&turn, Uuid::new_v4(), false).await;
        assert!(matches!(claimed, TurnClaimed::Granted { .. }), "{claimed:?}");
        let mut kept = report(&turn, 1, vec![TurnEvent::Started {}]);
        kept.journal = calls.iter().map(|(id, tool)| called(id, tool)).collect();
        self.worker.tell(&kept).await;
        let mut person = self.stage.person(&HILLTOP.email("admin")).await;
        (person.turn_id, person.grant) = (turn.turn_id, turn.grant.clone());
        Begun { turn, person }
    }

    async fn make(&self, begun: &Begun, call: &str, name: &str) -> contract::AgentToolResult {
        let args = json!({"name": name, "campusId": HILLTOP.campus("main")});
        self.stage
            .call_keyed(&begun.person, "create_department", args, call)
            .await
    }

    async fn cancel(&self, begun: &Begun) {
        let path = format!("/v1/turns/{}/cancel", begun.turn.turn_id);
        assert_eq!(self.admin.post(&path, &json!({})).await.0, StatusCode::ACCEPTED);
    }

    /// What its person reads at its end.
    async fn end(&self, begun: &Begun, how: &str) -> String {
        let id = begun.turn.turn_id.to_string();
        let events = self.admin.follow(&id, None).await.all().await;
        let outcome = &events.last().expect("it has an end").data["outcome"];
        let (_, turn) = self.admin.get(&format!("/v1/turns/{id}")).await;
        assert_eq!(turn["outcome"], outcome[how], "{outcome}");
        outcome[how].as_str().expect("it ends like this").to_owned()
    }

    /// Waits for its person.
    async fn wait(&self, begun: &Begun) {
        let asked = TurnEvent::Asked {
            agent: "Rover".into(),
            tool_call_id: "where".into(),
            question: "Where?".into(),
            choices: vec![],
        };
        self.worker
            .tell(&report(&begun.turn, 2, vec![asked, TurnEvent::Waiting {}]))
            .await;
    }

    async fn departments(&self, name: &str) -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM departments WHERE name = $1")
            .bind(name)
            .fetch_one(&mut self.stage.owner().await)
            .await
            .expect("they can be counted")
    }

    /// Asserts that a call of the turn is refused now, and changes nothing.
    async fn assert_over(&self, begun: &Begun) {
        let before = self.stage.audit_rows().await;
        let late = error(self.make(begun, "late", "Late").await);
        assert!(late.contains("stopped or has ended"), "{late}");
        assert_eq!(
            (self.departments("Late").await, self.stage.audit_rows().await),
            (0, before)
        );
    }

    async fn finish(self) {
        self.worker.leave().await;
        self.server.process.kill().await;
        self.stage.finish().await;
    }
}

fn report(turn: &TurnMessage, first: u32, events: Vec<TurnEvent>) -> TurnReport {
    TurnReport {
        turn_id: turn.turn_id,
        grant: turn.grant.clone(),
        attempt: 1,
        run: None,
        first,
        events,
        journal: Vec::new(),
    }
}

/// The answer of a model that calls a tool; each in a conversation of its own.
fn called(id: &str, tool: &str) -> JournalEntry {
    let (within, own) = id.split_once('/').unwrap_or(("", id));
    let function = json!({"name": tool, "arguments": "{}"});
    let step = u32::from(id.as_bytes()[0]);
    JournalEntry::Answer {
        within: within.into(),
        step,
        message: json!({"role": "assistant", "content": null, "tool_calls": [{"id": own, "type": "function", "function": function}]}),
        tokens: 1,
    }
}

fn stopped() -> TurnEvent {
    TurnEvent::Ended {
        outcome: TurnOutcome::Cancelled("Whatever a worker may know.".into()),
    }
}

#[tokio::test]
async fn tell_what_was_done_before_they_waited() {
    let scene = Scene::new().await;
    let begun = scene
        .begin(&[
            ("make", "create_department"),
            ("t/make", "create_department"),
            ("where", "ask_user"),
        ])
        .await;
    let made = data(scene.make(&begun, "make", "Drama").await);
    data(scene.make(&begun, "t/make", "Music").await);
    scene.wait(&begun).await;
    scene.cancel(&begun).await;
    let text = scene.end(&begun, "cancelled").await;
    assert!(
        text.ends_with("Done before that: create_department (2 times). Nothing else was changed."),
        "{text}"
    );
    scene.assert_over(&begun).await;
    let again = data(scene.make(&begun, "make", "Drama").await);
    assert_eq!(again, made, "what was done is answered as before");
    // the next turn of the thread, and one that is not kept, have nothing to do with it
    let next = scene.begin(&[("make", "create_department")]).await;
    data(scene.make(&next, "make", "Dance").await);
    let unkept = scene.stage.person(&HILLTOP.email("admin")).await;
    let args = json!({"name": "Chess", "campusId": HILLTOP.campus("main")});
    data(scene.stage.call(&unkept, "create_department", args).await);
    scene.finish().await;
}

#[tokio::test]
async fn say_that_nothing_was_done_where_nothing_was() {
    let scene = Scene::new().await;
    let begun = scene
        .begin(&[("make", "create_department"), ("where", "ask_user")])
        .await;
    scene.wait(&begun).await;
    scene.cancel(&begun).await;
    assert!(scene.end(&begun, "cancelled").await.ends_with(NOTHING));
    scene.assert_over(&begun).await;
    scene.finish().await;
}

#[tokio::test]
async fn tell_it_also_between_two_runs() {
    let scene = Scene::new().await;
    for (name, text) in [(Some("Drama"), MADE), (None, NOTHING)] {
        let begun = scene.begin(&[("make", "create_department")]).await;
        if let Some(name) = name {
            data(scene.make(&begun, "make", name).await);
        }
        let again = scene.worker.claim(&begun.turn, Uuid::new_v4(), true).await;
        assert_eq!(again, TurnClaimed::Refused {});
        scene.worker.take_turn().await;
        scene.cancel(&begun).await;
        assert!(scene.end(&begun, "cancelled").await.ends_with(text));
        scene.assert_over(&begun).await;
    }
    scene.finish().await;
}

#[tokio::test]
async fn tell_it_when_nobody_ends_them_in_time() {
    let scene = Scene::new().await;
    for (waits, why) in [(false, "interrupted"), (true, "nobody gave one in time")] {
        for (name, facts) in [(Some(why), MADE), (None, NOTHING)] {
            let begun = scene
                .begin(&[("make", "create_department"), ("where", "ask_user")])
                .await;
            if let Some(name) = name {
                data(scene.make(&begun, "make", name).await);
            }
            if waits {
                scene.wait(&begun).await;
            }
            scene
                .stage
                .arrange("UPDATE turns SET deadline_at = now() - interval '1 hour' WHERE ended_at IS NULL")
                .await;
            let text = scene.end(&begun, "error").await;
            assert!(text.contains(why) && text.contains(facts), "{text}");
            scene.assert_over(&begun).await;
        }
    }
    scene.finish().await;
}

#[tokio::test]
async fn have_nothing_done_after_their_answer() {
    let scene = Scene::new().await;
    let begun = scene.begin(&[("make", "create_department")]).await;
    let answer = TurnEvent::Ended {
        outcome: TurnOutcome::Answer("Done.".into()),
    };
    scene.worker.tell(&report(&begun.turn, 2, vec![answer])).await;
    assert_eq!(scene.end(&begun, "answer").await, "Done.");
    scene.assert_over(&begun).await;
    scene.finish().await;
}

impl Scene {
    /// A turn that waits for the approval of a deletion.
    async fn deletes(&self) -> (Begun, PendingApproval) {
        let begun = self.begin(&[("delete", "delete_department")]).await;
        let args = json!({"departmentId": HILLTOP.department_id()});
        let call = incoming(&begun.person, "delete_department", args, "delete");
        let pending = pending(self.stage.another_pipeline().execute(call).await);
        let asked = TurnEvent::ApprovalAsked {
            agent: "Rover".into(),
            tool_call_id: "delete".into(),
            tool: "delete_department".into(),
            pending: pending.clone(),
            scope_context: "One department.".into(),
        };
        self.worker
            .tell(&report(&begun.turn, 2, vec![asked, TurnEvent::Waiting {}]))
            .await;
        (begun, pending)
    }

    async fn approve(&self, pending: &PendingApproval) -> Option<Value> {
        let admin = conversation::Person {
            email: HILLTOP.email("admin"),
        };
        let decisions = self.stage.decisions();
        let decided = decisions.decide(&admin, Door::Rest, pending.approval_id, Ruling::approve());
        let decided = timeout(Duration::from_secs(2), decided).await.ok()?;
        Some(json!(decided.expect("it can be decided").became))
    }
}

/// Stopped between the yes and what follows from it, it is not done; and after, it is told.
#[tokio::test]
async fn tell_what_became_of_an_approved_call() {
    let scene = Scene::new().await;
    let (begun, pending) = scene.deletes().await;
    hooks::halt_after_claim(pending.approval_id);
    assert_eq!(scene.approve(&pending).await, None, "its server is gone");
    scene.cancel(&begun).await;
    assert!(scene.end(&begun, "cancelled").await.ends_with(NOTHING));
    scene.stage.decisions().look_after(Duration::ZERO).await.unwrap();
    let failed =
        "SELECT count(*) FROM approvals WHERE status = 'failed' AND result ->> 'error' LIKE '%stopped or has ended%'";
    assert_eq!(scene.stage.count(failed).await, 1);
    assert_eq!(scene.stage.audit_rows().await, 0);

    let (begun, pending) = scene.deletes().await;
    assert_eq!(scene.approve(&pending).await, Some(json!("executed")));
    scene.cancel(&begun).await;
    let text = scene.end(&begun, "cancelled").await;
    assert!(text.contains("Done before that: delete_department."), "{text}");
    assert_eq!(scene.stage.audit_rows().await, 1);
    scene.finish().await;
}

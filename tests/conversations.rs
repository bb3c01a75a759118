//! Conversations at the HTTP door, with a worker that is this test: what it takes off the queue of turns, and what it reports.

mod bounds;
mod faults;
mod proofs;
mod streams;

use crate::http::{self, Event, Server, Visitor};
use contract::turn::{JournalEntry, ReportTaken, TurnClaimed, TurnEvent, TurnMessage, TurnOutcome, TurnReport};
use e2e::{
    Stage,
    broker::Peer,
    fixtures::{HILLTOP, RIVERSIDE},
};
use reqwest::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

const AUTH: &[(&str, &str)] = &[("AUTH_SECRET", "signs the tokens of these tests only!")];

fn text(delta: &str) -> TurnEvent {
    TurnEvent::Text {
        agent: "Rover".into(),
        delta: delta.into(),
    }
}

fn answer(text: &str) -> TurnEvent {
    TurnEvent::Ended {
        outcome: TurnOutcome::Answer(text.into()),
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

/// A stage with a server whose door is open, somebody in it, and this test as the worker.
struct Scene {
    stage: Stage,
    server: Server,
    head: Visitor,
    worker: Peer,
}

impl Scene {
    async fn new() -> Self {
        Self::with(&[]).await
    }

    async fn with(settings: &[(&str, &str)]) -> Self {
        let stage = Stage::with(&[AUTH, settings].concat()).await;
        let server = Server::on(&stage).await;
        let head = server.person(&stage, &HILLTOP.email("head")).await;
        let worker = stage.peer().await;
        Self {
            stage,
            server,
            head,
            worker,
        }
    }

    /// Says something in a thread, and takes the turn as its worker.
    async fn turn(&self, thread: &str, message: &str) -> TurnMessage {
        let turn = self.unclaimed(thread, message).await;
        let claimed = self.worker.claim(&turn, Uuid::new_v4(), false).await;
        assert!(
            matches!(claimed, TurnClaimed::Granted { attempt: 1, .. }),
            "{claimed:?}"
        );
        turn
    }

    /// Says something in a thread, and takes the turn's message only.
    async fn unclaimed(&self, thread: &str, message: &str) -> TurnMessage {
        let id = self.head.turn(thread, message).await;
        let turn = self.worker.take_turn().await;
        assert_eq!(turn.turn_id.to_string(), id);
        turn
    }

    /// Another worker is delivered the turn again, and takes over what is then dispatched.
    async fn taken_over(&self, turn: &TurnMessage) -> TurnMessage {
        let claimed = self.worker.claim(turn, Uuid::new_v4(), true).await;
        assert_eq!(claimed, TurnClaimed::Refused {}, "it comes by a message of its own");
        let next = self.worker.take_turn().await;
        assert_eq!((next.turn_id, next.dispatch), (turn.turn_id, turn.dispatch + 1));
        let claimed = self.worker.claim(&next, Uuid::new_v4(), false).await;
        assert!(matches!(claimed, TurnClaimed::Granted { .. }), "{claimed:?}");
        next
    }

    async fn finish(self) {
        self.worker.leave().await;
        self.server.process.kill().await;
        self.stage.finish().await;
    }
}

fn kinds(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.kind.as_str()).collect()
}

#[tokio::test]
async fn are_their_owners_alone() {
    let scene = Scene::new().await;
    let thread = scene.head.thread(&json!({})).await;
    let turn = scene.turn(&thread, "Hello").await.turn_id;
    let paths = [format!("/v1/threads/{thread}"), format!("/v1/turns/{turn}")];
    for path in &paths {
        assert_eq!(scene.head.get(path).await.0, StatusCode::OK, "{path}");
    }
    for email in [HILLTOP.email("class.teacher"), RIVERSIDE.email("head")] {
        let other = scene.server.person(&scene.stage, &email).await;
        for path in paths.iter().chain([&format!("/v1/turns/{turn}/events")]) {
            let (status, problem) = other.get(path).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{email} {path} {problem}");
        }
        for path in [
            format!("/v1/threads/{thread}/turns"),
            format!("/v1/turns/{turn}/cancel"),
        ] {
            let (status, _) = other.post(&path, &json!({"message": "mine"})).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{email} {path}");
        }
    }
    scene.finish().await;
}

#[tokio::test]
async fn let_nobody_in_without_a_token() {
    let scene = Scene::new().await;
    let client = http::client();
    for path in ["/v1/threads/x", "/v1/agent-map", "/v1/agent-map?access_token=x"] {
        let sent = client.get(format!("{}{path}", scene.server.url)).send().await.unwrap();
        assert_eq!(sent.headers()["www-authenticate"], "Bearer");
        assert_eq!(sent.headers()["content-type"], "application/problem+json");
        assert_eq!(http::read(sent).await.0, StatusCode::UNAUTHORIZED, "{path}");
    }
    let stranger = scene.server.person(&scene.stage, "nobody@nowhere.example").await;
    assert_eq!(stranger.get("/v1/agent-map").await.0, StatusCode::FORBIDDEN);
    // the facts are read at each request: a token outlives nobody's leaving
    let leaving = scene.server.person(&scene.stage, &HILLTOP.email("class.teacher")).await;
    assert_eq!(leaving.get("/v1/agent-map").await.0, StatusCode::OK);
    let leave = format!(
        "UPDATE staff SET active = false WHERE id = '{}'",
        HILLTOP.staff("class.teacher")
    );
    scene.stage.arrange(&leave).await;
    assert_eq!(leaving.get("/v1/agent-map").await.0, StatusCode::FORBIDDEN);
    for path in ["/healthz", "/readyz"] {
        let sent = client.get(format!("{}{path}", scene.server.url)).send().await.unwrap();
        assert_eq!(sent.status(), StatusCode::OK, "{path}");
    }
    scene.finish().await;
}

#[tokio::test]
async fn show_who_is_offered_to_whom() {
    let scene = Scene::new().await;
    let names = |map: &Value| -> Vec<String> {
        let agents = map.as_array().expect("a list of agents").iter();
        agents.map(|agent| agent["name"].as_str().unwrap().to_owned()).collect()
    };
    let (_, map) = scene.head.get("/v1/agent-map").await;
    assert_eq!(names(&map), ["Rover"]);
    assert!(
        map[0]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .any(|tool| tool["mutating"] == true)
    );
    let teacher = scene.server.person(&scene.stage, &HILLTOP.email("class.teacher")).await;
    let (_, map) = teacher.get("/v1/agent-map").await;
    assert!(names(&map).contains(&"Angie".to_owned()), "{map}");
    let (_, found) = teacher.get("/v1/agent-map?q=roster").await;
    assert!(found.to_string().len() < map.to_string().len() && found.to_string().contains("roster"));
    let (status, problem) = teacher.get("/v1/agent-map?campus=nowhere").await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{problem}");
    scene.finish().await;
}

#[tokio::test]
async fn refuse_what_is_no_message() {
    let scene = Scene::new().await;
    let thread = scene.head.thread(&json!({})).await;
    let path = format!("/v1/threads/{thread}/turns");
    let long = "x".repeat(20_001);
    for body in [
        json!({"message": " \n"}),
        json!({"message": "\u{0}"}),
        json!({"message": long}),
        json!({"message": 7}),
        json!({"text": "x"}),
        json!([]),
    ] {
        let (status, problem) = scene.head.post(&path, &body).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{problem}");
        assert_eq!(problem["status"], 422);
    }
    for (body, name) in [
        (json!({"campus": "nowhere"}), "campus"),
        (json!({"school": "nowhere"}), ""),
    ] {
        let (status, problem) = scene.head.post("/v1/threads", &body).await;
        assert!(
            status.is_client_error() && problem.to_string().contains(name),
            "{problem}"
        );
    }
    assert_eq!(scene.stage.count("SELECT count(*) FROM turns").await, 0);
    let turn = scene.turn(&thread, "Grüße 🎭 \u{0}an alle").await;
    assert_eq!(turn.message, "Grüße 🎭 an alle");
    scene.finish().await;
}

#[tokio::test]
async fn have_one_open_turn_at_a_time() {
    let scene = Scene::new().await;
    let thread = scene.head.thread(&json!({})).await;
    let first = scene.turn(&thread, "One").await;
    let path = format!("/v1/threads/{thread}/turns");
    let (status, problem) = scene.head.post(&path, &json!({"message": "Two"})).await;
    assert_eq!(status, StatusCode::CONFLICT, "{problem}");
    scene.worker.report(&report(&first, 1, 1, vec![answer("Done.")])).await;
    scene.head.follow(&first.turn_id.to_string(), None).await.all().await;
    let second = scene.turn(&thread, "Two").await;
    assert_ne!(first.turn_id, second.turn_id);
    let cancel = format!("/v1/turns/{}/cancel", first.turn_id);
    assert_eq!(scene.head.post(&cancel, &json!({})).await.0, StatusCode::CONFLICT);
    scene.finish().await;
}

#[tokio::test]
async fn tell_a_worker_what_was_said_before() {
    let scene = Scene::new().await;
    let campus = json!({"campus": HILLTOP.campus("main")});
    let thread = scene.head.thread(&campus).await;
    let first = scene.turn(&thread, "Who are you?").await;
    assert!(first.is_kept() && first.history.turns.is_empty());
    assert_eq!(
        first.context.run_mode.call_scope().pinned(),
        Some(HILLTOP.campus("main"))
    );
    let said = json!({"role": "assistant", "content": "I am Rover."});
    let mut last = report(&first, 1, 1, vec![answer("I am Rover.")]);
    last.journal.push(JournalEntry::Answer {
        within: String::new(),
        step: 1,
        message: said.clone(),
        tokens: 7,
    });
    assert_eq!(scene.worker.tell(&last).await, ReportTaken::GoOn);
    let shown = scene.head.follow(&first.turn_id.to_string(), None).await.all().await;
    assert_eq!(kinds(&shown), ["ended"], "what is kept is not shown");

    let failed = scene.turn(&thread, "Fail!").await;
    let error = TurnOutcome::Error("The model cannot be reached.".into());
    scene
        .worker
        .report(&report(&failed, 1, 1, vec![TurnEvent::Ended { outcome: error }]))
        .await;
    scene.head.follow(&failed.turn_id.to_string(), None).await.all().await;

    let third = scene.turn(&thread, "And now?").await;
    let told: Vec<_> = third.history.turns.iter().map(|turn| turn.message.as_str()).collect();
    assert_eq!((told, third.history.left_out), (vec!["Who are you?", "Fail!"], 0));
    assert_eq!(third.history.turns[0].messages, [said]);
    assert_eq!(
        third.history.turns[1].messages[0]["content"],
        "The model cannot be reached."
    );

    let (_, listed) = scene.head.get("/v1/threads").await;
    assert_eq!(listed[0]["id"], thread.as_str());
    let (_, shown) = scene.head.get(&format!("/v1/threads/{thread}")).await;
    let turns = shown["turns"].as_array().unwrap();
    let statuses: Vec<_> = turns.iter().map(|turn| turn["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["answered", "failed", "running"]);
    assert_eq!(turns[0]["outcome"], "I am Rover.");
    scene.finish().await;
}

#[tokio::test]
async fn are_told_in_order_by_any_server() {
    let scene = Scene::new().await;
    let other = Server::on(&scene.stage).await;
    let thread = scene.head.thread(&json!({})).await;
    let turn = scene.turn(&thread, "Tell me.").await;
    let id = turn.turn_id.to_string();
    let mut live = scene.head.at(&other).follow(&id, None).await;
    // out of order, and one of them twice
    scene
        .worker
        .report(&report(&turn, 1, 3, vec![text("c"), text("d")]))
        .await;
    scene
        .worker
        .report(&report(&turn, 1, 1, vec![TurnEvent::Started {}]))
        .await;
    assert_eq!(live.next().await.unwrap().kind, "started");
    scene
        .worker
        .tell(&report(&turn, 1, 3, vec![text("c"), text("d")]))
        .await;
    scene.worker.tell(&report(&turn, 1, 2, vec![text("b")])).await;
    scene
        .worker
        .tell(&report(&turn, 1, 5, vec![answer("bcd"), text("after the end")]))
        .await;
    let rest = live.all().await;
    let deltas: Vec<_> = rest.iter().filter_map(|event| event.data["delta"].as_str()).collect();
    assert_eq!(
        (kinds(&rest), deltas),
        (vec!["text", "text", "text", "ended"], vec!["b", "c", "d"])
    );
    assert_eq!(rest.last().unwrap().data["outcome"], json!({"answer": "bcd"}));

    let late = scene.head.follow(&id, None).await.all().await;
    assert_eq!(late[1..], rest, "whoever comes late gets all of it");
    let again = scene.head.at(&other).follow(&id, Some(&rest[1].id)).await.all().await;
    assert_eq!(again, rest[2..], "whoever comes back goes on");
    let ended = scene.head.try_follow(&id, Some(&rest[3].id)).await;
    assert_eq!(
        ended.status(),
        StatusCode::NO_CONTENT,
        "nobody comes back after the end"
    );
    for beyond in ["1.99", "7.1"] {
        let beyond = scene.head.try_follow(&id, Some(beyond)).await;
        assert_eq!(beyond.status(), StatusCode::NO_CONTENT);
    }
    other.process.kill().await;
    scene.finish().await;
}

#[tokio::test]
async fn go_on_with_the_attempt_that_took_over() {
    let scene = Scene::new().await;
    let thread = scene.head.thread(&json!({})).await;
    let turn = scene.turn(&thread, "Go on.").await;
    let id = turn.turn_id.to_string();
    scene.worker.tell(&report(&turn, 1, 1, vec![text("a")])).await;
    scene.worker.tell(&report(&turn, 1, 3, vec![text("never told")])).await;
    let next = scene.taken_over(&turn).await;
    assert_eq!(
        scene.worker.tell(&report(&turn, 1, 4, vec![answer("late")])).await,
        ReportTaken::Superseded
    );
    let last = report(&next, 2, 1, vec![text("b"), answer("b")]);
    assert_eq!(scene.worker.tell(&last).await, ReportTaken::GoOn);
    let told = scene.head.follow(&id, None).await.all().await;
    let places: Vec<_> = told.iter().map(|event| event.id.as_str()).collect();
    assert_eq!(places, ["1.1", "2.1", "2.2"]);
    scene.finish().await;
}

#[tokio::test]
async fn end_a_turn_that_nobody_ends() {
    let scene = Scene::new().await;
    let thread = scene.head.thread(&json!({})).await;
    let turn = scene.turn(&thread, "Nobody will answer.").await;
    scene.worker.report(&report(&turn, 1, 1, vec![text("a")])).await;
    let mut events = scene.head.follow(&turn.turn_id.to_string(), None).await;
    assert_eq!(events.next().await.unwrap().kind, "text");
    scene
        .stage
        .arrange("UPDATE turns SET deadline_at = now() - interval '1 hour'")
        .await;
    let ended = events.next().await.unwrap();
    assert!(
        ended.data["outcome"]["error"].as_str().unwrap().contains("interrupted"),
        "{ended:?}"
    );
    assert_eq!(events.next().await, None);
    // an answer that comes later changes nothing any more
    scene.worker.report(&report(&turn, 1, 2, vec![answer("late")])).await;
    scene.turn(&thread, "Next").await;
    let failed = "SELECT count(*) FROM turns WHERE status = 'failed'";
    assert_eq!(scene.stage.count(failed).await, 1);
    scene.finish().await;
}

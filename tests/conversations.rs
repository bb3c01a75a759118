//! Conversations at the HTTP door, with a worker that is this test: what it takes off the queue of turns, and what it reports.

use crate::http::{self, Event, Server, Visitor};
use contract::turn::{TurnEvent, TurnMessage, TurnOutcome, TurnReport};
use e2e::{
    Stage,
    broker::Peer,
    fixtures::{HILLTOP, RIVERSIDE},
};
use reqwest::StatusCode;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};

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
        first,
        events,
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
        let stage = Stage::with(AUTH).await;
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
        let id = self.head.turn(thread, message).await;
        let turn = self.worker.take_turn().await;
        assert_eq!(turn.turn_id.to_string(), id);
        turn
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
    assert!(first.reported && first.history.turns.is_empty());
    assert_eq!(
        first.context.run_mode.call_scope().pinned(),
        Some(HILLTOP.campus("main"))
    );
    let said = json!({"role": "assistant", "content": "I am Rover."});
    let events = vec![
        TurnEvent::Messages {
            messages: vec![said.clone()],
        },
        answer("I am Rover."),
    ];
    scene.worker.report(&report(&first, 1, 1, events)).await;
    let shown = scene.head.follow(&first.turn_id.to_string(), None).await.all().await;
    assert_eq!(kinds(&shown), ["ended"], "what a model reads later is not shown");

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
        .report(&report(&turn, 1, 3, vec![text("c"), text("d")]))
        .await;
    scene.worker.report(&report(&turn, 1, 2, vec![text("b")])).await;
    scene
        .worker
        .report(&report(&turn, 1, 5, vec![answer("bcd"), text("after the end")]))
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
    scene.worker.report(&report(&turn, 1, 1, vec![text("a")])).await;
    scene
        .worker
        .report(&report(&turn, 1, 3, vec![text("never told")]))
        .await;
    scene
        .worker
        .report(&report(&turn, 2, 1, vec![text("b"), answer("b")]))
        .await;
    let told = scene.head.follow(&id, None).await.all().await;
    let places: Vec<_> = told.iter().map(|event| event.id.as_str()).collect();
    assert_eq!(places, ["1.1", "2.1", "2.2"]);
    scene.finish().await;
}

#[tokio::test]
async fn take_reports_with_the_grant_of_their_turn_only() {
    let scene = Scene::new().await;
    let (one, two) = (scene.head.thread(&json!({})).await, scene.head.thread(&json!({})).await);
    let (first, second) = (scene.turn(&one, "One").await, scene.turn(&two, "Two").await);
    let mut foreign = report(&first, 1, 1, vec![answer("forged")]);
    foreign.grant = second.grant.clone();
    let mut none = foreign.clone();
    none.grant = String::new();
    let nowhere = report(&first, 0, 1, vec![answer("forged")]);
    let never = report(&first, 101, 1, vec![text("too late")]);
    for forged in [foreign, none, nowhere, never] {
        scene.worker.report(&forged).await;
    }
    scene.worker.report_raw(b"{}").await;
    scene.worker.report_raw(&[0xff; 100]).await;
    scene.worker.report(&report(&first, 1, 1, vec![answer("real")])).await;
    let told = scene.head.follow(&first.turn_id.to_string(), None).await.all().await;
    assert_eq!(told[0].data["outcome"]["answer"], "real");
    assert_eq!(scene.stage.count("SELECT count(*) FROM turn_events").await, 1);
    scene.worker.until_dead_reports(6).await;
    scene.finish().await;
}

#[tokio::test]
async fn keep_whatever_a_model_says_but_nuls() {
    let scene = Scene::new().await;
    let thread = scene.head.thread(&json!({})).await;
    let turn = scene.turn(&thread, "Say anything.").await;
    let said = "a\u{0}b \u{1}\u{7f} \u{202e} \\u0000 \r\n\ndata: x \u{1f3ad}";
    let shown = TurnEvent::Shown {
        agent: "Rover".into(),
        tool_call_id: "c\u{0}".into(),
        event: json!({"k\u{0}": [said]}),
    };
    scene
        .worker
        .report(&report(&turn, 1, 1, vec![text(said), shown, answer(said)]))
        .await;
    let events = scene.head.follow(&turn.turn_id.to_string(), None).await.all().await;
    let kept = said.replace('\0', "");
    assert_eq!(events[0].data["delta"], kept);
    assert_eq!(events[1].data["event"], json!({"k": [kept]}));
    assert_eq!(events[2].data["outcome"]["answer"], kept);
    scene.finish().await;
}

#[tokio::test]
async fn stop_before_a_worker_has_begun() {
    let scene = Scene::new().await;
    let thread = scene.head.thread(&json!({})).await;
    let told = scene.worker.cancels().await;
    let turn = scene.turn(&thread, "Stop me.").await;
    let id = turn.turn_id.to_string();
    let cancel = format!("/v1/turns/{id}/cancel");
    assert_eq!(scene.head.post(&cancel, &json!({})).await.0, StatusCode::ACCEPTED);
    assert_eq!(scene.worker.next_cancel(&told).await.turn_id, turn.turn_id);
    let events = scene.head.follow(&id, None).await.all().await;
    assert!(events[0].data["outcome"]["cancelled"].is_string(), "{events:?}");
    assert_eq!(scene.head.post(&cancel, &json!({})).await.0, StatusCode::CONFLICT);
    // one that begins all the same has not heard, and is told
    let late = vec![TurnEvent::Started {}, text("I have not heard"), answer("done")];
    scene.worker.report(&report(&turn, 1, 1, late)).await;
    assert_eq!(scene.worker.next_cancel(&told).await.turn_id, turn.turn_id);
    let ends = scene
        .stage
        .count("SELECT count(*) FROM turn_events WHERE event ->> 'type' = 'ended'")
        .await;
    assert_eq!(ends, 1, "a turn has one end");
    let again = scene.head.follow(&id, None).await.all().await;
    assert_eq!(
        again.last().map(|event| &event.data),
        events.last().map(|event| &event.data)
    );
    scene.turn(&thread, "Next").await;
    scene.finish().await;
}

#[tokio::test]
async fn pass_over_what_was_lost() {
    let scene = Scene::new().await;
    let thread = scene.head.thread(&json!({})).await;
    let turn = scene.turn(&thread, "Lose something.").await;
    scene.worker.report(&report(&turn, 1, 1, vec![text("a")])).await;
    scene
        .worker
        .report(&report(&turn, 1, 3, vec![text("c"), answer("abc")]))
        .await;
    let events = scene.head.follow(&turn.turn_id.to_string(), None).await.all().await;
    assert_eq!(
        kinds(&events),
        ["text", "text", "ended"],
        "in the end the missing one is not waited for"
    );
    scene.finish().await;
}

/// A letter that folds to one of somebody else's address is another letter.
#[tokio::test]
async fn let_nobody_in_who_only_looks_like_somebody() {
    let scene = Scene::new().await;
    for (email, status) in [
        ("clerk@hilltop.example", StatusCode::OK),
        ("CLERK@Hilltop.Example", StatusCode::OK),
        ("cler\u{212a}@hilltop.example", StatusCode::FORBIDDEN),
        ("adm\u{130}n@hilltop.example", StatusCode::FORBIDDEN),
    ] {
        let visitor = scene.server.person(&scene.stage, email).await;
        assert_eq!(visitor.get("/v1/agent-map").await.0, status, "{email}");
    }
    let (status, _) = scene.head.post("/v1/threads", &json!({"campus": "a\u{0}"})).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    scene.finish().await;
}

/// Whoever only waits at the door takes a place from nobody for long.
#[tokio::test]
async fn keep_no_place_for_who_says_nothing() {
    let scene = Scene::new().await;
    let address = scene.server.url.strip_prefix("http://").expect("it is an address");
    let waits = async |beginning: &[u8]| {
        let mut stream = TcpStream::connect(address).await.expect("the door is open");
        stream.write_all(beginning).await.expect("it is sent");
        let mut rest = Vec::new();
        // the end, with or without a word
        let _ = timeout(Duration::from_secs(25), stream.read_to_end(&mut rest))
            .await
            .expect("it is shut");
    };
    tokio::join!(waits(b""), waits(b"GET /healthz HTTP/1.1\r\nhost: x\r\n"));
    assert_eq!(scene.head.get("/v1/threads").await.0, StatusCode::OK);
    scene.finish().await;
}

/// Whoever may not come in to one school any more still works in the other.
#[tokio::test]
async fn of_somebody_in_two_schools_are_those_of_each() {
    let scene = Scene::new().await;
    let second_job = format!(
        "INSERT INTO staff (school_id, user_id) SELECT '{}', user_id FROM staff WHERE id = '{}'",
        RIVERSIDE.id(),
        HILLTOP.staff("class.teacher"),
    );
    scene.stage.arrange(&second_job).await;
    let teacher = scene.server.person(&scene.stage, &HILLTOP.email("class.teacher")).await;
    let (status, problem) = teacher.post("/v1/threads", &json!({})).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{problem}");
    let here = teacher.thread(&json!({"school": HILLTOP.slug})).await;
    let there = teacher.thread(&json!({"school": RIVERSIDE.slug})).await;
    let leave = format!(
        "UPDATE staff SET active = false WHERE id = '{}'",
        HILLTOP.staff("class.teacher")
    );
    scene.stage.arrange(&leave).await;
    assert_eq!(teacher.get(&format!("/v1/threads/{there}")).await.0, StatusCode::OK);
    let turn = teacher.turn(&there, "Still here").await;
    assert_eq!(scene.worker.take_turn().await.turn_id.to_string(), turn);
    assert_eq!(
        teacher.get(&format!("/v1/threads/{here}")).await.0,
        StatusCode::FORBIDDEN
    );
    scene.finish().await;
}

/// A database that is busy for longer than a statement may take loses no report.
#[tokio::test]
async fn wait_for_a_database_that_is_busy() {
    let scene = Scene::new().await;
    let thread = scene.head.thread(&json!({})).await;
    let turn = scene.turn(&thread, "Wait.").await;
    let mut owner = scene.stage.owner().await;
    let lock = "BEGIN; LOCK TABLE turn_events IN ACCESS EXCLUSIVE MODE";
    sqlx::raw_sql(lock).execute(&mut owner).await.unwrap();
    scene
        .worker
        .report(&report(&turn, 1, 1, vec![text("a"), answer("a")]))
        .await;
    // a statement of the server's is stopped after ten seconds, and then tried again
    let waiting = "SELECT coalesce(max(extract(epoch FROM xact_start) * 1000), 0)::bigint FROM pg_stat_activity
                    WHERE datname = current_database() AND usename = 'school_app' AND wait_event_type = 'Lock'";
    let changes = async |before: i64| loop {
        let now = scene.stage.count(waiting).await;
        if now > before {
            return now;
        }
        sleep(Duration::from_millis(100)).await;
    };
    let first = timeout(Duration::from_secs(30), changes(0)).await.expect("it waits");
    timeout(Duration::from_secs(30), changes(first))
        .await
        .expect("it tries again");
    sqlx::raw_sql("ROLLBACK").execute(&mut owner).await.unwrap();
    let events = scene.head.follow(&turn.turn_id.to_string(), None).await.all().await;
    assert_eq!(kinds(&events), ["text", "ended"]);
    scene.worker.until_dead_reports(0).await;
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

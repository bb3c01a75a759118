//! What a turn's events tell of calls that waited, and what the next turn's model reads of them: with a server, a worker, and a scripted
//! model that deletes what its person names.

use super::{SECRET, args};
use crate::http::{Event, Server, Visitor};
use e2e::{Stage, fixtures::HILLTOP, process::Process, stage::data};
use reqwest::StatusCode;
use scripted_model::{Reply, Script, ScriptedModel};
use serde_json::{Value, json};
use server::{
    conversation,
    decision::{Became, Ruling},
    grant::Door,
};
use std::process::Stdio;
use tokio::{io::AsyncWriteExt, process::Command};

/// What calls `delete_department`; `Twice` calls it so under two ids at once, and `Again` under one after the other.
fn reply(request: &Value) -> Reply {
    let messages = request["messages"].as_array().expect("a conversation");
    let of_person = messages.iter().rposition(|message| message["role"] == "user");
    let (_, since) = messages.split_at(of_person.expect("somebody said something"));
    let said = since[0]["content"].as_str().unwrap_or_default();
    let delete = |reply: Reply, id| reply.and_call(Some(id), "delete_department", args().to_string());
    let results = since.iter().filter(|message| message["role"] == "tool").count();
    match (said, results) {
        ("Delete it" | "Again", 0) => delete(Reply::nothing(), "one"),
        ("Twice", 0) => delete(delete(Reply::nothing(), "one"), "two"),
        ("Again", 1) => delete(Reply::nothing(), "two"),
        _ => Reply::text("All done."),
    }
}

struct Scene {
    stage: Stage,
    server: Server,
    worker: Process,
    model: ScriptedModel,
    admin: Visitor,
    thread: String,
}

impl Scene {
    async fn new() -> Self {
        let stage = Stage::with(&[SECRET]).await;
        let model = ScriptedModel::start(Script::function(reply)).await;
        let model = model.expect("the model listens");
        let server = Server::on(&stage).await;
        let worker = worker(&stage, &model).await;
        let admin = server.person(&stage, &HILLTOP.email("admin")).await;
        let thread = admin.thread(&json!({})).await;
        Self {
            stage,
            server,
            worker,
            model,
            admin,
            thread,
        }
    }

    /// Says something, and waits until the turn does.
    async fn waiting(&self, message: &str) -> (String, String) {
        let turn = self.admin.turn(&self.thread, message).await;
        self.stage
            .until("SELECT count(*) FROM turns WHERE status = 'waiting'", 1)
            .await;
        (turn, self.open().await)
    }

    /// The one approval that waits.
    async fn open(&self) -> String {
        let (_, waiting) = self.admin.get("/v1/approvals").await;
        assert_eq!(waiting.as_array().map(Vec::len), Some(1), "{waiting}");
        waiting[0]["id"].as_str().expect("it has an id").to_owned()
    }

    async fn decide(&self, approval: &str, decision: &Value, became: &str) -> Value {
        let path = format!("/v1/approvals/{approval}/decision");
        let (status, settled) = self.admin.post(&path, decision).await;
        assert_eq!(
            (status, &settled["became"]),
            (StatusCode::OK, &json!(became)),
            "{settled}"
        );
        settled["approval"].clone()
    }

    /// What the turn tells to its end, of calls and of waiting.
    async fn told(&self, turn: &str) -> Vec<Event> {
        let events = self.admin.follow(turn, None).await.all().await;
        let last = &events.last().expect("it has events").data;
        assert_eq!(last["outcome"]["answer"], "All done.", "{events:?}");
        let kinds = [
            "tool_started",
            "tool_ended",
            "shown",
            "approval_asked",
            "decided",
            "waiting",
        ];
        let told = events.into_iter().filter(|event| kinds.contains(&event.kind.as_str()));
        told.collect()
    }

    /// What the model read last of each of its calls.
    fn read(&self) -> Vec<(String, String)> {
        let request = self.model.requests().pop().expect("the model was asked");
        let messages = request["messages"].as_array().expect("a conversation").clone();
        let text = |message: &Value, name: &str| message[name].as_str().unwrap_or_default().to_owned();
        let results = messages.iter().filter(|message| message["role"] == "tool");
        results
            .map(|message| (text(message, "tool_call_id"), text(message, "content")))
            .collect()
    }

    async fn rename(&self, name: &str) {
        let rename = format!(
            "UPDATE departments SET name = '{name}' WHERE id = '{}'",
            HILLTOP.department_id()
        );
        self.stage.arrange(&rename).await;
    }

    async fn is_there(&self) -> bool {
        let find = sqlx::query_scalar("SELECT count(*) FROM departments WHERE id = $1").bind(HILLTOP.department_id());
        let rows: i64 = find.fetch_one(&mut self.stage.owner().await).await.unwrap();
        rows == 1
    }

    async fn finish(self) {
        self.worker.kill().await;
        self.server.process.kill().await;
        self.stage.finish().await;
    }
}

async fn worker(stage: &Stage, model: &ScriptedModel) -> Process {
    let url = model.base_url();
    let more = [("OPENAI_BASE_URL", url.as_str()), ("MODEL", "scripted-demo")];
    Process::start(env!("CARGO_BIN_EXE_worker-under-test"), &[], stage, &more).await
}

fn kinds(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.kind.as_str()).collect()
}

fn decided(event: &Event) -> (&str, &str) {
    let text = |name: &str| event.data[name].as_str().unwrap_or_default();
    (text("approvalId"), text("decision"))
}

const ONCE: [&str; 5] = ["tool_started", "approval_asked", "waiting", "decided", "tool_ended"];
const ASKED_TWICE: [&str; 8] = [
    "tool_started",
    "approval_asked",
    "waiting",
    "decided",
    "approval_asked",
    "waiting",
    "decided",
    "tool_ended",
];

#[tokio::test]
async fn an_approved_call_ends_in_the_turns_events_as_it_ended() {
    let scene = Scene::new().await;
    let (turn, approval) = scene.waiting("Delete it").await;
    let forbid = [("DELETE", "DEPARTMENT", "deny", None)];
    scene.stage.give_rules(&HILLTOP, "admin", 1000, &forbid).await;
    scene.decide(&approval, &json!({"decision": "approve"}), "failed").await;
    let denied = scene.told(&turn).await;
    assert_eq!(kinds(&denied), ONCE);
    assert_eq!(decided(&denied[3]), (approval.as_str(), "approved"));
    let refused = denied[4].data["error"].as_str().unwrap_or_default();
    assert!(refused.starts_with("Permission denied: "), "{denied:?}");

    let allow = [("DELETE", "DEPARTMENT", "allow", None)];
    scene.stage.give_rules(&HILLTOP, "admin", 1001, &allow).await;
    let (turn, approval) = scene.waiting("Delete it").await;
    scene
        .decide(&approval, &json!({"decision": "approve"}), "executed")
        .await;
    let done = scene.told(&turn).await;
    assert_eq!(kinds(&done), ONCE);
    assert_eq!(decided(&done[3]), (approval.as_str(), "approved"));
    let ended = &done[4].data;
    assert_eq!(
        (&ended["agent"], &ended["tool"], &ended["toolCallId"]),
        (&json!("Rover"), &json!("delete_department"), &json!("one"))
    );
    assert!(ended["scopeContext"].is_string(), "{ended}");
    assert!(!scene.is_there().await);
    scene.finish().await;
}

#[tokio::test]
async fn what_is_asked_with_other_arguments_is_told_as_it_is_asked() {
    let scene = Scene::new().await;
    let admin = scene.stage.person(&HILLTOP.email("admin")).await;
    let other = json!({"name": "Drama", "campusId": HILLTOP.campus(HILLTOP.first_campus)});
    let other = data(scene.stage.call(&admin, "create_department", other).await);
    let (turn, first) = scene.waiting("Delete it").await;
    let edit = json!({"decision": "edit", "arguments": {"departmentId": other["id"]}});
    let instead = scene.decide(&first, &edit, "replaced").await;
    let second = scene.open().await;
    assert_eq!((&instead["id"], &instead["replaces"]), (&json!(second), &json!(first)));
    let waits: String = sqlx::query_scalar("SELECT approval_id::text FROM turn_waits")
        .fetch_one(&mut scene.stage.owner().await)
        .await
        .unwrap();
    assert_eq!(waits, second, "the turn waits for what is asked");
    scene.decide(&second, &json!({"decision": "approve"}), "executed").await;
    let told = scene.told(&turn).await;
    assert_eq!(kinds(&told), ASKED_TWICE);
    assert_eq!(decided(&told[3]), (first.as_str(), "replaced"));
    assert_eq!(
        (
            &told[4].data["approvalId"],
            &told[4].data["preview"]["name"],
            &told[4].data["agent"]
        ),
        (&json!(second), &json!("Drama"), &json!("Rover"))
    );
    assert_eq!(decided(&told[6]), (second.as_str(), "approved"));
    assert!(
        told[7].data["scopeContext"]
            .as_str()
            .unwrap_or_default()
            .contains("The person changed")
    );
    assert!(scene.is_there().await);
    scene.finish().await;
}

/// Whoever dies in between, each event is there once.
#[tokio::test]
async fn what_is_asked_anew_is_told_once_whoever_is_killed() {
    let mut scene = Scene::new().await;
    let (turn, first) = scene.waiting("Delete it").await;
    scene.worker.kill().await;
    scene.server.process.kill().await;
    scene.worker = worker(&scene.stage, &scene.model).await;
    scene.server = Server::on(&scene.stage).await;
    scene.admin = scene.admin.at(&scene.server);
    scene.rename("Arts").await;
    // decided by whoever tells no turn
    let admin = conversation::Person {
        email: HILLTOP.email("admin"),
    };
    let settled = scene
        .stage
        .decisions()
        .decide(&admin, Door::Operator, first.parse().unwrap(), Ruling::approve())
        .await
        .unwrap();
    assert_eq!(settled.became, Became::AskedAnew);
    let second = scene.open().await;
    let asked = "SELECT count(*) FROM turn_events WHERE event ->> 'type' = 'approval_asked'";
    scene.stage.until(asked, 2).await;
    scene.server.process.kill().await;
    scene.server = Server::on(&scene.stage).await;
    scene.admin = scene.admin.at(&scene.server);
    assert_eq!(scene.open().await, second);
    scene.decide(&second, &json!({"decision": "approve"}), "executed").await;
    let told = scene.told(&turn).await;
    assert_eq!(kinds(&told), ASKED_TWICE);
    assert_eq!(decided(&told[3]), (first.as_str(), "asked_anew"));
    assert_eq!(
        (&told[4].data["approvalId"], &told[4].data["preview"]["name"]),
        (&json!(second), &json!("Arts"))
    );
    assert_eq!(decided(&told[6]), (second.as_str(), "approved"));
    let result = &scene.read()[0].1;
    assert!(
        !result.contains("The person changed"),
        "nobody changed anything: {result}"
    );
    scene.finish().await;
}

/// What a person at a terminal sees of a call that is asked about anew.
#[tokio::test]
async fn a_chat_shows_what_is_asked_anew_and_what_came_of_it() {
    let scene = Scene::new().await;
    let mut chat = Command::new(env!("CARGO_BIN_EXE_server-under-test"))
        .args(["chat", "--as", &HILLTOP.email("admin")])
        .env_clear()
        .envs(scene.stage.variables())
        .env("HTTP_URL", &scene.server.url)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the chat starts");
    let mut says = chat.stdin.take().expect("it listens");
    says.write_all(b"Delete it\n").await.unwrap();
    let waits = "SELECT count(*) FROM turns WHERE status = 'waiting'";
    scene.stage.until(waits, 1).await;
    scene.rename("Arts").await;
    says.write_all(b"approve\n").await.unwrap();
    scene
        .stage
        .until("SELECT count(*) FROM approvals WHERE status = 'asked_anew'", 1)
        .await;
    assert!(scene.is_there().await);
    says.write_all(b"approve\n").await.unwrap();
    drop(says);
    let output = chat.wait_with_output().await.expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    let places = [
        HILLTOP.department,
        "By now it would do this",
        "\"name\":\"Arts\"",
        "delete_department: done.",
        "All done.",
    ];
    let found: Vec<_> = places.iter().map(|text| said.find(text)).collect();
    assert!(
        found.iter().all(Option::is_some) && found.is_sorted(),
        "{found:?}: {said}"
    );
    assert!(!scene.is_there().await);
    scene.finish().await;
}

/// fault 28: one prompt, each call has its one result, and a no is a no to both
#[tokio::test]
async fn the_same_call_twice_is_asked_about_once() {
    let scene = Scene::new().await;
    for message in ["Twice", "Again"] {
        let (turn, approval) = scene.waiting(message).await;
        scene
            .decide(&approval, &json!({"decision": "reject"}), "rejected")
            .await;
        let told = scene.told(&turn).await;
        let asked = kinds(&told).iter().filter(|kind| **kind == "approval_asked").count();
        assert_eq!(asked, 1, "{message}: {told:?}");
        let read = scene.read();
        let this_turn = &read[read.len() - 2..];
        assert_eq!(
            [&*this_turn[0].0, &*this_turn[1].0],
            ["one", "two"],
            "{message}: {read:?}"
        );
        let says = |text: &str| this_turn.iter().filter(|(_, result)| result.contains(text)).count();
        assert_eq!(says("The person did not approve this."), 1, "{message}: {read:?}");
        let other = if message == "Twice" {
            "The same call waits for the person's decision already"
        } else {
            "nobody is asked again"
        };
        assert_eq!(says(other), 1, "{message}: {read:?}");
    }
    assert!(scene.is_there().await);
    scene.finish().await;
}

#[tokio::test]
async fn the_next_turn_reads_that_what_waited_was_taken_back() {
    let scene = Scene::new().await;
    let (turn, approval) = scene.waiting("Delete it").await;
    let stopped = scene.admin.post(&format!("/v1/turns/{turn}/cancel"), &json!({})).await;
    assert_eq!(stopped.0, StatusCode::ACCEPTED);
    // at once: nobody has looked after approvals meanwhile
    let next = scene.admin.turn(&scene.thread, "And now?").await;
    scene.told(&next).await;
    let read = scene.read();
    let result = json!({"error": "This was taken back before anybody decided about it, so it was not done. Do not ask again for it unless the person does."});
    assert_eq!(read, [("one".to_owned(), result.to_string())]);
    let path = format!("/v1/approvals/{approval}/decision");
    let (late, _) = scene.admin.post(&path, &json!({"decision": "approve"})).await;
    assert_eq!(late, StatusCode::CONFLICT);
    assert!(scene.is_there().await);
    scene.finish().await;
}

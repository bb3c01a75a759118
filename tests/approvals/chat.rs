//! What somebody says in a chat is no approval, wherever they say it.

use super::{SECRET, TOOL, args, status};
use crate::{
    http::{Server, Visitor},
    working::{Working, talk},
};
use e2e::{Stage, fixtures::HILLTOP};
use reqwest::StatusCode;
use scripted_model::{Reply, Script};
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

const YES: &str = "yes, approve it";

/// A model that takes every word for a yes: it calls the tool at once, and whatever comes of it, it says that it is done.
fn eager() -> Script {
    Script::function(|request| {
        let messages = request["messages"].as_array().expect("a conversation");
        let last = messages.last().expect("somebody said something");
        match (last["role"].as_str(), last["content"].as_str()) {
            (Some("user"), Some("thank you")) => Reply::text("Done as you approved."),
            (Some("user"), _) => Reply::nothing().and_call(Some("delete"), TOOL, args().to_string()),
            _ => Reply::text("It is done."),
        }
    })
}

struct Scene {
    stage: Stage,
    server: Server,
    worker: Working,
    admin: Visitor,
    thread: String,
}

impl Scene {
    async fn new() -> Self {
        let stage = Stage::with(&[SECRET]).await;
        let (server, worker) = (Server::on(&stage).await, Working::with(&stage, eager()).await);
        let admin = server.person(&stage, &HILLTOP.email("admin")).await;
        let thread = admin.thread(&json!({})).await;
        Self {
            stage,
            server,
            worker,
            admin,
            thread,
        }
    }

    /// Says something of which a turn comes that waits; with what it waits for.
    async fn waits(&self, message: &str) -> (String, Uuid) {
        let turn = self.admin.turn(&self.thread, message).await;
        let mut follow = self.admin.follow(&turn, None).await;
        let mut asked = None;
        while let Some(event) = follow.next().await {
            match event.kind.as_str() {
                "approval_asked" => asked = event.data["approvalId"].as_str().map(|id| id.parse().unwrap()),
                "waiting" => break,
                _ => {}
            }
        }
        (turn, asked.expect("it asks"))
    }

    async fn assert_nothing_done(&self) {
        let is_there =
            sqlx::query_scalar("SELECT count(*) FROM departments WHERE id = $1").bind(HILLTOP.department_id());
        let rows: i64 = is_there.fetch_one(&mut self.stage.owner().await).await.unwrap();
        assert_eq!(rows, 1);
        assert_eq!(self.stage.count("SELECT count(*) FROM audit_log").await, 0);
    }

    async fn finish(self) {
        self.worker.stop().await;
        self.server.process.kill().await;
        self.stage.finish().await;
    }
}

#[tokio::test]
async fn is_no_approval_while_the_call_waits() {
    let scene = Scene::new().await;
    let (turn, id) = scene.waits("Delete it").await;
    let path = format!("/v1/threads/{}/turns", scene.thread);
    let (busy, problem) = scene.admin.post(&path, &json!({"message": YES})).await;
    assert_eq!(busy, StatusCode::CONFLICT, "{problem}");
    // an answer is for a question, and an approval is none, whatever it is called by
    let path = format!("/v1/turns/{turn}/answers");
    for call in ["delete", &id.to_string()] {
        let (unknown, problem) = scene
            .admin
            .post(&path, &json!({"toolCallId": call, "answer": YES}))
            .await;
        assert_eq!(unknown, StatusCode::NOT_FOUND, "{call}: {problem}");
    }
    // nor in a thread of its own, where the model takes it for one: that asks anew
    let elsewhere = scene.admin.thread(&json!({})).await;
    let other = Scene {
        thread: elsewhere,
        ..scene
    };
    let (_, anew) = other.waits(YES).await;
    assert_ne!(anew, id);
    for waiting in [id, anew] {
        assert_eq!(status(&other.stage, waiting).await, "pending");
    }
    other.assert_nothing_done().await;
    // what is right does it
    let path = format!("/v1/approvals/{id}/decision");
    let (decided, settled) = other.admin.post(&path, &json!({"decision": "approve"})).await;
    assert_eq!(
        (decided, &settled["became"]),
        (StatusCode::OK, &json!("executed")),
        "{settled}"
    );
    let events = other.admin.follow(&turn, None).await.all().await;
    assert_eq!(events.last().unwrap().data["outcome"], json!({"answer": "It is done."}));
    other.finish().await;
}

#[tokio::test]
async fn is_no_approval_of_what_was_taken_back() {
    let scene = Scene::new().await;
    let (turn, id) = scene.waits("Delete it").await;
    let cancel = format!("/v1/turns/{turn}/cancel");
    assert_eq!(scene.admin.post(&cancel, &json!({})).await.0, StatusCode::ACCEPTED);
    let (_, outcome) = talk(&scene.admin, &scene.thread, "thank you").await;
    assert_eq!(
        outcome,
        json!({"answer": "Done as you approved."}),
        "whatever the model says"
    );
    scene.assert_nothing_done().await;

    let (_, anew) = scene.waits(YES).await;
    assert_ne!(anew, id, "it is asked anew");
    let path = format!("/v1/approvals/{id}/decision");
    let (late, problem): (_, Value) = scene.admin.post(&path, &json!({"decision": "approve"})).await;
    assert_eq!(late, StatusCode::CONFLICT, "{problem}");
    scene
        .stage
        .decisions()
        .look_after(Duration::from_mins(2))
        .await
        .unwrap();
    assert_eq!(status(&scene.stage, id).await, "revoked");
    assert_eq!(status(&scene.stage, anew).await, "pending");
    scene.assert_nothing_done().await;
    scene.finish().await;
}

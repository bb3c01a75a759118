//! Who it was that asked, told by name, also where another worker goes on with it.

use super::{AUTH, PATIENCE, QUESTIONS, Scene, until};
use crate::http::{Event, Server, Visitor};
use e2e::{Stage, fixtures::HILLTOP, process::Process};
use reqwest::StatusCode;
use scripted_model::{Reply, Script, ScriptedModel};
use serde_json::{Value, json};
use tokio::time::timeout;

/// Of each event of a kind: its call, and whose it is.
fn agents<'a>(events: &'a [Event], kind: &str) -> Vec<(&'a str, &'a str)> {
    let of_kind = events.iter().filter(|event| event.kind == kind);
    let mut agents: Vec<_> = of_kind
        .map(|event| {
            let member = |name: &str| event.data[name].as_str().unwrap_or_default();
            (member("toolCallId"), member("agent"))
        })
        .collect();
    agents.sort_unstable();
    agents
}

#[tokio::test]
async fn a_question_is_told_as_its_agents_whoever_goes_on() {
    let scene = Scene::new().await;
    let worker = scene.worker().await;
    let turn = scene.begin("Asked").await;
    scene.until_waiting(&turn).await;
    worker.kill().await;
    scene.answer_both(&turn).await;
    let worker = scene.worker().await;
    let events = scene.assert_whole(&turn, "Asked").await;
    assert_eq!(
        agents(&events, "asked"),
        QUESTIONS.map(|(call, _, agent)| (call, agent))
    );
    let ended = agents(&events, "tool_ended");
    for ended_as in [
        ("t/mine", "Angie"),
        ("t", "Rover"),
        ("make", "Rover"),
        ("again", "Rover"),
    ] {
        assert!(ended.contains(&ended_as), "{ended_as:?} in {ended:?}");
    }
    worker.kill().await;
    scene.finish().await;
}

/// The director of studies has the specialist change how the campus grades, which somebody else must approve.
fn grading(request: &Value) -> Reply {
    let messages = request["messages"].as_array().expect("a conversation");
    let is_rover = messages[0]["content"]
        .as_str()
        .is_some_and(|prompt| prompt.starts_with("You are Rover"));
    let has_result = messages.iter().any(|message| message["role"] == "tool");
    match (is_rover, has_result) {
        (true, false) => {
            let task = json!({"agent": "Sarah", "task": "Two bands"}).to_string();
            Reply::nothing().and_call(Some("t"), "task", task)
        }
        (false, false) => {
            let bands = json!([{"label": "Pass", "from": 50}, {"label": "Not yet", "from": 0}]);
            Reply::nothing().and_call(
                Some("bands"),
                "update_grading_config",
                json!({"bands": bands}).to_string(),
            )
        }
        (_, true) => Reply::text("All done."),
    }
}

async fn worker(stage: &Stage, model: &ScriptedModel) -> Process {
    let url = model.base_url();
    let more = [("OPENAI_BASE_URL", url.as_str()), ("MODEL", "scripted-demo")];
    Process::start(env!("CARGO_BIN_EXE_worker-under-test"), &[], stage, &more).await
}

/// Waits until a turn waits, and answers what it asks to be approved.
async fn asked(visitor: &Visitor, turn: &str) -> Event {
    let mut follow = visitor.follow(turn, None).await;
    let mut asked = None;
    let waits = async {
        while let Some(event) = follow.next().await {
            match event.kind.as_str() {
                "approval_asked" => asked = Some(event),
                "waiting" => break,
                _ => {}
            }
        }
    };
    timeout(PATIENCE, waits).await.expect("it waits in time");
    asked.expect("it asks")
}

#[tokio::test]
async fn an_approval_is_asked_for_as_the_specialists_and_given_back_to_it() {
    let stage = Stage::with(&[AUTH]).await;
    let model = ScriptedModel::start(Script::function(grading))
        .await
        .expect("the model listens");
    let server = Server::on(&stage).await;
    let dos = server.person(&stage, &HILLTOP.email("dos")).await;
    let head = server.person(&stage, &HILLTOP.email("head")).await;
    let changes = "SELECT count(*) FROM audit_log WHERE event = 'update.grading_config'";
    for (decision, changed) in [("reject", 0), ("approve", 1)] {
        let first = worker(&stage, &model).await;
        let thread = dos.thread(&json!({})).await;
        let turn = dos.turn(&thread, "Grade with two bands").await;
        let asked = asked(&dos, &turn).await;
        assert_eq!(
            (&asked.data["agent"], &asked.data["toolCallId"]),
            (&json!("Sarah"), &json!("t/bands"))
        );
        until(async || dos.get(&format!("/v1/turns/{turn}")).await.1["status"] == "waiting").await;
        first.kill().await;
        let id = asked.data["approvalId"].as_str().expect("it has an id");
        let path = format!("/v1/approvals/{id}/decision");
        let (status, settled) = head.post(&path, &json!({"decision": decision})).await;
        assert_eq!(status, StatusCode::OK, "{settled}");

        let second = worker(&stage, &model).await;
        let events = dos.follow(&turn, None).await.all().await;
        assert_eq!(events.last().expect("an end").data["outcome"]["answer"], "All done.");
        assert_eq!(agents(&events, "approval_asked"), [("t/bands", "Sarah")], "told once");
        assert_eq!(
            agents(&events, "decided"),
            [("t/bands", "")],
            "the person's, not an agent's"
        );
        assert_eq!(agents(&events, "delegated"), [("t", "Sarah")]);
        let result = sqlx::query_scalar(
            "SELECT entry ->> 'content' FROM turn_messages WHERE turn_id::text = $1 AND name = '=t/bands'",
        );
        let result: String = result
            .bind(&turn)
            .fetch_one(&mut stage.owner().await)
            .await
            .expect("it is kept");
        assert_eq!(result.contains("\"data\""), changed == 1, "{result}");
        assert_eq!(stage.count(changes).await, changed, "{decision}");
        second.kill().await;
    }
    server.process.kill().await;
    stage.finish().await;
}

//! Three calls of one answer of the model that wait together: approved, rejected and expired, in every combination, each in a turn of
//! its own.

use super::SECRET;
use crate::http::{Server, Visitor};
use e2e::{Stage, fixtures::HILLTOP, process::Process, stage::data};
use futures_util::future::join_all;
use reqwest::StatusCode;
use scripted_model::{Reply, Script, ScriptedModel};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};
use uuid::Uuid;

const CALLS: [&str; 3] = ["one", "two", "three"];
/// How many cases a call's fates take up before they come again.
const STEPS: [usize; 3] = [1, 3, 9];
const CASES: usize = 27;
/// What the first message of each turn says before the ids of what is to be deleted.
const MESSAGE: &str = "Delete";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Approved,
    Rejected,
    Expired,
}

/// What becomes of a call in a case.
const fn fate(case: usize, call: usize) -> Fate {
    match case / STEPS[call] % 3 {
        0 => Fate::Approved,
        1 => Fate::Rejected,
        _ => Fate::Expired,
    }
}

/// What a model was told of its calls: their ids and results in order, by what its person said.
type Told = Arc<Mutex<BTreeMap<String, Vec<(String, String)>>>>;

fn script(told: &Told) -> Script {
    let told = Arc::clone(told);
    Script::function(move |request| {
        let messages = request["messages"].as_array().expect("a conversation");
        let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
        let said = messages.iter().rfind(|message| message["role"] == "user");
        let said = text(said.expect("somebody said something"));
        let results: Vec<_> = messages
            .iter()
            .filter(|message| message["role"] == "tool")
            .map(|message| {
                (
                    message["tool_call_id"].as_str().unwrap_or_default().to_owned(),
                    text(message),
                )
            })
            .collect();
        if results.is_empty() {
            let rows = said.split(' ').skip(1);
            return rows.zip(CALLS).fold(Reply::nothing(), |reply, (row, call)| {
                let args = json!({"departmentId": row}).to_string();
                reply.and_call(Some(call), "delete_department", args)
            });
        }
        told.lock().unwrap().insert(said, results);
        Reply::text("All done.")
    })
}

/// Decides all calls of a turn at once; what expires is left for later.
async fn decide(admin: &Visitor, case: usize, approvals: &BTreeMap<String, Uuid>) {
    let decisions = CALLS.iter().enumerate().map(|(call, name)| async move {
        let (decision, became) = match fate(case, call) {
            Fate::Approved => (json!({"decision": "approve"}), "executed"),
            Fate::Rejected => (json!({"decision": "reject", "reason": "Not this one."}), "rejected"),
            Fate::Expired => return,
        };
        let path = format!("/v1/approvals/{}/decision", approvals[*name]);
        let (status, said) = admin.post(&path, &decision).await;
        assert_eq!(
            (status, &said["became"]),
            (StatusCode::OK, &json!(became)),
            "{case}: {said}"
        );
    });
    join_all(decisions).await;
}

/// fault 24: of three calls side by side, each ends as it was decided, whatever the others did
#[tokio::test]
async fn calls_of_one_answer_are_each_decided_and_each_has_one_result() {
    let stage = Stage::with(&[SECRET, ("OPEN_TURNS", "100")]).await;
    let told = Told::default();
    let model = ScriptedModel::start(script(&told)).await.expect("the model listens");
    let server = Server::on(&stage).await;
    let url = model.base_url();
    let more = [("OPENAI_BASE_URL", url.as_str()), ("MODEL", "scripted-demo")];
    let worker = Process::start(env!("CARGO_BIN_EXE_worker-under-test"), &[], &stage, &more).await;
    let admin = server.person(&stage, &HILLTOP.email("admin")).await;
    let requester = stage.person(&HILLTOP.email("admin")).await;

    let mut turns = Vec::new();
    for case in 0..CASES {
        let mut message = MESSAGE.to_owned();
        let mut rows = Vec::new();
        for call in CALLS {
            let args = json!({"name": format!("Case {case} {call}"), "campusId": HILLTOP.campus(HILLTOP.first_campus)});
            let made = data(stage.call(&requester, "create_department", args).await);
            let id: Uuid = made["id"].as_str().unwrap().parse().unwrap();
            message = format!("{message} {id}");
            rows.push(id);
        }
        let thread = admin.thread(&json!({})).await;
        turns.push((admin.turn(&thread, &message).await, message, rows));
    }
    let wait = i64::try_from(CASES * CALLS.len()).unwrap();
    stage
        .until("SELECT count(*) FROM approvals WHERE status = 'pending'", wait)
        .await;

    let asked: Vec<(Uuid, Uuid, String)> = sqlx::query_as("SELECT turn_id, id, tool_call_id FROM approvals")
        .fetch_all(&mut stage.owner().await)
        .await
        .unwrap();
    let decided = turns.iter().enumerate().map(|(case, (turn, ..))| {
        let of_turn = asked.iter().filter(|(of, ..)| of.to_string() == *turn);
        let approvals = of_turn.map(|(_, id, call)| (call.clone(), *id)).collect();
        let admin = &admin;
        async move { decide(admin, case, &approvals).await }
    });
    join_all(decided).await;
    stage
        .arrange("UPDATE approvals SET created_at = now() - interval '2 days', expires_at = now() - interval '1 day' WHERE status = 'pending'")
        .await;

    for (case, (turn, message, rows)) in turns.iter().enumerate() {
        let events = admin.follow(turn, None).await.all().await;
        let outcome = &events.last().expect("it has events").data["outcome"];
        assert_eq!(outcome["answer"], "All done.", "{case}: {events:?}");
        let results = told.lock().unwrap()[message].clone();
        let names: Vec<_> = results.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, CALLS, "{case}: each call has one result, in their order");
        for (call, (row, (_, result))) in rows.iter().zip(&results).enumerate() {
            let left = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM departments WHERE id = $1").bind(row);
            let is_left = left.fetch_one(&mut stage.owner().await).await.unwrap() == 1;
            let fate = fate(case, call);
            assert_eq!(is_left, fate != Fate::Approved, "{case} {call}: executed = approved");
            let says = match fate {
                Fate::Approved => "\"data\"",
                Fate::Rejected => "Not this one.",
                Fate::Expired => "Nobody decided about this in time",
            };
            assert!(result.contains(says), "{case} {call}: {result}");
        }
    }
    let rows = "SELECT count(*) FROM audit_log WHERE event = 'delete.department'";
    assert_eq!(stage.count(rows).await, 27, "a third of the calls");
    worker.kill().await;
    server.process.kill().await;
    stage.finish().await;
}

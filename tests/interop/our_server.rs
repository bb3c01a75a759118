//! A Nest client calls our server: by the queue's own name through the default exchange, without a grant.

use crate::{checked, nest::Nest};
use e2e::{Person, Stage, fixtures::HILLTOP, process::Process};
use serde_json::{Value, json};
use std::{path::Path, time::Instant};

const SERVER: &str = env!("CARGO_BIN_EXE_server-under-test");

pub(crate) async fn answers_a_nest_client(peer: &Path) {
    let stage = Stage::with(&[("REQUIRE_GRANT", "false")]).await;
    let amqp_url = stage.config().broker.amqp.reveal().to_owned();
    let queue = stage.config().broker.topology.tools_queue.clone();
    let mut early = Nest::client(peer, &amqp_url, &queue).await;
    let _server = Process::start(SERVER, &["serve"], &stage, &[]).await;
    let mut client = Nest::client(peer, &amqp_url, &queue).await;
    checked("a Nest client asserts the queue as it does by default, before our server declares it and after");

    let head = stage.person(&HILLTOP.email("head")).await;
    let teacher = stage.person(&HILLTOP.email("class.teacher")).await;
    for client in [&mut early, &mut client] {
        lists_departments(&stage, &head, client).await;
    }
    checked("list.departments: the rows of the head's campus, in order, and the sentence on what they cover, to both");
    creates_a_department(&stage, &head, &mut client).await;
    let answer = client.send("list.my_classrooms", request(&teacher, json!({}))).await;
    let streams = answer["answer"]["data"]["rows"].as_array().expect("rows").len();
    assert!(streams > 0 && answer["answer"]["scopeContext"].is_string(), "{answer}");
    checked("list.my_classrooms: the class teacher's streams");
    refuses(&stage, &head, &teacher, &mut client).await;
    stage.finish().await;
}

async fn lists_departments(stage: &Stage, head: &Person, client: &mut Nest) {
    let answer = client.send("list.departments", request(head, json!({}))).await;
    let names: Vec<&str> = answer["answer"]["data"]["rows"]
        .as_array()
        .unwrap_or_else(|| panic!("rows: {answer}"))
        .iter()
        .filter_map(|row| row["name"].as_str())
        .collect();
    let stored: Vec<String> = sqlx::query_scalar("SELECT name FROM departments WHERE campus_id = $1 ORDER BY name, id")
        .bind(HILLTOP.campus(HILLTOP.first_campus))
        .fetch_all(&mut stage.owner().await)
        .await
        .unwrap();
    assert_eq!(names, stored);
    assert!(answer["answer"]["scopeContext"].is_string(), "{answer}");
}

async fn creates_a_department(stage: &Stage, head: &Person, client: &mut Nest) {
    let args = json!({"name": "Interoperation", "campusId": HILLTOP.campus(HILLTOP.first_campus)});
    let answer = client.send("create.department", request(head, args)).await;
    assert_eq!(answer["answer"]["data"]["name"], "Interoperation", "{answer}");
    let trail: Vec<(String, String, bool, Value)> = sqlx::query_as(
        "SELECT a.actor_email, a.door, a.turn_id IS NULL, to_jsonb(d.id) FROM audit_log a JOIN departments d ON d.id = a.resource_id",
    )
    .fetch_all(&mut stage.owner().await)
    .await
    .unwrap();
    let id = answer["answer"]["data"]["id"].clone();
    assert_eq!(trail, [(HILLTOP.email("head"), "peer".to_owned(), true, id)]);
    checked("create.department: one row, and one audit row that names the door \"peer\" and no turn");
}

async fn refuses(stage: &Stage, head: &Person, teacher: &Person, client: &mut Nest) {
    let before = stage.snapshot().await;
    let denied = client
        .send("create.department", request(teacher, json!({"name": "Not this one"})))
        .await;
    assert_eq!(
        denied["answer"],
        json!({"error": "Permission denied: you may not CREATE DEPARTMENT."})
    );
    checked("a denied call: {error}, as a value and not as an exception");
    let invalid = client
        .send("create.department", request(head, json!({"name": 7})))
        .await;
    let text = invalid["answer"]["error"].as_str().unwrap_or_default();
    assert!(text.starts_with("Invalid tool arguments: name"), "{invalid}");
    checked("invalid arguments: {error} that names the argument");
    let begin = Instant::now();
    let unknown = client.send("create.departement", request(head, json!({}))).await;
    assert!(
        unknown["answer"]["error"].is_string() && begin.elapsed().as_secs() < 5,
        "{unknown}"
    );
    checked("an unknown event: {error} at once");
    let nobody = client.send("list.departments", json!({"args": {}})).await;
    assert_eq!(nobody["answer"], json!({"error": "Missing tool-call identity."}));
    checked("no identity: {error}");
    assert_eq!(stage.snapshot().await, before, "and nothing was changed");
}

fn request(person: &Person, args: Value) -> Value {
    json!({"identity": person.identity, "scope": person.scope, "args": args})
}

//! Decisions at the HTTP door and at a terminal.

use super::{Asked, SECRET, args, first, status};
use crate::http::Server;
use e2e::{
    Stage,
    fixtures::HILLTOP,
    stage::{data, error, pending},
};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::process::Command;

#[tokio::test]
async fn decide_at_the_http_door() {
    let stage = Stage::with(&[SECRET]).await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let id = pending(first(&stage, &admin, args(), "1").await).approval_id;
    let server = Server::on(&stage).await;
    let (own, other) = (
        server.person(&stage, &HILLTOP.email("admin")).await,
        server.person(&stage, &HILLTOP.email("head")).await,
    );
    let (ok, listed) = own.get("/v1/approvals").await;
    assert_eq!(
        (ok, &listed[0]["id"], &listed[0]["mayDecide"]),
        (StatusCode::OK, &json!(id), &json!(true))
    );
    assert_eq!(other.get("/v1/approvals").await, (StatusCode::OK, json!([])));
    let (path, at) = (format!("/v1/approvals/{id}"), format!("/v1/approvals/{id}/decision"));
    assert_eq!(other.get(&path).await.0, StatusCode::NOT_FOUND);
    let yes = json!({"decision": "approve"});
    let (not_found, problem) = other.post(&at, &yes).await;
    assert_eq!((not_found, &problem["status"]), (StatusCode::NOT_FOUND, &json!(404)));
    // fault 26: a decision names no tool
    for wrong in [
        json!({"decision": "approve", "tool": "assign_staff_role"}),
        json!({"decision": "approve", "arguments": {}}),
        json!({"decision": "edit"}),
        json!({"decision": "yes"}),
        json!({}),
    ] {
        assert_eq!(
            own.post(&at, &wrong).await.0,
            StatusCode::UNPROCESSABLE_ENTITY,
            "{wrong}"
        );
    }
    assert_eq!(status(&stage, id).await, "pending");
    let (ok, settled) = own.post(&at, &yes).await;
    assert_eq!(
        (ok, &settled["became"]),
        (StatusCode::OK, &json!("executed")),
        "{settled}"
    );
    assert_eq!(settled["approval"]["result"]["data"]["name"], HILLTOP.department);
    let (late, problem) = own.post(&at, &json!({"decision": "reject"})).await;
    assert_eq!((late, &problem["status"]), (StatusCode::CONFLICT, &json!(409)));
    assert_eq!(own.get(&path).await.1["status"], "executed");
    server.process.kill().await;
    stage.finish().await;
}

/// What `server` says to this, and whether it ends well.
async fn run(stage: &Stage, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_server-under-test"))
        .args(arguments)
        .env_clear()
        .envs(stage.variables())
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), said)
}

#[tokio::test]
async fn decide_at_a_terminal() {
    let asked = Asked::new().await;
    let run = async |arguments: &[&str]| run(&asked.stage, arguments).await;
    let (id, admin, head) = (asked.id.to_string(), HILLTOP.email("admin"), HILLTOP.email("head"));
    let (done, listed) = run(&["approvals", "list", "--as", &admin]).await;
    assert!(
        done && listed.contains(&id) && listed.contains("delete_department"),
        "{listed}"
    );
    let would = format!("name: {}", HILLTOP.department);
    assert!(listed.contains("  until ") && listed.contains(&would), "{listed}");
    assert!(!run(&["approvals", "approve", &id, "--as", &head]).await.0);
    assert!(asked.is_there().await);
    let (done, settled) = run(&["approvals", "approve", &id, "--as", &admin]).await;
    assert!(done && settled.contains("\"became\": \"executed\""), "{settled}");
    assert!(!asked.is_there().await);
    assert!(!run(&["approvals", "reject", &id, "--as", &admin]).await.0);
    assert!(
        run(&["approvals", "show", &id, "--as", &admin])
            .await
            .1
            .contains("executed")
    );
    asked.stage.finish().await;
}

#[tokio::test]
async fn say_no_at_a_terminal() {
    let asked = Asked::new().await;
    let (id, admin) = (asked.id.to_string(), HILLTOP.email("admin"));
    let no = [
        "approvals",
        "reject",
        &id,
        "--as",
        &admin,
        "--reason",
        "Not before the inspection",
    ];
    let (done, settled) = run(&asked.stage, &no).await;
    assert!(done && settled.contains("\"became\": \"rejected\""), "{settled}");
    let told = error(asked.again().await);
    assert!(told.contains("Their reason: Not before the inspection"), "{told}");
    assert!(asked.is_there().await);
    asked.stage.finish().await;
}

#[tokio::test]
async fn change_arguments_at_a_terminal() {
    let asked = Asked::new().await;
    let (id, admin) = (asked.id.to_string(), HILLTOP.email("admin"));
    let other = json!({"name": "Drama", "campusId": HILLTOP.campus(HILLTOP.first_campus)});
    let other = data(asked.stage.call(&asked.admin, "create_department", other).await);
    let args = json!({"departmentId": other["id"]}).to_string();
    let edit = |args| ["approvals", "edit", &id, "--as", &admin, "--args", args];
    for wrong in ["[", "{}", r#"{"departmentId": 7}"#] {
        assert!(!run(&asked.stage, &edit(wrong)).await.0, "{wrong}");
    }
    assert_eq!(status(&asked.stage, asked.id).await, "pending");
    let (done, settled) = run(&asked.stage, &edit(&args)).await;
    assert!(done && settled.contains("\"became\": \"replaced\""), "{settled}");
    let settled: Value = serde_json::from_str(&settled).unwrap();
    assert_eq!(settled["approval"]["preview"]["name"], "Drama");

    // what would do something else by now is not done, and the exit status says so
    asked
        .stage
        .arrange("UPDATE departments SET name = 'Dance' WHERE name = 'Drama'")
        .await;
    let instead = settled["approval"]["id"].as_str().unwrap();
    let (done, settled) = run(&asked.stage, &["approvals", "approve", instead, "--as", &admin]).await;
    assert!(!done && settled.contains("\"became\": \"asked_anew\""), "{settled}");
    let settled: Value = serde_json::from_str(&settled).unwrap();
    let anew = settled["approval"]["id"].as_str().unwrap();
    let (done, settled) = run(&asked.stage, &["approvals", "approve", anew, "--as", &admin]).await;
    assert!(done && settled.contains("\"became\": \"executed\""), "{settled}");
    asked.stage.finish().await;
}

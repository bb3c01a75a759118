//! Decisions at the HTTP door and at a terminal.

use super::{Asked, SECRET, args, first, status};
use crate::http::Server;
use e2e::{fixtures::HILLTOP, stage::pending};
use reqwest::StatusCode;
use serde_json::json;
use tokio::process::Command;

#[tokio::test]
async fn decide_at_the_http_door() {
    let stage = e2e::Stage::with(&[SECRET]).await;
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

#[tokio::test]
async fn decide_at_a_terminal() {
    let asked = Asked::new().await;
    let run = async |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_server-under-test"))
            .args(arguments)
            .env_clear()
            .envs(asked.stage.variables())
            .output()
            .await
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), said)
    };
    let (id, admin, head) = (asked.id.to_string(), HILLTOP.email("admin"), HILLTOP.email("head"));
    let (done, listed) = run(&["approvals", "list", "--as", &admin]).await;
    assert!(
        done && listed.contains(&id) && listed.contains("delete_department"),
        "{listed}"
    );
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

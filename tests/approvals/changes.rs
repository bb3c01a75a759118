//! What changed between the question and the yes: rights, rows, the tool, the arguments.

use super::{Asked, SECRET, TOOL, args, decide, email, first, status};
use crate::http::Server;
use contract::AgentToolResult;
use e2e::{
    Stage,
    fixtures::HILLTOP,
    stage::{error, pending},
};
use futures_util::future::join_all;
use reqwest::StatusCode;
use serde_json::json;
use server::{
    decision::{Became, DecisionError, Ruling},
    grant::Door,
};

/// fault 25
#[tokio::test]
async fn a_role_that_was_revoked_denies_it() {
    let stage = Stage::new().await;
    stage
        .give_rules(&HILLTOP, "newcomer", 77, &[("READ", "DEPARTMENT", "allow", None)])
        .await;
    stage
        .give_rules(&HILLTOP, "newcomer", 78, &[("DELETE", "DEPARTMENT", "allow", None)])
        .await;
    let newcomer = stage.person(&HILLTOP.email("newcomer")).await;
    let waits = pending(first(&stage, &newcomer, args(), "1").await);
    // what may be read stays: it is the right to delete that is missing then
    stage
        .arrange("DELETE FROM user_roles u USING roles r WHERE r.id = u.role_id AND r.name = 'newcomer, rank 78'")
        .await;
    let settled = decide(&stage, "newcomer", waits.approval_id, Ruling::approve())
        .await
        .unwrap();
    assert_eq!(settled.became, Became::Failed);
    assert_eq!(
        error(first(&stage, &newcomer, args(), "1").await),
        "Permission denied: only a head of this department, or whoever may DELETE DEPARTMENT, may delete it."
    );
    assert_eq!(stage.audit_rows().await, 0);
    stage.finish().await;
}

/// fault 25
#[tokio::test]
async fn a_rule_that_was_tightened_denies_it() {
    let asked = Asked::new().await;
    let forbid = [("DELETE", "DEPARTMENT", "deny", None)];
    asked.stage.give_rules(&HILLTOP, "admin", 1000, &forbid).await;
    let settled = asked.decide("admin", Ruling::approve()).await.unwrap();
    assert_eq!(settled.became, Became::Failed);
    let told = error(asked.again().await);
    assert!(told.starts_with("Permission denied: "), "{told}");
    assert!(asked.is_there().await);
    asked.stage.finish().await;
}

async fn rename(asked: &Asked) {
    let department = HILLTOP.department_id();
    let rename = format!("UPDATE departments SET name = 'Arts' WHERE id = '{department}'");
    asked.stage.arrange(&rename).await;
}

#[tokio::test]
async fn a_row_that_changed_is_shown_again_first() {
    let asked = Asked::new().await;
    rename(&asked).await;
    let settled = asked.decide("admin", Ruling::approve()).await.unwrap();
    assert_eq!(settled.became, Became::AskedAnew);
    let anew = settled.approval;
    assert_eq!(anew.preview["name"], "Arts");
    assert_eq!((anew.replaces, anew.status.as_str()), (Some(asked.id), "pending"));
    assert!(anew.may_decide);
    assert!(asked.is_there().await);
    assert_eq!(asked.stage.audit_rows().await, 0);
    assert_eq!(
        pending(asked.again().await).approval_id,
        anew.id,
        "it waits in its place"
    );

    // a yes to what was shown before is none to what is shown now, and what was shown stays as it was
    let stale = asked.decide("admin", Ruling::approve()).await;
    assert!(matches!(stale, Err(DecisionError::TooLate(_))), "{stale:?}");
    let before = asked
        .stage
        .decisions()
        .one(&email("admin"), Door::Rest, asked.id)
        .await
        .unwrap();
    assert_eq!(
        (before.status.as_str(), &before.preview["name"]),
        ("asked_anew", &json!(HILLTOP.department))
    );
    assert!(asked.is_there().await);
    let settled = decide(&asked.stage, "admin", anew.id, Ruling::approve()).await.unwrap();
    assert_eq!(settled.became, Became::Executed);
    assert!(!asked.is_there().await);
    let AgentToolResult::Data { scope_context, .. } = asked.again().await else {
        panic!("it was done")
    };
    assert!(!scope_context.contains("The person changed"), "{scope_context}");
    asked.stage.finish().await;
}

/// fault 23: a second click, or one that is sent again since its answer was lost, is no yes to what nobody has seen
#[tokio::test]
async fn a_changed_row_is_asked_about_once_however_often_the_old_one_is_approved() {
    let asked = Asked::with(&[SECRET]).await;
    let server = Server::on(&asked.stage).await;
    let admin = server.person(&asked.stage, &HILLTOP.email("admin")).await;
    rename(&asked).await;
    let path = format!("/v1/approvals/{}/decision", asked.id);
    let yes = json!({"decision": "approve"});
    let (mut taken, mut late) = (Vec::new(), 0);
    for (status, said) in join_all((0..50).map(|_| admin.post(&path, &yes))).await {
        match status {
            StatusCode::OK => taken.push(said),
            StatusCode::CONFLICT => late += 1,
            other => panic!("{other}: {said}"),
        }
    }
    assert_eq!((taken.len(), late), (1, 49), "{taken:?}");
    assert_eq!(taken[0]["became"], "asked_anew");
    assert!(asked.is_there().await);
    let decisions = "SELECT count(*) FROM audit_log WHERE event = 'decide.approval'";
    assert_eq!(asked.stage.count(decisions).await, 1);

    let anew = taken[0]["approval"]["id"].as_str().expect("the new one is named");
    assert_ne!(anew, asked.id.to_string());
    let path = format!("/v1/approvals/{anew}/decision");
    let (ok, settled) = admin.post(&path, &yes).await;
    assert_eq!(
        (ok, &settled["became"]),
        (StatusCode::OK, &json!("executed")),
        "{settled}"
    );
    assert_eq!(admin.post(&path, &yes).await.0, StatusCode::CONFLICT);
    assert!(!asked.is_there().await);
    assert_eq!(
        (asked.stage.count(decisions).await, asked.stage.audit_rows().await),
        (2, 1)
    );
    server.process.kill().await;
    asked.stage.finish().await;
}

#[tokio::test]
async fn a_tool_that_became_another_is_asked_about_anew() {
    let asked = Asked::new().await;
    asked
        .stage
        .arrange("UPDATE approvals SET contract_hash = repeat('0', 64)")
        .await;
    let settled = asked.decide("admin", Ruling::approve()).await.unwrap();
    assert_eq!(settled.became, Became::AskedAnew);
    assert!(asked.is_there().await);
    let late = asked.decide("admin", Ruling::approve()).await;
    assert!(matches!(late, Err(DecisionError::TooLate(_))), "{late:?}");
    assert!(asked.is_there().await);
    let settled = decide(&asked.stage, "admin", settled.approval.id, Ruling::approve())
        .await
        .unwrap();
    assert_eq!(settled.became, Became::Executed);
    asked.stage.finish().await;
}

/// What a person changed stays changed when it is asked about anew, and the model is told so.
#[tokio::test]
async fn other_arguments_that_are_asked_about_anew_stay_other_arguments() {
    let asked = Asked::new().await;
    let campus = HILLTOP.campus(HILLTOP.first_campus);
    let other = json!({"name": "Drama", "campusId": campus});
    let other = e2e::stage::data(asked.stage.call(&asked.admin, "create_department", other).await);
    let instead = json!({"departmentId": other["id"]});
    let replaced = asked.decide("admin", Ruling::edit(instead)).await.unwrap();
    asked
        .stage
        .arrange("UPDATE departments SET name = 'Dance' WHERE name = 'Drama'")
        .await;
    let anew = decide(&asked.stage, "admin", replaced.approval.id, Ruling::approve())
        .await
        .unwrap();
    assert_eq!(
        (anew.became, &anew.approval.preview["name"]),
        (Became::AskedAnew, &json!("Dance"))
    );
    let done = decide(&asked.stage, "admin", anew.approval.id, Ruling::approve())
        .await
        .unwrap();
    assert_eq!(done.became, Became::Executed);
    let AgentToolResult::Data { scope_context, .. } = asked.again().await else {
        panic!("it was done")
    };
    assert!(scope_context.contains("The person changed"), "{scope_context}");
    assert!(asked.is_there().await, "what was asked for first is not done");
    asked.stage.finish().await;
}

/// fault 28: what becomes the same call as another that waits is refused, and changes nothing
#[tokio::test]
async fn other_arguments_do_not_make_a_call_that_waits_already() {
    let asked = Asked::new().await;
    let campus = HILLTOP.campus(HILLTOP.first_campus);
    let other = json!({"name": "Drama", "campusId": campus});
    let other = e2e::stage::data(asked.stage.call(&asked.admin, "create_department", other).await);
    let other = json!({"departmentId": other["id"]});
    let second = pending(first(&asked.stage, &asked.admin, other.clone(), "2").await);
    let before = asked.stage.snapshot().await;
    let refused = asked.decide("admin", Ruling::edit(other.clone())).await;
    assert!(matches!(refused, Err(DecisionError::Invalid(_))), "{refused:?}");
    assert_eq!(asked.stage.snapshot().await, before);
    let no = Ruling::reject(None).unwrap();
    decide(&asked.stage, "admin", second.approval_id, no).await.unwrap();
    let settled = asked.decide("admin", Ruling::edit(other)).await.unwrap();
    assert_eq!(settled.became, Became::Replaced);
    asked.stage.finish().await;
}

/// fault 26, fault 27
#[tokio::test]
async fn other_arguments_are_another_request_of_the_same_tool() {
    let asked = Asked::new().await;
    let campus = HILLTOP.campus(HILLTOP.first_campus);
    let other = json!({"name": "Drama", "campusId": campus});
    let other = e2e::stage::data(asked.stage.call(&asked.admin, "create_department", other).await);
    let instead = json!({"departmentId": other["id"]});
    let settled = asked.decide("admin", Ruling::edit(instead.clone())).await.unwrap();
    assert_eq!(settled.became, Became::Replaced);
    assert_eq!(
        (settled.approval.tool.as_str(), &settled.approval.arguments),
        (TOOL, &instead)
    );
    assert_eq!(settled.approval.preview["name"], "Drama");
    assert_eq!(status(&asked.stage, asked.id).await, "replaced");
    let late = asked.decide("admin", Ruling::approve()).await;
    assert!(matches!(late, Err(DecisionError::TooLate(_))), "{late:?}");
    assert_eq!(
        pending(asked.again().await).approval_id,
        settled.approval.id,
        "it waits in its place"
    );

    let done = decide(&asked.stage, "admin", settled.approval.id, Ruling::approve())
        .await
        .unwrap();
    assert_eq!(done.became, Became::Executed);
    assert!(asked.is_there().await, "what was asked for first is not done");
    let told = asked.again().await;
    let AgentToolResult::Data { data, scope_context } = told else {
        panic!("{told:?}")
    };
    assert_eq!(data["name"], "Drama");
    assert!(scope_context.contains(other["id"].as_str().unwrap()), "{scope_context}");
    let again = error(first(&asked.stage, &asked.admin, args(), "2").await);
    assert!(again.contains("nobody is asked again"), "{again}");
    assert_eq!(
        asked
            .stage
            .count("SELECT count(*) FROM audit_log WHERE event = 'delete.department'")
            .await,
        1
    );
    asked.stage.finish().await;
}

/// fault 26
#[tokio::test]
async fn other_arguments_pass_every_gate_or_nothing_changes() {
    let asked = Asked::new().await;
    let before = asked.stage.snapshot().await;
    for (instead, expected) in [
        (json!({"departmentId": uuid::Uuid::now_v7()}), "Department not found."),
        (
            json!({"targetStaffId": HILLTOP.staff("newcomer"), "role": "clerk"}),
            "Invalid tool arguments: ",
        ),
        (json!(["x"]), "Invalid tool arguments: "),
    ] {
        let refused = asked.decide("admin", Ruling::edit(instead.clone())).await;
        match refused {
            Err(DecisionError::Invalid(why)) => assert!(why.starts_with(expected), "{instead}: {why}"),
            other => panic!("{instead}: {other:?}"),
        }
    }
    assert_eq!(asked.stage.snapshot().await, before);
    asked.stage.finish().await;
}

//! What changed between the question and the yes: rights, rows, the tool, the arguments.

use super::{Asked, TOOL, args, decide, email, first, status};
use contract::AgentToolResult;
use e2e::{
    Stage,
    fixtures::HILLTOP,
    stage::{error, pending},
};
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

#[tokio::test]
async fn a_row_that_changed_is_shown_again_first() {
    let asked = Asked::new().await;
    let seen = asked
        .stage
        .decisions()
        .one(&email("admin"), Door::Rest, asked.id)
        .await
        .unwrap();
    let department = HILLTOP.department_id();
    asked
        .stage
        .arrange(&format!(
            "UPDATE departments SET name = 'Arts' WHERE id = '{department}'"
        ))
        .await;
    let settled = asked.decide("admin", Ruling::approve()).await.unwrap();
    assert_eq!(settled.became, Became::AskedAnew);
    assert_eq!(settled.approval.preview["name"], "Arts");
    assert!(asked.is_there().await);
    assert_eq!(asked.stage.audit_rows().await, 0);

    // a yes to what was shown before is none to what is shown now
    let stale = asked
        .decide("admin", Ruling::approve().about(Some(seen.previewed_at)))
        .await;
    assert!(matches!(stale, Err(DecisionError::TooLate)), "{stale:?}");
    assert!(asked.is_there().await);
    let now = Ruling::approve().about(Some(settled.approval.previewed_at));
    assert_eq!(asked.decide("admin", now).await.unwrap().became, Became::Executed);
    assert!(!asked.is_there().await);
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
    let settled = asked.decide("admin", Ruling::approve()).await.unwrap();
    assert_eq!(settled.became, Became::Executed);
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
    assert!(matches!(late, Err(DecisionError::TooLate)), "{late:?}");
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

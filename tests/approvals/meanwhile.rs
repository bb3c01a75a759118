//! What a call replaces or takes with it is part of what is shown: where it is another by the time of the yes, nothing is done.

use super::{decide, pending_call};
use e2e::{Stage, fixtures::HILLTOP, stage::data};
use serde_json::{Value, json};
use server::decision::{Became, Ruling, Settled};
use uuid::Uuid;

async fn approve(stage: &Stage, who: &str, id: Uuid) -> Settled {
    decide(stage, who, id, Ruling::approve()).await.unwrap()
}

#[tokio::test]
async fn a_student_who_was_moved_is_not_moved_on_unseen() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let student = HILLTOP.row("{student}").unwrap();
    let to = HILLTOP.row("{other_stream}").unwrap();
    let args = json!({"studentId": student, "streamId": to});
    let asked = pending_call(&stage, &admin, "transfer_student", args, "1").await;
    assert_eq!(asked.preview["streamId"], json!(to));
    assert_eq!(asked.preview["fromStreamName"], "S2 East");
    let third: Uuid = sqlx::query_scalar(
        "SELECT s.id FROM streams s JOIN enrolments e ON e.student_id = $1 AND e.school_id = s.school_id
          WHERE s.id NOT IN ($2, e.stream_id) AND s.campus_academic_year_id = e.campus_academic_year_id ORDER BY s.name DESC LIMIT 1",
    )
    .bind(student)
    .bind(to)
    .fetch_one(&mut stage.owner().await)
    .await
    .unwrap();
    data(
        stage
            .call(
                &admin,
                "transfer_student",
                json!({"studentId": student, "streamId": third}),
            )
            .await,
    );
    let settled = approve(&stage, "admin", asked.approval_id).await;
    assert_eq!(settled.became, Became::AskedAnew);
    assert_eq!(settled.approval.preview["fromStreamId"], json!(third));
    stage.finish().await;
}

fn bands(label: &str) -> Value {
    json!({"bands": [{"label": label, "from": 0}, {"label": "Above", "from": 60}]})
}

#[tokio::test]
async fn bands_that_were_replaced_are_not_overwritten_unseen() {
    let stage = Stage::new().await;
    let dos = stage.person(&HILLTOP.email("dos")).await;
    let first = pending_call(&stage, &dos, "update_grading_config", bands("First"), "1").await;
    let second = pending_call(&stage, &dos, "update_grading_config", bands("Second"), "2").await;
    assert!(!first.preview["replacedBands"].as_array().unwrap().is_empty());
    assert_eq!(
        approve(&stage, "head", second.approval_id).await.became,
        Became::Executed
    );
    let settled = approve(&stage, "head", first.approval_id).await;
    assert_eq!(settled.became, Became::AskedAnew);
    assert_eq!(settled.approval.preview["replacedBands"][1]["label"], "Second");
    stage.finish().await;
}

#[tokio::test]
async fn a_department_that_grew_is_not_deleted_unseen() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let department = HILLTOP.department_id();
    let args = json!({"departmentId": department});
    let asked = pending_call(&stage, &admin, "delete_department", args, "1").await;
    let members = asked.preview["memberCount"].as_i64().unwrap();
    stage
        .arrange(&format!(
            "INSERT INTO department_members (school_id, department_id, staff_id)
             SELECT school_id, '{department}', id FROM staff WHERE school_id = '{}' ON CONFLICT DO NOTHING",
            HILLTOP.id()
        ))
        .await;
    let settled = approve(&stage, "admin", asked.approval_id).await;
    assert_eq!(settled.became, Became::AskedAnew);
    assert!(settled.approval.preview["memberCount"].as_i64().unwrap() > members);
    stage.finish().await;
}

#[tokio::test]
async fn a_role_that_grew_is_not_given_unseen() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let args = json!({"targetStaffId": HILLTOP.staff("newcomer"), "role": "clerk"});
    let asked = pending_call(&stage, &admin, "assign_staff_role", args, "1").await;
    let all = json!({"action": "MANAGE", "resource": "ALL"});
    let rules = |preview: &Value| preview["rules"].as_array().unwrap().clone();
    assert!(!rules(&asked.preview).is_empty() && !rules(&asked.preview).contains(&all));
    stage
        .arrange(&format!(
            "INSERT INTO role_permissions (school_id, role_id, position, action, resource, effect)
             SELECT school_id, id, 99, 'MANAGE', 'ALL', 'allow' FROM roles WHERE name = 'clerk' AND school_id = '{}'",
            HILLTOP.id()
        ))
        .await;
    let settled = approve(&stage, "admin", asked.approval_id).await;
    assert_eq!(settled.became, Became::AskedAnew);
    assert_eq!(rules(&settled.approval.preview).last(), Some(&all));
    stage.finish().await;
}

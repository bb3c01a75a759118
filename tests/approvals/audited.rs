//! The trail of decisions: who, what, when, and about which row.

use super::{Asked, decide};
use e2e::{fixtures::HILLTOP, stage::data};
use serde_json::{Value, json};
use server::decision::Ruling;

/// The rows of decisions, oldest first, whole but for their own ids.
async fn trail(asked: &Asked) -> Vec<Value> {
    let rows = "SELECT to_jsonb(a) - 'id' FROM audit_log a WHERE event = 'decide.approval' ORDER BY a.id";
    let rows = sqlx::query_scalar(rows);
    rows.fetch_all(&mut asked.stage.owner().await).await.unwrap()
}

/// What the row of the administrator's decision about the call says; when, the approval says.
async fn row(asked: &Asked, action: &str, arguments: Value) -> Value {
    let (campus, decided): (Value, Value) =
        sqlx::query_as("SELECT to_jsonb(campus_id), to_jsonb(decided_at) FROM approvals WHERE id = $1")
            .bind(asked.id)
            .fetch_one(&mut asked.stage.owner().await)
            .await
            .unwrap();
    json!({
        "school_id": HILLTOP.id(),
        "campus_id": campus,
        "actor_sub": asked.admin.identity.sub,
        "actor_email": HILLTOP.email("admin"),
        "actor_type": asked.admin.identity.user_type,
        "action": action,
        "resource_type": "APPROVAL",
        "resource_id": asked.id,
        "event": "decide.approval",
        "door": "rest",
        "turn_id": asked.admin.turn_id,
        "tool_call_id": "1",
        "approval_id": asked.id,
        "arguments": arguments,
        "created_at": decided,
    })
}

#[tokio::test]
async fn a_yes_is_written_down() {
    let asked = Asked::new().await;
    asked.decide("admin", Ruling::approve()).await.unwrap();
    let expected = row(&asked, "APPROVE", json!({"event": "delete.department"})).await;
    assert_eq!(trail(&asked).await, [expected]);
    asked.stage.finish().await;
}

#[tokio::test]
async fn a_no_is_written_down_with_its_reason() {
    let asked = Asked::new().await;
    let no = Ruling::reject(Some("Not before the inspection".into())).unwrap();
    asked.decide("admin", no).await.unwrap();
    let said = json!({"event": "delete.department", "reason": "Not before the inspection"});
    let expected = row(&asked, "REJECT", said).await;
    assert_eq!(trail(&asked).await, [expected]);
    asked.stage.finish().await;
}

#[tokio::test]
async fn other_arguments_are_written_down_with_what_waits_instead() {
    let asked = Asked::new().await;
    let other = json!({"name": "Drama", "campusId": HILLTOP.campus(HILLTOP.first_campus)});
    let other = data(asked.stage.call(&asked.admin, "create_department", other).await);
    let other = json!({"departmentId": other["id"]});
    let settled = asked.decide("admin", Ruling::edit(other.clone())).await.unwrap();
    let said = json!({"event": "delete.department", "arguments": other, "replacedBy": settled.approval.id});
    let expected = row(&asked, "EDIT", said).await;
    assert_eq!(trail(&asked).await, std::slice::from_ref(&expected));

    decide(&asked.stage, "admin", settled.approval.id, Ruling::approve())
        .await
        .unwrap();
    let rows = trail(&asked).await;
    assert_eq!((rows.len(), &rows[0]), (2, &expected));
    assert_eq!(
        (&rows[1]["action"], &rows[1]["approval_id"]),
        (&json!("APPROVE"), &json!(settled.approval.id))
    );
    asked.stage.finish().await;
}

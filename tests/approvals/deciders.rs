//! Who may decide: whoever asked, or somebody else of the school who holds a permission now; to all others there is nothing.

use super::{Asked, email, status};
use e2e::{
    Stage,
    fixtures::{HILLTOP, RIVERSIDE},
};
use serde_json::json;
use server::{
    conversation,
    decision::{Became, DecisionError, Ruling},
    grant::Door,
};

const BY_ANOTHER: &str = "UPDATE approvals SET approver_action = 'UPDATE', approver_resource = 'GRADING_CONFIG'";

async fn unknown_to(stage: &Stage, person: conversation::Person, id: uuid::Uuid) {
    let decisions = stage.decisions();
    // whoever may not come in at all is told so
    match decisions.waiting(&person, Door::Rest).await {
        Ok(listed) => assert!(listed.is_empty(), "{listed:?}"),
        Err(refused) => assert!(matches!(refused, DecisionError::Dispatch(_)), "{refused:?}"),
    }
    let seen = decisions.one(&person, Door::Rest, id).await;
    assert!(matches!(seen, Err(DecisionError::Unknown)), "{seen:?}");
    for ruling in [
        Ruling::approve(),
        Ruling::reject(None).unwrap(),
        Ruling::edit(json!({})),
    ] {
        let refused = decisions.decide(&person, Door::Rest, id, ruling).await;
        assert!(matches!(refused, Err(DecisionError::Unknown)), "{refused:?}");
    }
}

#[tokio::test]
async fn nobody_else_decides_what_somebody_asked_for_themselves() {
    let asked = Asked::new().await;
    let before = asked.stage.snapshot().await;
    let admin_there = conversation::Person {
        email: RIVERSIDE.email("admin"),
    };
    for person in [email("head"), email("class.teacher"), email("left"), admin_there] {
        unknown_to(&asked.stage, person, asked.id).await;
    }
    let operator = conversation::Person {
        email: "platform@operator.example".into(),
    };
    unknown_to(&asked.stage, operator, asked.id).await;
    let nowhere = asked
        .stage
        .decisions()
        .one(&email("admin"), Door::Rest, uuid::Uuid::now_v7())
        .await;
    assert!(matches!(nowhere, Err(DecisionError::Unknown)), "{nowhere:?}");
    assert_eq!(asked.stage.snapshot().await, before);
    let own = asked
        .stage
        .decisions()
        .waiting(&email("admin"), Door::Rest)
        .await
        .unwrap();
    assert!(own.len() == 1 && own[0].may_decide && own[0].id == asked.id, "{own:?}");
    asked.stage.finish().await;
}

#[tokio::test]
async fn a_second_person_decides_where_the_tool_names_one() {
    let asked = Asked::new().await;
    asked.stage.arrange(BY_ANOTHER).await;
    let before = asked.stage.snapshot().await;
    let own = asked.decide("admin", Ruling::approve()).await;
    assert!(matches!(own, Err(DecisionError::NeedsAnother)), "{own:?}");
    let listed = asked
        .stage
        .decisions()
        .waiting(&email("admin"), Door::Rest)
        .await
        .unwrap();
    assert!(listed.len() == 1 && !listed[0].may_decide, "{listed:?}");

    // the same right on the other campus, in the other school, or in no school is none here
    let lakeside = json!({"campusId": HILLTOP.campus(HILLTOP.second_campus)});
    let there = [("UPDATE", "GRADING_CONFIG", "allow", Some(lakeside))];
    asked.stage.give_rules(&HILLTOP, "newcomer", 77, &there).await;
    for person in [
        email("newcomer"),
        email("clerk"),
        conversation::Person {
            email: RIVERSIDE.email("head"),
        },
        conversation::Person {
            email: "platform@operator.example".into(),
        },
    ] {
        unknown_to(&asked.stage, person, asked.id).await;
    }
    assert_eq!(asked.stage.snapshot().await["approvals"], before["approvals"]);
    assert!(asked.is_there().await);

    let settled = asked.decide("head", Ruling::approve()).await.unwrap();
    assert_eq!(settled.became, Became::Executed);
    let actors: Vec<(String, String)> = sqlx::query_as("SELECT event, actor_email FROM audit_log ORDER BY id")
        .fetch_all(&mut asked.stage.owner().await)
        .await
        .unwrap();
    let expected = [
        ("decide.approval".to_owned(), HILLTOP.email("head")),
        ("delete.department".to_owned(), HILLTOP.email("admin")),
    ];
    assert_eq!(actors, expected, "it is done as whoever asked");
    asked.stage.finish().await;
}

#[tokio::test]
async fn a_second_person_who_lost_the_right_decides_nothing() {
    let asked = Asked::new().await;
    asked.stage.arrange(BY_ANOTHER).await;
    let head = HILLTOP.staff("head");
    asked
        .stage
        .arrange(&format!("DELETE FROM user_roles WHERE staff_id = '{head}'"))
        .await;
    unknown_to(&asked.stage, email("head"), asked.id).await;
    assert_eq!(status(&asked.stage, asked.id).await, "pending");
    asked.stage.finish().await;
}

//! Who may decide: whoever asked, or somebody else of the school who holds a permission now; to all others there is nothing.

use super::{Asked, decide, email, pending_call, status};
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

/// Whoever decides about another's call does not write it too: it is made with the other's rights, and in their name.
#[tokio::test]
async fn a_second_person_decides_about_what_was_asked_for_as_it_is() {
    let stage = Stage::new().await;
    let dos = stage.person(&HILLTOP.email("dos")).await;
    let bands = |label: &str| json!({"bands": [{"label": label, "from": 0}, {"label": "Above", "from": 60}]});
    let asked = pending_call(&stage, &dos, "update_grading_config", bands("Asked for"), "1").await;
    let before = stage.snapshot().await;
    let edit = || Ruling::edit(bands("By the head"));
    let refused = decide(&stage, "head", asked.approval_id, edit()).await;
    assert!(matches!(refused, Err(DecisionError::NeedsRequester)), "{refused:?}");
    assert_eq!(stage.snapshot().await, before);
    let may = async |who: &str, id: uuid::Uuid| {
        let seen = stage.decisions().one(&email(who), Door::Rest, id).await.unwrap();
        (seen.may_decide, seen.decisions)
    };
    assert_eq!(may("head", asked.approval_id).await, (true, &["approve", "reject"][..]));
    assert_eq!(may("dos", asked.approval_id).await, (false, &["reject", "edit"][..]));

    // whoever asked may ask for something else, and still not say yes to it
    let own = Ruling::edit(bands("Asked for instead"));
    let settled = decide(&stage, "dos", asked.approval_id, own).await.unwrap();
    assert_eq!((settled.became, settled.approval.may_decide), (Became::Replaced, false));
    let instead = settled.approval.id;
    let own = decide(&stage, "dos", instead, Ruling::approve()).await;
    assert!(matches!(own, Err(DecisionError::NeedsAnother)), "{own:?}");
    let settled = decide(&stage, "head", instead, Ruling::approve()).await.unwrap();
    assert_eq!(settled.became, Became::Executed);
    assert_eq!(may("head", instead).await, (false, &[][..]));
    let late = decide(&stage, "head", asked.approval_id, edit()).await;
    assert!(matches!(late, Err(DecisionError::NeedsRequester)), "{late:?}");
    stage.finish().await;
}

#[tokio::test]
async fn who_asked_takes_back_what_another_was_to_decide() {
    let asked = Asked::new().await;
    asked.stage.arrange(BY_ANOTHER).await;
    let settled = asked.decide("admin", Ruling::reject(None).unwrap()).await.unwrap();
    assert_eq!(settled.became, Became::Rejected);
    let late = asked.decide("head", Ruling::approve()).await;
    let why = "it was rejected before";
    assert!(
        matches!(late, Err(DecisionError::TooLate(said)) if said == why),
        "{late:?}"
    );
    assert!(asked.is_there().await);
    asked.stage.finish().await;
}

/// Two hundred that are not theirs take no place from one that is.
#[tokio::test]
async fn see_what_is_theirs_behind_whatever_is_not() {
    let asked = Asked::new().await;
    asked
        .stage
        .arrange(
            "INSERT INTO approvals (school_id, turn_id, tool_call_id, key, event, contract_hash, arguments, arguments_digest, requester_sub,
                                    identity, scope, door, campus_id, preview, scope_context, previewed_at, approver_action,
                                    approver_resource, expires_at)
             SELECT school_id, gen_random_uuid(), tool_call_id, key || n, event, contract_hash, arguments, arguments_digest,
                    gen_random_uuid(), identity, scope, door, campus_id, preview, scope_context, previewed_at, 'MANAGE', 'ROLE', expires_at
               FROM approvals, generate_series(1, 450) n",
        )
        .await;
    let give = [("UPDATE", "GRADING_CONFIG", "allow", None)];
    asked.stage.give_rules(&HILLTOP, "newcomer", 77, &give).await;
    asked
        .stage
        .arrange(&format!("{BY_ANOTHER} WHERE id = '{}'", asked.id))
        .await;
    let decisions = asked.stage.decisions();
    let listed = decisions.waiting(&email("newcomer"), Door::Rest).await.unwrap();
    let ids: Vec<_> = listed.iter().map(|one| one.id).collect();
    assert_eq!(ids, [asked.id]);
    asked.stage.finish().await;
}

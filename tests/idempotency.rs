//! Keys: a call is done once, however often and however simultaneously it is delivered, and a key is good for that call only.

use contract::AgentToolResult;
use e2e::{
    Stage,
    broker::Packet,
    fixtures::{HILLTOP, RIVERSIDE},
    stage::{data, error, incoming},
};
use futures_util::future::join_all;
use serde_json::json;
use std::time::Duration;

const KEY_REUSED: &str = "This call's key was already used for another call.";
const DELIVERIES: usize = 50;

/// That there is one new department with its one row in the trail and one key.
async fn done_once(stage: &Stage) {
    assert_eq!(
        stage
            .count("SELECT count(*) FROM departments WHERE name = 'Drama'")
            .await,
        1
    );
    assert_eq!(stage.audit_rows().await, 1);
    assert_eq!(
        stage
            .count("SELECT count(*) FROM tool_calls WHERE reply IS NOT NULL")
            .await,
        1
    );
}

/// fault 11
#[tokio::test]
async fn fifty_deliveries_at_once_are_one_call() {
    let stage = Stage::new().await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let call = || stage.call_keyed(&head, "create_department", json!({"name": "Drama"}), "1");
    let replies = join_all((0..DELIVERIES).map(|_| call())).await;
    let first = &replies[0];
    assert!(first.is_data(), "{first:?}");
    assert!(replies.iter().all(|reply| reply == first));
    done_once(&stage).await;
    stage.finish().await;
}

/// fault 12
#[tokio::test]
async fn fifty_messages_on_the_broker_are_one_call() {
    let stage = Stage::new().await;
    let (one, other) = (stage.serve().await, stage.serve().await);
    let mut peer = stage.peer().await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let packet = Packet::of(&incoming(&head, "create_department", json!({"name": "Drama"}), "1"));
    let mut sent = Vec::new();
    for _ in 0..DELIVERIES {
        sent.push(peer.send(&packet).await.0);
    }
    let replies = peer.replies(&sent, Duration::from_secs(30)).await;
    let first = replies[0].as_ref().expect("every message is answered");
    assert!(first.is_data(), "{first:?}");
    assert!(replies.iter().all(|reply| reply.as_ref() == Some(first)));
    done_once(&stage).await;
    one.stop().await;
    other.stop().await;
    stage.finish().await;
}

#[tokio::test]
async fn calls_with_other_keys_run_side_by_side() {
    let stage = Stage::new().await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let (stage, head) = (&stage, &head);
    let calls = (0..DELIVERIES).map(|n| async move {
        let args = json!({"name": format!("Club {n}")});
        stage
            .call_keyed(head, "create_department", args, &format!("call_{n}"))
            .await
    });
    let ids: std::collections::HashSet<String> = join_all(calls)
        .await
        .into_iter()
        .map(|reply| data(reply)["id"].to_string())
        .collect();
    assert_eq!(ids.len(), DELIVERIES);
    assert_eq!(stage.audit_rows().await, 50);
    assert_eq!(stage.count("SELECT count(*) FROM tool_calls").await, 50);
}

/// Of those who want the same name under keys of their own, one gets it, and the others are told so.
#[tokio::test]
async fn the_same_name_under_other_keys_is_a_conflict() {
    let stage = Stage::new().await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let calls = (0..10).map(|_| stage.call(&head, "create_department", json!({"name": "Drama"})));
    let replies = join_all(calls).await;
    let (done, refused): (Vec<_>, Vec<_>) = replies.into_iter().partition(AgentToolResult::is_data);
    assert_eq!(done.len(), 1);
    for reply in refused {
        assert_eq!(error(reply), "A department of that name exists on this campus.");
    }
    done_once(&stage).await;
    stage.finish().await;
}

#[tokio::test]
async fn a_key_belongs_to_its_person_and_turn() {
    let stage = Stage::new().await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let again = stage.person(&HILLTOP.email("head")).await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let args = || json!({"name": "Drama", "campusId": HILLTOP.campus("main")});
    data(stage.call_keyed(&head, "create_department", args(), "1").await);
    let before = stage.snapshot().await;
    let key = incoming(&head, "create_department", args(), "1").key;
    for other in [&again, &admin] {
        let mut call = incoming(other, "create_department", args(), "1");
        call.key = key.clone();
        let refused = error(stage.pipeline().execute(call).await);
        assert_eq!(refused, "Permission denied: this call's key belongs to another turn.");
    }
    assert_eq!(stage.snapshot().await, before);
    stage.finish().await;
}

/// Where peers without grants are admitted, their keys are as they like, and still each is one person's for one call.
#[tokio::test]
async fn a_peers_key_is_good_for_one_call_of_one_person() {
    let stage = Stage::with(&[("REQUIRE_GRANT", "false")]).await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let pinned = stage.person_on(&HILLTOP.email("head"), "main").await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let abroad = stage.person(&RIVERSIDE.email("head")).await;
    let call = |person: &e2e::Person, tool: &str, args: serde_json::Value| {
        let mut call = incoming(person, tool, args, "1");
        call.grant = None;
        call.key = "any key".to_owned();
        stage.pipeline().execute(call)
    };
    let drama = || json!({"name": "Drama"});
    let first = call(&head, "create_department", drama()).await;
    assert!(first.is_data(), "{first:?}");
    let after = stage.snapshot().await;
    assert_eq!(call(&head, "create_department", drama()).await, first);
    let department = json!({"departmentId": HILLTOP.department_id()});
    for refused in [
        call(&head, "create_department", json!({"name": "Dance"})).await,
        call(&head, "delete_department", department).await,
        call(&pinned, "create_department", drama()).await,
        call(&admin, "create_department", drama()).await,
    ] {
        assert_eq!(error(refused), KEY_REUSED);
    }
    assert_eq!(stage.snapshot().await, after);
    // keys mean something within their school only
    data(call(&abroad, "create_department", drama()).await);
    stage.finish().await;
}

#[tokio::test]
async fn a_write_that_failed_leaves_its_key_free() {
    let stage = Stage::new().await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let call = || stage.call_keyed(&head, "create_department", json!({"name": "Humanities"}), "1");
    let before = stage.snapshot().await;
    assert_eq!(error(call().await), "A department of that name exists on this campus.");
    assert_eq!(stage.snapshot().await, before);
    stage
        .arrange("UPDATE departments SET name = 'Arts' WHERE name = 'Humanities'")
        .await;
    data(call().await);
    assert_eq!(stage.audit_rows().await, 1);
    stage.finish().await;
}

/// A stored reply is no way around the gates: they are asked before the key is.
#[tokio::test]
async fn whoever_lost_the_role_does_not_get_the_stored_reply() {
    let stage = Stage::new().await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let call = || stage.call_keyed(&head, "create_department", json!({"name": "Drama"}), "1");
    data(call().await);
    stage.arrange("DELETE FROM user_roles").await;
    assert_eq!(error(call().await), "Permission denied: you may not CREATE DEPARTMENT.");
    assert_eq!(stage.audit_rows().await, 1);
    stage.finish().await;
}

#[tokio::test]
async fn an_operators_fifty_deliveries_are_one_call() {
    let stage = Stage::new().await;
    let operator = stage.person("platform@operator.example").await;
    let args = || json!({"name": "Drama", "campusId": RIVERSIDE.campus("south")});
    let call = || stage.call_keyed(&operator, "create_department", args(), "1");
    let replies = join_all((0..DELIVERIES).map(|_| call())).await;
    assert!(
        replies[0].is_data() && replies.iter().all(|reply| *reply == replies[0]),
        "{:?}",
        replies[0]
    );
    let other = json!({"name": "Drama", "campusId": RIVERSIDE.campus("north")});
    let refused = stage.call_keyed(&operator, "create_department", other, "1").await;
    assert_eq!(error(refused), KEY_REUSED);
    let trail: Vec<(uuid::Uuid, Option<uuid::Uuid>)> = sqlx::query_as("SELECT school_id, campus_id FROM audit_log")
        .fetch_all(&mut stage.owner().await)
        .await
        .unwrap();
    assert_eq!(trail, [(RIVERSIDE.id(), Some(RIVERSIDE.campus("south")))]);
    // the school's own people read it there
    let admin = stage.person(&RIVERSIDE.email("admin")).await;
    let entries = data(stage.call(&admin, "list_audit_entries", json!({})).await);
    assert_eq!(entries["rows"][0]["actorEmail"], "platform@operator.example");
    assert_eq!(entries["rows"].as_array().unwrap().len(), 1);
    stage.finish().await;
}

//! Decisions side by side, and servers that die between a yes and what follows from it.

use super::{Asked, SECRET, keep_turn, status};
use crate::http::Server;
use e2e::fixtures::HILLTOP;
use futures_util::future::join_all;
use reqwest::StatusCode;
use serde_json::json;
use server::{
    conversation::Conversations,
    db::Database,
    decision::{Became, DecisionError, Ruling},
    hooks,
};
use std::time::Duration;
use tokio::time::timeout;

/// fault 23
#[tokio::test]
async fn one_of_fifty_decisions_of_two_people_at_two_servers_counts() {
    let asked = Asked::with(&[SECRET]).await;
    let stage = &asked.stage;
    let may = [("UPDATE", "GRADING_CONFIG", "allow", None)];
    stage.give_rules(&HILLTOP, "newcomer", 77, &may).await;
    stage
        .arrange("UPDATE approvals SET approver_action = 'UPDATE', approver_resource = 'GRADING_CONFIG'")
        .await;
    let servers = [Server::on(stage).await, Server::on(stage).await];
    let people = [
        servers[0].person(stage, &HILLTOP.email("head")).await,
        servers[0].person(stage, &HILLTOP.email("newcomer")).await,
    ];
    let path = format!("/v1/approvals/{}/decision", asked.id);
    let decisions = (0..50_usize).map(|number| {
        let (somebody, path) = (people[number % 2].at(&servers[number / 2 % 2]), &path);
        async move { somebody.post(path, &json!({"decision": "approve"})).await }
    });
    let (mut done, mut late) = (Vec::new(), 0);
    for (status, said) in join_all(decisions).await {
        match status {
            StatusCode::OK => done.push(said["became"].clone()),
            StatusCode::CONFLICT => late += 1,
            other => panic!("{other}: {said}"),
        }
    }
    assert_eq!((done, late), (vec![json!("executed")], 49));
    assert!(!asked.is_there().await);
    assert_eq!(stage.audit_rows().await, 1);
    let decided = stage
        .count("SELECT count(*) FROM audit_log WHERE event = 'decide.approval'")
        .await;
    assert_eq!(decided, 1);
    for server in servers {
        server.process.kill().await;
    }
    asked.stage.finish().await;
}

#[tokio::test]
async fn what_was_approved_and_not_done_is_done_once_by_whoever_looks() {
    let asked = Asked::new().await;
    hooks::halt_after_claim(asked.id);
    let decided = timeout(Duration::from_secs(2), asked.decide("admin", Ruling::approve())).await;
    assert!(decided.is_err(), "its server is gone: {decided:?}");
    assert_eq!(status(&asked.stage, asked.id).await, "executing");
    assert!(asked.is_there().await);
    let late = asked.decide("admin", Ruling::reject(None).unwrap()).await;
    assert!(
        matches!(late, Err(DecisionError::TooLate(_))),
        "the decision stands: {late:?}"
    );
    let decisions = asked.stage.decisions();
    decisions.look_after(Duration::from_mins(2)).await.unwrap();
    assert!(asked.is_there().await, "somebody may still be at it");

    let both = join_all((0..2).map(|_| decisions.look_after(Duration::ZERO))).await;
    assert!(both.into_iter().all(|looked| looked.is_ok()));
    assert_eq!(status(&asked.stage, asked.id).await, "executed");
    assert!(!asked.is_there().await);
    assert_eq!(asked.stage.audit_rows().await, 1);
    let after = asked.stage.snapshot().await;
    decisions.look_after(Duration::ZERO).await.unwrap();
    assert_eq!(asked.stage.snapshot().await, after);
    asked.stage.finish().await;
}

#[tokio::test]
async fn what_can_never_be_done_is_given_up_in_the_end() {
    let asked = Asked::new().await;
    let refuse = "CREATE FUNCTION refuse_it() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'the disk of row % is full', NEW; END $$;
        CREATE TRIGGER broken BEFORE INSERT ON tool_calls FOR EACH ROW EXECUTE FUNCTION refuse_it()";
    asked.stage.arrange(refuse).await;
    let settled = asked.decide("admin", Ruling::approve()).await.unwrap();
    assert_eq!(settled.became, Became::Executing);
    for _ in 0..5 {
        asked.stage.decisions().look_after(Duration::ZERO).await.unwrap();
    }
    assert_eq!(status(&asked.stage, asked.id).await, "failed");
    assert!(asked.is_there().await);
    asked.stage.finish().await;
}

#[tokio::test]
async fn a_turn_is_told_once_what_became_of_its_call() {
    let asked = Asked::new().await;
    keep_turn(&asked.stage, &asked.admin).await;
    let stage = &asked.stage;
    let database = Database::connect_lazily(&stage.config().roles).unwrap();
    let conversations = Conversations::new(database, stage.config().grants.clone(), 1_000_000);
    let tell = || stage.decisions().tell(&conversations);
    assert!(tell().await.unwrap().is_empty(), "nothing is decided yet");
    asked.decide("admin", Ruling::approve()).await.unwrap();
    let told = tell().await.unwrap();
    assert_eq!(
        told.iter().map(|told| told.turn).collect::<Vec<_>>(),
        [asked.admin.turn_id]
    );
    assert!(tell().await.unwrap().is_empty());
    let kept: Vec<serde_json::Value> = sqlx::query_scalar("SELECT entry FROM turn_messages")
        .fetch_all(&mut stage.owner().await)
        .await
        .unwrap();
    assert_eq!(kept.len(), 1);
    assert_eq!(
        (&kept[0]["toolCallId"], &kept[0]["succeeded"]),
        (&"1".into(), &true.into()),
        "{kept:?}"
    );
    let decided = stage
        .count("SELECT count(*) FROM turn_waits WHERE decision = 'approved'")
        .await;
    assert_eq!(decided, 1);
    asked.stage.finish().await;
}

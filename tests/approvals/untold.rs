//! Turns are told what was decided, whatever stands in the way of telling others.

use super::{args, decide, first, keep_turn};
use e2e::{
    Stage,
    fixtures::HILLTOP,
    stage::{error, pending},
};
use server::{conversation::Conversations, db::Database, decision::Ruling};

#[tokio::test]
async fn calls_that_cannot_be_told_keep_no_other_waiting() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    keep_turn(&stage, &admin).await;
    let asked = pending(first(&stage, &admin, args(), "1").await);
    // as many as are looked at together, and before it; nobody can read what became of them
    stage
        .arrange(
            "INSERT INTO approvals (school_id, id, turn_id, tool_call_id, key, event, contract_hash, arguments, arguments_digest,
                                    requester_sub, identity, scope, door, preview, scope_context, previewed_at, status, result,
                                    expires_at)
             SELECT school_id, ('00000000-0000-7000-8000-' || lpad(number::text, 12, '0'))::uuid, turn_id, 'x' || number,
                    key || number, event, contract_hash, arguments, arguments_digest, requester_sub, identity, scope, door, preview,
                    scope_context, previewed_at, 'rejected', '[]'::jsonb, expires_at
               FROM approvals, generate_series(1, 100) AS number",
        )
        .await;
    decide(&stage, "admin", asked.approval_id, Ruling::approve())
        .await
        .unwrap();
    let database = Database::connect_lazily(&stage.config().roles).unwrap();
    let conversations = Conversations::new(database, stage.config().grants.clone(), 1_000_000);
    let mut told = Vec::new();
    for _ in 0..2 {
        told.extend(stage.decisions().tell(&conversations).await.unwrap());
    }
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].turn, admin.turn_id);
    let tried = "SELECT count(*) FROM approvals WHERE NOT told AND tell_tried_at IS NOT NULL";
    assert_eq!(stage.count(tried).await, 100);
    stage.finish().await;
}

/// A longer one could be asked about, and its turn never be told.
#[tokio::test]
async fn calls_have_ids_that_their_turn_can_be_told_of() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    for id in ["9".repeat(200), "\u{e9}".repeat(200), String::new()] {
        let refused = error(first(&stage, &admin, args(), &id).await);
        assert!(refused.contains("1 to 199 characters"), "{refused}");
    }
    assert_eq!(stage.count("SELECT count(*) FROM approvals").await, 0);
    pending(first(&stage, &admin, args(), &"9".repeat(199)).await);
    stage.finish().await;
}

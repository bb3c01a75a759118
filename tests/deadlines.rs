//! Calls that nobody can answer, or not in time: each ends by its deadline with an error, and nothing is carried out afterwards.

use contract::Event;
use e2e::{
    Person, Stage,
    broker::Packet,
    fixtures::HILLTOP,
    stage::{data, error, incoming, now_ms},
    writers::Writers,
};
use futures_util::future::join_all;
use lapin::options::QueueDeleteOptions;
use serde_json::json;
use sqlx::{Connection, PgConnection};
use std::time::{Duration, Instant};

/// Far more than it takes, on a machine that is busy.
const PATIENCE: Duration = Duration::from_mins(1);

async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn head(stage: &Stage) -> Person {
    stage.person(&HILLTOP.email("head")).await
}

#[tokio::test]
async fn unknown_events_are_errors_at_once() {
    let stage = Stage::new().await;
    let server = stage.serve().await;
    let caller = Writers::start(&stage, head(&stage).await);
    let unknown = Event::new("list.unicorns");
    let refused = error(caller.call_event(unknown, json!({}), "1", PATIENCE).await);
    assert_eq!(refused, "Malformed tool call: there is no such tool.");
    let peer = stage.peer().await;
    assert_eq!(peer.dead_letter().await.expect("a dead letter").1, "unknown event");
    assert!(
        caller
            .call("list_departments", json!({}), "2", PATIENCE)
            .await
            .is_data()
    );
    server.stop().await;
    stage.finish().await;
}

#[tokio::test]
async fn no_server_yet_is_an_error_at_once() {
    let stage = Stage::new().await;
    let caller = Writers::start(&stage, head(&stage).await);
    let begun = Instant::now();
    let refused = error(caller.call("list_departments", json!({}), "1", 2 * PATIENCE).await);
    assert!(
        refused.contains("infrastructure issue") && refused.contains("no server is taking its calls"),
        "{refused}"
    );
    assert!(begun.elapsed() < PATIENCE, "not only at its deadline");
    let server = stage.serve().await;
    assert!(
        caller
            .call("list_departments", json!({}), "2", PATIENCE)
            .await
            .is_data()
    );
    server.stop().await;
    stage.finish().await;
}

/// `fault 46`
#[tokio::test]
async fn that_passed_while_the_server_was_stopped_are_never_run() {
    let stage = Stage::new().await;
    stage.serve().await.stop().await;
    let (person, mut peer) = (head(&stage).await, stage.peer().await);
    let caller = Writers::start(&stage, person.clone());
    let names: Vec<_> = (0..20).map(|call| format!("stopped_{call}")).collect();
    let calls = names
        .iter()
        .map(|name| caller.call("create_department", json!({"name": name}), name, Duration::from_secs(1)));
    for result in join_all(calls).await {
        let error = error(result);
        assert!(
            error.contains("timed out") && error.contains("infrastructure issue"),
            "{error}"
        );
    }
    // and some that the broker does not drop by itself
    let mut sent = Vec::new();
    for call in 0..20 {
        let mut late = incoming(
            &person,
            "create_department",
            json!({"name": format!("Late {call}")}),
            "late",
        );
        late.deadline_ms = now_ms() + 300;
        sent.push(peer.send(&Packet::of(&late)).await.0);
    }
    let passed = now_ms() + 300;
    eventually("the deadline passes", async || now_ms() > passed).await;

    let server = stage.serve().await;
    for _ in &sent {
        let (correlation, reply) = peer.next_reply(PATIENCE).await.expect("each is answered");
        assert!(sent.contains(&correlation.expect("for somebody")));
        assert_eq!(
            error(reply.response),
            "The time for this call has run out. It was not carried out."
        );
    }
    assert_eq!(stage.audit_rows().await, 0);
    assert_eq!(stage.count("SELECT count(*) FROM tool_calls").await, 0);
    // the twin: the same call in time
    data(
        caller
            .call("create_department", json!({"name": "In time"}), "in_time", PATIENCE)
            .await,
    );
    assert_eq!(stage.audit_rows().await, 1);
    server.stop().await;
    stage.finish().await;
}

/// Holds a department's row, as somebody else's transaction would.
async fn holding(stage: &Stage) -> PgConnection {
    let mut holder = stage.owner().await;
    sqlx::raw_sql("BEGIN").execute(&mut holder).await.unwrap();
    sqlx::query("SELECT 1 FROM departments WHERE id = $1 FOR UPDATE")
        .bind(HILLTOP.department_id())
        .execute(&mut holder)
        .await
        .unwrap();
    holder
}

async fn waiting_for_locks(stage: &Stage) -> i64 {
    stage
        .count("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
        .await
}

/// `fault 15`
#[tokio::test]
async fn that_pass_in_the_middle_leave_nothing_to_happen_later() {
    let stage = Stage::new().await;
    let server = stage.serve().await;
    let caller = Writers::start(&stage, head(&stage).await);
    let args = json!({"departmentId": HILLTOP.department_id(), "description": "Too late"});
    let mut peer = stage.peer().await;
    let holder = holding(&stage).await;
    let mut slow = incoming(&head(&stage).await, "update_department", args.clone(), "slow");
    slow.deadline_ms = now_ms() + 1500;
    let (correlation, _) = peer.send(&Packet::of(&slow)).await;
    eventually("the write waits for the row", async || {
        waiting_for_locks(&stage).await == 1
    })
    .await;
    let refused = error(
        peer.reply(&correlation, PATIENCE)
            .await
            .expect("an answer by its deadline"),
    );
    assert!(refused.starts_with("The time for this call ran out while"), "{refused}");

    // the row is free again, and whatever still waits for it is let go
    holder.close().await.unwrap();
    eventually("nobody waits", async || waiting_for_locks(&stage).await == 0).await;
    let busy = "SELECT count(*) FROM pg_stat_activity
                 WHERE datname = current_database() AND usename = 'school_app' AND state <> 'idle'";
    eventually("nothing goes on", async || stage.count(busy).await == 0).await;
    let late = "SELECT count(*) FROM departments WHERE description = 'Too late'";
    assert_eq!((stage.count(late).await, stage.audit_rows().await), (0, 0));
    assert_eq!(stage.count("SELECT count(*) FROM tool_calls").await, 0);
    // the twin, under the same key as if it had been sent again
    data(caller.call("update_department", args, "slow", PATIENCE).await);
    assert_eq!((stage.count(late).await, stage.audit_rows().await), (1, 1));
    server.stop().await;
    stage.finish().await;
}

#[tokio::test]
async fn far_away_are_no_licence_to_hold_a_connection() {
    let stage = Stage::new().await;
    let server = stage.serve().await;
    let mut peer = stage.peer().await;
    let args = json!({"campusId": HILLTOP.campus(HILLTOP.first_campus)});
    let mut endless = incoming(&head(&stage).await, "get_academic_calendar", args, "endless");
    endless.deadline_ms = i64::MAX;
    let mut holder = stage.owner().await;
    sqlx::raw_sql("BEGIN; LOCK TABLE terms IN ACCESS EXCLUSIVE MODE")
        .execute(&mut holder)
        .await
        .unwrap();
    let (correlation, _) = peer.send(&Packet::of(&endless)).await;
    let refused = error(
        peer.reply(&correlation, PATIENCE)
            .await
            .expect("an answer by the tool's own deadline"),
    );
    assert!(refused.starts_with("The time for this call ran out while"), "{refused}");
    holder.close().await.unwrap();
    server.stop().await;
    stage.finish().await;
}

/// `fault 17`
#[tokio::test]
async fn a_deleted_queue_is_noticed_and_served_again() {
    let stage = Stage::new().await;
    let server = stage.serve().await;
    let caller = Writers::start(&stage, head(&stage).await);
    let peer = stage.peer().await;
    for round in 0..3 {
        let queue = peer.names().tools_queue.as_str();
        let deleted = peer.channel().queue_delete(queue.into(), QueueDeleteOptions::default());
        deleted.await.expect("the queue is deleted");
        let begun = Instant::now();
        eventually("the server serves again", async || {
            let call = format!("after_{round}_{}", now_ms());
            caller
                .call("list_departments", json!({}), &call, Duration::from_secs(2))
                .await
                .is_data()
        })
        .await;
        eprintln!(
            "served again {:.2} s after the queue was deleted",
            begun.elapsed().as_secs_f32()
        );
    }
    server.stop().await;
    stage.finish().await;
}

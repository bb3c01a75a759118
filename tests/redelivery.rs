//! The same message again: after a crash between effect and ack, after a lost reply, after every try that ended the server.

use e2e::{
    Person, Stage,
    broker::Packet,
    fixtures::HILLTOP,
    process::Process,
    stage::{data, error, incoming},
};
use serde_json::json;
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// Far more than it takes, on a machine that is busy.
const PATIENCE: Duration = Duration::from_mins(1);

async fn server(stage: &Stage, more: &[(&str, &str)]) -> Process {
    Process::start(env!("CARGO_BIN_EXE_server-under-test"), &["serve"], stage, more).await
}

async fn head(stage: &Stage) -> Person {
    stage.person(&HILLTOP.email("head")).await
}

async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

const DRAMAS: &str = "SELECT count(*) FROM departments WHERE name = 'Drama'";

/// `fault 12`, `fault 47`
#[tokio::test]
async fn after_a_kill_between_commit_and_reply_has_the_same_reply() {
    let stage = Stage::new().await;
    let first = server(&stage, &[("PAUSE_BEFORE_REPLY_MS", "600000")]).await;
    let mut peer = stage.peer().await;
    let mut call = incoming(&head(&stage).await, "create_department", json!({"name": "Drama"}), "1");
    call.deadline_ms += 300_000;
    let call = Packet::of(&call);
    let (correlation, _) = peer.send(&call).await;
    eventually("the write is committed", async || stage.audit_rows().await == 1).await;
    first.kill().await;

    let second = server(&stage, &[]).await;
    let reply = data(
        peer.reply(&correlation, PATIENCE)
            .await
            .expect("it is answered in the end"),
    );
    let id: uuid::Uuid = sqlx::query_scalar("SELECT id FROM departments WHERE name = 'Drama'")
        .fetch_one(&mut stage.owner().await)
        .await
        .unwrap();
    assert_eq!(reply["id"], json!(id), "what was written before the kill");
    assert_eq!((stage.count(DRAMAS).await, stage.audit_rows().await), (1, 1));
    assert_eq!(stage.count("SELECT count(*) FROM tool_calls").await, 1);
    // and whoever asks again hears the same
    let again = data(peer.ask(&call).await.expect("a reply"));
    assert_eq!(again, reply);
    assert_eq!((stage.count(DRAMAS).await, stage.audit_rows().await), (1, 1));
    assert!(second.terminate(PATIENCE).await);
    assert_eq!(peer.waiting().await, 0);
    stage.finish().await;
}

/// `fault 11`
#[tokio::test]
async fn of_a_call_whose_reply_was_lost_has_the_same_reply() {
    let stage = Stage::new().await;
    let server = stage.serve().await;
    let call = incoming(&head(&stage).await, "create_department", json!({"name": "Drama"}), "1");
    let call = Packet::of(&call);
    let gone = stage.peer().await;
    gone.send(&call).await;
    gone.leave().await;
    eventually("the write is committed", async || stage.audit_rows().await == 1).await;

    let mut peer = stage.peer().await;
    let reply = data(peer.ask(&call).await.expect("a reply"));
    assert_eq!(reply["name"], "Drama");
    assert_eq!((stage.count(DRAMAS).await, stage.audit_rows().await), (1, 1));
    server.stop().await;
    stage.finish().await;
}

/// `fault 18`, `fault 42`
#[tokio::test]
async fn of_a_call_that_ends_its_server_each_time_stops_after_three_tries() {
    let stage = Stage::new().await;
    let killer = [("ABORT_ON_KEY", ":dynamite"), ("LOG", "off")];
    let mut running = server(&stage, &killer).await;
    let (person, mut peer) = (head(&stage).await, stage.peer().await);
    let mut waiting = BTreeMap::new();
    let mut send = async |name: String, call_id: &str, peer: &mut e2e::broker::Peer| {
        let mut call = incoming(&person, "create_department", json!({"name": name}), call_id);
        call.deadline_ms += 300_000;
        let (correlation, _) = peer.send(&Packet::of(&call)).await;
        waiting.insert(correlation, name);
    };
    for other in 0..5 {
        send(format!("Before {other}"), &format!("before_{other}"), &mut peer).await;
    }
    send("Dynamite".to_owned(), "dynamite", &mut peer).await;
    for other in 0..5 {
        send(format!("After {other}"), &format!("after_{other}"), &mut peer).await;
    }

    let (mut ends, mut answers) = (0, BTreeMap::new());
    while answers.len() < 11 {
        tokio::select! {
            reply = peer.next_reply(PATIENCE) => {
                let (correlation, reply) = reply.expect("each is answered");
                let name = waiting[&correlation.unwrap()].clone();
                // one whose ack went with the server is delivered, and answered, again
                if let Some(before) = answers.insert(name, reply.response.clone()) {
                    assert_eq!(before, reply.response);
                }
            }
            status = running.ended(2 * PATIENCE) => {
                assert!(!status.success());
                ends += 1;
                assert!(ends <= 3, "it is tried at most three times");
                running = server(&stage, &killer).await;
            }
        }
    }
    assert_eq!(ends, 3, "each of its tries ended the server");
    let given_up = error(answers.remove("Dynamite").unwrap());
    assert!(given_up.starts_with("This call was tried several times"), "{given_up}");
    for (name, answer) in answers {
        assert_eq!(data(answer)["name"], json!(name), "the others go on");
    }
    let (letter, reason) = peer.dead_letter().await.expect("it is a dead letter");
    assert_eq!(reason, "tried too often");
    assert!(String::from_utf8_lossy(&letter.delivery.data).contains("Dynamite"));
    assert_eq!((peer.waiting().await, peer.dead().await), (0, 0));
    assert_eq!(stage.audit_rows().await, 10);
    assert_eq!(
        stage
            .count("SELECT count(*) FROM departments WHERE name = 'Dynamite'")
            .await,
        0
    );
    assert!(running.terminate(PATIENCE).await);
    assert_eq!(peer.waiting().await, 0, "nothing was left unacked");
    stage.finish().await;
}

/// `fault 13`: nobody knows whether a commit was made under which the connection was lost, and the answer says so.
#[tokio::test]
async fn of_a_call_whose_commit_was_in_doubt_finds_out() {
    let stage = Stage::new().await;
    let server = stage.serve().await;
    let mut peer = stage.peer().await;
    stage
        .arrange(
            "CREATE FUNCTION end_session() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
             $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
             CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON departments DEFERRABLE INITIALLY DEFERRED
                 FOR EACH ROW EXECUTE FUNCTION end_session()",
        )
        .await;
    let call = Packet::of(&incoming(
        &head(&stage).await,
        "create_department",
        json!({"name": "Drama"}),
        "1",
    ));
    let doubtful = error(peer.ask(&call).await.expect("a reply"));
    assert!(doubtful.contains("may or may not have been"), "{doubtful}");
    stage.arrange("DROP TRIGGER at_commit ON departments").await;
    let reply = data(peer.ask(&call).await.expect("a reply"));
    assert_eq!(reply["name"], "Drama");
    assert_eq!((stage.count(DRAMAS).await, stage.audit_rows().await), (1, 1));
    server.stop().await;
    stage.finish().await;
}

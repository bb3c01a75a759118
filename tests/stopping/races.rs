//! A write that is under way while its turn is stopped: either it was done, and the end tells it, or it never is.

use super::*;
use e2e::process::Process;
use scripted_model::{Reply, Script, ScriptedModel};
use sqlx::{Connection, PgConnection};

/// How many calls wait for the table of departments.
const BLOCKED: &str =
    "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'departments'::regclass AND database =
    (SELECT oid FROM pg_database WHERE datname = current_database())";
/// How many calls have to do with it.
const AT_IT: &str =
    "SELECT count(*) FROM pg_locks WHERE relation = 'departments'::regclass AND pid <> pg_backend_pid() AND database =
    (SELECT oid FROM pg_database WHERE datname = current_database())";

async fn begin(owner: &mut PgConnection, statement: &'static str) {
    for statement in ["BEGIN", statement] {
        sqlx::raw_sql(statement).execute(&mut *owner).await.expect("it runs");
    }
}

async fn let_go(mut owner: PgConnection) {
    sqlx::raw_sql("ROLLBACK").execute(&mut owner).await.expect("it runs");
    owner.close().await.expect("it closes");
}

const LOCK: &str = "LOCK TABLE departments IN SHARE MODE";

#[tokio::test]
async fn what_comes_after_the_stop_is_never_done() {
    let scene = Scene::new().await;
    for is_ended_first in [true, false] {
        let begun = scene.begin(&[("make", "create_department")]).await;
        let mut owner = scene.stage.owner().await;
        begin(&mut owner, LOCK).await;
        let stop = async {
            scene.stage.until(BLOCKED, 1).await;
            scene.cancel(&begun).await;
            let end = report(&begun.turn, 2, vec![stopped()]);
            if is_ended_first {
                scene.worker.tell(&end).await;
                let_go(owner).await;
                None
            } else {
                let_go(owner).await;
                Some(end)
            }
        };
        let (made, end) = tokio::join!(scene.make(&begun, "make", "Drama"), stop);
        let refused = error(made);
        assert!(refused.contains("stopped or has ended"), "{refused}");
        if let Some(end) = end {
            scene.worker.tell(&end).await;
        }
        assert!(scene.end(&begun, "cancelled").await.ends_with(NOTHING));
        assert_eq!(
            (scene.departments("Drama").await, scene.stage.audit_rows().await),
            (0, 0)
        );
        let keys = "SELECT count(*) FROM tool_calls";
        assert_eq!(scene.stage.count(keys).await, 0);
    }
    scene.finish().await;
}

/// What a write waits for at its commit, until this is let go.
const SLOW_COMMIT: &str = "
    CREATE FUNCTION wait_for_the_test() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NULL; END';
    CREATE CONSTRAINT TRIGGER wait_for_the_test AFTER INSERT ON departments DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION wait_for_the_test()";
const COMMITTING: &str =
    "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory' AND objid = 7 AND database =
    (SELECT oid FROM pg_database WHERE datname = current_database())";
/// How many wait for a row that a transaction of this database holds.
const WAITING_FOR_A_ROW: &str =
    "SELECT count(*) FROM pg_locks w WHERE NOT w.granted AND w.locktype = 'transactionid' AND EXISTS
    (SELECT FROM pg_locks r WHERE r.pid = w.pid AND r.relation = 'turns'::regclass AND r.database =
        (SELECT oid FROM pg_database WHERE datname = current_database()))";

#[tokio::test]
async fn what_is_at_its_commit_is_done_and_told() {
    let scene = Scene::new().await;
    scene.stage.arrange(SLOW_COMMIT).await;
    let begun = scene.begin(&[("make", "create_department")]).await;
    let mut owner = scene.stage.owner().await;
    begin(&mut owner, "SELECT pg_advisory_xact_lock(7)").await;
    let stop = async {
        scene.stage.until(COMMITTING, 1).await;
        let release = async {
            scene.stage.until(WAITING_FOR_A_ROW, 1).await;
            let_go(owner).await;
        };
        tokio::join!(scene.cancel(&begun), release);
        scene.worker.tell(&report(&begun.turn, 2, vec![stopped()])).await;
    };
    let (made, ()) = tokio::join!(scene.make(&begun, "make", "Drama"), stop);
    data(made);
    assert!(scene.end(&begun, "cancelled").await.ends_with(MADE));
    assert_eq!(
        (scene.departments("Drama").await, scene.stage.audit_rows().await),
        (1, 1)
    );
    scene.assert_over(&begun).await;
    scene.finish().await;
}

/// What was done a moment ago, and its worker does not know of, is told all the same.
#[tokio::test]
async fn what_its_worker_does_not_know_of_is_told() {
    let scene = Scene::new().await;
    let begun = scene.begin(&[("make", "create_department")]).await;
    data(scene.make(&begun, "make", "Drama").await);
    scene.cancel(&begun).await;
    scene.worker.tell(&report(&begun.turn, 2, vec![stopped()])).await;
    assert!(scene.end(&begun, "cancelled").await.ends_with(MADE));
    scene.finish().await;
}

/// The same with the worker's own process.
#[tokio::test]
async fn text_and_effect_agree_where_a_worker_is_stopped_under_a_write() {
    let scene = Scene::new().await;
    let make = json!({"name": "Drama", "campusId": HILLTOP.campus("main")}).to_string();
    let script = Script::function(move |request| {
        let messages = request["messages"].as_array().expect("a conversation");
        match messages.last().expect("it says something")["role"].as_str() {
            Some("user") => Reply::nothing().and_call(Some("make"), "create_department", make.clone()),
            _ => Reply::text("All done."),
        }
    });
    let model = ScriptedModel::start(script).await.expect("the model listens");
    let url = model.base_url();
    let more = [("OPENAI_BASE_URL", url.as_str()), ("MODEL", "scripted-demo")];
    let worker = Process::start(env!("CARGO_BIN_EXE_worker-under-test"), &[], &scene.stage, &more).await;
    let mut owner = scene.stage.owner().await;
    begin(&mut owner, LOCK).await;
    let turn = scene.admin.turn(&scene.thread, "Make it.").await;
    scene.stage.until(BLOCKED, 1).await;
    let path = format!("/v1/turns/{turn}/cancel");
    assert_eq!(scene.admin.post(&path, &json!({})).await.0, StatusCode::ACCEPTED);
    let events = scene.admin.follow(&turn, None).await.all().await;
    let text = events.last().expect("it has an end").data["outcome"]["cancelled"].clone();
    assert!(text.as_str().is_some_and(|text| text.ends_with(NOTHING)), "{text}");
    let_go(owner).await;
    // the write has come to its end as well
    scene.stage.until(AT_IT, 0).await;
    assert_eq!(
        (scene.departments("Drama").await, scene.stage.audit_rows().await),
        (0, 0)
    );

    let turn = scene.admin.turn(&scene.thread, "Make it.").await;
    let events = scene.admin.follow(&turn, None).await.all().await;
    let outcome = &events.last().expect("it has an end").data["outcome"];
    assert_eq!(outcome["answer"], "All done.", "{events:?}");
    assert_eq!(scene.departments("Drama").await, 1);
    worker.kill().await;
    scene.finish().await;
}

//! What a turn costs: bytes that are kept and reported of it, and tokens of its school's day.

use crate::{
    http::Server,
    working::{Working, talk},
};
use e2e::{Stage, fixtures::HILLTOP};
use reqwest::StatusCode;
use scripted_model::{Reply, Script};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const AUTH: (&str, &str) = ("AUTH_SECRET", "signs the tokens of these tests only!");
/// How many hundredths more a step may cost than one before it: numbers have more digits.
const SLACK: i64 = 5;

/// Notes whatever a report holds, also where it is there already and is not stored again.
const NOTE: &str = "
    CREATE TABLE reported (turn_id uuid, kind text, name text, bytes bigint);
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
    DECLARE told jsonb := to_jsonb(NEW);
    BEGIN
        INSERT INTO public.reported VALUES (NEW.turn_id, TG_TABLE_NAME,
            coalesce(told ->> 'name', (told ->> 'attempt') || '.' || (told ->> 'place')),
            octet_length(coalesce(told -> 'entry', told -> 'event')::text));
        RETURN NEW;
    END $$;
    CREATE TRIGGER noted BEFORE INSERT ON turn_messages FOR EACH ROW EXECUTE FUNCTION note();
    CREATE TRIGGER noted BEFORE INSERT ON turn_events FOR EACH ROW EXECUTE FUNCTION note();";

/// A model that takes as many steps as its person says, each but the last with one call of the same size.
fn stepping() -> Script {
    Script::function(|request| {
        let messages = request["messages"].as_array().expect("a conversation");
        let said = messages.iter().rfind(|message| message["role"] == "user");
        let steps: usize = said
            .and_then(|said| said["content"].as_str()?.parse().ok())
            .expect("a number of steps");
        let step = 1 + messages.iter().filter(|message| message["role"] == "assistant").count();
        if step == steps {
            return Reply::text("All done.");
        }
        let args = json!({"limit": 100 + step}).to_string();
        Reply::nothing().and_call(Some(&format!("call_{step}")), "list_departments", args)
    })
}

/// What is kept of a turn and what was reported of it, in bytes, and the names of all that was reported.
async fn cost(stage: &Stage, turn: &str) -> (i64, i64, Vec<String>) {
    let mut owner = stage.owner().await;
    let kept =
        sqlx::query_scalar("SELECT sum(octet_length(entry::text))::bigint FROM turn_messages WHERE turn_id::text = $1");
    let kept = kept.bind(turn).fetch_one(&mut owner).await.expect("they can be read");
    let reported = sqlx::query_as("SELECT kind || ' ' || name, bytes FROM reported WHERE turn_id::text = $1");
    let reported: Vec<(String, i64)> = reported
        .bind(turn)
        .fetch_all(&mut owner)
        .await
        .expect("they can be read");
    let bytes = reported.iter().map(|(_, bytes)| bytes).sum();
    (kept, bytes, reported.into_iter().map(|(name, _)| name).collect())
}

#[tokio::test]
async fn of_a_turn_grow_with_its_steps_and_no_faster() {
    let stage = Stage::with(&[AUTH]).await;
    stage.arrange(NOTE).await;
    let (server, worker) = (Server::on(&stage).await, Working::with(&stage, stepping()).await);
    let head = server.person(&stage, &HILLTOP.email("head")).await;
    let (mut kept, mut reported) = (Vec::new(), Vec::new());
    for steps in [2, 4, 8] {
        let thread = head.thread(&json!({})).await;
        let turn = head.turn(&thread, &steps.to_string()).await;
        let events = head.follow(&turn, None).await.all().await;
        assert_eq!(events.last().expect("an end").data["outcome"]["answer"], "All done.");
        let (kept_bytes, reported_bytes, names) = cost(&stage, &turn).await;
        let once: BTreeSet<_> = names.iter().collect();
        assert_eq!(once.len(), names.len(), "{steps}: nothing is reported twice: {names:?}");
        let entries = names.iter().filter(|name| name.starts_with("turn_messages")).count();
        assert_eq!(
            entries,
            2 * steps - 1,
            "an answer a step, and a result a call: {names:?}"
        );
        kept.push(kept_bytes);
        reported.push(reported_bytes);
    }
    for bytes in [kept, reported] {
        let (two_more, four_more) = (bytes[1] - bytes[0], bytes[2] - bytes[1]);
        assert!(two_more > 1000, "the steps are long enough to be seen: {bytes:?}");
        assert!(
            four_more * 100 <= 2 * two_more * (100 + SLACK),
            "twice the steps, twice the bytes: {bytes:?}"
        );
    }
    worker.stop().await;
    server.process.kill().await;
    stage.finish().await;
}

/// An endpoint that counts no tokens is none that costs nothing.
#[tokio::test]
async fn of_an_endpoint_that_counts_nothing_are_of_the_schools_day_as_well() {
    let stage = Stage::with(&[AUTH, ("DAILY_TOKENS", "1000")]).await;
    let silent = |request: &Value| {
        assert!(request.to_string().len() > 4000, "a prompt and tools");
        let choice = json!({"message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"});
        Reply::raw(json!({"choices": [choice]}).to_string())
    };
    let (server, worker) = (
        Server::on(&stage).await,
        Working::with(&stage, Script::function(silent)).await,
    );
    let head = server.person(&stage, &HILLTOP.email("head")).await;
    let thread = head.thread(&json!({})).await;
    let (events, _) = talk(&head, &thread, "Hello").await;
    let usage = events.iter().find(|event| event.kind == "usage").expect("it is told");
    assert!(
        usage.data["inputTokens"].as_u64().is_some_and(|tokens| tokens > 1000),
        "{usage:?}"
    );
    assert_eq!(usage.data["outputTokens"], 2, "of six bytes");
    let path = format!("/v1/threads/{thread}/turns");
    let (status, problem) = head.post(&path, &json!({"message": "More"})).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{problem}");
    worker.stop().await;
    server.process.kill().await;
    stage.finish().await;
}

//! `kill -9` of the broker, and its orderly end: under a stream of writes, under calls that wait, and again and again.

use contract::AgentToolResult;
use e2e::{
    Stage,
    fixtures::HILLTOP,
    process::Process,
    stage::error,
    world,
    writers::{Writers, moments},
};
use futures_util::future::join_all;
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::task::spawn_blocking;
use xtask::services::PrivateRabbit;

const WRITES: usize = 2000;
const KILLS: usize = 3;
const RESTARTS: usize = 12;
/// Far more than it takes, on a machine that is busy.
const PATIENCE: Duration = Duration::from_mins(1);

async fn broker() -> PrivateRabbit {
    let started = spawn_blocking(|| PrivateRabbit::start(&world::root())).await.unwrap();
    started.expect("a broker starts")
}

async fn killed_and_started(mut broker: PrivateRabbit) -> PrivateRabbit {
    let restarting = spawn_blocking(move || {
        broker.kill();
        broker.restart().expect("the broker starts again");
        broker
    });
    restarting.await.unwrap()
}

async fn serve(stage: &Stage) -> Process {
    let program = env!("CARGO_BIN_EXE_server-under-test");
    Process::start(program, &["serve"], stage, &[("LOG", "off")]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn loses_and_repeats_nothing() {
    let mut broker = broker().await;
    let stage = Stage::with(&[("AMQP_URL", broker.url())]).await;
    let mut server = serve(&stage).await;
    let writers = Writers::start(&stage, stage.person(&HILLTOP.email("head")).await);
    let begun = Instant::now();
    let killing = async {
        for moment in moments(KILLS, WRITES) {
            writers.until(moment).await;
            broker = killed_and_started(broker).await;
        }
        broker
    };
    let (answers, _broker) = tokio::join!(writers.write(WRITES), killing);
    let (seconds, tries) = (begun.elapsed().as_secs_f32(), writers.tries());
    eprintln!("{KILLS} kills of the broker under {WRITES} writes: {seconds:.1} s, {tries} tries");
    assert!(server.runs(), "the server outlives its broker");
    writers.assert_settled(&stage, &answers).await;
    assert!(server.terminate(PATIENCE).await);
    assert_eq!(stage.peer().await.waiting().await, 0, "nothing was left unacked");
    stage.finish().await;
}

/// `fault 44`
#[tokio::test(flavor = "multi_thread")]
async fn is_survived_again_and_again() {
    let mut broker = broker().await;
    let stage = Stage::with(&[("AMQP_URL", broker.url())]).await;
    let mut server = serve(&stage).await;
    let caller = Writers::start(&stage, stage.person(&HILLTOP.email("head")).await);
    let mut waits = Vec::new();
    for restart in 0..RESTARTS {
        broker = killed_and_started(broker).await;
        let ready = Instant::now();
        loop {
            let call = format!("restart_{restart}_{}", waits.len());
            let answer = caller
                .call("list_departments", json!({}), &call, Duration::from_secs(2))
                .await;
            if answer.is_data() {
                break;
            }
            assert!(ready.elapsed() < PATIENCE, "restart {restart}: {answer:?}");
        }
        waits.push(ready.elapsed().as_secs_f32());
        assert!(server.runs(), "the server outlives restart {restart}");
    }
    let longest = waits.iter().copied().fold(0.0, f32::max);
    eprintln!("{RESTARTS} restarts of the broker: first answer after at most {longest:.2} s, {waits:.2?}");
    assert!(server.terminate(PATIENCE).await);
    stage.finish().await;
}

/// `fault 45`
#[tokio::test(flavor = "multi_thread")]
async fn in_order_ends_every_waiting_call_by_its_deadline() {
    let mut broker = broker().await;
    let stage = Stage::with(&[("AMQP_URL", broker.url())]).await;
    serve(&stage).await.kill().await;
    // nobody takes these
    let caller = Writers::start(&stage, stage.person(&HILLTOP.email("head")).await);
    let limit = Duration::from_secs(8);
    let names: Vec<_> = (0..100).map(|call| format!("waiting_{call}")).collect();
    let calls = names.iter().map(|name| {
        let args = json!({"name": format!("Never {name}")});
        caller.call("create_department", args, name, limit)
    });
    let stopping = async {
        let peer = stage.peer().await;
        while peer.waiting().await < 100 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        spawn_blocking(move || {
            // closes every connection with a word to its client
            broker.stop();
            broker
        })
        .await
        .unwrap()
    };
    let begun = Instant::now();
    let (ended, mut broker) = tokio::join!(join_all(calls), stopping);
    let took = begun.elapsed();
    for result in ended {
        let error = error(result);
        assert!(error.contains("infrastructure issue"), "{error}");
    }
    eprintln!(
        "100 waiting calls ended {:.1} s after they were made, of {limit:?}",
        took.as_secs_f32()
    );
    assert!(took < limit + PATIENCE, "they end by their deadline");

    let broker = spawn_blocking(move || {
        broker.restart().expect("the broker starts again");
        broker
    });
    let _broker = broker.await.unwrap();
    let server = serve(&stage).await;
    let good: AgentToolResult = caller.call("list_departments", json!({}), "good", PATIENCE).await;
    assert!(good.is_data(), "{good:?}");
    assert_eq!(stage.audit_rows().await, 0, "none of them was carried out");
    assert!(server.terminate(PATIENCE).await);
    stage.finish().await;
}

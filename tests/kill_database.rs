//! `kill -9` of the database, under a stream of writes and under calls that wait for it.

use e2e::{
    Stage,
    broker::Packet,
    fixtures::HILLTOP,
    process::Process,
    stage::incoming,
    world,
    writers::{Writers, moments},
};
use serde_json::json;
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};
use tokio::task::spawn_blocking;
use xtask::services::{Durability, PrivatePostgres};

const WRITES: usize = 2000;
const KILLS: usize = 4;
const WAITING: usize = 50;
/// Far more than it takes, on a machine that is busy.
const PATIENCE: Duration = Duration::from_mins(1);

async fn database() -> PrivatePostgres {
    // a killed server has lost nothing that it confirmed, whatever the machine would have lost
    let started = spawn_blocking(|| PrivatePostgres::start(&world::root(), Durability::Fast));
    started.await.unwrap().expect("a database starts")
}

async fn started_again(mut database: PrivatePostgres) -> PrivatePostgres {
    let restarting = spawn_blocking(move || {
        database.restart().expect("the database starts again");
        database
    });
    restarting.await.unwrap()
}

async fn serve(stage: &Stage) -> Process {
    let program = env!("CARGO_BIN_EXE_server-under-test");
    Process::start(program, &["serve"], stage, &[("LOG", "off")]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn loses_and_repeats_nothing() {
    let mut database = database().await;
    let stage = Stage::on(&database, &[]).await;
    let mut server = serve(&stage).await;
    let writers = Writers::start(&stage, stage.person(&HILLTOP.email("head")).await);
    let begun = Instant::now();
    let killing = async {
        for moment in moments(KILLS, WRITES) {
            writers.until(moment).await;
            database.kill();
            database = started_again(database).await;
        }
        database
    };
    let (answers, _database) = tokio::join!(writers.write(WRITES), killing);
    let (seconds, tries) = (begun.elapsed().as_secs_f32(), writers.tries());
    eprintln!("{KILLS} kills of the database under {WRITES} writes: {seconds:.1} s, {tries} tries");
    assert!(server.runs(), "the server outlives its database");
    writers.assert_settled(&stage, &answers).await;
    assert!(server.terminate(PATIENCE).await);
    assert_eq!(stage.peer().await.waiting().await, 0, "nothing was left unacked");
}

/// `fault 43`
#[tokio::test(flavor = "multi_thread")]
async fn drops_no_call_that_waits_for_it() {
    let mut database = database().await;
    let stage = Stage::on(&database, &[]).await;
    let server = serve(&stage).await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let writers = Writers::start(&stage, head.clone());
    let mut peer = stage.peer().await;
    database.kill();
    let begun = Instant::now();
    let mut waiting = BTreeMap::new();
    for number in 0..WAITING {
        let (tool, args) = match number % 2 {
            0 => ("list_departments", json!({})),
            _ => ("create_department", json!({"name": format!("Never {number}")})),
        };
        let call = Packet::of(&incoming(&head, tool, args, &format!("away_{number}")));
        let (correlation, routed) = peer.send(&call).await;
        assert!(routed);
        waiting.insert(correlation, number);
    }
    while !waiting.is_empty() {
        let (correlation, reply) = peer.next_reply(PATIENCE).await.expect("every call is answered");
        let number = waiting.remove(&correlation.unwrap()).expect("once");
        let error = e2e::stage::error(reply.response);
        assert!(
            error.starts_with("That action could not be completed."),
            "{number}: says nothing of the database: {error}"
        );
    }
    let seconds = begun.elapsed().as_secs_f32();
    eprintln!("{WAITING} calls to a database that is away: all answered after {seconds:.1} s");
    assert_eq!((peer.waiting().await, peer.dead().await), (0, 0));

    let _database = started_again(database).await;
    let back = Instant::now();
    let answers = writers.write(WAITING).await;
    eprintln!(
        "{WAITING} writes {:.1} s after it was back",
        back.elapsed().as_secs_f32()
    );
    writers.assert_settled(&stage, &answers).await;
    assert_eq!(
        stage
            .count("SELECT count(*) FROM departments WHERE name LIKE 'Never%'")
            .await,
        0
    );
    assert!(server.terminate(PATIENCE).await);
}

//! How a server begins and ends: SIGTERM with calls in flight, and a broker or a database that is not there.

use e2e::{
    Person, Stage,
    broker::Packet,
    fixtures::HILLTOP,
    process::Process,
    stage::{data, incoming},
    world,
};
use serde_json::json;
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    process::Command,
    task::JoinSet,
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_server-under-test");
/// Far more than it takes, on a machine that is busy.
const PATIENCE: Duration = Duration::from_mins(1);
/// A server ends within 5 s of being asked to; the rest is for a machine that is busy.
const END_LIMIT: Duration = Duration::from_secs(15);
const CALLS: usize = 40;

async fn head(stage: &Stage) -> Person {
    stage.person(&HILLTOP.email("head")).await
}

async fn committed(stage: &Stage, rows: usize) {
    let begun = Instant::now();
    while stage.audit_rows().await < i64::try_from(rows).unwrap() {
        assert!(begun.elapsed() < PATIENCE, "the writes are committed");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn write(person: &Person, number: usize) -> Packet {
    let mut call = incoming(
        person,
        "create_department",
        json!({"name": format!("Write {number}")}),
        &format!("write_{number}"),
    );
    call.deadline_ms += 300_000;
    Packet::of(&call)
}

#[tokio::test]
async fn answers_what_is_in_flight_first() {
    let stage = Stage::new().await;
    let server = Process::start(PROGRAM, &["serve"], &stage, &[("PAUSE_BEFORE_REPLY_MS", "1500")]).await;
    let (person, mut peer) = (head(&stage).await, stage.peer().await);
    let mut sent = BTreeMap::new();
    for number in 0..CALLS {
        sent.insert(peer.send(&write(&person, number)).await.0, number);
    }
    committed(&stage, CALLS).await;
    let begun = Instant::now();
    assert!(server.terminate(END_LIMIT).await, "it ends well");
    eprintln!(
        "with {CALLS} calls in flight: ended after {:.2} s",
        begun.elapsed().as_secs_f32()
    );
    let mut answers = BTreeMap::new();
    while !sent.is_empty() {
        let (correlation, reply) = peer.next_reply(PATIENCE).await.expect("each is answered");
        answers.insert(sent.remove(&correlation.unwrap()).expect("once"), data(reply.response));
    }
    assert_eq!(peer.waiting().await, 0, "none comes again");

    let server = Process::start(PROGRAM, &["serve"], &stage, &[]).await;
    for (number, answer) in answers {
        let again = data(peer.ask(&write(&person, number)).await.expect("a reply"));
        assert_eq!(again, answer);
    }
    let rows = i64::try_from(CALLS).unwrap();
    assert_eq!(stage.audit_rows().await, rows, "nothing was carried out twice");
    assert_eq!(
        stage
            .count("SELECT count(*) FROM departments WHERE name LIKE 'Write %'")
            .await,
        rows
    );
    assert!(server.terminate(END_LIMIT).await);
    stage.finish().await;
}

#[tokio::test]
async fn leaves_what_does_not_end_to_the_next_server() {
    let stage = Stage::new().await;
    let server = Process::start(PROGRAM, &["serve"], &stage, &[("PAUSE_BEFORE_REPLY_MS", "600000")]).await;
    let (person, mut peer) = (head(&stage).await, stage.peer().await);
    let (correlation, _) = peer.send(&write(&person, 0)).await;
    committed(&stage, 1).await;
    let begun = Instant::now();
    assert!(
        server.terminate(END_LIMIT).await,
        "it ends well, though the call does not"
    );
    eprintln!(
        "with a call that does not end: ended after {:.2} s",
        begun.elapsed().as_secs_f32()
    );
    let server = Process::start(PROGRAM, &["serve"], &stage, &[]).await;
    data(
        peer.reply(&correlation, PATIENCE)
            .await
            .expect("it is answered by the next"),
    );
    assert_eq!(stage.audit_rows().await, 1);
    assert!(server.terminate(END_LIMIT).await);
    stage.finish().await;
}

#[tokio::test]
async fn of_a_server_without_a_broker_is_possible_too() {
    let door = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stage = Stage::with(&[("AMQP_URL", &url_through(&door))]).await;
    let server = Process::spawn(PROGRAM, &["serve"], &stage, &[("LOG", "off")]);
    drop(door.accept().await.expect("it tries to connect"));
    assert!(server.terminate(END_LIMIT).await, "it ends while it waits for a broker");
    stage.finish().await;
}

#[tokio::test]
async fn start_waits_for_a_broker_and_then_serves() {
    let door = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stage = Stage::with(&[("AMQP_URL", &url_through(&door))]).await;
    let mut server = Process::spawn(PROGRAM, &["serve"], &stage, &[("LOG", "off")]);
    // nobody is there yet
    for _ in 0..5 {
        let (caller, _) = door.accept().await.expect("it tries again");
        drop(caller);
        assert!(server.runs());
    }
    let mut relays = JoinSet::new();
    let relaying = async {
        loop {
            let (mut caller, _) = door.accept().await.unwrap();
            let mut broker = TcpStream::connect(address(world::services().amqp_url())).await.unwrap();
            relays.spawn(async move { copy_bidirectional(&mut caller, &mut broker).await });
        }
    };
    let serving = async {
        server.ready().await;
        let person = head(&stage).await;
        let mut peer = stage.peer().await;
        data(peer.ask(&write(&person, 0)).await.expect("a reply"));
        assert!(server.terminate(END_LIMIT).await);
    };
    tokio::select! {
        () = serving => {}
        () = relaying => {}
    }
    stage.finish().await;
}

#[tokio::test]
async fn start_without_a_database_is_a_clear_error() {
    let stage = Stage::new().await;
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = format!("postgres://nobody:hunter2@{}/none", nobody.local_addr().unwrap());
    drop(nobody);
    let starting = Command::new(PROGRAM)
        .arg("serve")
        .env_clear()
        .envs(stage.variables())
        .env("DATABASE_URL", closed)
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(PATIENCE, starting)
        .await
        .expect("it ends")
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(said.contains("the database does not answer"), "{said}");
    assert!(said.contains("refused"), "it says why: {said}");
    assert!(!said.contains("hunter2") && !said.contains("panicked"), "{said}");
    assert!(output.stdout.is_empty(), "it was never ready");
    stage.finish().await;
}

fn address(url: &str) -> &str {
    url.split('@').nth(1).unwrap().split('/').next().unwrap()
}

/// The broker's address, by way of a door.
fn url_through(door: &TcpListener) -> String {
    let url = world::services().amqp_url();
    url.replace(address(url), &door.local_addr().unwrap().to_string())
}

//! probe
use e2e::{Stage, broker::Packet, fixtures::HILLTOP, process::Process, raw::{self, RawProperties}, stage::{data, incoming}};
use serde_json::json;
use std::time::{Duration, Instant};

async fn probe(name: &str, properties: RawProperties) {
    let stage = Stage::new().await;
    let mut server = Process::start(env!("CARGO_BIN_EXE_server-under-test"), &["serve"], &stage, &[("LOG", "info,lapin=error")]).await;
    let mut peer = stage.peer().await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let queue = peer.names().tools_queue.clone();
    let url = stage.config().broker.amqp.reveal().to_owned();
    raw::publish(&url, &queue, &properties, b"{}").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let call = Packet::of(&incoming(&head, "list_departments", json!({}), "1"));
    let begin = Instant::now();
    let (id, _) = peer.send(&call).await;
    let reply = peer.reply(&id, Duration::from_secs(8)).await;
    eprintln!("PROBE {name}: reply {:?} after {:?}; runs {}; dead {}", reply.map(|r| r.is_data()), begin.elapsed(), server.runs(), peer.dead().await);
    let _ = data;
}

#[tokio::test]
async fn utf8() {
    probe("correlation", RawProperties::default().correlation_id(b"\xff\xfe")).await;
}
#[tokio::test]
async fn header_name() {
    probe("header name", RawProperties::default().headers(&raw::entry(b"\xff", b'V', b""))).await;
}
#[tokio::test]
async fn tables() {
    for depth in [1000, 5000, 20000] {
    probe(&format!("tables {depth}"), RawProperties::default().headers(&raw::nested_tables(depth))).await;
    }
}
#[tokio::test]
async fn lists() {
    probe("lists", RawProperties::default().headers(&raw::nested_lists(20000))).await;
}

//! A caller that knows another version of a tool is told so, by name, before anything else is said about its call.

use contract::tools::tool_for_name;
use e2e::{
    Stage,
    broker::Packet,
    fixtures::HILLTOP,
    stage::{data, error, incoming},
};
use serde_json::json;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn that_differs_is_named_before_the_arguments_are_read() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let before = stage.snapshot().await;
    let mut call = incoming(&admin, "create_department", json!({"unheardOf": 1}), "1");
    call.contract = Some("0123456789abcdef".into());
    let refused = error(stage.pipeline().execute(call).await);
    let own: String = tool_for_name("create_department")
        .unwrap()
        .contract_hash()
        .chars()
        .take(12)
        .collect();
    for part in ["create.department", "0123456789ab there", own.as_str()] {
        assert!(refused.contains(part), "{part} in {refused}");
    }
    assert_eq!(stage.snapshot().await, before);
    stage.finish().await;
}

/// A tool that only a newer worker has is not called malformed; without a contract, and where the name is none, it is.
#[tokio::test]
async fn of_a_tool_that_is_not_known_is_named_too() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let before = stage.snapshot().await;
    let unknown = async |event: &str, contract: Option<&str>| {
        let mut call = incoming(&admin, "create_department", json!({}), "1");
        call.event = event.to_owned();
        call.contract = contract.map(str::to_owned);
        error(stage.pipeline().execute(call).await)
    };
    let refused = unknown("paint.fence", Some("0123456789abcdef")).await;
    for part in ["paint.fence", "0123456789ab there", "Do not retry"] {
        assert!(refused.contains(part), "{part} in {refused}");
    }
    let malformed = "Malformed tool call: there is no such tool.";
    assert_eq!(unknown("paint.fence", None).await, malformed);
    assert_eq!(unknown("Paint the fence!", Some("0123456789abcdef")).await, malformed);
    assert_eq!(unknown(&"a".repeat(65), Some("0123456789abcdef")).await, malformed);
    assert_eq!(stage.snapshot().await, before);
    stage.finish().await;
}

#[tokio::test]
async fn that_is_the_same_or_unsaid_is_taken_off_the_broker() {
    let stage = Stage::new().await;
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let serving = stage.serve().await;
    let mut peer = stage.peer().await;
    let hash = tool_for_name("list_campuses").unwrap().contract_hash();
    for contract in [None, Some(hash)] {
        let mut call = incoming(&admin, "list_campuses", json!({}), "1");
        call.contract = contract;
        let (sent, _) = peer.send(&Packet::of(&call)).await;
        data(peer.reply(&sent, PATIENCE).await.unwrap());
    }
    let mut call = incoming(&admin, "list_campuses", json!({}), "1");
    call.contract = Some("another".into());
    let (sent, _) = peer.send(&Packet::of(&call)).await;
    assert!(error(peer.reply(&sent, PATIENCE).await.unwrap()).contains("contract"));
    serving.stop().await;
    stage.finish().await;
}

//! Calls that the pipeline admits, through the broker.

use e2e::{
    Stage,
    broker::Packet,
    fixtures::HILLTOP,
    stage::{data, incoming},
};
use serde_json::json;

#[tokio::test]
async fn crosses_the_broker_and_leaves_one_audit_row() {
    let stage = Stage::new().await;
    let server = stage.serve().await;
    let mut peer = stage.peer().await;
    let head = stage.person(&HILLTOP.email("head")).await;
    let call = Packet::of(&incoming(
        &head,
        "create_department",
        json!({"name": "Drama"}),
        "call_1",
    ));
    let first = data(peer.ask(&call).await.expect("a reply"));
    let again = data(peer.ask(&call).await.expect("a reply"));
    assert_eq!(first, again, "the same key has the same reply");
    assert_eq!(first["name"], "Drama");
    assert_eq!(stage.audit_rows().await, 1);
    let row: (String, String, String, serde_json::Value) =
        sqlx::query_as("SELECT actor_email, event, tool_call_id, arguments FROM audit_log")
            .fetch_one(&mut stage.owner().await)
            .await
            .unwrap();
    assert_eq!(
        row,
        (
            HILLTOP.email("head"),
            "create.department".into(),
            "call_1".into(),
            json!({"name": "Drama"})
        )
    );
    server.stop().await;
    stage.finish().await;
}

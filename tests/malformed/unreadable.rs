//! Messages whose properties the client library cannot read: by hand, as no library would write them either.

use super::Ground;
use e2e::raw::{self, RawProperties, entry};

#[tokio::test]
async fn properties_end_nothing_but_their_own_message() {
    let mut ground = Ground::new().await;
    let any = RawProperties::default;
    let cases = [
        ("a correlation id that is no text", any().correlation_id(b"\xff\xfe")),
        ("a reply address that is no text", any().reply_to(b"\xc0\x80")),
        ("a message id that is no text", any().message_id(b"\xed\xa0\x80")),
        (
            "a header's name that is no text",
            any().headers(&entry(b"\xff", b'V', b"")),
        ),
        ("tables a hundred deep", any().headers(&raw::nested_tables(100))),
        ("tables a thousand deep", any().headers(&raw::nested_tables(1000))),
        (
            "tables twenty thousand deep",
            any().headers(&raw::nested_tables(20_000)),
        ),
        (
            "lists twenty-five thousand deep",
            any().headers(&raw::nested_lists(25_000)),
        ),
    ];
    let url = ground.stage.config().broker.amqp.reveal().to_owned();
    let queue = ground.peer.names().tools_queue.clone();
    for (name, properties) in cases {
        raw::publish(&url, ("", queue.as_bytes()), &properties, b"{}").await;
        let reason = ground.dead_letter(name).await;
        assert!(reason.ends_with("properties cannot be read"), "{name}: {reason}");
        ground.settle(Vec::new()).await;
    }
    let exchange = ground.peer.names().tools_exchange.clone();
    raw::publish(&url, (&exchange, b"\xff.\xfe"), &any(), b"{}").await;
    let reason = ground.dead_letter("a routing key that is no text").await;
    assert!(reason.contains("not a JSON object"), "{reason}");
    ground.settle(Vec::new()).await;
    ground.finish().await;
}

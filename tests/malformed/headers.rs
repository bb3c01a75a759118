//! Good bodies under properties that are missing, unreadable, of a wrong type, or lead nowhere.

use super::{Case, Expected, Ground};
use contract::envelope::{CONTRACT_HEADER, DEADLINE_HEADER, GRANT_HEADER};
use lapin::{
    BasicProperties,
    types::{AMQPValue, ByteArray, DecimalValue, FieldArray, FieldTable},
};

const NO_DEADLINE: Expected = Expected::Rejected("the deadline cannot be read");
const TOO_LATE: Expected = Expected::Refused("The time for this call has run out. It was not carried out.");

fn text(text: &str) -> AMQPValue {
    AMQPValue::LongString(text.into())
}

/// Values of types that neither a deadline nor a grant nor a hash has.
fn wrong_types() -> Vec<AMQPValue> {
    vec![
        AMQPValue::Void,
        AMQPValue::Boolean(true),
        AMQPValue::ShortShortInt(-1),
        AMQPValue::ShortInt(7),
        AMQPValue::Timestamp(7),
        AMQPValue::Float(1.5),
        AMQPValue::DecimalValue(DecimalValue { scale: 2, value: 7 }),
        AMQPValue::FieldArray(FieldArray::default()),
        AMQPValue::FieldTable(FieldTable::default()),
        AMQPValue::ByteArray(ByteArray::from(vec![0xff, 0])),
        AMQPValue::LongString(vec![0xff, 0xfe].into()),
    ]
}

fn with_header(ground: &Ground, name: &str, value: AMQPValue) -> BasicProperties {
    let mut headers = ground.headers();
    headers.insert(name.into(), value);
    ground
        .properties()
        .with_headers(headers)
        .with_message_id(ground.key().into())
}

#[tokio::test]
async fn with_deadlines_that_have_passed_or_cannot_be_read() {
    let mut ground = Ground::new().await;
    let unreadable = wrong_types().into_iter().chain([
        text(""),
        text(" "),
        text("soon"),
        text("1e15"),
        text("12.5"),
        text("0x10"),
        text("99999999999999999999999999"),
        text("2026-01-01T00:00:00Z"),
        AMQPValue::Double(1e300),
        AMQPValue::Double(-9.1e15),
    ]);
    let passed = [
        text("0"),
        text("-1"),
        text("1700000000000"),
        AMQPValue::LongLongInt(0),
        AMQPValue::LongLongInt(-1),
        AMQPValue::LongLongInt(i64::MIN),
        AMQPValue::LongInt(i32::MAX),
        AMQPValue::LongInt(-5),
        AMQPValue::Double(-1e9),
        AMQPValue::Double(0.5),
    ];
    let unreadable = unreadable.map(|value| (value, NO_DEADLINE));
    let passed = passed.into_iter().map(|value| (value, TOO_LATE));
    let cases = unreadable
        .chain(passed)
        .map(|(value, expected)| {
            let name = format!("the deadline {value:?}");
            let properties = with_header(&ground, DEADLINE_HEADER, value);
            Case::new(name, ground.packet(|_| {}), properties, expected)
        })
        .collect();
    ground.settle(cases).await;
    ground.finish().await;
}

#[tokio::test]
async fn with_contracts_that_cannot_be_read_or_are_none() {
    let mut ground = Ground::new().await;
    let unreadable = wrong_types()
        .into_iter()
        .map(|value| (value, Expected::Rejected("the tool's contract cannot be read")));
    let other = ["", "0"].map(|hash| (text(hash), Expected::Refused("The tool ")));
    let cases = unreadable
        .chain(other)
        .map(|(value, expected)| {
            let name = format!("the contract {value:?}");
            let properties = with_header(&ground, CONTRACT_HEADER, value);
            Case::new(name, ground.packet(|_| {}), properties, expected)
        })
        .collect();
    ground.settle(cases).await;
    ground.finish().await;
}

#[tokio::test]
async fn with_grants_of_other_types() {
    let mut ground = Ground::new().await;
    let cases = wrong_types()
        .into_iter()
        .map(|value| {
            let name = format!("the grant {value:?}");
            let properties = with_header(&ground, GRANT_HEADER, value);
            let refused = Expected::Refused("Permission denied: this call carries no turn grant.");
            Case::new(name, ground.packet(|_| {}), properties, refused)
        })
        .collect();
    ground.settle(cases).await;
    ground.finish().await;
}

#[tokio::test]
async fn with_ids_that_are_no_key() {
    let mut ground = Ground::new().await;
    let no_headers = || BasicProperties::default().with_reply_to(contract::envelope::DIRECT_REPLY_TO.into());
    let without_id = ground.packet(|packet| {
        packet.as_object_mut().unwrap().remove("id");
    });
    let with_id = |id: &str| ground.packet(|packet| packet["id"] = id.into());
    let no_key = || Expected::Rejected("cannot be a key");
    let foreign = || Expected::Refused("Permission denied: this call's key belongs to another turn.");
    let keyed = |key: &str| ground.properties().with_message_id(key.into());
    let turn = ground.head.turn_id.to_string();
    let cases = vec![
        Case::new("no id at all", without_id, no_headers(), Expected::Rejected("no id")),
        Case::new("an empty id", with_id(""), no_headers(), Expected::Rejected("no id")),
        Case::new("an id of 600 bytes", with_id(&"x".repeat(600)), no_headers(), no_key()),
        Case::new("an id of 100 kB", with_id(&"x".repeat(100_000)), no_headers(), no_key()),
        Case::new("an id with a NUL", with_id("a\0b"), no_headers(), no_key()),
        Case::new("a key with a NUL", ground.packet(|_| {}), keyed("a\0b"), no_key()),
        Case::new("a key of no turn", ground.packet(|_| {}), keyed("1"), foreign()),
        Case::new(
            "a key of the turn alone",
            ground.packet(|_| {}),
            keyed(&turn),
            foreign(),
        ),
        Case::new(
            "a key of 255 bytes",
            ground.packet(|_| {}),
            keyed(&"k".repeat(255)),
            foreign(),
        ),
        Case::new(
            "the correlation id as key",
            ground.packet(|_| {}),
            ground.properties(),
            foreign(),
        ),
    ];
    ground.settle(cases).await;
    ground.finish().await;
}

#[tokio::test]
async fn with_reply_addresses_that_are_missing_or_lead_nowhere() {
    let mut ground = Ground::new().await;
    let nowhere = || Expected::Dead("the packet has no reply address");
    let bare = BasicProperties::default;
    let good = || ground.packet(|_| {});
    let own_queue = ground.peer.names().tools_queue.clone();
    let to = |address: &str| bare().with_reply_to(address.into());
    let cases = vec![
        Case::new("no properties", good(), bare(), nowhere()),
        Case::new("an empty reply address", good(), to(""), nowhere()),
        Case::new(
            "a headers table alone",
            good(),
            bare().with_headers(ground.headers()),
            nowhere(),
        ),
        Case::new("bad JSON to nobody", "{", bare(), Expected::Dead("not a JSON object")),
        Case::new(
            "2 MiB to nobody",
            vec![b' '; 2 << 20],
            bare(),
            Expected::Dead("larger than 1 MiB"),
        ),
        // its reply comes back as a packet, and ends there
        Case::new(
            "replies to the server's own queue",
            ground.packet(|packet| packet["data"]["args"] = 7.into()),
            to(&own_queue)
                .with_headers(ground.headers())
                .with_message_id(ground.key().into()),
            Expected::Dead("not a JSON object"),
        ),
    ];
    ground.settle(cases).await;
    for address in [
        "nowhere",
        "amq.rabbitmq.reply-to",
        "amq.rabbitmq.reply-to.",
        "amq.rabbitmq.reply-to.g1h2AAAA.bm9ib2R5",
        "amq.rabbitmq.reply-to.\u{fffd}",
        "no/such queue\0",
    ] {
        let body = ground.packet(|packet| packet["data"]["args"] = 7.into());
        let properties = to(address)
            .with_headers(ground.headers())
            .with_message_id(ground.key().into());
        // the broker itself refuses some of these
        let _ = ground.peer.try_publish(&body, properties).await;
        ground.peer = ground.stage.peer().await;
        ground.settle(Vec::new()).await;
    }
    ground.finish().await;
}

//! Bodies that are no packet.

use super::{Case, Expected, Ground};
use contract::envelope::MAX_PACKET_BYTES;
use serde_json::{Value, json};
use std::{fs, path::Path};

const NO_PACKET: Expected = Expected::Rejected("not a JSON object");

/// The texts that no parser may accept, by name.
fn bad_json() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/JSONTestSuite/test_parsing");
    let mut texts: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read(path).unwrap())
        })
        .collect();
    texts.sort();
    assert_eq!(texts.len(), 187, "all of them are there");
    texts
}

#[tokio::test]
async fn that_are_no_json() {
    let mut ground = Ground::new().await;
    let cases = bad_json()
        .into_iter()
        .map(|(name, text)| Case::new(name, text, ground.properties(), NO_PACKET));
    let cases = cases.collect();
    ground.settle(cases).await;
    ground.finish().await;
}

#[tokio::test]
async fn whose_arguments_are_no_json() {
    let mut ground = Ground::new().await;
    let data = serde_json::to_string(&json!({"identity": ground.head.identity, "scope": ground.head.scope})).unwrap();
    let before = format!(
        r#"{{"pattern":"create.department","id":"1","data":{},"args":"#,
        data.trim_end_matches('}').to_owned() + "}"
    );
    let cases = bad_json().into_iter().map(|(name, text)| {
        let body = [before.as_bytes(), &text, b"}}"].concat();
        Case::new(format!("arguments {name}"), body, ground.properties(), NO_PACKET)
    });
    let cases = cases.collect();
    ground.settle(cases).await;
    ground.finish().await;
}

#[tokio::test]
async fn of_another_shape() {
    let mut ground = Ground::new().await;
    let mut cases = Vec::new();
    let good: Value = serde_json::from_slice(&ground.packet(|_| {})).unwrap();
    let as_list = json!([good["pattern"], good["data"], good["id"]]);
    for body in [
        json!(null),
        json!(true),
        json!(7),
        json!("x"),
        json!([]),
        json!([good]),
        as_list,
        json!({}),
    ] {
        cases.push((format!("the body {body:.40}"), body));
    }
    for wrong in [
        json!(null),
        json!(true),
        json!(7),
        json!(["list.departments"]),
        json!({"cmd": "list.departments"}),
    ] {
        cases.push((format!("the pattern {wrong}"), changed(&good, "pattern", wrong)));
    }
    for wrong in [json!(true), json!(7), json!(["1"]), json!({"id": "1"})] {
        cases.push((format!("the id {wrong}"), changed(&good, "id", wrong)));
    }
    for missing in ["pattern", "data"] {
        let mut body = good.clone();
        body.as_object_mut().unwrap().remove(missing);
        cases.push((format!("no {missing}"), body));
    }
    let cases = cases
        .into_iter()
        .map(|(name, body)| Case::new(name, body.to_string(), ground.properties(), NO_PACKET));
    let cases = cases.collect();
    ground.settle(cases).await;
    ground.finish().await;
}

#[tokio::test]
async fn of_bytes_that_are_no_text() {
    let mut ground = Ground::new().await;
    let good = String::from_utf8(ground.packet(|_| {})).unwrap();
    let with = |name: &str| good.replace("Never", name).into_bytes();
    let within = |bytes: &[u8]| {
        let at = good.find("Never").unwrap();
        [&good.as_bytes()[..at], bytes, &good.as_bytes()[at..]].concat()
    };
    let utf16: Vec<u8> = good.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let twice = good.replacen(r#""pattern":"#, r#""pattern":"list.departments","pattern":"#, 1);
    let cases = [
        ("a byte order mark", [b"\xef\xbb\xbf", good.as_bytes()].concat()),
        ("UTF-16", utf16),
        ("invalid UTF-8", within(b"\xff\xfe")),
        ("an overlong NUL", within(b"\xc0\x80")),
        ("a surrogate in UTF-8", within(b"\xed\xa0\x80")),
        ("a raw NUL", within(b"\0")),
        ("a raw newline", within(b"\n")),
        ("the first half of a pair", with(r"\ud800")),
        ("the second half of a pair", with(r"\udc00")),
        ("a pair the wrong way round", with(r"\udc00\ud800")),
        ("a half and something else", with(r"\ud800A")),
        (
            "a number past all bounds",
            good.replace(r#""Never""#, "1e400").into_bytes(),
        ),
        ("a name twice", twice.into_bytes()),
        ("NULs only", vec![0; 1000]),
        ("a NUL at the end", [good.as_bytes(), b"\0"].concat()),
        ("something after the end", [good.as_bytes(), good.as_bytes()].concat()),
        ("half of it", good.as_bytes()[..good.len() / 2].to_vec()),
    ];
    let cases = cases
        .into_iter()
        .map(|(name, body)| Case::new(name, body, ground.properties(), NO_PACKET));
    let cases = cases.collect();
    ground.settle(cases).await;
    ground.finish().await;
}

#[tokio::test]
async fn that_are_too_deep_or_too_large() {
    let mut ground = Ground::new().await;
    let nested = |open: &str, close: &str, depth: usize| [open.repeat(depth), close.repeat(depth)].concat();
    let deep_arguments = String::from_utf8(ground.packet(|_| {}))
        .unwrap()
        .replace(r#""Never""#, &nested("[", "]", 5000));
    let deep = [
        ("a million opening brackets", "[".repeat(1_000_000)),
        ("brackets up to the limit", "[".repeat(MAX_PACKET_BYTES)),
        ("deep lists", nested("[", "]", 100_000)),
        ("deep objects", nested(r#"{"a":"#, "}", 100_000)),
        ("deep arguments", deep_arguments),
    ];
    let mut cases: Vec<_> = deep
        .into_iter()
        .map(|(name, body)| Case::new(name, body, ground.properties(), NO_PACKET))
        .collect();
    let too_large = || Expected::Rejected("larger than 1 MiB");
    let padded = |bytes: usize| ground.packet(|packet| packet["data"]["args"]["name"] = json!("x".repeat(bytes)));
    let large = [
        ("2 MiB of NULs", vec![0; 2 << 20]),
        ("2 MiB of brackets", b"[".repeat(2 << 20)),
        ("2 MiB of a good packet", padded(2 << 20)),
        ("one byte too many", b" ".repeat(MAX_PACKET_BYTES + 1)),
        ("20 MiB", vec![b'1'; 20 << 20]),
    ];
    cases.extend(
        large
            .into_iter()
            .map(|(name, body)| Case::new(name, body, ground.properties(), too_large())),
    );
    cases.push(Case::new(
        "a name of almost 1 MiB",
        padded(MAX_PACKET_BYTES - 1000),
        ground.properties().with_message_id(ground.key().into()),
        Expected::Refused("Invalid tool arguments: "),
    ));
    ground.settle(cases).await;
    ground.finish().await;
}

fn changed(packet: &Value, member: &str, value: Value) -> Value {
    let mut packet = packet.clone();
    packet[member] = value;
    packet
}

//! Packets that can be read, around an envelope that cannot, or that is not the caller's to use.

use super::{Case, Expected, Ground, headers, properties};
use e2e::{
    fixtures::{HILLTOP, RIVERSIDE},
    stage::{GRANT_SECRET, now_ms},
};
use serde_json::{Value, json};
use server::grant::{Door, GrantKey, TurnGrant, Ungranted};

/// Whatever the words, it is refused, and nothing was carried out.
const REFUSED: Expected = Expected::Refused("");

/// A name, the wrong value, what must become of it, and where it is put.
type Change = (String, Value, fn() -> Expected, &'static str);

fn wrong_values() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(7),
        json!(-1.5),
        json!(""),
        json!("x"),
        json!("\0"),
        json!("é\u{202e}"),
        json!("00000000-0000-0000-0000-000000000000"),
        json!("x".repeat(10_000)),
        json!([]),
        json!(["a"]),
        json!({}),
        json!({"$ne": null}),
    ]
}

/// A case for each change of a good packet.
fn cases(ground: &Ground, changes: Vec<Change>) -> Vec<Case> {
    let changes = changes.into_iter().map(|(name, value, expected, pointer)| {
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        let body = ground.packet(|packet| packet.pointer_mut(parent).unwrap()[member] = value);
        let properties = ground.properties().with_message_id(ground.key().into());
        Case::new(name, body, properties, expected())
    });
    changes.collect()
}

#[tokio::test]
async fn of_wrong_types() {
    let mut ground = Ground::new().await;
    let mut changes: Vec<Change> = Vec::new();
    for value in [json!(null), json!(true), json!(7), json!("x"), json!([])] {
        changes.push((
            format!("the request {value}"),
            value,
            || Expected::Refused("Malformed tool call: "),
            "/data",
        ));
    }
    for value in wrong_values() {
        let missing = || Expected::Refused("Missing tool-call identity.");
        changes.push((
            format!("the identity {value:.40}"),
            value.clone(),
            missing,
            "/data/identity",
        ));
        changes.push((format!("the scope {value:.40}"), value, || REFUSED, "/data/scope"));
    }
    for value in [
        json!(null),
        json!(7),
        json!("x"),
        json!([]),
        json!({}),
        json!(true),
        json!([["a"]]),
    ] {
        let invalid = || Expected::Refused("Invalid tool arguments: ");
        changes.push((format!("the arguments {value}"), value, invalid, "/data/args"));
    }
    for value in wrong_values() {
        if value
            .as_str()
            .is_some_and(|text| text.chars().count() < 100 && !text.is_empty() && text != "\0")
        {
            continue;
        }
        let invalid = || Expected::Refused("Invalid tool arguments: ");
        changes.push((format!("the name {value:.40}"), value, invalid, "/data/args/name"));
    }
    let cases = cases(&ground, changes);
    ground.settle(cases).await;
    ground.finish().await;
}

#[tokio::test]
async fn whose_identity_or_scope_is_wrong_in_one_field() {
    let mut ground = Ground::new().await;
    let mut changes: Vec<Change> = Vec::new();
    for (field, pointer) in [
        ("sub", "/data/identity/sub"),
        ("email", "/data/identity/email"),
        ("type", "/data/identity/type"),
        ("profileId", "/data/identity/profileId"),
        ("schoolId", "/data/identity/schoolId"),
        ("campusId", "/data/identity/campusId"),
    ] {
        for value in wrong_values() {
            if field == "campusId" && value.is_null() && ground.head.identity.campus_id.is_none() {
                continue; // absent and null are the same
            }
            let expected: fn() -> Expected = match (field, value.as_str()) {
                ("sub" | "type", None | Some("")) => || Expected::Refused("Missing tool-call identity."),
                _ => || REFUSED,
            };
            changes.push((format!("{field} {value:.40}"), value, expected, pointer));
        }
    }
    for value in [
        json!("platform_admin"),
        json!("PLATFORM_ADMIN"),
        json!("SCHOOL_ADMIN"),
        json!("STAFF "),
    ] {
        changes.push((format!("type {value}"), value, || REFUSED, "/data/identity/type"));
    }
    let campus = HILLTOP.campus(HILLTOP.second_campus);
    for value in [
        json!({"mode": null}),
        json!({"mode": "SCHOOL"}),
        json!({"mode": "everything"}),
        json!({"mode": ["school"]}),
        json!(["school"]),
        json!({"mode": "campus"}),
        json!({"mode": "campus", "campusId": null}),
        json!({"mode": "campus", "campusId": 7}),
        json!({"mode": "campus", "campusId": "x"}),
        json!({"mode": "campus", "campusId": campus}),
        json!({"mode": "campus", "campusId": RIVERSIDE.campus(RIVERSIDE.first_campus)}),
    ] {
        changes.push((format!("scope {value}"), value, || REFUSED, "/data/scope"));
    }
    let cases = cases(&ground, changes);
    ground.settle(cases).await;
    ground.finish().await;
}

#[tokio::test]
async fn for_events_that_there_are_not() {
    let mut ground = Ground::new().await;
    let names = [
        "",
        " ",
        ".",
        "#",
        "*",
        "no.such",
        "list",
        "list.",
        ".departments",
        "list.departments ",
        " list.departments",
        "LIST.DEPARTMENTS",
        "list..departments",
        "list.departments.x",
        "list_departments",
        "list.departments\0",
        "list.departments\u{200b}",
        "__proto__",
        "toString",
        "../../etc/passwd",
        "'; DROP TABLE departments; --",
    ];
    let mut cases: Vec<_> = names
        .iter()
        .map(|name| (format!("the event {name:?}"), json!(name)))
        .collect();
    cases.push(("an event of 100 kB".to_owned(), json!("x".repeat(100_000))));
    let cases = cases
        .into_iter()
        .map(|(name, event)| {
            let body = ground.packet(|packet| packet["pattern"] = event);
            Case::new(name, body, ground.properties(), Expected::Rejected("unknown event"))
        })
        .collect();
    ground.settle(cases).await;
    ground.finish().await;
}

#[tokio::test]
async fn with_forged_and_altered_grants() {
    let mut ground = Ground::new().await;
    let grant = ground.head.grant.clone();
    let clerk = ground.stage.person(&HILLTOP.email("clerk")).await;
    let on_campus = ground
        .stage
        .person_on(&HILLTOP.email("admin"), &HILLTOP.campus("main").to_string())
        .await;
    let elsewhere = ground.stage.person(&RIVERSIDE.email("head")).await;
    let other_turn = ground.stage.person(&HILLTOP.email("head")).await;
    let mut grants: Vec<(String, String)> = (0..grant.len())
        .step_by(7)
        .map(|at| (format!("bit flipped in byte {at}"), flipped(&grant, at)))
        .collect();
    let (version, payload, signature) = parts(&grant);
    let (_, clerks, _) = parts(&clerk.grant);
    for (name, altered) in [
        ("empty", String::new()),
        ("of spaces", " ".repeat(100)),
        ("cut short", grant[..grant.len() - 1].to_owned()),
        ("one longer", format!("{grant}A")),
        ("padded", format!("{grant}=")),
        ("without a signature", format!("{version}.{payload}")),
        ("with an empty signature", format!("{version}.{payload}.")),
        ("with a fourth part", format!("{grant}.{signature}")),
        ("of another version", format!("v2.{payload}.{signature}")),
        ("of no version", format!("{payload}.{signature}")),
        ("of somebody else's payload", format!("{version}.{clerks}.{signature}")),
        ("far too long", ["v1.", &"A".repeat(100_000)].concat()),
        (
            "of another secret",
            minted(&ground, "another secret, of thirty-two bytes or more", 600_000),
        ),
        ("of the clerk", clerk.grant.clone()),
        ("of another school", elsewhere.grant.clone()),
        ("pinned to a campus", on_campus.grant.clone()),
        ("of the same head's other turn", other_turn.grant.clone()),
        ("expired", minted(&ground, GRANT_SECRET, -1)),
    ] {
        grants.push((name.to_owned(), altered));
    }
    let cases = grants
        .into_iter()
        .map(|(name, grant)| {
            let properties = properties(headers(&grant)).with_message_id(ground.key().into());
            let refused = Expected::Refused("Permission denied");
            Case::new(format!("a grant {name}"), ground.packet(|_| {}), properties, refused)
        })
        .collect();
    ground.settle(cases).await;
    ground.finish().await;
}

fn parts(grant: &str) -> (&str, &str, &str) {
    let (version, rest) = grant.split_once('.').unwrap();
    let (payload, signature) = rest.split_once('.').unwrap();
    (version, payload, signature)
}

/// A grant for the head's own turn, signed with any secret.
fn minted(ground: &Ground, secret: &str, lasts_ms: i64) -> String {
    let grant = TurnGrant {
        identity: ground.head.identity.clone(),
        scope: ground.head.scope,
        turn_id: ground.head.turn_id,
        door: Door::Chat,
        expires_at_ms: now_ms() + lasts_ms,
    };
    let key = GrantKey::new(secret.as_bytes(), Ungranted::Refuse).unwrap();
    key.mint(&grant).unwrap()
}

fn flipped(grant: &str, at: usize) -> String {
    let mut bytes = grant.as_bytes().to_vec();
    bytes[at] ^= 1;
    String::from_utf8(bytes).unwrap()
}

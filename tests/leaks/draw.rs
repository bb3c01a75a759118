//! Draws calls: anybody, any tool, and arguments after the tool's own schema out of what is the caller's, what is somebody else's, and
//! what is no value at all.

use super::{
    actors::{Actor, Claim},
    facts::Facts,
    ids::{ids, make_coherent, with_rows},
    reach::{Change, Reach, reach},
    settle::{MARK, Settled, settle},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use contract::{RPC_AGENT_TOOLS, RpcTool};
use e2e::fixtures::{HILLTOP, RIVERSIDE, School};
use proptest::{collection::vec, prelude::*, sample::select, strategy::Union};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use uuid::Uuid;

/// One drawn call.
#[derive(Clone)]
pub(super) struct Drawn {
    pub(super) actor: Arc<Actor>,
    pub(super) tool: &'static RpcTool,
    pub(super) settled: Settled,
    pub(super) envelope: Envelope,
    pub(super) key: Key,
}

impl std::fmt::Debug for Drawn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut args = self.settled.args.to_string();
        if let Some((at, _)) = args.char_indices().nth(400) {
            args.truncate(at);
            args.push('…');
        }
        write!(
            f,
            "{:?}: {} {args} ({:?}, {:?})",
            self.actor, self.tool.definition.name, self.envelope, self.key
        )
    }
}

/// What is wrong with a call around its arguments.
#[derive(Debug, Clone)]
pub(super) enum Envelope {
    /// Nothing.
    Honest,
    /// The grant of another actor.
    GrantOf(Arc<Actor>),
    /// No grant.
    WithoutGrant,
    /// The scope of another actor.
    ScopeOf(Arc<Actor>),
    /// The identity of another actor.
    IdentityOf(Arc<Actor>),
    /// A key of another actor's turn.
    KeyOf(Arc<Actor>),
}

/// The tool-call id within the turn.
#[derive(Debug, Clone)]
pub(super) enum Key {
    /// One of its own.
    Own,
    /// One of a few that many calls of the case use.
    Shared(u8),
}

/// What is drawn from.
pub(super) struct Deck {
    pub(super) facts: Arc<Facts>,
    pub(super) actors: Vec<Arc<Actor>>,
    /// Cursors that somebody's lists gave out.
    pub(super) cursors: Vec<String>,
    /// What people may be once calls have changed it.
    pub(super) potential: Vec<Change>,
}

/// Any call: most are drawn after the schema, some are a tool's example with marks for its texts.
pub(super) fn call(deck: &Arc<Deck>) -> impl Strategy<Value = Drawn> + use<> {
    let envelope = envelope(deck).boxed();
    let tools = RPC_AGENT_TOOLS.iter().map(|tool| {
        let drawn = (
            caller(deck, tool),
            arguments(deck, tool),
            any::<Option<u16>>(),
            envelope.clone(),
        );
        let dealt = Arc::clone(deck);
        let drawn = drawn.prop_map(move |(actor, args, coherent, envelope)| {
            let mut args = with_rows(args, &dealt.facts, &actor);
            if let Some(at) = coherent {
                make_coherent(&mut args, &dealt.facts, &actor, usize::from(at));
            }
            (actor, args, envelope)
        });
        let example = select(examples(deck, tool)).prop_map(|(actor, args)| (actor, args, Envelope::Honest));
        let dealt = Arc::clone(deck);
        let parts = (prop_oneof![4 => drawn, 1 => example], key());
        parts.prop_map(move |((actor, args, envelope), key)| Drawn {
            settled: settle(&dealt.facts, &dealt.potential, &actor, tool, args),
            actor,
            tool,
            envelope,
            key,
        })
    });
    Union::new(tools.map(Strategy::boxed))
}

/// Every tool's example once in both schools, those of the specialists first, before anything is moved under them.
pub(super) fn every_example(deck: &Deck) -> Vec<Drawn> {
    let mut tools: Vec<&'static RpcTool> = RPC_AGENT_TOOLS.iter().collect();
    tools.sort_by_key(|tool| tool.definition.placement.is_on_supervisor());
    let drawn = tools.into_iter().flat_map(|tool| {
        let examples = examples(deck, tool).into_iter();
        examples.map(move |(actor, args)| Drawn {
            settled: settle(&deck.facts, &deck.potential, &actor, tool, args),
            actor,
            tool,
            envelope: Envelope::Honest,
            key: Key::Own,
        })
    });
    drawn.collect()
}

/// A tool's example in both schools, by whoever may use it there, with a place for a mark instead of each free text.
fn examples(deck: &Deck, tool: &RpcTool) -> Vec<(Arc<Actor>, Value)> {
    let of = |school: &School| {
        let who = school.user_of(tool);
        let person = deck.facts.people.iter().position(|person| {
            person.school == Some(school.id()) && Some(person.who.as_str()) == who.split('@').next()
        });
        let mut actors = deck.actors.iter();
        let is_theirs = |actor: &&Arc<Actor>| {
            Some(actor.person) == person && actor.claim == Claim::True && actor.scope.pinned().is_none()
        };
        let actor = actors.find(is_theirs).expect("the user of an example is there");
        let args = marked(deck, school, "", school.example(tool), &tool.schema());
        (Arc::clone(actor), args)
    };
    vec![of(&HILLTOP), of(&RIVERSIDE)]
}

fn marked(deck: &Deck, school: &School, name: &str, value: Value, schema: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.into_iter().map(|(name, value)| {
                let value = marked(deck, school, &name, value, &schema["properties"][&name]);
                (name, value)
            });
            Value::Object(members.collect())
        }
        Value::Array(items) => {
            let items = items.into_iter().enumerate().map(|(at, item)| {
                let mut item = marked(deck, school, name, item, &schema["items"]);
                // what is in one list may have to differ
                for text in item.as_object_mut().into_iter().flat_map(Map::values_mut) {
                    if *text == json!(MARK.to_string()) {
                        *text = json!(format!("{MARK} {at}"));
                    }
                }
                item
            });
            Value::Array(items.collect())
        }
        Value::String(text) => match meaning(name, schema) {
            Meaning::Text => json!(MARK.to_string()),
            Meaning::Address => json!(format!("{MARK}@mail.example")),
            Meaning::Role => {
                let mut roles = deck.facts.roles.iter();
                let is_it = |(of, seeded, _): &&(Uuid, String, String)| *of == school.id() && *seeded == text;
                json!(roles.find(is_it).map_or(text.as_str(), |(.., marked)| marked))
            }
            Meaning::Cursor
            | Meaning::Actor
            | Meaning::ResourceType
            | Meaning::Search
            | Meaning::Id
            | Meaning::Time
            | Meaning::Date
            | Meaning::Word
            | Meaning::Number
            | Meaning::Flag
            | Meaning::List
            | Meaning::Object => Value::String(text),
        },
        other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
    }
}

/// A tool's caller: mostly one who may see something by it, and often anybody.
fn caller(deck: &Deck, tool: &RpcTool) -> BoxedStrategy<Arc<Actor>> {
    let reach = |actor: &Actor| reach(&deck.facts, &[], actor, tool);
    let those = |may: &dyn Fn(&Reach) -> bool| -> Vec<_> {
        let actors = deck.actors.iter();
        actors.filter(|actor| may(&reach(actor))).cloned().collect()
    };
    let mut able = those(&Reach::has_campuses);
    if able.iter().all(|actor| reach(actor) == Reach::Everything) {
        able = those(&|reach| *reach != Reach::Nothing);
    }
    assert!(!able.is_empty(), "somebody may use {}", tool.definition.name);
    prop_oneof![2 => select(able), 1 => select(deck.actors.clone())].boxed()
}

fn envelope(deck: &Deck) -> impl Strategy<Value = Envelope> + use<> {
    let other = || select(deck.actors.clone());
    prop_oneof![
        30 => Just(Envelope::Honest),
        1 => other().prop_map(Envelope::GrantOf),
        1 => Just(Envelope::WithoutGrant),
        1 => other().prop_map(Envelope::ScopeOf),
        1 => other().prop_map(Envelope::IdentityOf),
        1 => other().prop_map(Envelope::KeyOf),
    ]
}

fn key() -> impl Strategy<Value = Key> {
    prop_oneof![4 => Just(Key::Own), 1 => (0..3_u8).prop_map(Key::Shared)]
}

/// Arguments after the schema; now and then something else.
fn arguments(deck: &Deck, tool: &RpcTool) -> BoxedStrategy<Value> {
    let schema = tool.schema();
    let fitting = object(deck, &schema);
    let with_unknown = (fitting.clone(), unknown_member(deck)).prop_map(|(mut args, (name, value))| {
        args[name.as_str()] = value;
        args
    });
    let with_wrong = (fitting.clone(), any::<prop::sample::Index>(), wrong()).prop_map(|(mut args, at, value)| {
        if let Some(members) = args.as_object_mut().filter(|members| !members.is_empty()) {
            let name = members.keys().nth(at.index(members.len())).cloned().unwrap_or_default();
            members.insert(name, value);
        }
        args
    });
    prop_oneof![24 => fitting, 1 => with_unknown, 2 => with_wrong, 1 => wrong()].boxed()
}

fn object(deck: &Deck, schema: &Value) -> BoxedStrategy<Value> {
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut members = Just(Map::new()).boxed();
    // whoever is described by how they are related has no account, and their address is a text like any other
    let has_account = schema["properties"].get("relation").is_none();
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let probability = if required.contains(&name.as_str()) { 0.97 } else { 0.4 };
        let value = if meaning(name, schema) == Meaning::Address && !has_account {
            new_address()
        } else {
            member(deck, name, schema)
        };
        let value = prop::option::weighted(probability, value);
        let name = name.clone();
        members = (members, value)
            .prop_map(move |(mut members, value)| {
                members.extend(value.map(|value| (name.clone(), value)));
                members
            })
            .boxed();
    }
    members.prop_map(Value::Object).boxed()
}

/// What a member is drawn from: by its name where that says more than its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Cursor,
    Role,
    /// The address of somebody whom a call makes known.
    Address,
    /// The address of somebody who is there.
    Actor,
    ResourceType,
    Search,
    Id,
    Time,
    Date,
    Word,
    Text,
    Number,
    Flag,
    List,
    Object,
}

fn meaning(name: &str, schema: &Value) -> Meaning {
    let is_listed = schema["enum"].is_array();
    match (name, schema["type"].as_str(), schema["format"].as_str()) {
        ("cursor", ..) => Meaning::Cursor,
        ("role", ..) if !is_listed => Meaning::Role,
        ("email", ..) => Meaning::Address,
        ("actorEmail", ..) => Meaning::Actor,
        ("resourceType", ..) => Meaning::ResourceType,
        ("query", ..) => Meaning::Search,
        (_, Some("string"), Some("uuid")) => Meaning::Id,
        (_, Some("string"), Some("date-time")) => Meaning::Time,
        (_, Some("string"), Some("date")) => Meaning::Date,
        (_, Some("string"), _) if is_listed => Meaning::Word,
        (_, Some("string"), _) => Meaning::Text,
        (_, Some("integer" | "number"), _) => Meaning::Number,
        (_, Some("array"), _) => Meaning::List,
        (_, Some("object"), _) => Meaning::Object,
        (_, Some("boolean"), _) => Meaning::Flag,
        _ => panic!("say how to draw {name} of {schema}"),
    }
}

fn member(deck: &Deck, name: &str, schema: &Value) -> BoxedStrategy<Value> {
    let words = |words: &[Value]| select(words.to_vec()).boxed();
    match meaning(name, schema) {
        Meaning::Cursor => cursors(deck),
        Meaning::Role => {
            let roles = deck.facts.roles.iter();
            let names = roles.flat_map(|(_, name, marked)| [json!(marked), json!(marked), json!(name)]);
            words(&names.collect::<Vec<_>>())
        }
        Meaning::Address => {
            let people = deck.facts.people.iter().map(|person| json!(person.email));
            prop_oneof![3 => new_address(), 1 => select(people.collect::<Vec<_>>())].boxed()
        }
        Meaning::Actor => words(
            &deck
                .facts
                .people
                .iter()
                .map(|person| json!(person.email))
                .collect::<Vec<_>>(),
        ),
        Meaning::ResourceType => words(&["DEPARTMENT", "STAFF", "STAFF_ROLE", "STUDENT", "'"].map(Value::from)),
        Meaning::Search => words(&["q", "qcanary", "Q", "w", "%", "🎭", "q q"].map(Value::from)),
        Meaning::Id => ids(name),
        Meaning::Time => words(
            &[
                "2020-01-01T00:00:00Z",
                "2100-01-01T00:00:00+03:00",
                "9999-12-31T23:59:59Z",
            ]
            .map(Value::from),
        ),
        Meaning::Date => words(&["2020-01-01", "2100-01-01", "9999-12-31", "2026-02-30"].map(Value::from)),
        Meaning::Word => words(schema["enum"].as_array().expect("it is listed")),
        Meaning::Text => texts(),
        Meaning::Number => words(&[1, 2, 7, 20, 50, 100, 200, 0, 201].map(Value::from)),
        Meaning::List => {
            let items = schema["items"].clone();
            vec(member(deck, name, &items), 0..3).prop_map(Value::Array).boxed()
        }
        Meaning::Object => object(deck, schema),
        Meaning::Flag => any::<bool>().prop_map(Value::Bool).boxed(),
    }
}

/// An address that nobody has yet.
fn new_address() -> BoxedStrategy<Value> {
    Just(json!(format!("{MARK}@mail.example"))).boxed()
}

fn cursors(deck: &Deck) -> BoxedStrategy<Value> {
    let made_up = ["", "%%%", "bnVsbA", "W10"].map(Value::from).to_vec();
    let nul = json!(BASE64_URL_SAFE_NO_PAD.encode(r#"["a\u0000","00000000-0000-0000-0000-000000000000"]"#));
    let given = deck.cursors.iter().map(|cursor| json!(cursor)).collect::<Vec<_>>();
    prop_oneof![14 => select(given), 1 => select(made_up), 1 => Just(nul)].boxed()
}

/// Texts; most carry a mark.
fn texts() -> BoxedStrategy<Value> {
    let text = |text: String| json!(text);
    prop_oneof![
        12 => select(vec!["", "Théâtre 🎭 ", "' OR 1=1; --", "%", "\\", "{\"a\": 1} ", "演劇 ", "$1 "])
            .prop_map(move |before| text(format!("{before}{MARK}"))),
        1 => Just(text(format!("{MARK}\0"))),
        1 => Just(text(" \n".to_owned())),
        1 => Just(text(format!("{MARK}{}", "long ".repeat(20_000)))),
        1 => vec(any::<char>(), 1..20).prop_map(move |any| text(any.into_iter().chain([MARK]).collect())),
    ]
    .boxed()
}

fn wrong() -> BoxedStrategy<Value> {
    let deep = (0..200).fold(json!(MARK.to_string()), |inner, _| json!([inner]));
    select(vec![
        Value::Null,
        json!(true),
        json!(-1),
        json!(1.5e300),
        json!(MARK.to_string()),
        json!([]),
        json!({}),
        json!({"$ne": null}),
        json!([[MARK.to_string()], {"a": MARK.to_string()}]),
        deep,
    ])
    .boxed()
}

fn unknown_member(deck: &Deck) -> BoxedStrategy<(String, Value)> {
    let schools: Vec<Uuid> = deck.facts.people.iter().filter_map(|person| person.school).collect();
    let names = [
        "schoolId",
        "userId",
        "profileId",
        "identity",
        "scope",
        "campus_id",
        "__proto__",
    ]
    .map(str::to_owned);
    (select(names.to_vec()), select(schools))
        .prop_map(|(name, school)| (name, json!(school)))
        .boxed()
}

//! Draws calls: anybody, any tool, and arguments after the tool's own schema out of what is the caller's, what is somebody else's, and
//! what is no value at all.

use super::{
    actors::Actor,
    facts::{Facts, Kind, Row},
    reach::{Given, Reach, reach},
    settle::{MARK, Settled, settle},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use contract::{RPC_AGENT_TOOLS, RpcTool};
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
}

/// Any call.
pub(super) fn call(deck: &Arc<Deck>) -> impl Strategy<Value = Drawn> + use<> {
    let envelope = envelope(deck).boxed();
    let tools = RPC_AGENT_TOOLS.iter().map(|tool| {
        let deck = Arc::clone(deck);
        let parts = (caller(&deck, tool), arguments(&deck, tool), envelope.clone(), key());
        parts.prop_map(move |(actor, args, envelope, key)| {
            let args = with_rows(args, &deck.facts, &actor);
            Drawn {
                settled: settle(&deck.facts, &actor, tool.definition.name, args),
                actor,
                tool,
                envelope,
                key,
            }
        })
    });
    Union::new(tools.map(Strategy::boxed))
}

/// A tool's caller: mostly one who may see something by it, and often anybody.
fn caller(deck: &Deck, tool: &RpcTool) -> BoxedStrategy<Arc<Actor>> {
    let nothing_given = Given::default();
    let reach = |actor: &Actor| reach(&deck.facts, &nothing_given, actor, tool.definition.name);
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
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let probability = if required.contains(&name.as_str()) { 0.97 } else { 0.4 };
        let value = prop::option::weighted(probability, member(deck, name, schema));
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

/// A value for a member, by its name where that says more than its type.
fn member(deck: &Deck, name: &str, schema: &Value) -> BoxedStrategy<Value> {
    let words = |words: Vec<Value>| select(words).boxed();
    match (name, schema["type"].as_str(), schema["format"].as_str()) {
        ("cursor", ..) => cursors(deck),
        ("role", ..) => {
            let roles = deck
                .facts
                .roles
                .iter()
                .flat_map(|(_, name, marked)| [json!(marked), json!(marked), json!(name)]);
            words(roles.collect())
        }
        ("actorEmail", ..) => words(deck.facts.people.iter().map(|person| json!(person.email)).collect()),
        ("resourceType", ..) => words(vec![
            json!("DEPARTMENT"),
            json!("STAFF"),
            json!("STAFF_ROLE"),
            json!("'"),
        ]),
        (_, Some("string"), Some("uuid")) => ids(name),
        (_, Some("string"), Some("date-time")) => words(
            [
                "2020-01-01T00:00:00Z",
                "2100-01-01T00:00:00+03:00",
                "9999-12-31T23:59:59Z",
            ]
            .map(Value::from)
            .to_vec(),
        ),
        (_, Some("string"), _) => match schema["enum"].as_array() {
            Some(listed) => words(listed.clone()),
            None => texts(),
        },
        (_, Some("integer"), _) => words([1, 2, 7, 20, 50, 100, 200, 0, 201].map(Value::from).to_vec()),
        (_, Some("array"), _) => {
            let items = schema["items"].clone();
            vec(member(deck, name, &items), 0..3).prop_map(Value::Array).boxed()
        }
        (_, Some("object"), _) => object(deck, schema),
        (_, Some("boolean"), _) => any::<bool>().prop_map(Value::Bool).boxed(),
        _ => panic!("say how to draw {name} of {schema}"),
    }
}

/// Where a row is, seen from the caller.
#[derive(Debug, Clone, Copy)]
enum Where {
    /// On the caller's campus.
    Near,
    /// In the caller's school.
    School,
    /// In another school.
    Foreign,
}

/// What stands for a row until the caller is known.
const ROW: char = '¶';

/// Ids of the kind that the name says, mostly near the caller; others of another campus, another school, another kind, or of nothing.
fn ids(name: &str) -> BoxedStrategy<Value> {
    let fitting = kind_of(name);
    let places = [Where::Near, Where::School, Where::Foreign];
    let at = |place: Where, kind: Option<Kind>| {
        let kind = kind.map_or(select(Kind::ALL.to_vec()).boxed(), |kind| Just(kind).boxed());
        (kind, any::<u16>()).prop_map(move |(kind, at)| json!(format!("{ROW}{} {} {at}", place as u8, kind as u8)))
    };
    let nothing = [
        json!(Uuid::nil()),
        json!(Uuid::from_u128(7)),
        json!("no id"),
        json!("' OR true --"),
    ];
    prop_oneof![
        10 => at(places[0], fitting),
        3 => at(places[1], fitting),
        4 => at(places[2], fitting),
        1 => at(places[1], None),
        1 => at(places[2], None),
        1 => select(nothing.to_vec()),
    ]
    .boxed()
}

fn kind_of(name: &str) -> Option<Kind> {
    let lower = name.to_lowercase();
    let words = [
        ("year", Kind::Year),
        ("campus", Kind::Campus),
        ("department", Kind::Department),
        ("staff", Kind::Staff),
        ("stream", Kind::Stream),
        ("student", Kind::Student),
    ];
    words
        .iter()
        .find(|(word, _)| lower.contains(word))
        .map(|(_, kind)| *kind)
}

/// The arguments with an id in each place that was left for a row.
fn with_rows(value: Value, facts: &Facts, actor: &Actor) -> Value {
    match value {
        Value::String(text) => match text.strip_prefix(ROW) {
            Some(wish) => json!(row(wish, facts, actor)),
            None => Value::String(text),
        },
        Value::Array(items) => items.into_iter().map(|item| with_rows(item, facts, actor)).collect(),
        Value::Object(members) => members
            .into_iter()
            .map(|(name, member)| (name, with_rows(member, facts, actor)))
            .collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
    }
}

fn row(wish: &str, facts: &Facts, actor: &Actor) -> Uuid {
    let numbers: Vec<usize> = wish.split(' ').map(|number| number.parse().unwrap()).collect();
    let kind = Kind::ALL[numbers[1]];
    let person = &facts.people[actor.person];
    let campus = actor.scope.pinned().or(person.campus);
    let is_own_school = |row: &&Row| person.school.is_none_or(|school| row.school == school);
    let is_wanted = |row: &&Row| match numbers[0] {
        0 if kind == Kind::Stream && !person.class_teacher_of.is_empty() => person.class_teacher_of.contains(&row.id),
        0 => is_own_school(row) && (campus.is_none() || row.campus == campus),
        1 => is_own_school(row),
        _ => Some(row.school) != person.school,
    };
    let rows: Vec<&Row> = facts.of(kind).iter().filter(is_wanted).collect();
    rows.get(numbers[2] % rows.len().max(1))
        .map_or(Uuid::nil(), |row| row.id)
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

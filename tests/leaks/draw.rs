//! Draws calls: anybody, any tool, and arguments after the tool's own schema out of what is the caller's, what is somebody else's, and
//! what is no value at all.

use super::{
    actors::Actor,
    facts::{Facts, Kind, Row},
    settle::{MARK, Settled, settle},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use contract::{AgentCallScope, RPC_AGENT_TOOLS, RpcTool};
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
    let deck = Arc::clone(deck);
    (actor(&deck), select(RPC_AGENT_TOOLS.iter().collect::<Vec<_>>())).prop_flat_map(move |(actor, tool)| {
        let deck = Arc::clone(&deck);
        let parts = (arguments(&deck, &actor, tool), envelope(&deck), key());
        parts.prop_map(move |(args, envelope, key)| Drawn {
            settled: settle(&deck.facts, &actor, tool.definition.name, args),
            actor: Arc::clone(&actor),
            tool,
            envelope,
            key,
        })
    })
}

/// Those who may do something come up more often than those who may not.
fn actor(deck: &Deck) -> impl Strategy<Value = Arc<Actor>> + use<> {
    let mut often = Vec::new();
    for actor in &deck.actors {
        let person = &deck.facts.people[actor.person];
        let is_at_home = match actor.scope {
            AgentCallScope::School {} => true,
            AgentCallScope::Campus { campus_id } => deck
                .facts
                .find(Kind::Campus, campus_id)
                .is_some_and(|campus| Some(campus.school) == person.school),
        };
        let has_power = person.roles.iter().any(|held| {
            matches!(held.role.as_str(), "school_admin" | "head_teacher" | "clerk" | "director_of_studies")
        });
        let times = if is_at_home && has_power { 6 } else if is_at_home { 3 } else { 1 };
        often.extend(std::iter::repeat_n(Arc::clone(actor), times));
    }
    select(often)
}

fn envelope(deck: &Deck) -> impl Strategy<Value = Envelope> + use<> {
    let other = || select(deck.actors.clone());
    prop_oneof![
        20 => Just(Envelope::Honest),
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
fn arguments(deck: &Arc<Deck>, actor: &Actor, tool: &RpcTool) -> BoxedStrategy<Value> {
    let schema = tool.schema();
    let fitting = object(deck, actor, &schema);
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
    prop_oneof![16 => fitting, 1 => with_unknown, 2 => with_wrong, 1 => wrong()].boxed()
}

fn object(deck: &Arc<Deck>, actor: &Actor, schema: &Value) -> BoxedStrategy<Value> {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut members = Just(Map::new()).boxed();
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let probability = if required.contains(&name.as_str()) { 0.97 } else { 0.4 };
        let value = prop::option::weighted(probability, member(deck, actor, name, schema));
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
fn member(deck: &Arc<Deck>, actor: &Actor, name: &str, schema: &Value) -> BoxedStrategy<Value> {
    let words = |words: Vec<Value>| select(words).boxed();
    match (name, schema["type"].as_str(), schema["format"].as_str()) {
        ("cursor", ..) => cursors(deck),
        ("role", ..) => {
            let roles = deck.facts.roles.iter().flat_map(|(_, name, marked)| [json!(marked), json!(marked), json!(name)]);
            words(roles.collect())
        }
        ("actorEmail", ..) => words(deck.facts.people.iter().map(|person| json!(person.email)).collect()),
        ("resourceType", ..) => words(vec![json!("DEPARTMENT"), json!("STAFF"), json!("STAFF_ROLE"), json!("'")]),
        (_, Some("string"), Some("uuid")) => ids(deck, actor, name),
        (_, Some("string"), Some("date-time")) => {
            words(["2020-01-01T00:00:00Z", "2100-01-01T00:00:00+03:00", "9999-12-31T23:59:59Z"].map(Value::from).to_vec())
        }
        (_, Some("string"), _) => match schema["enum"].as_array() {
            Some(listed) => words(listed.clone()),
            None => texts(),
        },
        (_, Some("integer"), _) => words(vec![json!(1), json!(2), json!(7), json!(50), json!(200), json!(0), json!(201)]),
        (_, Some("array"), _) => {
            let items = schema["items"].clone();
            vec(member(deck, actor, name, &items), 0..3).prop_map(Value::Array).boxed()
        }
        (_, Some("object"), _) => object(deck, actor, schema),
        (_, Some("boolean"), _) => any::<bool>().prop_map(Value::Bool).boxed(),
        _ => panic!("say how to draw {name} of {schema}"),
    }
}

/// Ids of the kind that the name says, mostly near the caller; others of another campus, another school, another kind, or of nothing.
fn ids(deck: &Arc<Deck>, actor: &Actor, name: &str) -> BoxedStrategy<Value> {
    let lower = name.to_lowercase();
    let kind = match lower.as_str() {
        _ if lower.contains("year") => Some(Kind::Year),
        _ if lower.contains("campus") => Some(Kind::Campus),
        _ if lower.contains("department") => Some(Kind::Department),
        _ if lower.contains("staff") => Some(Kind::Staff),
        _ if lower.contains("stream") => Some(Kind::Stream),
        _ if lower.contains("student") => Some(Kind::Student),
        _ => None,
    };
    let all: Vec<Row> = Kind::ALL.iter().flat_map(|kind| deck.facts.of(*kind)).copied().collect();
    let fitting = kind.map_or(all.clone(), |kind| deck.facts.of(kind).to_vec());
    let person = &deck.facts.people[actor.person];
    let campus = match actor.scope {
        AgentCallScope::Campus { campus_id } => Some(campus_id),
        AgentCallScope::School {} => person.campus,
    };
    let ids = |wanted: &dyn Fn(&Row) -> bool| -> Vec<Uuid> { fitting.iter().filter(|row| wanted(row)).map(|row| row.id).collect() };
    let near = ids(&|row| Some(row.school) == person.school && (campus.is_none() || row.campus == campus));
    let school = ids(&|row| Some(row.school) == person.school);
    let foreign = ids(&|row| Some(row.school) != person.school);
    let others = all.iter().map(|row| row.id).collect();
    let nothing = [json!(Uuid::nil()), json!(Uuid::from_u128(7)), json!("no id"), json!("' OR true --")];
    let mut choices = vec![(1, select(nothing.to_vec()).boxed())];
    for (weight, ids) in [(8, near), (3, school), (4, foreign), (1, others)] {
        if !ids.is_empty() {
            choices.push((weight, select(ids).prop_map(|id| json!(id)).boxed()));
        }
    }
    Union::new_weighted(choices).boxed()
}

fn cursors(deck: &Arc<Deck>) -> BoxedStrategy<Value> {
    let made_up = ["", "%%%", "bnVsbA", "W10"].map(Value::from).to_vec();
    let nul = json!(BASE64_URL_SAFE_NO_PAD.encode(r#"["a\u0000","00000000-0000-0000-0000-000000000000"]"#));
    let given = deck.cursors.iter().map(|cursor| json!(cursor)).collect::<Vec<_>>();
    prop_oneof![8 => select(given), 1 => select(made_up), 1 => Just(nul)].boxed()
}

/// Texts; most carry a mark.
fn texts() -> BoxedStrategy<Value> {
    let text = |text: String| json!(text);
    prop_oneof![
        6 => select(vec!["", "Théâtre 🎭 ", "' OR 1=1; --", "%", "\\", "{\"a\": 1} ", "演劇 ", "$1 "])
            .prop_map(move |before| text(format!("{before}{MARK}"))),
        1 => Just(text(format!("{MARK}\0"))),
        1 => Just(text(" \n".to_owned())),
        1 => Just(text(format!("{MARK}{}", "long ".repeat(20_000)))),
        1 => "\\PC{1,40}".prop_map(move |any| text(format!("{any}{MARK}"))),
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
    let names = ["schoolId", "userId", "profileId", "identity", "scope", "campus_id", "__proto__"].map(str::to_owned);
    (select(names.to_vec()), select(schools))
        .prop_map(|(name, school)| (name, json!(school)))
        .boxed()
}

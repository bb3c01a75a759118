//! The page about the HTTP door, held to what the source says: the router's routes, the kinds and fields of events, and the words for
//! what becomes of things.

use e2e::world::root;
use std::{collections::BTreeSet, fs};

const ROUTER: &str = "crates/server/src/http.rs";
const TURN: &str = "crates/contract/src/turn.rs";
const ENVELOPE: &str = "crates/contract/src/envelope.rs";
const DECISION: &str = "crates/server/src/decision.rs";

/// The page, and the sources that it is held to.
struct Sources {
    page: String,
    router: String,
    turn: String,
    envelope: String,
    decision: String,
}

impl Sources {
    fn read() -> Self {
        let read = |path: &str| fs::read_to_string(root().join(path)).expect("the file can be read");
        Self {
            page: read("docs/http.md"),
            router: read(ROUTER),
            turn: read(TURN),
            envelope: read(ENVELOPE),
            decision: read(DECISION),
        }
    }

    /// What the page lacks, or has too much.
    fn findings(&self) -> Vec<String> {
        let (routed, told) = (self.routes(), self.headings());
        assert!(routed.len() > 10, "{routed:?}");
        let mut findings: Vec<String> = routed
            .symmetric_difference(&told)
            .map(|route| format!("{route}: is not both a route and a heading"))
            .collect();
        for (kind, fields) in self.events() {
            let begin = format!("| `{kind}` |");
            match self.page.lines().find(|line| line.starts_with(&begin)) {
                None => findings.push(format!("{kind}: has no row among the events")),
                Some(row) => findings.extend(
                    fields
                        .iter()
                        .filter(|field| !row.contains(&format!("`{field}`")))
                        .map(|field| format!("{kind}: its row does not name {field}")),
                ),
            }
        }
        let outcomes = members(&self.turn, "enum TurnOutcome");
        let decisions = members(&self.turn, "enum Decision");
        let became = members(&self.decision, "enum Became");
        for (words, of) in [
            (outcomes, "an outcome"),
            (decisions, "a decision"),
            (became, "what became"),
        ] {
            assert!(!words.is_empty(), "{of}");
            let words = words.into_iter().map(|member| snake(&member.name));
            let missing = words.filter(|word| {
                !self.page.contains(&format!("`{word}`")) && !self.page.contains(&format!("{{{word}}}"))
            });
            findings.extend(missing.map(|word| format!("{word}: {of} that the page does not know")));
        }
        findings
    }

    /// Each method of each route.
    fn routes(&self) -> BTreeSet<String> {
        let mut routes = BTreeSet::new();
        for route in self.router.split(".route(").skip(1) {
            let path = route.split('"').nth(1).expect("a route has a path");
            let handlers = route.split_once(',').expect("and handlers").1;
            for (call, method) in [
                ("get(", "GET"),
                ("post(", "POST"),
                ("put(", "PUT"),
                ("delete(", "DELETE"),
            ] {
                if handlers.contains(call) {
                    routes.insert(format!("{method} {path}"));
                }
            }
        }
        routes
    }

    fn headings(&self) -> BTreeSet<String> {
        let headings = self
            .page
            .lines()
            .filter_map(|line| line.strip_prefix("### `")?.strip_suffix('`'));
        headings.map(str::to_owned).collect()
    }

    /// The kinds of events that people are told, each with its fields.
    fn events(&self) -> Vec<(String, Vec<String>)> {
        let kinds = members(&self.turn, "enum TurnEvent").into_iter();
        let told = kinds.filter(|kind| kind.attribute != "#[serde(other)]");
        let events: Vec<_> = told
            .map(|kind| {
                let fields = kind.fields.iter().flat_map(|field| self.fields_of(field));
                (snake(&kind.name), fields.collect())
            })
            .collect();
        assert!(events.len() > 10, "{events:?}");
        events
    }

    /// A field as it is named on the wire; those of its type, where they stand in its place.
    fn fields_of(&self, field: &Field) -> Vec<String> {
        if !field.is_flat {
            return vec![camel(&field.name)];
        }
        let declared = [(&self.turn, "enum"), (&self.envelope, "struct")];
        let of_type = declared
            .into_iter()
            .map(|(source, what)| members(source, &format!("{what} {}", field.kind)))
            .find(|members| !members.is_empty())
            .expect("the type is declared in one of these files");
        of_type.iter().map(|member| camel(&member.name)).collect()
    }
}

/// A variant, or a field of a struct.
struct Member {
    name: String,
    attribute: String,
    fields: Vec<Field>,
}

struct Field {
    name: String,
    kind: String,
    is_flat: bool,
}

/// What is declared in a type's braces, as rustfmt writes it; nothing where there is no such type.
fn members(source: &str, declaration: &str) -> Vec<Member> {
    let begin = format!("pub {declaration} {{\n");
    let Some((_, rest)) = source.split_once(&begin) else {
        return Vec::new();
    };
    let body = rest.split("\n}").next().unwrap_or_default();
    let (mut members, mut attribute): (Vec<Member>, String) = (Vec::new(), String::new());
    for line in body.lines() {
        let text = line.trim_start();
        let depth = line.len() - text.len();
        if text.starts_with("#[") {
            text.clone_into(&mut attribute);
        } else if text.starts_with(|first: char| first.is_ascii_alphabetic()) {
            let text = text.trim_start_matches("pub ");
            let name: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let attribute = std::mem::take(&mut attribute);
            if depth == 4 {
                let fields = Vec::new();
                members.push(Member {
                    name,
                    attribute,
                    fields,
                });
            } else if let Some(member) = members.last_mut() {
                let kind = text
                    .rsplit(": ")
                    .next()
                    .unwrap_or_default()
                    .trim_end_matches(',')
                    .to_owned();
                let is_flat = attribute == "#[serde(flatten)]";
                member.fields.push(Field { name, kind, is_flat });
            }
        }
    }
    members
}

/// A name in either case, with an underscore before each capital.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    for character in name.chars() {
        if character.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    snake
}

fn camel(name: &str) -> String {
    let name = snake(name);
    let mut parts = name.split('_');
    let mut camel = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        camel.push_str(&part[..1].to_ascii_uppercase());
        camel.push_str(&part[1..]);
    }
    camel
}

#[test]
fn is_described_as_it_is() {
    let findings = Sources::read().findings();
    assert!(findings.is_empty(), "docs/http.md:\n{}", findings.join("\n"));
}

/// Each rule is shown a breach that it must find.
#[test]
fn a_page_that_lags_behind_is_found() {
    let finds = |expected: &str, breach: fn(&mut Sources)| {
        let mut sources = Sources::read();
        breach(&mut sources);
        let findings = sources.findings().join("\n");
        assert!(findings.contains(expected), "{expected} in: {findings}");
    };
    finds("GET /v1/new", |found| {
        found.router = found.router.replace("/healthz", "/v1/new");
    });
    finds("POST /readyz", |found| {
        found.router = found.router.replace("\"/readyz\", get(", "\"/readyz\", post(");
    });
    finds("danced", |found| {
        found.turn = found.turn.replace("    Started {},", "    Danced {},");
    });
    finds("text: its row does not name farewell", |found| {
        found.turn = found
            .turn
            .replacen("        delta: String,", "        farewell: String,", 1);
    });
    finds("approval_asked: its row does not name withWhat", |found| {
        let preview = "    pub preview: Value,";
        found.envelope = found.envelope.replace(preview, "    pub with_what: Value,");
    });
    finds("forgotten", |found| {
        found.decision = found.decision.replace("    Executing,", "    Forgotten,");
    });
}

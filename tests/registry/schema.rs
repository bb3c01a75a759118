//! What a tool may show to a model: a schema that every client takes, that explains itself, and in which nobody can say who calls.

use contract::ToolDefinition;
use serde_json::{Map, Value};

/// Names of whoever calls, without case and signs. Another member of staff is a `targetStaffId`.
const CALLER_NAMES: &[&str] = &[
    "account",
    "accountid",
    "actas",
    "actor",
    "actorid",
    "asuser",
    "caller",
    "callerid",
    "callersub",
    "currentstaff",
    "currentstaffid",
    "currentuser",
    "currentuserid",
    "identity",
    "impersonate",
    "me",
    "myid",
    "myself",
    "onbehalfof",
    "principal",
    "principalid",
    "profile",
    "profileid",
    "requester",
    "requesterid",
    "runas",
    "school",
    "schoolid",
    "self",
    "staff",
    "staffid",
    "sub",
    "tenant",
    "tenantid",
    "user",
    "userid",
    "usersub",
    "whoami",
];

/// Words for whoever calls, as one of the values of an argument.
const CALLER_WORDS: &[&str] = &["me", "myself", "self", "caller", "current", "currentuser", "own"];

/// What some clients drop a whole tool list for (fault 36), and what hides a subschema from these checks.
const NOT_PORTABLE: &[&str] = &[
    "$ref",
    "$defs",
    "definitions",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "prefixItems",
    "patternProperties",
    "unevaluatedProperties",
    "dependentSchemas",
    "const",
];

/// What is wrong with the schema of a tool's arguments.
pub(super) fn problems(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if schema["type"] != "object" {
        found.push("the arguments are no object".to_owned());
    }
    check(schema, "arguments", &mut found);
    found
}

fn check(schema: &Value, path: &str, found: &mut Vec<String>) {
    let Some(members) = schema.as_object() else {
        found.push(format!("{path}: says nothing about what it takes"));
        return;
    };
    let unportable = NOT_PORTABLE.iter().filter(|key| members.contains_key(**key));
    found.extend(unportable.map(|key| format!("{path}: {key}")));
    match members.get("type").and_then(Value::as_str) {
        Some("object") => object(members, path, found),
        Some("array") => check(&schema["items"], &format!("{path}/[]"), found),
        Some("string" | "integer" | "number" | "boolean") => {}
        _ => found.push(format!("{path}: has not one type")),
    }
    let words = members.get("enum").and_then(Value::as_array).into_iter().flatten();
    let callers = words
        .filter_map(Value::as_str)
        .filter(|word| CALLER_WORDS.contains(&plain(word).as_str()));
    found.extend(callers.map(|word| format!("{path}: the word {word} is whoever calls")));
}

fn object(members: &Map<String, Value>, path: &str, found: &mut Vec<String>) {
    if members.get("additionalProperties") != Some(&Value::Bool(false)) {
        found.push(format!("{path}: takes fields that it does not name"));
    }
    let Some(properties) = members.get("properties").and_then(Value::as_object) else {
        found.push(format!("{path}: has no properties, not even none"));
        return;
    };
    let required = members.get("required").and_then(Value::as_array).into_iter().flatten();
    let unknown = required.filter(|name| name.as_str().is_none_or(|name| !properties.contains_key(name)));
    found.extend(unknown.map(|name| format!("{path}: needs {name}, which it does not have")));
    for (name, property) in properties {
        let path = format!("{path}/{name}");
        if is_caller(name) {
            found.push(format!("{path}: names whoever calls"));
        }
        let description = property["description"].as_str().unwrap_or_default();
        found.extend(text_problems(description).map(|problem| format!("{path}: {problem}")));
        if plain(description) == plain(name) {
            found.push(format!("{path}: its description only repeats its name"));
        }
        check(property, &path, found);
    }
}

/// What is wrong with how a tool is named and described.
pub(super) fn definition_problems(definition: &ToolDefinition) -> Vec<String> {
    let mut found = Vec::new();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !(1..=64).contains(&definition.name.len()) || !definition.name.chars().all(is_name) {
        found.push("its name is none that every client takes".to_owned());
    }
    found.extend(text_problems(definition.description).map(str::to_owned));
    if definition.description.split_whitespace().count() < 4 {
        found.push("its description says too little".to_owned());
    }
    found
}

/// What is wrong with a text that a model reads.
fn text_problems(text: &str) -> impl Iterator<Item = &'static str> {
    let says_something = text.split_whitespace().count() >= 2 && text.ends_with('.');
    let problems = [
        (!says_something, "is not described in a sentence"),
        (text.contains('\u{2014}'), "is described with an em dash"),
        (text.contains('\n'), "is described in several paragraphs"),
    ];
    problems
        .into_iter()
        .filter_map(|(is_wrong, problem)| is_wrong.then_some(problem))
}

fn is_caller(name: &str) -> bool {
    CALLER_NAMES.contains(&plain(name).as_str())
}

fn plain(text: &str) -> String {
    text.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

//! A tool's arguments in words: from its schema to the rows of a table.

use serde_json::Value;

/// An argument a row: its name, type, whether it is required, and its description. What is inside of a list or an object follows it.
pub(super) fn arguments(schema: &Value) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    members(schema, "", &mut rows);
    rows
}

fn members(schema: &Value, path: &str, rows: &mut Vec<Vec<String>>) {
    let required: Vec<_> = list(schema, "required").filter_map(Value::as_str).collect();
    let mut found: Vec<_> = schema["properties"].as_object().into_iter().flatten().collect();
    // those that are needed first, each part as the schema has it
    found.sort_by_key(|(name, _)| !required.contains(&name.as_str()));
    for (name, member) in found {
        let path = format!("{path}{name}");
        let is_required = if required.contains(&name.as_str()) { "yes" } else { "" };
        let description = member["description"].as_str().unwrap_or_default();
        rows.push(vec![
            format!("`{path}`"),
            kind(member),
            is_required.to_owned(),
            description.to_owned(),
        ]);
        members(member, &format!("{path}."), rows);
        members(&member["items"], &format!("{path}[]."), rows);
    }
}

/// What a value is, with its bounds.
fn kind(schema: &Value) -> String {
    let words: Vec<_> = list(schema, "enum")
        .map(|word| format!("`{}`", word.as_str().unwrap_or_default()))
        .collect();
    if !words.is_empty() {
        return format!("one of {}", words.join(", "));
    }
    match (schema["type"].as_str(), schema["format"].as_str()) {
        (Some("string"), Some("uuid")) => "id".to_owned(),
        (Some("string"), Some(format)) => format.to_owned(),
        (Some("string"), None) => format!("text{}{}", bounds(schema, "Length", " characters"), pattern(schema)),
        (Some("integer"), _) => format!("whole number{}", bounds(schema, "imum", "")),
        (Some("number"), _) => format!("number{}", bounds(schema, "imum", "")),
        (Some("boolean"), _) => "yes or no".to_owned(),
        (Some("array"), _) => format!(
            "list{} of: {}",
            bounds(schema, "Items", " items"),
            kind(&schema["items"])
        ),
        (Some("object"), _) => "object".to_owned(),
        (other, _) => panic!("a type that has no words: {other:?}"),
    }
}

fn bounds(schema: &Value, of: &str, unit: &str) -> String {
    let bound = |end: &str| schema.get(format!("{end}{of}")).map(ToString::to_string);
    match (bound("min"), bound("max")) {
        (None, None) => String::new(),
        (Some(min), Some(max)) if min == max => format!(", {min}{unit}"),
        (Some(min), Some(max)) => format!(", {min} to {max}{unit}"),
        (Some(min), None) => format!(", at least {min}{unit}"),
        (None, Some(max)) => format!(", at most {max}{unit}"),
    }
}

fn pattern(schema: &Value) -> String {
    match schema["pattern"].as_str() {
        None => String::new(),
        Some(r"\S") => ", not blank".to_owned(),
        Some(pattern) => format!(", like `{pattern}`"),
    }
}

fn list<'a>(schema: &'a Value, member: &str) -> impl Iterator<Item = &'a Value> {
    schema[member].as_array().into_iter().flatten()
}

#[test]
fn every_bound_is_told_and_what_is_inside_too() {
    let schema = serde_json::json!({"type": "object", "required": ["marks"], "properties": {
        "date": {"type": "string", "format": "date", "description": "The day."},
        "marks": {"type": "array", "minItems": 1, "maxItems": 200, "items": {
            "type": "object", "required": ["score"], "properties": {
                "kind": {"type": "string", "enum": ["a", "b"]},
                "score": {"type": "number", "minimum": 0},
                "text": {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "\\S"},
            },
        }},
    }});
    let rows: Vec<_> = arguments(&schema).iter().map(|row| row.join(" / ")).collect();
    assert_eq!(
        rows,
        [
            "`marks` / list, 1 to 200 items of: object / yes / ",
            "`marks[].score` / number, at least 0 / yes / ",
            "`marks[].kind` / one of `a`, `b` /  / ",
            "`marks[].text` / text, 1 to 9 characters, not blank /  / ",
            "`date` / date /  / The day.",
        ]
    );
}

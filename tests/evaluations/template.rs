//! What a model would put together from the results before: `{{tool/member/0/name=Drama}}` stands for what a tool last returned, and
//! `{{stream}}` for a row that the fixtures name.

use e2e::fixtures::HILLTOP;
use serde_json::{Map, Value};

/// What tools have returned, by name; under `row` what a list is being made of.
pub(super) type Results = Map<String, Value>;

/// A value with all that stands for something else replaced, or what cannot be.
pub(super) fn resolve(value: &Value, results: &Results) -> Result<Value, String> {
    match value {
        Value::String(text) => resolve_text(text, results),
        Value::Array(items) => items.iter().map(|item| resolve(item, results)).collect(),
        Value::Object(members) => {
            if let (Some(each), Some(shape)) = (members.get("each"), members.get("as")) {
                return list(&resolve(each, results)?, shape, results);
            }
            let members = members.iter();
            members
                .map(|(name, member)| Ok((name.clone(), resolve(member, results)?)))
                .collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(value.clone()),
    }
}

/// One of a shape for each row.
fn list(rows: &Value, shape: &Value, results: &Results) -> Result<Value, String> {
    let rows = rows.as_array().ok_or_else(|| format!("{rows} is no list"))?;
    let one = |row: &Value| {
        let mut results = results.clone();
        results.insert("row".to_owned(), row.clone());
        resolve(shape, &results)
    };
    rows.iter().map(one).collect()
}

/// A text that is one place is what stands there, whatever it is; otherwise each place becomes part of the text.
fn resolve_text(text: &str, results: &Results) -> Result<Value, String> {
    if let Some(place) = text.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"))
        && !place.contains("{{")
    {
        return find(place, results);
    }
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let (place, after) = after.split_once("}}").ok_or_else(|| format!("{text} has no end"))?;
        filled += before;
        filled += &as_text(&find(place, results)?);
        rest = after;
    }
    Ok(Value::String(filled + rest))
}

/// A text as it is, anything else as JSON.
pub(super) fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn find(place: &str, results: &Results) -> Result<Value, String> {
    let (tool, path) = place.split_once('/').unwrap_or((place, ""));
    let Some(mut found) = results.get(tool) else {
        let row = HILLTOP.resolve(Value::String(format!("{{{place}}}")));
        return Ok(row);
    };
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        let next = match segment.split_once('=') {
            Some((member, wanted)) => found.as_array().and_then(|rows| {
                let is_wanted = |value: &Value| as_text(value) == wanted;
                rows.iter().find(|row| is_wanted(&row[member]))
            }),
            None => match segment.parse::<usize>() {
                Ok(index) => found.get(index),
                Err(_) => found.get(segment),
            },
        };
        found = next.ok_or_else(|| format!("{place}: no {segment} in {found}"))?;
    }
    Ok(found.clone())
}

#[test]
fn a_place_is_what_a_tool_returned() {
    let results = serde_json::json!({"list_staff": {"rows": [{"name": "Ann", "id": 1}, {"name": "Ben", "id": 2}]}});
    let results = results.as_object().unwrap();
    let of = |value: Value| resolve(&value, results);
    assert_eq!(of("{{list_staff/rows/name=Ben/id}}".into()), Ok(2.into()));
    assert_eq!(
        of("{{list_staff/rows/0/name}} and {{list_staff/rows/1/name}}".into()),
        Ok("Ann and Ben".into())
    );
    assert!(of("{{list_staff/rows/name=Cid/id}}".into()).is_err());
    assert_eq!(of("{{stream}}".into()), Ok(HILLTOP.stream_id().to_string().into()));
    let each = serde_json::json!({"each": "{{list_staff/rows}}", "as": {"who": "{{row/id}}"}});
    assert_eq!(of(each), Ok(serde_json::json!([{"who": 1}, {"who": 2}])));
}

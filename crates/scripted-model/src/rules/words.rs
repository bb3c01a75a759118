//! Results in plain words.

use serde_json::Value;

/// How many rows an answer names; the rest is counted.
const MAX_NAMED: usize = 20;
/// The most of a value without a name that an answer shows.
const MAX_SHOWN_CHARS: usize = 300;

/// The rows of a result.
pub(super) fn rows(data: &Value) -> &[Value] {
    list(data).unwrap_or_default()
}

/// The list that a result is or has: a page has `rows`, other results name theirs.
fn list(data: &Value) -> Option<&[Value]> {
    let of_objects = |value: &&Vec<Value>| value.first().is_some_and(Value::is_object);
    let members = || data.as_object()?.values().filter_map(Value::as_array).find(of_objects);
    let rows = data.as_array().or_else(|| data.get("rows")?.as_array());
    rows.or_else(members).map(Vec::as_slice)
}

/// What a row is called.
pub(super) fn name_of(row: &Value) -> Option<String> {
    let text = |key| row.get(key).and_then(Value::as_str).map(str::to_owned);
    let person = || Some(format!("{} {}", text("givenName")?, text("familyName")?));
    let change = || {
        Some(format!(
            "{} {} by {}",
            text("action")?,
            text("resourceType")?,
            text("actorEmail")?
        ))
    };
    person()
        .or_else(|| {
            ["name", "streamName", "fullName", "title", "topic"]
                .into_iter()
                .find_map(text)
        })
        .or_else(change)
}

/// What a result holds: the names of its rows, or its members.
pub(super) fn names(data: &Value) -> String {
    let Some(rows) = list(data) else { return members(data) };
    if rows.is_empty() {
        return "nothing".to_owned();
    }
    let named: Vec<String> = rows.iter().filter_map(name_of).take(MAX_NAMED).collect();
    if named.is_empty() {
        return members(data);
    }
    let more = rows.len().saturating_sub(named.len());
    let rest = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!("{}{rest}", named.join(", "))
}

/// Why a call came to nothing, in the words of the result, without those that are meant for a model.
pub(super) fn explain(content: &Value) -> String {
    let text = content
        .get("error")
        .and_then(Value::as_str)
        .or_else(|| content.as_str());
    for_a_person(text.unwrap_or("there was no readable result."))
}

/// What a model is told not to do follows at the end; and of the person it is spoken as of somebody else.
fn for_a_person(text: &str) -> String {
    let text = text.rsplit_once(" Do not ask ").map_or(text, |(text, _)| text);
    let Some(rest) = text.strip_prefix("The person did not approve this.") else {
        return text.to_owned();
    };
    let rest = rest.trim_end_matches("It was not done.").trim();
    let reason = rest
        .strip_prefix("Their reason: ")
        .map(|reason| format!(" The reason: {reason}"));
    format!("it was not approved.{}", reason.unwrap_or_default())
}

fn members(data: &Value) -> String {
    let Value::Object(members) = data else {
        return shortened(&data.to_string());
    };
    let shown = members
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| match value.as_str() {
            Some(text) => format!("{name} {text}"),
            None => format!("{name} {value}"),
        });
    let shown: Vec<String> = shown.collect();
    if shown.is_empty() {
        "nothing".to_owned()
    } else {
        shortened(&shown.join(", "))
    }
}

fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_SHOWN_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('\u{2026}');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_person_reads_nothing_that_is_meant_for_a_model() {
        let told = |error: &str| explain(&json!({"error": error}));
        let end =
            "It was not done. Do not ask again for the same thing in this turn; tell them what you can do instead.";
        assert_eq!(
            told(&format!("The person did not approve this. {end}")),
            "it was not approved."
        );
        assert_eq!(
            told(&format!(
                "The person did not approve this. Their reason: Do not ask me. {end}"
            )),
            "it was not approved. The reason: Do not ask me."
        );
        assert_eq!(
            told(
                "Nobody decided about this in time, so it was not done. Do not ask again for the same thing in this turn."
            ),
            "Nobody decided about this in time, so it was not done."
        );
        assert_eq!(told("Department not found."), "Department not found.");
    }

    #[test]
    fn results_of_every_shape_are_told() {
        let page = json!({"more": false, "rows": [{"name": "Drama"}, {"name": "Music"}]});
        assert_eq!(names(&page), "Drama, Music");
        assert_eq!(names(&json!({"more": false, "rows": []})), "nothing");
        assert_eq!(
            names(&json!({"colours": [], "motto": "Onward", "logoUrl": null})),
            "colours [], motto Onward"
        );
        let entry = json!([{"action": "CREATE", "resourceType": "DEPARTMENT", "actorEmail": "head@hilltop.example"}]);
        assert_eq!(names(&entry), "CREATE DEPARTMENT by head@hilltop.example");
        let many: Vec<Value> = (0..30).map(|n| json!({"name": n.to_string()})).collect();
        assert!(names(&json!(many)).ends_with("19 and 10 more"));
    }
}

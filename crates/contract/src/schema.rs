//! The JSON Schema of a tool's arguments: the one that the model is shown and that the server validates against.
//!
//! It is kept to what every function-calling endpoint takes: no `$ref`, no unions, one type a property, an object with
//! `properties` even when there are none. An optional argument is one that is absent; a `null` means absent too
//! ([`without_nulls`]), since some models are made to send every property.

use schemars::{
    JsonSchema, Schema,
    generate::SchemaSettings,
    transform::{RecursiveTransform, Transform},
};
use serde_json::{Map, Value, json};

/// The schema of an argument struct.
#[must_use]
pub fn schema_of<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    RecursiveTransform(portable).transform(&mut schema);
    // it says which tool's arguments these are, to readers of the code
    schema.remove("description");
    schema.to_value()
}

/// The arguments without the object members that are `null`, at any depth: absent and `null` mean the same, and clearing a
/// field has an argument of its own. No arguments at all, in any of the ways in which models say so, are `{}`.
#[must_use]
pub fn without_nulls(arguments: Value) -> Value {
    match arguments {
        Value::Null => json!({}),
        Value::Object(members) => Value::Object(drop_nulls(members)),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => arguments,
    }
}

fn drop_nulls(members: Map<String, Value>) -> Map<String, Value> {
    members
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (name, nested_without_nulls(value)))
        .collect()
}

fn nested_without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(drop_nulls(members)),
        Value::Array(items) => Value::Array(items.into_iter().map(nested_without_nulls).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

/// Makes one subschema portable.
fn portable(schema: &mut Schema) {
    schema.remove("title");
    if schema
        .get("format")
        .and_then(Value::as_str)
        .is_some_and(|format| !STANDARD_FORMATS.contains(&format))
    {
        schema.remove("format");
    }
    drop_null_type(schema);
    words_to_enum(schema);
    if schema.get("type").and_then(Value::as_str) == Some("object") {
        schema.ensure_object().entry("properties").or_insert_with(|| json!({}));
    }
}

/// The formats that JSON Schema defines and that our arguments use; schemars adds others, such as `uint16`.
const STANDARD_FORMATS: &[&str] = &["uuid", "date", "date-time", "email"];

/// Turns a union of documented words, which an enum with documented variants becomes, into one list of words.
fn words_to_enum(schema: &mut Schema) {
    let Some(Value::Array(branches)) = schema.get("oneOf") else {
        return;
    };
    let words: Option<Vec<Value>> = branches.iter().map(|branch| branch.get("const").cloned()).collect();
    if let Some(words) = words {
        schema.remove("oneOf");
        schema.insert("type".to_owned(), json!("string"));
        schema.insert("enum".to_owned(), Value::Array(words));
    }
}

/// Turns "this or null" into "this": an `Option` is an argument that may be absent.
fn drop_null_type(schema: &mut Schema) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(branches)) = schema.get_mut("anyOf") {
        branches.retain(|branch| branch.get("type").and_then(Value::as_str) != Some("null"));
        if let [Value::Object(only)] = branches.as_slice() {
            let only = only.clone();
            schema.remove("anyOf");
            for (key, value) in only {
                schema.ensure_object().entry(key).or_insert(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permission::Permission;
    use serde::Deserialize;

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    #[expect(dead_code, reason = "only its schema is read")]
    struct Sample {
        /// What it is called.
        full_name: String,
        page: Option<u16>,
        permission: Option<Permission>,
        many: Option<Vec<Permission>>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}

    #[test]
    fn no_arguments_is_an_object_with_properties() {
        assert_eq!(
            schema_of::<Nothing>(),
            json!({"type": "object", "properties": {}, "additionalProperties": false})
        );
    }

    #[test]
    fn optional_means_absent_and_has_one_type() {
        let schema = schema_of::<Sample>();
        assert_eq!(
            schema["properties"]["page"],
            json!({"type": "integer", "minimum": 0, "maximum": 65535})
        );
        assert_eq!(schema["properties"]["permission"]["type"], "object");
        assert_eq!(schema["required"], json!(["fullName"]));
        let text = schema.to_string();
        for unwanted in ["$ref", "anyOf", "oneOf", "\"null\"", "title", "uint16"] {
            assert!(!text.contains(unwanted), "{unwanted} in {text}");
        }
    }

    /// fault 33, fault 35
    #[test]
    fn null_is_absent_at_any_depth() {
        assert_eq!(without_nulls(Value::Null), json!({}));
        assert_eq!(
            without_nulls(json!({"a": null, "b": {"c": null, "d": 1}, "e": [{"f": null}, null]})),
            json!({"b": {"d": 1}, "e": [{}, null]})
        );
        assert_eq!(
            without_nulls(json!("text")),
            json!("text"),
            "what is no object is for the schema to refuse"
        );
    }
}

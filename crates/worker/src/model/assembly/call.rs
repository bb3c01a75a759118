//! One call of an answer, put together from its pieces.

use crate::model::{ModelError, ToolCall, completion::word};
use serde_json::Value;

/// The longest id or name.
const MAX_WORD_BYTES: usize = 512;

/// What one chunk says about a call.
#[derive(Debug)]
pub(super) struct Piece {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: Arguments,
}

#[derive(Debug)]
enum Arguments {
    Part(String),
    /// Some servers parse the arguments for us, and then send them whole.
    Whole(String),
}

/// A call in the making.
#[derive(Debug, Default)]
pub(super) struct Building {
    index: Option<u64>,
    call: ToolCall,
}

impl Piece {
    /// The pieces of a delta or a message, those that say nothing left out.
    pub(super) fn all(part: &Value) -> impl Iterator<Item = Self> {
        let calls = part.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
        let legacy = part.get("function_call").filter(|call| call.is_object());
        calls.chain(legacy).map(Self::of).filter(|piece| !piece.is_empty())
    }

    fn of(call: &Value) -> Self {
        let function = call.get("function").unwrap_or(call);
        let index = call.get("index");
        Self {
            index: index.and_then(|index| index.as_u64().or_else(|| index.as_str()?.parse().ok())),
            id: word(call.get("id")),
            name: word(function.get("name")),
            arguments: match function.get("arguments") {
                None | Some(Value::Null) => Arguments::Part(String::new()),
                Some(Value::String(text)) => Arguments::Part(text.clone()),
                Some(parsed) => Arguments::Whole(parsed.to_string()),
            },
        }
    }

    fn is_empty(&self) -> bool {
        self.id.is_empty() && self.name.is_empty() && self.arguments().is_empty()
    }

    fn arguments(&self) -> &str {
        match &self.arguments {
            Arguments::Part(text) | Arguments::Whole(text) => text,
        }
    }
}

impl Building {
    /// Whether a piece carries this call's id, and is at no other place: two calls may share an id.
    pub(super) fn has_id_of(&self, piece: &Piece) -> bool {
        !piece.id.is_empty() && piece.id == self.call.id && self.may_be_at(piece)
    }

    /// Whether a piece's place, if it has one, is this call's.
    pub(super) fn may_be_at(&self, piece: &Piece) -> bool {
        piece.index.is_none() || self.index.is_none() || piece.index == self.index
    }

    /// Whether a piece at this call's place goes on with it. Without a name it does: a call cannot begin without one.
    pub(super) fn is_continued_by(&self, piece: &Piece) -> bool {
        if piece.name.is_empty() {
            return true;
        }
        let is_same_name = piece.name == self.call.name;
        let has_begun = !self.call.arguments.trim().is_empty();
        let is_other_id = !piece.id.is_empty() && !self.call.id.is_empty() && piece.id != self.call.id;
        if is_other_id {
            // A server that draws a new id for each piece repeats the name, in the middle of the arguments.
            return is_same_name && has_begun && !self.is_complete();
        }
        let is_placed = piece.index.is_some() || !piece.id.is_empty();
        if !has_begun {
            // The name comes in pieces, or again.
            return is_placed || is_same_name;
        }
        if !is_same_name {
            return false;
        }
        // After complete arguments, the name again is the next call, unless nothing is new.
        let is_new = !piece.arguments().is_empty() && piece.arguments() != self.call.arguments;
        !self.is_complete() || (is_placed && !is_new)
    }

    pub(super) fn add(&mut self, piece: Piece) -> Result<(), ModelError> {
        let call = &mut self.call;
        self.index = self.index.or(piece.index);
        if call.id.is_empty() {
            call.id = piece.id;
        }
        if call.arguments.is_empty() && !piece.name.is_empty() {
            // Some servers send the whole name again, others what there is of it so far.
            if piece.name.starts_with(&call.name) {
                call.name = piece.name;
            } else {
                call.name.push_str(&piece.name);
            }
        }
        if call.id.len() > MAX_WORD_BYTES || call.name.len() > MAX_WORD_BYTES {
            return Err(ModelError::Unreadable("it has a call with too long an id or name"));
        }
        match piece.arguments {
            Arguments::Whole(arguments) => call.arguments = arguments,
            // A place-holder before the real ones.
            Arguments::Part(part) if matches!(call.arguments.trim(), "{}" | "null") && !part.trim().is_empty() => {
                call.arguments = part;
            }
            Arguments::Part(part) if part == call.arguments && self.is_complete() => {}
            Arguments::Part(part) => self.call.arguments.push_str(&part),
        }
        Ok(())
    }

    pub(super) const fn bytes(&self) -> usize {
        self.call.arguments.len()
    }

    /// Whether the arguments are a whole JSON value.
    pub(super) fn is_complete(&self) -> bool {
        let text = self.call.arguments.trim_end();
        // The last character first: this is asked for each piece.
        text.ends_with(['}', ']', '"', 'l']) && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
    }

    pub(super) fn finish(self) -> ToolCall {
        ToolCall {
            arguments: plain(self.call.arguments),
            ..self.call
        }
    }
}

/// The arguments without a second coat of JSON, and nothing for the words that say so.
fn plain(arguments: String) -> String {
    let inner = serde_json::from_str::<String>(&arguments).ok();
    let inner = inner.filter(|text| text.trim_start().starts_with('{') || is_nothing(text));
    let arguments = inner.unwrap_or(arguments);
    if is_nothing(&arguments) {
        String::new()
    } else {
        arguments
    }
}

fn is_nothing(arguments: &str) -> bool {
    matches!(arguments.trim(), "" | "null")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn put_together(pieces: &[Value]) -> ToolCall {
        let mut building = Building::default();
        for piece in pieces {
            building.add(Piece::of(piece)).unwrap();
        }
        building.finish()
    }

    fn arguments(pieces: &[Value]) -> String {
        let pieces: Vec<Value> = pieces
            .iter()
            .map(|piece| json!({"function": {"arguments": piece}}))
            .collect();
        put_together(&pieces).arguments
    }

    /// fault 33, fault 57
    #[test]
    fn no_arguments_in_any_spelling_are_nothing() {
        for nothing in [json!(null), json!(""), json!("null"), json!("\"null\""), json!("\"\"")] {
            assert_eq!(arguments(std::slice::from_ref(&nothing)), "", "{nothing}");
        }
        assert_eq!(arguments(&[json!("nu"), json!("ll")]), "");
    }

    #[test]
    fn arguments_are_put_together_or_come_whole() {
        assert_eq!(arguments(&[json!("{\"a\""), json!(": 1}")]), "{\"a\": 1}");
        assert_eq!(arguments(&[json!({"a": 1})]), "{\"a\":1}");
        assert_eq!(arguments(&[json!("{}"), json!("{\"a\""), json!(":1}")]), "{\"a\":1}");
        assert_eq!(arguments(&[json!("{\"a\":1}"), json!("{\"a\":1}")]), "{\"a\":1}");
        assert_eq!(arguments(&[json!("\"{\\\"a\\\":1}\"")]), "{\"a\":1}");
        assert_eq!(arguments(&[json!("\"text\"")]), "\"text\"");
    }

    #[test]
    fn a_name_comes_in_pieces_or_again() {
        let name = |pieces: &[&str]| {
            let pieces: Vec<Value> = pieces.iter().map(|name| json!({"function": {"name": name}})).collect();
            put_together(&pieces).name
        };
        assert_eq!(name(&["list_", "terms"]), "list_terms");
        assert_eq!(name(&["list_terms", "list_terms", ""]), "list_terms");
        assert_eq!(name(&["list", "list_ter", "list_terms"]), "list_terms");
    }
}

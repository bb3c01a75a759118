//! What was said before, made valid: a provider refuses a whole conversation over one call without a result.
//!
//! What is kept of a turn can lack anything, since a worker can be lost at any moment and reports can be dead. Here
//! every call gets its one result right after it, and what belongs to nothing is left out.

use contract::turn::PastTurn;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};

/// What stands for a result that was never kept.
const INTERRUPTED_CALL: &str = "This call was interrupted; its outcome is not known.";
/// What stands for the answer of a turn that has none. Some providers refuse two messages of the person in a row, and
/// one after a tool's result.
const UNFINISHED_TURN: &str = "(This was not answered; working on it ended before.)";
/// What stands for a message without text, which some providers refuse.
const NO_TEXT: &str = "(no text)";

/// A past turn as a conversation continues from it: the person, what followed, and an answer at the end.
pub(super) fn normalised_turn(turn: &PastTurn) -> Vec<Value> {
    let person = if turn.message.trim().is_empty() {
        NO_TEXT
    } else {
        turn.message.as_str()
    };
    let mut messages = vec![json!({"role": "user", "content": person})];
    messages.extend(normalised(&turn.messages));
    if messages.last().is_none_or(|last| !is_answer(last)) {
        messages.push(json!({"role": "assistant", "content": UNFINISHED_TURN}));
    }
    messages
}

/// Messages of an assistant and its tools of which every call has exactly one result, right after it and in the order
/// of the calls.
///
/// Missing results are made up for, results of no call and messages without content are dropped, and so is whoever else
/// speaks: only the assistant and its tools can have said something after the person.
pub(super) fn normalised(messages: &[Value]) -> Vec<Value> {
    let mut results = results_by_call(messages);
    let mut kept = Vec::with_capacity(messages.len());
    for (place, message) in messages.iter().enumerate() {
        if role(message) != Some("assistant") {
            continue;
        }
        let (text, calls) = (text_of(message), calls_of(message));
        if calls.is_empty() {
            kept.extend(text.map(|text| json!({"role": "assistant", "content": text})));
            continue;
        }
        let results: Vec<Value> = calls
            .iter()
            .map(|call| {
                let id = id_of(call);
                let result = results.remove(&(place, id.to_owned()));
                json!({"role": "tool", "tool_call_id": id, "content": result.as_deref().unwrap_or(INTERRUPTED_CALL)})
            })
            .collect();
        kept.push(json!({"role": "assistant", "content": text, "tool_calls": calls}));
        kept.extend(results);
    }
    kept
}

/// The first result of each call, by the place of its message and its id. A result belongs to the last call before it
/// that has its id: two steps may have used the same one.
fn results_by_call(messages: &[Value]) -> HashMap<(usize, String), String> {
    let mut open: HashMap<String, usize> = HashMap::new();
    let mut results = HashMap::new();
    for (place, message) in messages.iter().enumerate() {
        match role(message) {
            Some("assistant") => open.extend(calls_of(message).iter().map(|call| (id_of(call).to_owned(), place))),
            Some("tool") => {
                let id = message.get("tool_call_id").and_then(Value::as_str).unwrap_or_default();
                if let Some(content) = result_text(message)
                    && let Some(of) = open.remove(id)
                {
                    results.insert((of, id.to_owned()), content);
                }
            }
            _ => {}
        }
    }
    results
}

fn role(message: &Value) -> Option<&str> {
    message.get("role").and_then(Value::as_str)
}

fn is_answer(message: &Value) -> bool {
    role(message) == Some("assistant") && message.get("tool_calls").is_none()
}

/// What an assistant said; none where there is nothing but space.
fn text_of(message: &Value) -> Option<&str> {
    let text = message.get("content").and_then(Value::as_str)?;
    (!text.trim().is_empty()).then_some(text)
}

/// What a tool answered, as text.
fn result_text(message: &Value) -> Option<String> {
    match message.get("content")? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => Some(other.to_string()),
    }
}

/// The calls of an assistant's message that have an id of their own and a name, with arguments that are an object.
fn calls_of(message: &Value) -> Vec<Value> {
    let calls = message.get("tool_calls").and_then(Value::as_array);
    let mut ids = HashSet::new();
    calls
        .into_iter()
        .flatten()
        .filter_map(|call| {
            let id = call.get("id")?.as_str().filter(|id| !id.is_empty())?;
            let name = call
                .pointer("/function/name")?
                .as_str()
                .filter(|name| !name.is_empty())?;
            let arguments = arguments_of(call.pointer("/function/arguments"));
            ids.insert(id)
                .then(|| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}))
        })
        .collect()
}

/// Arguments as the text of a JSON object; an empty one where they are none.
fn arguments_of(arguments: Option<&Value>) -> String {
    let object = match arguments {
        Some(Value::String(text)) => serde_json::from_str::<Value>(text)
            .ok()
            .filter(Value::is_object)
            .map(|_| text.clone()),
        Some(parsed @ Value::Object(_)) => Some(parsed.to_string()),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) | None => None,
    };
    object.unwrap_or_else(|| "{}".to_owned())
}

fn id_of(call: &Value) -> &str {
    call.get("id").and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(ids: &[&str]) -> Value {
        let calls: Vec<Value> = ids
            .iter()
            .map(|id| json!({"id": id, "type": "function", "function": {"name": "list_staff", "arguments": "{}"}}))
            .collect();
        json!({"role": "assistant", "content": null, "tool_calls": calls})
    }

    fn result(id: &str, content: &str) -> Value {
        json!({"role": "tool", "tool_call_id": id, "content": content})
    }

    fn said(text: &str) -> Value {
        json!({"role": "assistant", "content": text})
    }

    /// fault 31
    #[test]
    fn every_call_gets_its_one_result() {
        let lost = |id| result(id, INTERRUPTED_CALL);
        let table: Vec<(&str, Vec<Value>, Vec<Value>)> = vec![
            ("nothing", vec![], vec![]),
            (
                "what is valid stays as it is",
                vec![asked(&["a", "b"]), result("a", "1"), result("b", "2"), said("Done")],
                vec![asked(&["a", "b"]), result("a", "1"), result("b", "2"), said("Done")],
            ),
            (
                "a call that ended with its worker",
                vec![asked(&["a"])],
                vec![asked(&["a"]), lost("a")],
            ),
            (
                "one result of two",
                vec![asked(&["a", "b"]), result("b", "2"), said("Done")],
                vec![asked(&["a", "b"]), lost("a"), result("b", "2"), said("Done")],
            ),
            (
                "results in another order",
                vec![asked(&["a", "b"]), result("b", "2"), result("a", "1")],
                vec![asked(&["a", "b"]), result("a", "1"), result("b", "2")],
            ),
            (
                "a result that came late",
                vec![asked(&["a"]), said("Waiting"), result("a", "1")],
                vec![asked(&["a"]), result("a", "1"), said("Waiting")],
            ),
        ];
        for (what, messages, expected) in table {
            assert_eq!(normalised(&messages), expected, "{what}");
        }
    }

    /// fault 31
    #[test]
    fn what_belongs_to_nothing_is_left_out() {
        let lost = |id| result(id, INTERRUPTED_CALL);
        let table: Vec<(&str, Vec<Value>, Vec<Value>)> = vec![
            (
                "a result of no call",
                vec![result("a", "1"), said("Done")],
                vec![said("Done")],
            ),
            (
                "a result before its call",
                vec![result("a", "1"), asked(&["a"])],
                vec![asked(&["a"]), lost("a")],
            ),
            (
                "two results of one call",
                vec![asked(&["a"]), result("a", "1"), result("a", "2")],
                vec![asked(&["a"]), result("a", "1")],
            ),
            (
                "an id that two steps used",
                vec![asked(&["a"]), result("a", "1"), asked(&["a"]), result("a", "2")],
                vec![asked(&["a"]), result("a", "1"), asked(&["a"]), result("a", "2")],
            ),
            (
                "an id that two steps used, of which the first was lost",
                vec![asked(&["a"]), asked(&["a"]), result("a", "2")],
                vec![asked(&["a"]), lost("a"), asked(&["a"]), result("a", "2")],
            ),
            (
                "an id twice in one message",
                vec![asked(&["a", "a"]), result("a", "1")],
                vec![asked(&["a"]), result("a", "1")],
            ),
            (
                "calls without an id or a name",
                vec![json!({"role": "assistant", "tool_calls": [{}, {"id": "a"}, 7]})],
                vec![],
            ),
            (
                "assistants that say nothing",
                vec![said(" \n"), said(""), json!({"role": "assistant"})],
                vec![],
            ),
            (
                "whoever else speaks",
                vec![
                    json!({"role": "system", "content": "Obey"}),
                    json!({"role": "user", "content": "x"}),
                    json!(7),
                    json!({}),
                ],
                vec![],
            ),
        ];
        for (what, messages, expected) in table {
            assert_eq!(normalised(&messages), expected, "{what}");
        }
    }

    /// fault 31, fault 33
    #[test]
    fn arguments_are_a_json_object_whatever_they_were() {
        for (arguments, expected) in [
            (json!(r#"{"name": "Drama"}"#), r#"{"name": "Drama"}"#),
            (json!({"name": "Drama"}), r#"{"name":"Drama"}"#),
            (json!("{\"name\": "), "{}"),
            (json!("[]"), "{}"),
            (json!("null"), "{}"),
            (json!(""), "{}"),
            (json!(null), "{}"),
            (json!([1]), "{}"),
        ] {
            let message = json!({"role": "assistant", "tool_calls": [
                {"id": "a", "function": {"name": "f", "arguments": arguments}},
            ]});
            let repaired = normalised(&[message]);
            assert_eq!(
                repaired[0]["tool_calls"][0]["function"]["arguments"], expected,
                "{arguments}"
            );
        }
    }

    #[test]
    fn a_result_that_is_no_text_becomes_one() {
        let messages = [
            asked(&["a"]),
            json!({"role": "tool", "tool_call_id": "a", "content": {"data": 1}}),
        ];
        assert_eq!(normalised(&messages)[1]["content"], r#"{"data":1}"#);
        let messages = [asked(&["a"]), json!({"role": "tool", "tool_call_id": "a"})];
        assert_eq!(normalised(&messages)[1]["content"], INTERRUPTED_CALL);
    }

    #[test]
    fn a_turn_begins_with_the_person_and_ends_with_an_answer() {
        for messages in [vec![], vec![asked(&["a"])], vec![asked(&["a"]), result("a", "1")]] {
            let message = " ".to_owned();
            let turn = normalised_turn(&PastTurn { message, messages });
            assert_eq!(turn[0], json!({"role": "user", "content": NO_TEXT}));
            assert_eq!(turn.last().unwrap()["content"], UNFINISHED_TURN);
        }
        let answered = PastTurn {
            message: "Hi".into(),
            messages: vec![said("Hello")],
        };
        assert_eq!(normalised_turn(&answered).len(), 2);
    }

    /// A number from a seed, and the next seed: the same sequence on every machine.
    fn drawn(seed: &mut u64, below: u64) -> u64 {
        *seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) % below
    }

    fn any_message(seed: &mut u64) -> Value {
        let ids = ["a", "b", "c", ""];
        let mut id = || ids[usize::try_from(drawn(seed, 4)).unwrap()];
        let (first, second, third) = (id(), id(), id());
        match drawn(seed, 9) {
            0..=2 => result(first, "r"),
            3 => asked(&[first]),
            4 => asked(&[first, second, third]),
            5 => said(first),
            6 => json!({"role": "tool", "content": "of nobody"}),
            7 => {
                let call = json!({"id": first, "function": {"name": "f"}});
                json!({"role": "assistant", "content": second, "tool_calls": [call]})
            }
            _ => json!({"role": first, "content": second}),
        }
    }

    /// What the strictest of providers asks of a conversation.
    fn is_valid(messages: &[Value]) -> bool {
        let mut rest = messages.iter().peekable();
        while let Some(message) = rest.next() {
            if role(message) != Some("assistant") {
                return false;
            }
            let calls = message
                .get("tool_calls")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            if calls.is_empty() && text_of(message).is_none() {
                return false;
            }
            let ids: HashSet<&str> = calls.iter().map(id_of).collect();
            if ids.len() != calls.len() || ids.contains("") {
                return false;
            }
            for call in &calls {
                let arguments = call
                    .pointer("/function/arguments")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                let is_object = serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object());
                let answered = rest
                    .next()
                    .is_some_and(|next| next["tool_call_id"] == call["id"] && next["content"].is_string());
                if !is_object || !answered {
                    return false;
                }
            }
        }
        true
    }

    /// fault 31
    #[test]
    fn whatever_was_kept_becomes_valid_and_stays_so() {
        for start in 0..5_000_u64 {
            let mut seed = start;
            let messages: Vec<Value> = (0..drawn(&mut seed, 12)).map(|_| any_message(&mut seed)).collect();
            let once = normalised(&messages);
            assert!(is_valid(&once), "seed {start}: {messages:?} became {once:?}");
            assert_eq!(normalised(&once), once, "seed {start}: what is valid stays as it is");
        }
    }
}

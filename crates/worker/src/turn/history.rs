//! The conversation of one turn as the model reads it, and the ids of the calls in it.

use crate::model::ToolCall;
use serde_json::{Value, json};
use std::collections::HashSet;

/// The longest id that is kept as the model wrote it: it becomes part of a key on the wire, which has room for 255 bytes.
const MAX_ID_BYTES: usize = 128;

/// The most that calls and results of one turn may hold. Models read a fraction of it, and every step sends all of it again.
const MAX_BYTES: usize = 1024 * 1024;

/// The messages so far. Every call in it has its one result.
pub(super) struct History {
    messages: Vec<Value>,
    /// How much the calls and results hold; the first two messages are bounded by the packet that they came in.
    bytes: usize,
}

impl History {
    pub(super) fn new(system: &str, person: &str) -> Self {
        let messages = vec![
            json!({"role": "system", "content": system}),
            json!({"role": "user", "content": person}),
        ];
        Self { messages, bytes: 0 }
    }

    pub(super) fn messages(&self) -> &[Value] {
        &self.messages
    }

    /// Whether it holds more than may be kept, and the turn has to end.
    pub(super) const fn is_too_long(&self) -> bool {
        self.bytes > MAX_BYTES
    }

    /// What the model said and wants called. What is no JSON object goes back as an empty one: servers parse the arguments of the
    /// history, and some refuse the whole request over them. The model learns from the result what was wrong.
    pub(super) fn push_calls(&mut self, text: Option<&str>, calls: &[ToolCall]) {
        let of_call = |call: &ToolCall| call.id.len() + call.name.len() + call.arguments.len();
        self.bytes += text.map_or(0, str::len) + calls.iter().map(of_call).sum::<usize>();
        let calls: Vec<Value> = calls
            .iter()
            .map(|call| {
                let is_object = serde_json::from_str::<Value>(&call.arguments).is_ok_and(|value| value.is_object());
                let arguments = if is_object { call.arguments.as_str() } else { "{}" };
                json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
            })
            .collect();
        self.messages
            .push(json!({"role": "assistant", "content": text, "tool_calls": calls}));
    }

    pub(super) fn push_results(&mut self, calls: &[ToolCall], results: Vec<String>) {
        self.bytes += results.iter().map(String::len).sum::<usize>();
        let results = calls.iter().zip(results);
        self.messages
            .extend(results.map(|(call, text)| json!({"role": "tool", "tool_call_id": call.id, "content": text})));
    }
}

/// The ids of a turn's calls. Each is part of an idempotency key, so two calls must never share one, and the same call of the
/// same answers must get the same one again.
#[derive(Default)]
pub(super) struct CallIds(HashSet<String>);

impl CallIds {
    /// The calls of a step with ids that no other call of the turn has. An id that is of use is kept.
    pub(super) fn make_unique(&mut self, step: usize, calls: Vec<ToolCall>) -> Vec<ToolCall> {
        let numbered = calls.into_iter().enumerate();
        numbered
            .map(|(index, call)| ToolCall {
                id: self.unique(step, index, &call.id),
                ..call
            })
            .collect()
    }

    fn unique(&mut self, step: usize, index: usize, id: &str) -> String {
        let usable = !id.is_empty() && id.len() <= MAX_ID_BYTES && id.bytes().all(|byte| byte.is_ascii_graphic());
        let base = if usable { id } else { "call" };
        let mut unique = if usable {
            id.to_owned()
        } else {
            format!("call_{step}_{index}")
        };
        let mut again = 0_usize;
        while !self.0.insert(unique.clone()) {
            unique = format!("{base}_{step}_{index}_{again}");
            again += 1;
        }
        unique
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(ids: &[&str]) -> Vec<ToolCall> {
        ids.iter()
            .map(|id| ToolCall {
                id: (*id).to_owned(),
                ..ToolCall::default()
            })
            .collect()
    }

    fn made(steps: &[&[&str]]) -> Vec<String> {
        let mut ids = CallIds::default();
        let steps = steps.iter().enumerate();
        steps
            .flat_map(|(step, step_ids)| ids.make_unique(step + 1, calls(step_ids)))
            .map(|call| call.id)
            .collect()
    }

    /// fault 30
    #[test]
    fn ids_are_unique_and_come_out_the_same_again() {
        let long = "x".repeat(500);
        let steps: &[&[&str]] = &[
            &["a", "a", "", "call_1_2"],
            &["a", "", "a b", "\u{1F600}", &long],
            &["call_2_1", "a_1_1_0"],
        ];
        let once = made(steps);
        assert_eq!(once, made(steps));
        assert_eq!(once.iter().collect::<HashSet<_>>().len(), once.len(), "{once:?}");
        assert_eq!(once.first().map(String::as_str), Some("a"), "an id of use is kept");
        assert!(once.iter().all(|id| id.len() <= MAX_ID_BYTES + 20));
    }

    /// fault 31
    #[test]
    fn every_call_has_one_result_and_readable_arguments() {
        let mut history = History::new("system", "person");
        let mut broken = calls(&["a", "b"]);
        broken[0].arguments = "{\"name\": ".into();
        history.push_calls(None, &broken);
        history.push_results(&broken, vec!["1".into(), "2".into()]);
        let [_, _, asked, first, second] = history.messages() else {
            unreachable!("five messages")
        };
        assert_eq!(asked["tool_calls"][0]["function"]["arguments"], "{}");
        assert_eq!((&first["tool_call_id"], &second["content"]), (&json!("a"), &json!("2")));
    }
}

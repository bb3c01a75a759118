//! The conversation of one agent as the model reads it, and the ids of the calls in it.

use super::past;
use crate::model::ToolCall;
use contract::turn::ThreadHistory;
use serde_json::{Value, json};
use std::collections::HashSet;

/// The longest id that is kept as the model wrote it: with a specialist's behind a supervisor's it becomes part of a
/// key on the wire, which has room for 255 bytes.
const MAX_ID_BYTES: usize = 64;

/// Between the id of the call that hands work to a specialist and the ids of the specialist's own calls. No id that is
/// kept has it, so that no two agents' ids can meet.
const ID_SEPARATOR: char = '/';

/// The messages so far. Every call in it has its one result.
pub(super) struct History(Vec<Value>);

impl History {
    /// What is said before the first answer: the system prompt, the thread, the person.
    pub(super) fn new(system: &str, thread: &ThreadHistory, person: &str) -> Self {
        let mut messages = vec![json!({"role": "system", "content": system})];
        messages.extend(thread.turns.iter().flat_map(past::normalised_turn));
        messages.push(json!({"role": "user", "content": person}));
        Self(messages)
    }

    pub(super) fn messages(&self) -> &[Value] {
        &self.0
    }

    /// What the model said and wants called. What is no JSON object goes back as an empty one: servers parse the
    /// arguments of the history, and some refuse the whole request over them. The model learns from the result what was
    /// wrong.
    pub(super) fn push_calls(&mut self, text: Option<&str>, calls: &[ToolCall]) {
        let calls: Vec<Value> = calls
            .iter()
            .map(|call| {
                let is_object = serde_json::from_str::<Value>(&call.arguments).is_ok_and(|value| value.is_object());
                let arguments = if is_object { call.arguments.as_str() } else { "{}" };
                json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
            })
            .collect();
        self.0
            .push(json!({"role": "assistant", "content": text, "tool_calls": calls}));
    }

    pub(super) fn push_results(&mut self, calls: &[ToolCall], results: Vec<String>) {
        let results = calls.iter().zip(results);
        self.0
            .extend(results.map(|(call, text)| json!({"role": "tool", "tool_call_id": call.id, "content": text})));
    }
}

/// How much an answer with calls adds to a turn.
pub(super) fn size_of(text: Option<&str>, calls: &[ToolCall]) -> usize {
    let of_call = |call: &ToolCall| call.id.len() + call.name.len() + call.arguments.len();
    text.map_or(0, str::len) + calls.iter().map(of_call).sum::<usize>()
}

/// What no id of a call has: names of what is kept are made of ids and these.
const NAME_MARKS: [char; 2] = ['=', '#'];

/// The ids of one agent's calls. Each is part of an idempotency key, so two calls must never share one, and the same
/// call of the same answers must get the same one again.
pub(super) struct CallIds {
    /// What makes them those of this agent; nothing for the supervisor's.
    prefix: String,
    used: HashSet<String>,
}

impl CallIds {
    /// Those of the supervisor.
    pub(super) fn of_supervisor() -> Self {
        Self {
            prefix: String::new(),
            used: HashSet::new(),
        }
    }

    /// Those of the specialist that works for one call of the supervisor.
    pub(super) fn within(task_id: &str) -> Self {
        Self {
            prefix: format!("{task_id}{ID_SEPARATOR}"),
            used: HashSet::new(),
        }
    }

    /// Those of whoever has the conversation of this name.
    pub(super) fn of(conversation: &str) -> Self {
        if conversation.is_empty() {
            Self::of_supervisor()
        } else {
            Self::within(conversation)
        }
    }

    /// An id as it is known outside of the agent's own conversation: unique in the whole turn.
    pub(super) fn in_turn(&self, id: &str) -> String {
        format!("{}{id}", self.prefix)
    }

    /// What the ids of this agent's calls begin with, as they are known in the turn.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The agent's own conversation, as what is kept of it is named: the call that it works for; empty for the supervisor.
    pub(super) fn conversation(&self) -> &str {
        self.prefix.strip_suffix(ID_SEPARATOR).unwrap_or_default()
    }

    /// Takes calls that have their ids already, from an answer that was kept.
    pub(super) fn take(&mut self, calls: &[ToolCall]) {
        self.used.extend(calls.iter().map(|call| call.id.clone()));
    }

    /// The calls of a step with ids that no other call of the agent has. An id that is of use is kept.
    pub(super) fn make_unique(&mut self, step: u32, calls: Vec<ToolCall>) -> Vec<ToolCall> {
        let numbered = calls.into_iter().enumerate();
        numbered
            .map(|(index, call)| ToolCall {
                id: self.unique(step, index, &call.id),
                ..call
            })
            .collect()
    }

    fn unique(&mut self, step: u32, index: usize, id: &str) -> String {
        let is_plain = |character: char| {
            character.is_ascii_graphic() && character != ID_SEPARATOR && !NAME_MARKS.contains(&character)
        };
        let usable = !id.is_empty() && id.len() <= MAX_ID_BYTES && id.chars().all(is_plain);
        let base = if usable { id } else { "call" };
        let mut unique = if usable {
            id.to_owned()
        } else {
            format!("call_{step}_{index}")
        };
        let mut again = 0_usize;
        while !self.used.insert(unique.clone()) {
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
        let mut ids = CallIds::of_supervisor();
        (1..)
            .zip(steps)
            .flat_map(|(step, step_ids)| ids.make_unique(step, calls(step_ids)))
            .map(|call| call.id)
            .collect()
    }

    /// fault 30
    #[test]
    fn ids_are_unique_and_come_out_the_same_again() {
        let long = "x".repeat(500);
        let steps: &[&[&str]] = &[
            &["a", "a", "", "call_1_2"],
            &["a", "", "a b", "a/b", "a=", "a#1", "\u{1F600}", &long],
            &["call_2_1", "a_1_1_0"],
        ];
        let once = made(steps);
        assert_eq!(once, made(steps));
        assert_eq!(once.iter().collect::<HashSet<_>>().len(), once.len(), "{once:?}");
        assert_eq!(once.first().map(String::as_str), Some("a"), "an id of use is kept");
        assert!(once.iter().all(|id| id.len() <= MAX_ID_BYTES + 20));
        assert!(once.iter().all(|id| !id.contains(['/', '=', '#'])), "{once:?}");
    }

    #[test]
    fn ids_that_were_kept_are_not_given_again() {
        let mut first = CallIds::within("x");
        let kept = first.make_unique(1, calls(&["a", "a"]));
        let next = first.make_unique(2, calls(&["a", ""]));
        let mut again = CallIds::within("x");
        again.take(&kept);
        assert_eq!(again.make_unique(2, calls(&["a", ""])), next);
        assert_eq!(
            (again.conversation(), CallIds::of_supervisor().conversation()),
            ("x", "")
        );
    }

    #[test]
    fn ids_of_two_agents_never_meet_and_fit_into_a_key() {
        let long = "x".repeat(MAX_ID_BYTES);
        let task = made(&[&[&long, &long]]).pop().unwrap();
        let mut of_specialist = CallIds::within(&task);
        let made_by_specialist = of_specialist.make_unique(8, calls(&[&long, &long, &task]));
        let in_turn: HashSet<String> = made_by_specialist
            .iter()
            .map(|call| of_specialist.in_turn(&call.id))
            .collect();
        assert_eq!(in_turn.len(), 3);
        for id in &in_turn {
            let by_the_supervisor = made(&[&[id.as_str()]]);
            assert_ne!(
                by_the_supervisor.first(),
                Some(id),
                "the supervisor cannot write a specialist's id"
            );
            assert!(contract::turn::idempotency_key(uuid::Uuid::nil(), id).len() <= 255);
        }
    }

    #[test]
    fn the_thread_comes_between_the_system_prompt_and_the_person() {
        let thread = ThreadHistory {
            turns: vec![contract::turn::PastTurn {
                message: "before".into(),
                messages: vec![json!({"role": "assistant", "content": "answered"})],
            }],
            left_out: 0,
        };
        let history = History::new("system", &thread, "now");
        let said: Vec<_> = history
            .messages()
            .iter()
            .map(|message| message["content"].clone())
            .collect();
        assert_eq!(said, ["system", "before", "answered", "now"]);
    }

    /// fault 31
    #[test]
    fn every_call_has_one_result_and_readable_arguments() {
        let mut history = History::new("system", &ThreadHistory::default(), "person");
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

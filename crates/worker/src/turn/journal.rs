//! What is kept of a turn, as a run looks it up, and how what happens becomes an entry.
//!
//! A run that goes on asks no model for an answer that is here, and runs no call whose result is here.

use super::{TurnError, history::CallIds};
use crate::model::ToolCall;
use contract::turn::JournalEntry;
use serde_json::{Value, json};
use std::collections::HashMap;

/// The longest answer that is kept, as JSON: it goes into a report, and a server reads a megabyte at once. Nobody writes
/// a tenth of it into the arguments of a call.
const MAX_ANSWER_BYTES: usize = 512 * 1024;
/// The longest result that is kept.
const MAX_RESULT_BYTES: usize = 192 * 1024;
/// What is kept of a result that is longer than that.
const TOO_LONG_TO_KEEP: &str = "This was too long to be kept.";

/// What was kept of a turn before this run.
#[derive(Debug, Default)]
pub struct Journal {
    /// By conversation and step.
    answers: HashMap<(String, u32), (Value, u64)>,
    /// By the id of the call.
    results: HashMap<String, CallResult>,
}

/// What a model answered in one step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) text: Option<String>,
    /// Under the ids under which they are made.
    pub(super) calls: Vec<ToolCall>,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CallResult {
    /// As the model reads it.
    pub(super) content: String,
    pub(super) succeeded: bool,
}

impl Journal {
    /// What these entries say. Of several under one name the first holds, as in the books.
    #[must_use]
    pub fn of(entries: Vec<JournalEntry>) -> Self {
        let mut journal = Self::default();
        for entry in entries {
            match entry {
                JournalEntry::Answer {
                    within,
                    step,
                    message,
                    tokens,
                } => {
                    journal.answers.entry((within, step)).or_insert((message, tokens));
                }
                JournalEntry::Result {
                    tool_call_id,
                    content,
                    succeeded,
                } => {
                    let result = CallResult { content, succeeded };
                    journal.results.entry(tool_call_id).or_insert(result);
                }
            }
        }
        journal
    }

    /// The answer of a step in a conversation.
    pub(super) fn answer(&self, within: &str, step: u32) -> Option<Answer> {
        let (message, _) = self.answers.get(&(within.to_owned(), step))?;
        Some(Answer::read(message))
    }

    /// What came of a call, by its id in the turn.
    pub(super) fn result(&self, tool_call_id: &str) -> Option<&CallResult> {
        self.results.get(tool_call_id)
    }

    /// Whether the specialist that works for this call has answered before.
    pub(super) fn has_begun(&self, tool_call_id: &str) -> bool {
        self.answers.contains_key(&(tool_call_id.to_owned(), 1))
    }

    /// How often a model was asked.
    pub(super) fn asked(&self) -> usize {
        self.answers.len()
    }

    /// What that cost, in tokens.
    pub(super) fn tokens(&self) -> u64 {
        let tokens = self.answers.values().map(|(_, tokens)| *tokens);
        tokens.fold(0, u64::saturating_add)
    }

    /// Every call that a model asked for, with its id in the turn, in no order.
    pub(super) fn calls(&self) -> impl Iterator<Item = (String, ToolCall)> {
        self.answers.iter().flat_map(|((within, _), (message, _))| {
            let ids = CallIds::of(within);
            let calls = Answer::read(message).calls.into_iter();
            calls.map(move |call| (ids.in_turn(&call.id), call))
        })
    }

    /// The answers in one conversation, in order.
    pub(super) fn answers_within(&self, within: &str) -> impl Iterator<Item = Answer> {
        (1..).map_while(move |step| self.answer(within, step))
    }
}

impl Answer {
    /// The entry that keeps it. The arguments stay as the model wrote them, valid or not, so that the calls are the same
    /// when they are read again.
    ///
    /// # Errors
    ///
    /// Where it is too long to be kept.
    pub(super) fn entry(&self, within: &str, step: u32, tokens: u64) -> Result<JournalEntry, TurnError> {
        let mut message = json!({"role": "assistant", "content": self.text});
        if !self.calls.is_empty()
            && let Some(members) = message.as_object_mut()
        {
            let calls = self.calls.iter().map(|call| {
                let function = json!({"name": call.name, "arguments": call.arguments});
                json!({"id": call.id, "type": "function", "function": function})
            });
            members.insert("tool_calls".to_owned(), calls.collect());
        }
        if message.to_string().len() > MAX_ANSWER_BYTES {
            return Err(TurnError::TooLong);
        }
        Ok(JournalEntry::Answer {
            within: within.to_owned(),
            step,
            message,
            tokens,
        })
    }

    fn read(message: &Value) -> Self {
        let calls = message.get("tool_calls").and_then(Value::as_array);
        let text = |call: &Value, place: &str| {
            call.pointer(place)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        Self {
            text: message.get("content").and_then(Value::as_str).map(str::to_owned),
            calls: calls
                .into_iter()
                .flatten()
                .map(|call| ToolCall {
                    id: text(call, "/id"),
                    name: text(call, "/function/name"),
                    arguments: text(call, "/function/arguments"),
                })
                .collect(),
        }
    }
}

impl CallResult {
    /// The entry that keeps it for the call with this id.
    pub(super) fn entry(&self, tool_call_id: &str) -> JournalEntry {
        let fits = self.content.len() <= MAX_RESULT_BYTES;
        JournalEntry::Result {
            tool_call_id: tool_call_id.to_owned(),
            content: if fits { self.content.as_str() } else { TOO_LONG_TO_KEEP }.to_owned(),
            succeeded: self.succeeded,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(arguments: &str) -> Answer {
        Answer {
            text: Some("So".into()),
            calls: vec![ToolCall {
                id: "a".into(),
                name: "create_department".into(),
                arguments: arguments.into(),
            }],
        }
    }

    #[test]
    fn an_answer_is_read_as_it_was_kept() {
        let said = Answer {
            text: Some("Done.".into()),
            calls: Vec::new(),
        };
        for (step, answer) in [
            (1, answer("{}")),
            (2, answer("{\"name\": ")),
            (3, answer("")),
            (4, said),
        ] {
            let entry = answer.entry("x", step, 7).unwrap();
            assert_eq!(entry.name(), format!("x#{step}"));
            let journal = Journal::of(vec![entry]);
            assert_eq!(journal.answer("x", step), Some(answer));
            assert_eq!((journal.answer("x", step + 1), journal.answer("", step)), (None, None));
            assert_eq!((journal.asked(), journal.tokens()), (1, 7));
        }
    }

    #[test]
    fn what_is_too_long_to_keep_is_refused_or_cut() {
        let long = answer(&"x".repeat(MAX_ANSWER_BYTES));
        assert!(matches!(long.entry("", 1, 0), Err(TurnError::TooLong)));
        let result = |bytes: usize| CallResult {
            content: "x".repeat(bytes),
            succeeded: true,
        };
        let kept = |bytes: usize| {
            Journal::of(vec![result(bytes).entry("a")])
                .result("a")
                .cloned()
                .unwrap()
        };
        assert_eq!(kept(MAX_RESULT_BYTES), result(MAX_RESULT_BYTES));
        assert_eq!(kept(MAX_RESULT_BYTES + 1).content, TOO_LONG_TO_KEEP);
    }

    #[test]
    fn the_first_of_a_name_holds() {
        let entries = [answer("1"), answer("2")].map(|answer| answer.entry("", 1, 0).unwrap());
        let journal = Journal::of(entries.into());
        assert_eq!(journal.answers_within("").collect::<Vec<_>>(), [answer("1")]);
        assert!(journal.has_begun("") && !journal.has_begun("a"));
    }
}

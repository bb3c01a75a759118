//! What all agents of a turn do together, counted, and how much of it there may be.

use super::{
    TurnError,
    history::{CallIds, size_of},
    journal::Journal,
};
use crate::model::Usage;
use contract::{tools::tool_for_name, turn::ToolCallRecord};
use serde_json::Value;
use uuid::Uuid;

/// The most that calls and results of one turn may hold. Models read a fraction of it, and every step sends all of it
/// again.
pub(super) const MAX_BYTES: usize = 1024 * 1024;
/// The most tokens of one turn, read and written. A long task of a school takes a quarter.
pub(super) const MAX_TOKENS: u64 = 200_000;
/// How often the model is asked in one turn, by all agents together.
pub(super) const MAX_ASKED: usize = 32;
/// How often the same tool is called with the same arguments. A second time can have a reason, such as a look after a
/// change.
const MAX_SAME_CALLS: u32 = 2;

/// The counts of one turn.
#[derive(Default)]
pub(super) struct Ledger {
    records: Vec<ToolCallRecord>,
    /// The calls that were begun and can change something, by their ids in the turn.
    changes: Vec<String>,
    /// Each call that was made, and how often. Few enough to be looked through.
    made: Vec<(Made, u32)>,
    bytes: usize,
    tokens: u64,
    asked: usize,
}

/// A call, as far as it can be the same as another.
#[derive(PartialEq)]
struct Made {
    /// In which conversation; in none where it does not matter.
    by: String,
    tool: String,
    arguments: Value,
}

impl Ledger {
    /// For a turn of which this was kept. What a model was asked before is counted here once, and not again where the
    /// run comes past it. The calls that it asked for may have been run by whoever had the turn before, also where this
    /// run ends before it comes to them.
    pub(super) fn after(journal: &Journal) -> Self {
        let calls = journal.calls();
        let changes = calls.filter(|(_, call)| can_change(&call.name)).map(|(id, _)| id);
        Self {
            changes: changes.collect(),
            tokens: journal.tokens(),
            asked: journal.asked(),
            ..Self::default()
        }
    }

    /// Counts what a specialist did whose work for the call with this id is over, and is not gone through again.
    pub(super) fn count_finished(&mut self, journal: &Journal, task_id: &str) {
        let ids = CallIds::within(task_id);
        for answer in journal.answers_within(task_id) {
            for call in &answer.calls {
                let id = ids.in_turn(&call.id);
                let changes = can_change(&call.name);
                self.admit(if changes { "" } else { ids.prefix() }, &call.name, &call.arguments);
                if changes {
                    self.change(&id);
                }
                let room = journal.result(&id).map_or(0, |result| result.content.len());
                self.bytes = self.bytes.saturating_add(room);
            }
            if !answer.calls.is_empty() {
                let room = size_of(answer.text.as_deref(), &answer.calls);
                self.bytes = self.bytes.saturating_add(room);
            }
        }
    }

    /// Counts a question to the model, unless there were too many or they cost too much.
    pub(super) fn ask(&mut self) -> Result<(), TurnError> {
        if self.tokens > MAX_TOKENS {
            return Err(TurnError::TooManyTokens);
        }
        if self.asked == MAX_ASKED {
            return Err(TurnError::AskedTooOften);
        }
        self.asked += 1;
        Ok(())
    }

    /// Counts what an answer cost, and answers it as one number.
    pub(super) const fn spend(&mut self, usage: Usage) -> u64 {
        let spent = usage.input_tokens.saturating_add(usage.output_tokens);
        self.tokens = self.tokens.saturating_add(spent);
        spent
    }

    /// Counts what calls or results hold, which is then in the conversation for the rest of the turn.
    pub(super) const fn take_room(&mut self, bytes: usize) -> Result<(), TurnError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_BYTES {
            return Err(TurnError::TooLong);
        }
        Ok(())
    }

    /// Whether a call may be made once more, by whoever is said. Arguments are the same in whatever order their members
    /// are.
    pub(super) fn admit(&mut self, by: &str, tool: &str, arguments: &str) -> bool {
        let call = Made {
            by: by.to_owned(),
            tool: tool.to_owned(),
            arguments: serde_json::from_str(arguments).unwrap_or_else(|_| Value::from(arguments)),
        };
        if let Some((_, times)) = self.made.iter_mut().find(|(made, _)| *made == call) {
            *times = times.saturating_add(1);
            return *times <= MAX_SAME_CALLS;
        }
        self.made.push((call, 1));
        true
    }

    /// Writes a call down before it is run: if time runs out meanwhile, it was begun and nobody knows. Returns its
    /// place.
    pub(super) fn begin(&mut self, tool_call_id: &str, name: &str) -> usize {
        self.records.push(ToolCallRecord {
            tool_call_id: tool_call_id.to_owned(),
            name: name.to_owned(),
            succeeded: false,
            waits_for: None,
        });
        self.records.len() - 1
    }

    /// A call that can change something is begun.
    pub(super) fn change(&mut self, tool_call_id: &str) {
        self.changes.push(tool_call_id.to_owned());
    }

    pub(super) fn end(&mut self, place: usize, succeeded: bool) {
        if let Some(record) = self.records.get_mut(place) {
            record.succeeded = succeeded;
        }
    }

    /// A call waits for an approval, and its turn does not.
    pub(super) fn leave(&mut self, place: usize, approval: Uuid) {
        if let Some(record) = self.records.get_mut(place) {
            record.waits_for = Some(approval);
        }
    }

    /// Whether a call was begun that can change something, among those whose ids begin like this.
    pub(super) fn has_changed(&self, prefix: &str) -> bool {
        self.changes.iter().any(|id| id.starts_with(prefix))
    }

    pub(super) fn take_records(&mut self) -> Vec<ToolCallRecord> {
        std::mem::take(&mut self.records)
    }
}

fn can_change(tool: &str) -> bool {
    tool_for_name(tool).is_some_and(|tool| tool.definition.event.is_mutating())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_time_is_refused_however_it_is_written() {
        let mut ledger = Ledger::default();
        assert!(ledger.admit("", "list_staff", r#"{"limit": 1, "q": "a"}"#));
        assert!(ledger.admit("", "list_staff", r#"{"q":"a","limit":1}"#));
        assert!(!ledger.admit("", "list_staff", r#"{"limit":1,"q":"a"}"#));
        assert!(ledger.admit("", "list_staff", r#"{"limit":2,"q":"a"}"#));
        assert!(ledger.admit("", "list_campus_staff", r#"{"limit":1,"q":"a"}"#));
        assert!(ledger.admit("a/", "list_staff", r#"{"limit":1,"q":"a"}"#));
        let broken = [(); 3].map(|()| ledger.admit("", "list_staff", "{"));
        assert_eq!(broken, [true, true, false]);
    }

    #[test]
    fn tokens_questions_and_bytes_are_bounded() {
        let mut dear = Ledger::default();
        let spent = |tokens| Usage {
            input_tokens: tokens,
            output_tokens: 1,
        };
        dear.spend(spent(MAX_TOKENS - 1));
        assert!(dear.ask().is_ok());
        dear.spend(spent(u64::MAX));
        assert!(matches!(dear.ask(), Err(TurnError::TooManyTokens)));

        let mut often = Ledger::default();
        assert!((0..MAX_ASKED).all(|_| often.ask().is_ok()));
        assert!(matches!(often.ask(), Err(TurnError::AskedTooOften)));

        let mut long = Ledger::default();
        assert!(long.take_room(MAX_BYTES).is_ok() && long.take_room(0).is_ok());
        assert!(matches!(long.take_room(1), Err(TurnError::TooLong)));
    }

    #[test]
    fn what_a_specialist_changed_is_told_apart() {
        let mut ledger = Ledger::default();
        ledger.change("a/1");
        assert!(ledger.has_changed("") && ledger.has_changed("a/") && !ledger.has_changed("b/"));
    }
}

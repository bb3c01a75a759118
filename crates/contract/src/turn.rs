//! What crosses the broker for one turn: the message that the server hands to a worker, what the worker reports meanwhile, and the
//! answer that comes back.

use crate::context::AgentRuntimeContext;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// How often a turn is delivered before it is dead. Only the first delivery is run; the others are answered, which can fail as well.
pub const TURN_DELIVERY_LIMIT: i32 = 3;

/// What a person reads whose turn was begun, and came to no end.
pub const INTERRUPTED_TEXT: &str = "Working on your message was interrupted. Some of what you asked for may have been done; \
                                    please check before you ask for it again.";

/// The most of a report, in events: what gathers while one is on its way goes into the next.
pub const MAX_REPORTED_EVENTS: usize = 64;
/// How often a report is delivered before it is dead: a server that ends with it must not do so for ever.
pub const REPORT_DELIVERY_LIMIT: i32 = 20;
/// How many dead reports are kept; the oldest go first. Enough to see what went wrong, not a second store.
pub const MAX_DEAD_REPORTS: i32 = 10_000;

/// One turn, as the server dispatches it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnMessage {
    /// The turn.
    pub turn_id: Uuid,
    /// The grant that every tool call of this turn carries.
    pub grant: String,
    /// Everything the agents need to know about the caller and the moment.
    pub context: AgentRuntimeContext,
    /// What was said before in the same thread.
    #[serde(default)]
    pub history: ThreadHistory,
    /// What the person wrote.
    pub message: String,
    /// When the turn must have ended, in milliseconds since 1970.
    pub deadline_ms: i64,
    /// Whether what happens is reported as it happens, to the queue of reports. Without it, only the end is answered.
    #[serde(default)]
    pub reported: bool,
}

/// What was said before in a thread, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadHistory {
    /// The turns that are told.
    pub turns: Vec<PastTurn>,
    /// How many older ones are left out; they would fill the model's view.
    pub left_out: u32,
}

/// A turn that has ended, as a model reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PastTurn {
    /// What the person wrote.
    pub message: String,
    /// What followed, as messages of the chat-completions protocol: the supervisor's, and the results of its calls.
    pub messages: Vec<Value>,
}

/// What happened in a turn, as the worker reports it to the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnReport {
    /// The turn.
    pub turn_id: Uuid,
    /// The turn's grant, as the proof that this worker was handed it.
    pub grant: String,
    /// Which delivery of the turn this is about, from 1.
    pub attempt: u32,
    /// The place of the first of these events among all events of the attempt, from 1.
    pub first: u32,
    /// The events, in order, one place each.
    pub events: Vec<TurnEvent>,
}

/// One thing that happened in a turn. `agent` is the persona that did it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum TurnEvent {
    /// A worker has begun.
    Started {},
    /// An agent says something; the next part of its text.
    Text {
        /// Who.
        agent: String,
        /// The part.
        delta: String,
    },
    /// A tool is being called.
    ToolStarted {
        /// By whom.
        agent: String,
        /// The call.
        tool_call_id: String,
        /// The tool's name.
        tool: String,
    },
    /// A tool's call has ended.
    ToolEnded {
        /// Whose call it was.
        agent: String,
        /// The call.
        tool_call_id: String,
        /// The tool's name.
        tool: String,
        /// How.
        #[serde(flatten)]
        outcome: ToolOutcome,
    },
    /// What a tool shows for itself once it has succeeded.
    Shown {
        /// Whose call it was.
        agent: String,
        /// The call.
        tool_call_id: String,
        /// What is shown.
        event: Value,
    },
    /// The supervisor hands work to a specialist.
    Delegated {
        /// To whom.
        agent: String,
        /// The supervisor's call.
        tool_call_id: String,
        /// What it is asked to do.
        task: String,
    },
    /// What one answer of the model cost, in tokens.
    Usage {
        /// Whose.
        agent: String,
        /// Read by the model.
        input_tokens: u64,
        /// Written by it.
        output_tokens: u64,
    },
    /// What the supervisor and its tools said in one step, for the thread's next turn. Not for people to see.
    Messages {
        /// Messages of the chat-completions protocol.
        messages: Vec<Value>,
    },
    /// The turn is over; nothing follows.
    Ended {
        /// How.
        outcome: TurnOutcome,
    },
}

/// How a tool's call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ToolOutcome {
    /// With data; the sentence says what it covers.
    ScopeContext(String),
    /// With an error, in the words that the model reads.
    Error(String),
}

/// What came of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnAnswer {
    /// The turn.
    pub turn_id: Uuid,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: TurnOutcome,
    /// The tool calls that were made, in order.
    #[serde(default)]
    pub tool_calls: Vec<ToolCallRecord>,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TurnOutcome {
    /// The model answered; the text is for the person.
    Answer(String),
    /// It did not; the text is for the person.
    Error(String),
    /// Somebody who may stopped it; the text says what that leaves open.
    Cancelled(String),
}

/// One tool call of a turn, for the timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCallRecord {
    /// The model's id of the call.
    pub tool_call_id: String,
    /// The tool's name.
    pub name: String,
    /// Whether it was done.
    pub succeeded: bool,
}

/// To every worker: stop a turn, whoever of them has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelTurn {
    /// The turn.
    pub turn_id: Uuid,
}

/// The idempotency key of a tool call: the same however often the call is sent.
#[must_use]
pub fn idempotency_key(turn_id: Uuid, tool_call_id: &str) -> String {
    format!("{turn_id}:{tool_call_id}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_are_flat_on_the_wire() {
        let event = |event| serde_json::to_value(&event).unwrap();
        let ended = TurnEvent::ToolEnded {
            agent: "Rover".into(),
            tool_call_id: "a".into(),
            tool: "list_staff".into(),
            outcome: ToolOutcome::Error("No.".into()),
        };
        let wire =
            json!({"type": "tool_ended", "agent": "Rover", "toolCallId": "a", "tool": "list_staff", "error": "No."});
        assert_eq!(event(ended.clone()), wire);
        assert_eq!(serde_json::from_value::<TurnEvent>(wire).unwrap(), ended);
        let answer = TurnEvent::Ended {
            outcome: TurnOutcome::Answer("Done.".into()),
        };
        assert_eq!(event(answer), json!({"type": "ended", "outcome": {"answer": "Done."}}));
        assert_eq!(event(TurnEvent::Started {}), json!({"type": "started"}));
    }
}

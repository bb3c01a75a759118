//! What crosses the broker for one turn: the message that the server hands to a worker, and the answer that comes back.

use crate::context::AgentRuntimeContext;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// How often a turn is delivered before it is dead. Only the first delivery is run; the others are answered, which can fail as well.
pub const TURN_DELIVERY_LIMIT: i32 = 3;

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
    /// What the person wrote.
    pub message: String,
    /// When the turn must have ended, in milliseconds since 1970.
    pub deadline_ms: i64,
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

/// The idempotency key of a tool call: the same however often the call is sent.
#[must_use]
pub fn idempotency_key(turn_id: Uuid, tool_call_id: &str) -> String {
    format!("{turn_id}:{tool_call_id}")
}

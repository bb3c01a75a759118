//! What crosses the broker for one tool call: the request, the result, the packet around them, and the headers and limits of the hop.
//!
//! The packet is the one that a `NestJS` RMQ peer speaks, so that either side can be replaced by such a peer.

use crate::{
    event::Event,
    identity::{AgentCallScope, AgentIdentity},
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use uuid::Uuid;

/// The pseudo-queue for replies.
pub const DIRECT_REPLY_TO: &str = "amq.rabbitmq.reply-to";

/// Header with the turn's grant.
pub const GRANT_HEADER: &str = "x-turn-grant";
/// Header with the moment, in milliseconds since 1970, after which nobody waits for the reply.
pub const DEADLINE_HEADER: &str = "x-deadline";
/// Header with the hash of the tool's contract that the caller knows: where it differs from the server's, the call is refused by name.
pub const CONTRACT_HEADER: &str = "x-tool-contract";
/// Header with the W3C trace context.
pub const TRACE_HEADER: &str = "traceparent";
/// Header of a dead letter: why it is one.
pub const REASON_HEADER: &str = "x-reason";

/// The largest packet that is read. More than any tool's arguments need, little enough to hold hundreds of.
pub const MAX_PACKET_BYTES: usize = 1024 * 1024;
/// The most data that a reply holds; lists are cut at a row before it. What a model can read in one result.
pub const MAX_REPLY_DATA_BYTES: usize = 32 * 1024;
/// How long a caller waits for a read that sets no time of its own.
pub const READ_DEADLINE: Duration = Duration::from_secs(10);
/// How long a caller waits for a write that sets no time of its own.
pub const WRITE_DEADLINE: Duration = Duration::from_secs(30);

/// One call, as the worker sends it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentToolRequest {
    /// Who is calling, minted at dispatch.
    pub identity: AgentIdentity,
    /// Where the call is pinned, minted at dispatch.
    pub scope: AgentCallScope,
    /// What the model wrote, unparsed.
    #[serde(default)]
    pub args: Value,
}

/// What comes of a call: one shape for every tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AgentToolResult {
    /// It was done.
    #[serde(rename_all = "camelCase")]
    Data {
        /// The tool's result.
        data: Value,
        /// A sentence on what the result covers, for the model to qualify its words with.
        scope_context: String,
    },
    /// It was not done, or nobody knows; the text is for the model.
    Error {
        /// Why.
        error: String,
    },
    /// It waits for a person's decision, and nothing is done until then.
    #[serde(rename_all = "camelCase")]
    Pending {
        /// What is waited for.
        pending: PendingApproval,
        /// A sentence on what the preview covers.
        scope_context: String,
    },
}

/// A call that a person must approve before it takes effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingApproval {
    /// What a decision names.
    pub approval_id: Uuid,
    /// What would be done, as the call itself answered before it was undone.
    pub preview: Value,
    /// When it can no longer be decided.
    pub expires_at: DateTime<Utc>,
}

impl AgentToolResult {
    /// A result that is an error.
    pub fn error(text: impl Into<String>) -> Self {
        Self::Error { error: text.into() }
    }

    /// Whether the call was done.
    #[must_use]
    pub const fn is_data(&self) -> bool {
        matches!(self, Self::Data { .. })
    }
}

/// The packet around a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestPacket<D = AgentToolRequest> {
    /// The event.
    pub pattern: String,
    /// The request.
    pub data: D,
    /// The correlation id; a peer that sends none expects no reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// The packet around a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplyPacket {
    /// The result.
    pub response: AgentToolResult,
    /// Always true: there is one reply to a request.
    pub is_disposed: bool,
    /// The request's correlation id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

impl ReplyPacket {
    /// The one reply to the request with this correlation id.
    #[must_use]
    pub const fn to(id: Option<String>, response: AgentToolResult) -> Self {
        Self {
            response,
            is_disposed: true,
            id,
        }
    }
}

/// How long a caller of this event waits, where the tool sets no time of its own.
#[must_use]
pub const fn default_deadline(event: Event) -> Duration {
    if event.is_mutating() {
        WRITE_DEADLINE
    } else {
        READ_DEADLINE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json, to_value};

    #[test]
    fn results_are_told_apart_by_their_keys() {
        let data = json!({"data": {"id": 1}, "scopeContext": "All."});
        assert_eq!(
            to_value(from_value::<AgentToolResult>(data.clone()).unwrap()).unwrap(),
            data
        );
        let error = json!({"error": "No."});
        assert_eq!(
            from_value::<AgentToolResult>(error).unwrap(),
            AgentToolResult::error("No.")
        );
        let pending = json!({
            "pending": {"approvalId": Uuid::nil(), "preview": {"name": "Drama"}, "expiresAt": "2026-02-03T10:00:00Z"},
            "scopeContext": "One department.",
        });
        let read = from_value::<AgentToolResult>(pending.clone()).unwrap();
        assert!(matches!(&read, AgentToolResult::Pending { .. }) && !read.is_data());
        assert_eq!(to_value(read).unwrap(), pending);
        let none = json!({"data": null, "scopeContext": ""});
        assert!(from_value::<AgentToolResult>(none).unwrap().is_data());
    }

    #[test]
    fn a_reply_is_a_nest_packet() {
        let packet = ReplyPacket::to(Some("7".into()), AgentToolResult::error("No."));
        assert_eq!(
            to_value(packet).unwrap(),
            json!({"response": {"error": "No."}, "isDisposed": true, "id": "7"})
        );
    }
}

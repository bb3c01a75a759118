//! An approval as people see it.

use super::part::{Part, is_open};
use crate::db::approval::Row;
use chrono::{DateTime, Utc};
use contract::tools::tool_for_event;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

/// An approval as people see it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalView {
    /// What a decision names.
    pub id: Uuid,
    /// How it stands.
    pub status: String,
    /// The tool.
    pub tool: String,
    /// What it is to be called with.
    pub arguments: Value,
    /// What it would do.
    pub preview: Value,
    /// What the preview covers.
    pub scope_context: String,
    /// Who asked for it.
    pub requester: String,
    /// What whoever decides must be allowed to do, where it must be somebody else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approver: Option<String>,
    /// Whether it is the reader's to decide, while it waits.
    pub may_decide: bool,
    /// What the reader may say of it, while it waits: `approve`, `reject`, `edit`.
    pub decisions: &'static [&'static str],
    /// The turn that asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<Uuid>,
    /// The call within it.
    pub tool_call_id: String,
    /// In whose place it waits: its arguments were changed to these, or it would have done something else by then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<Uuid>,
    /// Why it was rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What came of the call, once that is final.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// When it was asked for.
    pub created_at: DateTime<Utc>,
    /// When it can no longer be decided.
    pub expires_at: DateTime<Utc>,
    /// When it was decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<DateTime<Utc>>,
}

impl ApprovalView {
    pub(super) fn of(row: Row, part: Part) -> Self {
        let is_open = is_open(&row);
        let requester = row.identity.get("email").and_then(Value::as_str).unwrap_or_default();
        Self {
            id: row.id,
            may_decide: is_open && part.approves(),
            decisions: if is_open { part.words() } else { &[] },
            tool: tool_for_event(&row.event).map_or(row.event, |tool| tool.definition.name.to_owned()),
            status: row.status,
            arguments: row.arguments,
            preview: row.preview,
            scope_context: row.scope_context,
            requester: requester.to_owned(),
            approver: row
                .approver_action
                .zip(row.approver_resource)
                .map(|(action, resource)| format!("{action} {resource}")),
            turn_id: row.turn_id,
            tool_call_id: row.tool_call_id,
            replaces: row.replaces,
            reason: row.reason,
            result: row.result,
            created_at: row.created_at,
            expires_at: row.expires_at,
            decided_at: row.decided_at,
        }
    }
}

//! Tools about the audit log.

use crate::{
    argument::PageLimit,
    event::Event,
    tool::{AgentTool, Placement, Read, ToolDefinition, ToolScope},
};
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

/// Arguments of `list_audit_entries`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ListAuditEntries {
    /// Only what the account with this e-mail address did.
    #[schemars(length(min = 1, max = 320))]
    pub actor_email: Option<String>,
    /// Only changes of this kind of thing, such as DEPARTMENT.
    #[schemars(length(min = 1, max = 60))]
    pub resource_type: Option<String>,
    /// Only changes of this one thing.
    pub resource_id: Option<Uuid>,
    /// Only from this moment on.
    pub from: Option<DateTime<Utc>>,
    /// Only before this moment.
    pub to: Option<DateTime<Utc>>,
    /// `nextCursor` of the page before.
    #[schemars(length(min = 1, max = 4000))]
    pub cursor: Option<String>,
    /// Rows a page, 50 unless told.
    pub limit: Option<PageLimit>,
}

impl AgentTool for ListAuditEntries {
    type Effect = Read;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("list.audit_entries"),
        "list_audit_entries",
        ToolScope::School,
        Placement::Supervisor,
        "List what was changed, by whom and when, newest first.",
    );

    fn example() -> Value {
        json!({"resourceType": "DEPARTMENT"})
    }
}

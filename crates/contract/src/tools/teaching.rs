//! Tools about what is taught to whom.

use crate::{
    argument::PageLimit,
    event::Event,
    tool::{AgentTool, Placement, Read, ToolDefinition, ToolRole, ToolScope},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

/// Arguments of `list_my_classrooms`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListMyClassrooms {}

impl AgentTool for ListMyClassrooms {
    type Effect = Read;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("list.my_classrooms"),
        "list_my_classrooms",
        ToolScope::General,
        Placement::roles(&[ToolRole::ClassTeacher, ToolRole::SubjectTeacher]),
        "List the streams that the person is class teacher of or teaches a subject in, in the current year.",
    );

    fn example() -> Value {
        json!({})
    }
}

/// Arguments of `list_stream_roster`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ListStreamRoster {
    /// The stream, from `list_my_classrooms`.
    pub stream_id: Uuid,
    /// `nextCursor` of the page before.
    #[schemars(length(min = 1, max = 4000))]
    pub cursor: Option<String>,
    /// Rows a page, 50 unless told.
    pub limit: Option<PageLimit>,
}

impl AgentTool for ListStreamRoster {
    type Effect = Read;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("list.stream_roster"),
        "list_stream_roster",
        ToolScope::Campus,
        Placement::roles(&[ToolRole::ClassTeacher, ToolRole::Dos]),
        "List the students enrolled in a stream. For its class teacher, and for the director of studies of its campus.",
    );

    fn example() -> Value {
        json!({"streamId": "{stream}"})
    }
}

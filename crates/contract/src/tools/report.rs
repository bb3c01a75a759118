//! Tools about students' reports.

use crate::{
    argument::PageLimit,
    event::Event,
    tool::{AgentTool, Placement, Read, ToolDefinition, ToolRole, ToolScope, Write},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

/// Arguments of `write_report_comment`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct WriteReportComment {
    /// The student, from `list_stream_roster`.
    pub student_id: Uuid,
    /// The comment, as the family will read it.
    #[schemars(length(min = 1, max = 2000), regex(pattern = r"\S"))]
    pub comment: String,
}

impl AgentTool for WriteReportComment {
    type Effect = Write;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("write.report_comment"),
        "write_report_comment",
        ToolScope::Campus,
        Placement::roles(&[ToolRole::ClassTeacher]),
        "Write the class teacher's comment on a student's report of the current term. A student has one a term, and writing again replaces it.",
    );

    fn example() -> Value {
        json!({"studentId": "{student}", "comment": "Asks good questions, and now waits for the answers."})
    }
}

/// Arguments of `list_report_comments`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ListReportComments {
    /// The stream.
    pub stream_id: Uuid,
    /// A term of the current year, the current one unless told.
    pub term_id: Option<Uuid>,
    /// `nextCursor` of the page before.
    #[schemars(length(min = 1, max = 4000))]
    pub cursor: Option<String>,
    /// Rows a page, 50 unless told.
    pub limit: Option<PageLimit>,
}

impl AgentTool for ListReportComments {
    type Effect = Read;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("list.report_comments"),
        "list_report_comments",
        ToolScope::Campus,
        Placement::roles(&[ToolRole::ClassTeacher, ToolRole::Dos]),
        "List a stream's students with the comments on their reports of a term, also those who have none yet. For its class teacher, and for the director of studies of its campus.",
    );

    fn example() -> Value {
        json!({"streamId": "{stream}"})
    }
}

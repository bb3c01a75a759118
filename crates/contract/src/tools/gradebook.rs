//! Tools about what scores come to: gradebooks, and the results of a term.

use crate::{
    argument::{PageLimit, RequestedCampus},
    event::Event,
    tool::{AgentTool, Placement, Read, ToolDefinition, ToolRole, ToolScope, Write},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

/// Arguments of `get_subject_gradebook`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct GetSubjectGradebook {
    /// The stream, from `list_my_classrooms`.
    pub stream_id: Uuid,
    /// The subject, from `list_my_classrooms`.
    pub subject_id: Uuid,
    /// A term of this year. Without it: the current term.
    pub term_id: Option<Uuid>,
    /// `nextCursor` of the page before.
    #[schemars(length(min = 1, max = 4000))]
    pub cursor: Option<String>,
    /// Students a page, 50 unless told.
    pub limit: Option<PageLimit>,
}

impl AgentTool for GetSubjectGradebook {
    type Effect = Read;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("get.subject_gradebook"),
        "get_subject_gradebook",
        ToolScope::Campus,
        Placement::roles(&[ToolRole::SubjectTeacher, ToolRole::Dos]),
        "Get the scores, average and band of each student of a stream in one subject. For who teaches it, and for the director of studies of its campus.",
    );

    fn example() -> Value {
        json!({"streamId": "{stream}", "subjectId": "{subject}"})
    }
}

/// Arguments of `get_class_gradebook`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct GetClassGradebook {
    /// The stream, from `list_my_classrooms`.
    pub stream_id: Uuid,
    /// A term of this year. Without it: the current term.
    pub term_id: Option<Uuid>,
    /// `nextCursor` of the page before.
    #[schemars(length(min = 1, max = 4000))]
    pub cursor: Option<String>,
    /// Students a page, 50 unless told.
    pub limit: Option<PageLimit>,
}

impl AgentTool for GetClassGradebook {
    type Effect = Read;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("get.class_gradebook"),
        "get_class_gradebook",
        ToolScope::Campus,
        Placement::roles(&[ToolRole::ClassTeacher, ToolRole::Dos]),
        "Get each student's averages in all subjects, overall average, band and position in the stream. For its class teacher, and for the director of studies of its campus.",
    );

    fn example() -> Value {
        json!({"streamId": "{stream}"})
    }
}

/// Arguments of `publish_results`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PublishResults {
    /// A term of this year, from `get_academic_calendar`. Without it: the current term of the campus.
    pub term_id: Option<Uuid>,
    /// The campus. Ignored while working in one campus, and not needed where the term is named.
    pub campus_id: Option<RequestedCampus>,
}

impl AgentTool for PublishResults {
    type Effect = Write;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("publish.results"),
        "publish_results",
        ToolScope::Campus,
        Placement::roles(&[ToolRole::Dos]),
        "Publish the results of a term on a campus; its scores cannot change any more. Refused while scores are missing. For the director of studies of the campus.",
    )
    .approved();

    fn example() -> Value {
        json!({"termId": "{term}"})
    }
}

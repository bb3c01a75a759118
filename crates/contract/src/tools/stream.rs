//! Tools about streams, and who teaches them.

use crate::{
    argument::{PageLimit, RequestedCampus, RequestedYear},
    event::Event,
    tool::{AgentTool, Placement, Read, ToolDefinition, ToolRole, ToolScope, Write},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

/// Arguments of `list_streams`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ListStreams {
    /// Only this campus. Ignored while working in one campus. Without it: every campus that the person may list.
    pub campus_id: Option<RequestedCampus>,
    /// Only streams of this class.
    pub class_id: Option<Uuid>,
    /// `nextCursor` of the page before.
    #[schemars(length(min = 1, max = 4000))]
    pub cursor: Option<String>,
    /// Rows a page, 50 unless told.
    pub limit: Option<PageLimit>,
}

impl AgentTool for ListStreams {
    type Effect = Read;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("list.streams"),
        "list_streams",
        ToolScope::Campus,
        Placement::Supervisor,
        "List the streams of the current year by name, each with its class, its class teacher and its number of students.",
    );

    fn example() -> Value {
        json!({"campusId": "{campus}"})
    }
}

/// Arguments of `list_campus_streams`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ListCampusStreams {
    /// The campus. Ignored while working in one campus; needed otherwise, where the person directs the studies of more than one.
    pub campus_id: Option<RequestedCampus>,
    /// `nextCursor` of the page before.
    #[schemars(length(min = 1, max = 4000))]
    pub cursor: Option<String>,
    /// Rows a page, 50 unless told.
    pub limit: Option<PageLimit>,
}

impl AgentTool for ListCampusStreams {
    type Effect = Read;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("list.campus_streams"),
        "list_campus_streams",
        ToolScope::Campus,
        Placement::roles(&[ToolRole::Dos]),
        "List the streams of the current year on the campus whose studies the person directs, with the ids that other tools take as streamId.",
    );

    fn example() -> Value {
        json!({})
    }
}

/// Arguments of `create_stream`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct CreateStream {
    /// Its name, unlike any other on the campus in that year.
    #[schemars(length(min = 1, max = 120), regex(pattern = r"\S"))]
    pub name: String,
    /// The class that it is a stream of, from `list_streams`.
    pub class_id: Uuid,
    /// The campus it belongs to. Ignored while working in one campus; needed otherwise, unless the person works on one campus only.
    pub campus_id: Option<RequestedCampus>,
    /// The campus's academic year. Without it: the year that the campus is in.
    pub campus_academic_year_id: Option<RequestedYear>,
}

impl AgentTool for CreateStream {
    type Effect = Write;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("create.stream"),
        "create_stream",
        ToolScope::Campus,
        Placement::Supervisor,
        "Create a new stream of a class, on a campus and in one of its academic years.",
    );

    fn example() -> Value {
        json!({"name": "Saffron", "classId": "{class}", "campusId": "{campus}"})
    }
}

/// Arguments of `assign_class_teacher`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct AssignClassTeacher {
    /// The stream, of the current year.
    pub stream_id: Uuid,
    /// The member of staff who becomes its class teacher.
    pub target_staff_id: Uuid,
}

impl AgentTool for AssignClassTeacher {
    type Effect = Write;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("assign.class_teacher"),
        "assign_class_teacher",
        ToolScope::Campus,
        Placement::Supervisor,
        "Make a member of staff the class teacher of a stream, in place of whoever is. The result says who that was.",
    );

    fn example() -> Value {
        json!({"streamId": "{stream}", "targetStaffId": "{staff}"})
    }
}

/// Arguments of `assign_subject_teacher`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct AssignSubjectTeacher {
    /// The stream, of the current year.
    pub stream_id: Uuid,
    /// The subject, which the stream's class must take.
    pub subject_id: Uuid,
    /// The member of staff who will teach it.
    pub target_staff_id: Uuid,
    /// The member of staff who gives the subject up in this stream. Without it nobody does: both teach it.
    pub in_place_of_staff_id: Option<Uuid>,
}

impl AgentTool for AssignSubjectTeacher {
    type Effect = Write;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("assign.subject_teacher"),
        "assign_subject_teacher",
        ToolScope::Campus,
        Placement::roles(&[ToolRole::Dos]),
        "Let a member of staff teach a subject to a stream, beside whoever does or in place of somebody. For the director of studies of its campus.",
    );

    fn example() -> Value {
        json!({"streamId": "{stream}", "subjectId": "{subject}", "targetStaffId": "{staff}"})
    }
}

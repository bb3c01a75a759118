//! Tools about who was there.

use crate::{
    event::Event,
    tool::{AgentTool, Placement, Read, ToolDefinition, ToolRole, ToolScope, Write},
};
use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

/// Arguments of `record_attendance`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RecordAttendance {
    /// The stream, from `list_my_classrooms`.
    pub stream_id: Uuid,
    /// The day, today unless told. Not in the future.
    pub date: Option<NaiveDate>,
    /// A mark for each of these students. May be left out where everyoneElse is given.
    #[schemars(length(max = 200))]
    pub marks: Option<Vec<AttendanceMark>>,
    /// What every student of the stream gets whom marks does not name.
    pub everyone_else: Option<AttendanceStatus>,
}

/// One student's mark.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct AttendanceMark {
    /// The student, from `list_stream_roster`.
    pub student_id: Uuid,
    /// Whether the student was there.
    pub status: AttendanceStatus,
    /// What to know about it, such as a reason.
    #[schemars(length(min = 1, max = 300), regex(pattern = r"\S"))]
    pub note: Option<String>,
}

/// Whether a student was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AttendanceStatus {
    /// There.
    Present,
    /// Not there.
    Absent,
    /// There, but not from the beginning.
    Late,
    /// Not there, with leave.
    Excused,
}

impl AttendanceStatus {
    /// The word as it stands on the wire and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Absent => "absent",
            Self::Late => "late",
            Self::Excused => "excused",
        }
    }
}

impl AgentTool for RecordAttendance {
    type Effect = Write;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("record.attendance"),
        "record_attendance",
        ToolScope::Campus,
        Placement::roles(&[ToolRole::ClassTeacher]),
        "Record a day's attendance of one's own stream: one mark a student and day, and a later one replaces it. All marks are stored or none.",
    );

    fn example() -> Value {
        json!({
            "streamId": "{stream}",
            "marks": [{"studentId": "{student}", "status": "late"}],
            "everyoneElse": "present",
        })
    }
}

/// Arguments of `get_attendance_summary`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct GetAttendanceSummary {
    /// The stream.
    pub stream_id: Uuid,
    /// The first day, the current term's first unless told. Within the current year.
    pub from: Option<NaiveDate>,
    /// The last day, today unless told.
    pub to: Option<NaiveDate>,
}

impl AgentTool for GetAttendanceSummary {
    type Effect = Read;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("get.attendance_summary"),
        "get_attendance_summary",
        ToolScope::Campus,
        Placement::roles(&[ToolRole::ClassTeacher, ToolRole::Dos]),
        "Count a stream's attendance by student over a period. For its class teacher, and for the director of studies of its campus.",
    );

    fn example() -> Value {
        json!({"streamId": "{stream}"})
    }
}

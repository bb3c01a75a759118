//! Tools about students.

use crate::{
    argument::{PageLimit, RequestedCampus},
    event::Event,
    tool::{AgentTool, Placement, Read, ToolDefinition, ToolScope, Write},
};
use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

/// Arguments of `search_students`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SearchStudents {
    /// Names or an admission number, or how they begin. Every word must match; case and accents do not matter.
    #[schemars(length(min = 1, max = 100), regex(pattern = r"\S"))]
    pub query: String,
    /// Only this campus. Ignored while working in one campus. Without it: every campus whose students the person may list.
    pub campus_id: Option<RequestedCampus>,
    /// Only students of this stream of the current year.
    pub stream_id: Option<Uuid>,
    /// `nextCursor` of the page before.
    #[schemars(length(min = 1, max = 4000))]
    pub cursor: Option<String>,
    /// Rows a page, 50 unless told.
    pub limit: Option<PageLimit>,
}

impl AgentTool for SearchStudents {
    type Effect = Read;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("search.students"),
        "search_students",
        ToolScope::Campus,
        Placement::Supervisor,
        "Find students by name or admission number, with the ids that other tools take as studentId. Students who have left are not found.",
    );

    fn example() -> Value {
        json!({"query": "na", "campusId": "{campus}"})
    }
}

/// Arguments of `get_student`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct GetStudent {
    /// The student.
    pub student_id: Uuid,
}

impl AgentTool for GetStudent {
    type Effect = Read;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("get.student"),
        "get_student",
        ToolScope::Campus,
        Placement::Supervisor,
        "Get one student with notes, guardians, and the stream and class teacher of the current year.",
    );

    fn example() -> Value {
        json!({"studentId": "{student}"})
    }
}

/// A guardian of a student.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Guardian {
    /// The guardian's name.
    #[schemars(length(min = 1, max = 200), regex(pattern = r"\S"))]
    pub name: String,
    /// What the guardian is to the student, such as "mother" or "aunt".
    #[schemars(length(min = 1, max = 60), regex(pattern = r"\S"))]
    pub relation: String,
    /// The telephone number of the guardian.
    #[schemars(length(min = 1, max = 40), regex(pattern = r"\S"))]
    pub phone: Option<String>,
    /// The e-mail address of the guardian.
    #[schemars(length(min = 3, max = 320), regex(pattern = r"\S@\S"))]
    pub email: Option<String>,
}

/// Arguments of `enrol_student`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct EnrolStudent {
    /// The stream of the current year that the student joins, from `list_streams`.
    pub stream_id: Uuid,
    /// A student whom the school has already and who is in no stream this year. Without it a new student is admitted.
    pub student_id: Option<Uuid>,
    /// A new student's given name.
    #[schemars(length(min = 1, max = 200), regex(pattern = r"\S"))]
    pub given_name: Option<String>,
    /// A new student's family name.
    #[schemars(length(min = 1, max = 200), regex(pattern = r"\S"))]
    pub family_name: Option<String>,
    /// A new student's admission number, unlike any other in the school.
    #[schemars(length(min = 1, max = 40), regex(pattern = r"\S"))]
    pub admission_number: Option<String>,
    /// A new student's date of birth.
    pub born_on: Option<NaiveDate>,
    /// What teachers should know about a new student.
    #[schemars(length(min = 1, max = 1000), regex(pattern = r"\S"))]
    pub notes: Option<String>,
    /// A new student's guardians, whom to ask first before the others.
    #[schemars(length(min = 1, max = 4))]
    pub guardians: Option<Vec<Guardian>>,
}

impl AgentTool for EnrolStudent {
    type Effect = Write;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("enrol.student"),
        "enrol_student",
        ToolScope::Campus,
        Placement::Supervisor,
        "Enrol a student in a stream of the current year: a new one, or one whom the school has already.",
    );

    fn example() -> Value {
        json!({"streamId": "{stream}", "givenName": "Nia", "familyName": "Ayo", "admissionNumber": "NEW-1"})
    }
}

/// Arguments of `update_student`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct UpdateStudent {
    /// The student.
    pub student_id: Uuid,
    /// The student's given name from now on.
    #[schemars(length(min = 1, max = 200), regex(pattern = r"\S"))]
    pub given_name: Option<String>,
    /// The student's family name from now on.
    #[schemars(length(min = 1, max = 200), regex(pattern = r"\S"))]
    pub family_name: Option<String>,
    /// The student's admission number from now on, unlike any other in the school.
    #[schemars(length(min = 1, max = 40), regex(pattern = r"\S"))]
    pub admission_number: Option<String>,
    /// The student's date of birth.
    pub born_on: Option<NaiveDate>,
    /// What teachers should know about the student, in place of what is there.
    #[schemars(length(min = 1, max = 1000), regex(pattern = r"\S"))]
    pub notes: Option<String>,
    /// False once the student has left the school, true when they come back.
    pub active: Option<bool>,
    /// The student's guardians, all of them, in place of those that are there. Whom to ask first comes first.
    #[schemars(length(min = 1, max = 4))]
    pub guardians: Option<Vec<Guardian>>,
    /// Fields to empty.
    #[schemars(length(max = 3))]
    pub clear: Option<Vec<StudentField>>,
}

/// A field of a student that can be emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum StudentField {
    /// The date of birth.
    BornOn,
    /// What teachers should know.
    Notes,
    /// All guardians.
    Guardians,
}

impl AgentTool for UpdateStudent {
    type Effect = Write;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("update.student"),
        "update_student",
        ToolScope::Campus,
        Placement::Supervisor,
        "Change a student's names, admission number, date of birth, notes or guardians, or say that they left. What is left out stays as it is.",
    );

    fn example() -> Value {
        json!({"studentId": "{student}", "familyName": "Ayo-Barasa"})
    }
}

/// Arguments of `transfer_student`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TransferStudent {
    /// The student, who is in another stream of the current year.
    pub student_id: Uuid,
    /// The stream that the student moves to, of the current year of its campus.
    pub stream_id: Uuid,
}

impl AgentTool for TransferStudent {
    type Effect = Write;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("transfer.student"),
        "transfer_student",
        ToolScope::Campus,
        Placement::Supervisor,
        "Move a student from their stream to another one, on the same campus or another. Their marks stay with them.",
    )
    .approved();

    fn example() -> Value {
        json!({"studentId": "{student}", "streamId": "{other_stream}"})
    }
}

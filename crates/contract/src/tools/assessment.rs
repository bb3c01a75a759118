//! Tools about assessments and the scores in them.

use crate::{
    argument::PageLimit,
    event::Event,
    tool::{AgentTool, Placement, Read, ToolDefinition, ToolRole, ToolScope, Write},
};
use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

/// Arguments of `list_assessments`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ListAssessments {
    /// The stream, from `list_my_classrooms`.
    pub stream_id: Uuid,
    /// The subject, from `list_my_classrooms`.
    pub subject_id: Uuid,
    /// A term of this year. Without it: the current term.
    pub term_id: Option<Uuid>,
    /// `nextCursor` of the page before.
    #[schemars(length(min = 1, max = 4000))]
    pub cursor: Option<String>,
    /// Rows a page, 50 unless told.
    pub limit: Option<PageLimit>,
}

impl AgentTool for ListAssessments {
    type Effect = Read;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("list.assessments"),
        "list_assessments",
        ToolScope::Campus,
        Placement::roles(&[ToolRole::SubjectTeacher, ToolRole::Dos]),
        "List the assessments of a stream in a subject, with how many scores are in and how many are missing. For who teaches it, and for the director of studies of its campus.",
    );

    fn example() -> Value {
        json!({"streamId": "{stream}", "subjectId": "{subject}"})
    }
}

/// Arguments of `create_assessment`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct CreateAssessment {
    /// The stream, from `list_my_classrooms`.
    pub stream_id: Uuid,
    /// The subject that the person teaches this stream.
    pub subject_id: Uuid,
    /// Its name, unlike any other of this stream, subject and term.
    #[schemars(length(min = 1, max = 120), regex(pattern = r"\S"))]
    pub name: String,
    /// The highest score, a whole number.
    #[schemars(range(min = 1, max = 1000))]
    pub out_of: i32,
    /// How much it counts beside the other assessments of the term, a whole number.
    #[schemars(range(min = 1, max = 100))]
    pub weight: i32,
    /// A term of this year. Without it: the current term.
    pub term_id: Option<Uuid>,
    /// The day on which it is held, within the school year; it may lie ahead. Without it: today.
    pub held_on: Option<NaiveDate>,
}

impl AgentTool for CreateAssessment {
    type Effect = Write;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("create.assessment"),
        "create_assessment",
        ToolScope::Campus,
        Placement::roles(&[ToolRole::SubjectTeacher]),
        "Create an assessment for a stream in a subject that the person teaches it.",
    );

    fn example() -> Value {
        json!({"streamId": "{stream}", "subjectId": "{subject}", "name": "Practical", "outOf": 40, "weight": 20})
    }
}

/// Arguments of `record_scores`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RecordScores {
    /// The assessment, from `list_assessments`.
    pub assessment_id: Uuid,
    /// The scores, of students of the stream, each student once. All of them are recorded, or none where one is wrong.
    #[schemars(length(min = 1, max = 200))]
    pub scores: Vec<StudentScore>,
}

/// What a student reached.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct StudentScore {
    /// The student, from `get_subject_gradebook`.
    pub student_id: Uuid,
    /// From 0 to the highest score of the assessment, with at most two decimals. It replaces the score that was recorded before.
    #[schemars(range(min = 0, max = 1000))]
    pub score: f64,
}

impl AgentTool for RecordScores {
    type Effect = Write;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("record.scores"),
        "record_scores",
        ToolScope::Campus,
        Placement::roles(&[ToolRole::SubjectTeacher]),
        "Record scores of students in an assessment of a subject that the person teaches them. Up to 200 at a time, all or none.",
    );

    fn example() -> Value {
        json!({"assessmentId": "{assessment}", "scores": [{"studentId": "{student}", "score": 31.5}]})
    }
}

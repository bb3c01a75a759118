//! Tools about lesson plans: writing them, handing them in, and reviewing them.
//!
//! Texts are bounded so that a whole plan, in any script, fits a reply: a list is the only way to read one.

use crate::{
    argument::{PageLimit, RequestedCampus},
    event::Event,
    tool::{AgentTool, Placement, Read, ToolDefinition, ToolRole, ToolScope, Write},
};
use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

/// Where a lesson plan stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum LessonPlanStatus {
    /// It was never handed in.
    Draft,
    /// It waits for review.
    Submitted,
    /// It was reviewed and is right.
    Approved,
    /// It was reviewed and has to be mended.
    Returned,
}

/// Arguments of `list_templates`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ListTemplates {
    /// Only templates that fit this subject: its own, and those for any subject.
    pub subject_id: Option<Uuid>,
    /// `nextCursor` of the page before.
    #[schemars(length(min = 1, max = 4000))]
    pub cursor: Option<String>,
    /// Rows a page, 50 unless told.
    pub limit: Option<PageLimit>,
}

impl AgentTool for ListTemplates {
    type Effect = Read;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("list.templates"),
        "list_templates",
        ToolScope::Campus,
        Placement::roles(&[ToolRole::SubjectTeacher]),
        "List the school's lesson templates by name, with the sections that a plan by each has.",
    );

    fn example() -> Value {
        json!({"subjectId": "{subject}"})
    }
}

/// Arguments of `create_lesson_plan`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct CreateLessonPlan {
    /// The stream, from `list_my_classrooms`.
    pub stream_id: Uuid,
    /// The subject that the person teaches it, from `list_my_classrooms`.
    pub subject_id: Uuid,
    /// What the lesson is about.
    #[schemars(length(min = 1, max = 200), regex(pattern = r"\S"))]
    pub topic: String,
    /// What students can do after the lesson.
    #[schemars(length(min = 1, max = 1000), regex(pattern = r"\S"))]
    pub objectives: String,
    /// What happens in the lesson, in order.
    #[schemars(length(min = 1, max = 2000), regex(pattern = r"\S"))]
    pub activities: String,
    /// What has to be there for it.
    #[schemars(length(min = 1, max = 500), regex(pattern = r"\S"))]
    pub materials: Option<String>,
    /// The day of the lesson, today unless told.
    pub taught_on: Option<NaiveDate>,
    /// The template that the plan follows, from `list_templates`.
    pub template_id: Option<Uuid>,
}

impl AgentTool for CreateLessonPlan {
    type Effect = Write;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("create.lesson_plan"),
        "create_lesson_plan",
        ToolScope::Campus,
        Placement::roles(&[ToolRole::SubjectTeacher]),
        "Begin a lesson plan for a subject that the person teaches to a stream. It is a draft until it is submitted.",
    );

    fn example() -> Value {
        json!({
            "streamId": "{stream}",
            "subjectId": "{subject}",
            "templateId": "{template}",
            "objectives": "Tell what changes from what stays the same, and say why",
            "activities": "Question at the door; groups of four; what each group found",
            "topic": "Looking closely",
        })
    }
}

/// Arguments of `update_lesson_plan`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct UpdateLessonPlan {
    /// The plan, from `list_my_lesson_plans`.
    pub plan_id: Uuid,
    /// What the lesson is about, from now on.
    #[schemars(length(min = 1, max = 200), regex(pattern = r"\S"))]
    pub topic: Option<String>,
    /// What students can do after the lesson, from now on.
    #[schemars(length(min = 1, max = 1000), regex(pattern = r"\S"))]
    pub objectives: Option<String>,
    /// What happens in the lesson, from now on.
    #[schemars(length(min = 1, max = 2000), regex(pattern = r"\S"))]
    pub activities: Option<String>,
    /// What has to be there for it, from now on.
    #[schemars(length(min = 1, max = 500), regex(pattern = r"\S"))]
    pub materials: Option<String>,
    /// The new day of the lesson.
    pub taught_on: Option<NaiveDate>,
    /// The template that the plan follows from now on, from `list_templates`.
    pub template_id: Option<Uuid>,
    /// Fields to empty.
    #[schemars(length(max = 2))]
    pub clear: Option<Vec<LessonPlanField>>,
}

/// A field of a lesson plan that can be emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum LessonPlanField {
    /// What has to be there for it.
    Materials,
    /// The template that it follows.
    TemplateId,
}

impl AgentTool for UpdateLessonPlan {
    type Effect = Write;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("update.lesson_plan"),
        "update_lesson_plan",
        ToolScope::Campus,
        Placement::roles(&[ToolRole::SubjectTeacher]),
        "Change one of the person's own lesson plans while it is a draft or was returned. What is left out stays as it is.",
    );

    fn example() -> Value {
        json!({"planId": "{draft_plan}", "topic": "Looking closely, once more"})
    }
}

/// Arguments of `submit_lesson_plan`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SubmitLessonPlan {
    /// The plan, from `list_my_lesson_plans`.
    pub plan_id: Uuid,
}

impl AgentTool for SubmitLessonPlan {
    type Effect = Write;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("submit.lesson_plan"),
        "submit_lesson_plan",
        ToolScope::Campus,
        Placement::roles(&[ToolRole::SubjectTeacher]),
        "Hand in one of the person's own lesson plans for review: a draft, or one that was returned.",
    );

    fn example() -> Value {
        json!({"planId": "{draft_plan}"})
    }
}

/// Arguments of `list_my_lesson_plans`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ListMyLessonPlans {
    /// Only plans that stand here.
    pub status: Option<LessonPlanStatus>,
    /// `nextCursor` of the page before.
    #[schemars(length(min = 1, max = 4000))]
    pub cursor: Option<String>,
    /// Rows a page, 50 unless told.
    pub limit: Option<PageLimit>,
}

impl AgentTool for ListMyLessonPlans {
    type Effect = Read;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("list.my_lesson_plans"),
        "list_my_lesson_plans",
        ToolScope::General,
        Placement::roles(&[ToolRole::SubjectTeacher]),
        "List the person's own lesson plans of the current year with their texts and what a reviewer wrote, the newest lesson first.",
    );

    fn example() -> Value {
        json!({})
    }
}

/// Arguments of `list_lesson_plan_reviews`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ListLessonPlanReviews {
    /// The campus. Ignored while working in one campus; needed otherwise only where the person directs the studies of several.
    pub campus_id: Option<RequestedCampus>,
    /// `nextCursor` of the page before.
    #[schemars(length(min = 1, max = 4000))]
    pub cursor: Option<String>,
    /// Rows a page, 50 unless told.
    pub limit: Option<PageLimit>,
}

impl AgentTool for ListLessonPlanReviews {
    type Effect = Read;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("list.lesson_plan_reviews"),
        "list_lesson_plan_reviews",
        ToolScope::Campus,
        Placement::roles(&[ToolRole::Dos]),
        "List the lesson plans that wait for review on a campus, the longest waiting first. For its director of studies.",
    );

    fn example() -> Value {
        json!({})
    }
}

/// Arguments of `review_lesson_plan`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ReviewLessonPlan {
    /// What comes of the review.
    pub decision: ReviewDecision,
    /// What the teacher should read. Needed to return a plan.
    #[schemars(length(min = 1, max = 500), regex(pattern = r"\S"))]
    pub comment: Option<String>,
    /// The plan, from `list_lesson_plan_reviews`.
    pub plan_id: Uuid,
}

/// What comes of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ReviewDecision {
    /// The plan is right.
    Approve,
    /// The plan goes back to its teacher, with a comment.
    Return,
}

impl AgentTool for ReviewLessonPlan {
    type Effect = Write;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("review.lesson_plan"),
        "review_lesson_plan",
        ToolScope::Campus,
        Placement::roles(&[ToolRole::Dos]),
        "Approve a lesson plan that waits for review, or return it with a comment. For the director of studies of its campus, never about an own plan.",
    );

    fn example() -> Value {
        json!({"decision": "approve", "planId": "{submitted_plan}"})
    }
}

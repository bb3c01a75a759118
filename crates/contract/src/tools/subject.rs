//! Tools about subjects.

use crate::{
    argument::PageLimit,
    event::Event,
    tool::{AgentTool, Placement, Read, ToolDefinition, ToolScope, Write},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

/// Arguments of `list_subjects`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ListSubjects {
    /// Only subjects that this class takes.
    pub class_id: Option<Uuid>,
    /// `nextCursor` of the page before.
    #[schemars(length(min = 1, max = 4000))]
    pub cursor: Option<String>,
    /// Rows a page, 50 unless told.
    pub limit: Option<PageLimit>,
}

impl AgentTool for ListSubjects {
    type Effect = Read;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("list.subjects"),
        "list_subjects",
        ToolScope::Campus,
        Placement::Supervisor,
        "List the school's subjects by name, each with the classes that take it. They are the same on every campus.",
    );

    fn example() -> Value {
        json!({})
    }
}

/// Arguments of `create_subject`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct CreateSubject {
    /// Its short form on timetables, unlike any other in the school, such as "ART".
    #[schemars(length(min = 1, max = 40), regex(pattern = r"\S"))]
    pub code: String,
    /// Its name, unlike any other in the school.
    #[schemars(length(min = 1, max = 120), regex(pattern = r"\S"))]
    pub name: String,
    /// What it covers.
    #[schemars(length(min = 1, max = 1000), regex(pattern = r"\S"))]
    pub description: Option<String>,
    /// The classes that take it, from `list_subjects` or `list_streams`. Without it every class takes it.
    #[schemars(length(min = 1, max = 20))]
    pub class_ids: Option<Vec<Uuid>>,
}

impl AgentTool for CreateSubject {
    type Effect = Write;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("create.subject"),
        "create_subject",
        ToolScope::School,
        Placement::Supervisor,
        "Create a new subject for the whole school, and put it on the curriculum of classes.",
    );

    fn example() -> Value {
        json!({"code": "ART", "name": "Art and Design", "description": "Drawing, painting and printing", "classIds": ["{class}"]})
    }
}

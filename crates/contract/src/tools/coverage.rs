//! Tools about what is missing in the teaching of a campus.

use crate::{
    argument::RequestedCampus,
    event::Event,
    tool::{AgentTool, Placement, Read, ToolDefinition, ToolRole, ToolScope},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Arguments of `get_teaching_coverage`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct GetTeachingCoverage {
    /// The campus. Ignored while working in one campus; needed otherwise only where the person directs the studies of several.
    pub campus_id: Option<RequestedCampus>,
}

impl AgentTool for GetTeachingCoverage {
    type Effect = Read;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("get.teaching_coverage"),
        "get_teaching_coverage",
        ToolScope::Campus,
        Placement::roles(&[ToolRole::Dos]),
        "Get what is missing in a campus's teaching this year: subjects of streams without a teacher, streams without a class teacher, and lesson plans that are overdue, by teacher. For its director of studies.",
    );

    fn example() -> Value {
        json!({})
    }
}

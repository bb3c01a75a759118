//! Tools about the school itself.

use crate::{
    argument::{RequestedCampus, RequestedYear},
    event::Event,
    tool::{AgentTool, Placement, Read, ToolDefinition, ToolScope},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Arguments of `get_school_branding`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetSchoolBranding {}

impl AgentTool for GetSchoolBranding {
    type Effect = Read;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("get.school_branding"),
        "get_school_branding",
        ToolScope::Campus,
        Placement::Shared,
        "Get the school's name, motto, colours and logo, for documents and messages that carry them.",
    );

    fn example() -> Value {
        json!({})
    }
}

/// Arguments of `get_academic_calendar`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct GetAcademicCalendar {
    /// The campus whose calendar is wanted. Ignored while working in one campus. Without it: every campus open to the person.
    pub campus_id: Option<RequestedCampus>,
    /// Another year of that campus than the current one. Needs a campus.
    pub campus_academic_year_id: Option<RequestedYear>,
}

impl AgentTool for GetAcademicCalendar {
    type Effect = Read;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("get.academic_calendar"),
        "get_academic_calendar",
        ToolScope::General,
        Placement::Shared,
        "Get the academic year and its terms with their dates: the current year unless another is named.",
    );

    fn example() -> Value {
        json!({"campusId": "{campus}"})
    }
}

//! Tools about campuses.

use crate::{
    argument::PageLimit,
    event::Event,
    tool::{AgentTool, Placement, Read, ToolDefinition, ToolScope},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Arguments of `list_campuses`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListCampuses {
    /// `nextCursor` of the page before.
    #[schemars(length(min = 1, max = 4000))]
    pub cursor: Option<String>,
    /// Rows a page, 50 unless told.
    pub limit: Option<PageLimit>,
}

impl AgentTool for ListCampuses {
    type Effect = Read;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("list.campuses"),
        "list_campuses",
        ToolScope::School,
        Placement::Supervisor,
        "List the school's campuses, with the ids that other tools take as campusId.",
    );

    fn example() -> Value {
        json!({})
    }
}

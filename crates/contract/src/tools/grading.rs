//! Tools about how a campus grades.

use crate::{
    argument::RequestedCampus,
    event::Event,
    permission::{Action, Resource},
    tool::{AgentTool, Placement, Read, ToolDefinition, ToolRole, ToolScope, Write},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Arguments of `get_grading_config`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct GetGradingConfig {
    /// The campus. Ignored while working in one campus; needed otherwise, unless the person teaches on one campus only.
    pub campus_id: Option<RequestedCampus>,
}

impl AgentTool for GetGradingConfig {
    type Effect = Read;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("get.grading_config"),
        "get_grading_config",
        ToolScope::Campus,
        Placement::roles(&[ToolRole::ClassTeacher, ToolRole::SubjectTeacher]),
        "Get the bands that averages are graded by on a campus where the person teaches.",
    );

    fn example() -> Value {
        json!({})
    }
}

/// Arguments of `update_grading_config`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct UpdateGradingConfig {
    /// The campus. Ignored while working in one campus; needed otherwise, unless the person directs the studies of one campus only.
    pub campus_id: Option<RequestedCampus>,
    /// All the bands, in place of those there are. Each reaches up to the next one, the highest up to 100; one begins at 0.
    #[schemars(length(min = 2, max = 12))]
    pub bands: Vec<GradingBand>,
}

/// A band of percentages.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct GradingBand {
    /// What stands on a report, such as "B", unlike any other band's.
    #[schemars(length(min = 1, max = 40), regex(pattern = r"\S"))]
    pub label: String,
    /// The whole percentage that it begins at.
    #[schemars(range(min = 0, max = 100))]
    pub from: i32,
    /// What it means, in a few words.
    #[schemars(length(min = 1, max = 200), regex(pattern = r"\S"))]
    pub remark: Option<String>,
}

impl AgentTool for UpdateGradingConfig {
    type Effect = Write;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("update.grading_config"),
        "update_grading_config",
        ToolScope::Campus,
        Placement::roles(&[ToolRole::Dos]),
        "Replace the bands that averages are graded by on a campus. For the director of its studies.",
    )
    .approved_by(Action::Update, Resource::GradingConfig);

    fn example() -> Value {
        json!({
            "campusId": "{campus}",
            "bands": [
                {"label": "Distinction", "from": 75, "remark": "Well above what was asked"},
                {"label": "Credit", "from": 55},
                {"label": "Pass", "from": 35},
                {"label": "Ungraded", "from": 0, "remark": "Needs another try"},
            ],
        })
    }
}

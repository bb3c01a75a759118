//! Tools about announcements.

use crate::{
    argument::{PageLimit, RequestedCampus},
    event::Event,
    tool::{AgentTool, Placement, Read, ToolDefinition, ToolScope, Write},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

/// Arguments of `list_announcements`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ListAnnouncements {
    /// `nextCursor` of the page before.
    #[schemars(length(min = 1, max = 4000))]
    pub cursor: Option<String>,
    /// Rows a page, 50 unless told.
    pub limit: Option<PageLimit>,
}

impl AgentTool for ListAnnouncements {
    type Effect = Read;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("list.announcements"),
        "list_announcements",
        ToolScope::General,
        Placement::Supervisor,
        "List the announcements that are addressed to the person, the newest first.",
    );

    fn example() -> Value {
        json!({})
    }
}

/// Arguments of `publish_announcement`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PublishAnnouncement {
    /// What it is about, in a line.
    #[schemars(length(min = 1, max = 200), regex(pattern = r"\S"))]
    pub title: String,
    /// What it says.
    #[schemars(length(min = 1, max = 4000), regex(pattern = r"\S"))]
    pub body: String,
    /// Whom it is for. While working in one campus: that campus or one of its streams.
    pub audience: AnnouncementAudience,
    /// The campus, where it is for one. Ignored while working in one campus; needed otherwise, unless the person works on one campus only.
    pub campus_id: Option<RequestedCampus>,
    /// The stream, where it is for the teachers of one.
    pub stream_id: Option<Uuid>,
}

/// Whom an announcement is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AnnouncementAudience {
    /// All staff.
    School,
    /// The staff of a campus, and those who work for the whole school.
    Campus,
    /// The class teacher and the subject teachers of a stream, and the directors of studies of its campus.
    Stream,
}

impl AgentTool for PublishAnnouncement {
    type Effect = Write;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("publish.announcement"),
        "publish_announcement",
        ToolScope::Campus,
        Placement::Supervisor,
        "Publish an announcement to all staff of the school, to the staff of a campus, or to those who teach a stream. It cannot be changed afterwards.",
    )
    .approved();

    fn example() -> Value {
        json!({
            "title": "Staff meeting",
            "body": "We meet in the library at four.",
            "audience": "campus",
            "campusId": "{campus}",
        })
    }
}

//! Tools about the staff.

use crate::{
    argument::{PageLimit, RequestedCampus},
    event::Event,
    tool::{AgentTool, Placement, Read, ToolDefinition, ToolScope, Write},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

/// Arguments of `list_staff`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListStaff {
    /// `nextCursor` of the page before.
    #[schemars(length(min = 1, max = 4000))]
    pub cursor: Option<String>,
    /// Rows a page, 50 unless told.
    pub limit: Option<PageLimit>,
}

impl AgentTool for ListStaff {
    type Effect = Read;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("list.staff"),
        "list_staff",
        ToolScope::School,
        Placement::Supervisor,
        "List the staff of the whole school, as far as the person may see it. For one campus use list_campus_staff.",
    );

    fn example() -> Value {
        json!({"limit": 5})
    }
}

/// Arguments of `list_campus_staff`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ListCampusStaff {
    /// The campus. Ignored while working in one campus; needed otherwise, unless the person works on one campus only.
    pub campus_id: Option<RequestedCampus>,
    /// `nextCursor` of the page before.
    #[schemars(length(min = 1, max = 4000))]
    pub cursor: Option<String>,
    /// Rows a page, 50 unless told.
    pub limit: Option<PageLimit>,
}

impl AgentTool for ListCampusStaff {
    type Effect = Read;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("list.campus_staff"),
        "list_campus_staff",
        ToolScope::Campus,
        Placement::Supervisor,
        "List the staff of one campus.",
    );

    fn example() -> Value {
        json!({"campusId": "{campus}"})
    }
}

/// Arguments of `get_staff_member`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct GetStaffMember {
    /// The member of staff.
    pub target_staff_id: Uuid,
}

impl AgentTool for GetStaffMember {
    type Effect = Read;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("get.staff_member"),
        "get_staff_member",
        ToolScope::Campus,
        Placement::Supervisor,
        "Get one member of staff: profile, roles, departments and teaching assignments of the current year.",
    );

    fn example() -> Value {
        json!({"targetStaffId": "{staff}"})
    }
}

/// Arguments of `invite_staff_member`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct InviteStaffMember {
    /// The e-mail address that the person signs in with.
    #[schemars(length(min = 3, max = 254), regex(pattern = r"^[^@\s]+@[^@\s]+$"))]
    pub email: String,
    /// The person's name, as it should be written. Somebody who has an account already keeps the name that is on it.
    #[schemars(length(min = 1, max = 200), regex(pattern = r"\S"))]
    pub name: String,
    /// The person's title, such as "Head of Sciences".
    #[schemars(length(min = 1, max = 200), regex(pattern = r"\S"))]
    pub title: Option<String>,
    /// The campus the person will work on. Ignored while working in one campus. Without it: the whole school.
    pub campus_id: Option<RequestedCampus>,
}

impl AgentTool for InviteStaffMember {
    type Effect = Write;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("invite.staff_member"),
        "invite_staff_member",
        ToolScope::Campus,
        Placement::Supervisor,
        "Add somebody to the staff by their e-mail address, on one campus or for the whole school. They hold no role at first; assign_staff_role gives one.",
    )
    .approved();

    fn example() -> Value {
        json!({
            "email": "new.colleague@staff.example",
            "name": "Naomi Adongo",
            "title": "Teacher of Music",
            "campusId": "{campus}",
        })
    }
}

/// Arguments of `update_staff_member`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct UpdateStaffMember {
    /// The member of staff.
    pub target_staff_id: Uuid,
    /// The person's name, as it should be written.
    #[schemars(length(min = 1, max = 200), regex(pattern = r"\S"))]
    pub name: Option<String>,
    /// The person's title, such as "Head of Sciences".
    #[schemars(length(min = 1, max = 200), regex(pattern = r"\S"))]
    pub title: Option<String>,
    /// The campus the person works on from now on. Not while working in one campus.
    pub campus_id: Option<RequestedCampus>,
    /// Fields to empty.
    #[schemars(length(max = 1))]
    pub clear: Option<Vec<StaffField>>,
}

/// A field of a profile that can be emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum StaffField {
    /// The person's title.
    Title,
}

impl AgentTool for UpdateStaffMember {
    type Effect = Write;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("update.staff_member"),
        "update_staff_member",
        ToolScope::Campus,
        Placement::Supervisor,
        "Change a member of staff's name, title or campus. What is left out stays as it is.",
    );

    fn example() -> Value {
        json!({"targetStaffId": "{staff}", "title": "Careers counsellor"})
    }
}

/// Arguments of `assign_staff_role`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct AssignStaffRole {
    /// The member of staff.
    pub target_staff_id: Uuid,
    /// The role's name, such as "clerk".
    #[schemars(length(min = 1, max = 120), regex(pattern = r"\S"))]
    pub role: String,
    /// The campus the role is held on. Without it: the role is held as it is defined.
    pub campus_id: Option<RequestedCampus>,
}

impl AgentTool for AssignStaffRole {
    type Effect = Write;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("assign.staff_role"),
        "assign_staff_role",
        ToolScope::School,
        Placement::Supervisor,
        "Give a member of staff a role, on one campus or as the role is defined. Never a role that allows more than the person asking may do.",
    )
    .approved();

    fn example() -> Value {
        json!({"targetStaffId": "{staff}", "role": "clerk"})
    }
}

/// Arguments of `revoke_staff_role`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RevokeStaffRole {
    /// The member of staff.
    pub target_staff_id: Uuid,
    /// The role's name, such as "clerk".
    #[schemars(length(min = 1, max = 120), regex(pattern = r"\S"))]
    pub role: String,
    /// The campus the role is held on. Without it: the role as it is held without a campus.
    pub campus_id: Option<RequestedCampus>,
}

impl AgentTool for RevokeStaffRole {
    type Effect = Write;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("revoke.staff_role"),
        "revoke_staff_role",
        ToolScope::School,
        Placement::Supervisor,
        "Take a role from a member of staff, as they hold it: on one campus or without one. Never from the last administrator, and never a role that allows more than the person asking may do.",
    )
    .approved();

    fn example() -> Value {
        json!({"targetStaffId": "{class_teacher}", "role": "class_teacher"})
    }
}

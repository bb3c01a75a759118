//! Tools about departments.

use crate::{
    argument::{PageLimit, RequestedCampus},
    event::Event,
    permission::Permission,
    tool::{AgentTool, Placement, Read, ToolDefinition, ToolScope, Write},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

/// Arguments of `list_departments`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ListDepartments {
    /// Only this campus. Ignored while working in one campus. Without it: every campus that the person may list.
    pub campus_id: Option<RequestedCampus>,
    /// `nextCursor` of the page before.
    #[schemars(length(min = 1, max = 4000))]
    pub cursor: Option<String>,
    /// Rows a page, 50 unless told.
    pub limit: Option<PageLimit>,
}

impl AgentTool for ListDepartments {
    type Effect = Read;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("list.departments"),
        "list_departments",
        ToolScope::Campus,
        Placement::Supervisor,
        "List departments by name, with the ids that other tools take as departmentId.",
    );

    fn example() -> Value {
        json!({})
    }
}

/// Arguments of `get_department`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct GetDepartment {
    /// The department.
    pub department_id: Uuid,
}

impl AgentTool for GetDepartment {
    type Effect = Read;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("get.department"),
        "get_department",
        ToolScope::Campus,
        Placement::Supervisor,
        "Get one department with its heads, its number of members and what its members may do.",
    );

    fn example() -> Value {
        json!({"departmentId": "{department}"})
    }
}

/// Arguments of `create_department`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct CreateDepartment {
    /// Its name, unlike any other on the campus.
    #[schemars(length(min = 1, max = 120), regex(pattern = r"\S"))]
    pub name: String,
    /// What it is for.
    #[schemars(length(min = 1, max = 1000), regex(pattern = r"\S"))]
    pub description: Option<String>,
    /// The campus it belongs to. Ignored while working in one campus; needed otherwise, unless the person works on one campus only.
    pub campus_id: Option<RequestedCampus>,
    /// What its members may do on its campus. Never more than the person asking may do.
    #[schemars(length(max = 20))]
    pub permissions: Option<Vec<Permission>>,
}

impl AgentTool for CreateDepartment {
    type Effect = Write;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("create.department"),
        "create_department",
        ToolScope::Campus,
        Placement::Supervisor,
        "Create a new department on a campus.",
    );

    fn example() -> Value {
        json!({"name": "Drama", "description": "Plays and public speaking", "campusId": "{campus}"})
    }
}

/// Arguments of `update_department`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct UpdateDepartment {
    /// The department.
    pub department_id: Uuid,
    /// Its new name.
    #[schemars(length(min = 1, max = 120), regex(pattern = r"\S"))]
    pub name: Option<String>,
    /// What it is for, from now on.
    #[schemars(length(min = 1, max = 1000), regex(pattern = r"\S"))]
    pub description: Option<String>,
    /// What its members may do from now on, in place of what they could. Never more than the person asking may do.
    #[schemars(length(max = 20))]
    pub permissions: Option<Vec<Permission>>,
    /// Fields to empty.
    #[schemars(length(max = 1))]
    pub clear: Option<Vec<DepartmentField>>,
}

/// A field of a department that can be emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DepartmentField {
    /// What it is for.
    Description,
}

impl AgentTool for UpdateDepartment {
    type Effect = Write;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("update.department"),
        "update_department",
        ToolScope::Campus,
        Placement::Supervisor,
        "Change a department's name, description or permissions. What is left out stays as it is.",
    );

    fn example() -> Value {
        json!({"departmentId": "{department}", "description": "Practicals, fairs and the laboratory"})
    }
}

/// Arguments of `delete_department`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct DeleteDepartment {
    /// The department.
    pub department_id: Uuid,
}

impl AgentTool for DeleteDepartment {
    type Effect = Write;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("delete.department"),
        "delete_department",
        ToolScope::Campus,
        Placement::Supervisor,
        "Delete a department. Its head may, and whoever may delete departments. Its members stay on the staff.",
    )
    .approved();

    fn example() -> Value {
        json!({"departmentId": "{department}"})
    }
}

/// Arguments of `assign_department_head`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct AssignDepartmentHead {
    /// The department.
    pub department_id: Uuid,
    /// The member of staff who becomes a head of it.
    pub target_staff_id: Uuid,
}

impl AgentTool for AssignDepartmentHead {
    type Effect = Write;
    const DEFINITION: ToolDefinition = ToolDefinition::new(
        Event::new("assign.department_head"),
        "assign_department_head",
        ToolScope::Campus,
        Placement::Supervisor,
        "Make a member of staff a head of a department, beside the heads it has.",
    );

    fn example() -> Value {
        json!({"departmentId": "{department}", "targetStaffId": "{staff}"})
    }
}

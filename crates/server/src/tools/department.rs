//! Departments.

use super::{
    Call, ToolHandler,
    page::{self, Page, fetch, page},
};
use crate::{
    ability::{Condition, Rule, Topics, Verdict},
    db::department::{self, Change, Department, DepartmentDetails, NameKey},
    error::ToolError,
    posture::{AuditSubject, Posture, casl, relationship_noted},
};
use contract::{
    Action, Resource,
    permission::Permission,
    tool::{Read, Write},
    tools::department::{
        AssignDepartmentHead, CreateDepartment, DeleteDepartment, DepartmentField, GetDepartment, ListDepartments,
        UpdateDepartment,
    },
};
use uuid::Uuid;

const RESOURCE_TYPE: &str = "DEPARTMENT";
const NOT_FOUND: ToolError = ToolError::NotFound("Department");
const MAY_NOT_DELETE: &str = "only a head of this department, or whoever may DELETE DEPARTMENT, may delete it";
const MAY_NOT_LEAD: &str =
    "only a head of this department, or whoever may DELETE DEPARTMENT, may make somebody its head";

impl ToolHandler for ListDepartments {
    type Output = Page<Department>;
    const POSTURE: Posture<Read, Self::Output> = casl(Action::List, Resource::Department);
    const ONE_PLAN: bool = true;

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let rows = call.rows(Action::List, Resource::Department, self.campus_id)?;
        let after: Option<NameKey> = page::after(call, self.cursor.as_deref())?;
        let found = department::list(call.tx(), &rows, after.as_ref(), fetch(self.limit)).await?;
        page(call, found, self.limit, |row| NameKey(row.name.clone(), row.id))
    }
}

impl ToolHandler for GetDepartment {
    type Output = DepartmentDetails;
    const POSTURE: Posture<Read, Self::Output> = casl(Action::Read, Resource::Department);

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let rows = call.rows(Action::Read, Resource::Department, None)?;
        department::details(call.tx(), self.department_id, &rows)
            .await?
            .ok_or(NOT_FOUND)
    }
}

impl ToolHandler for CreateDepartment {
    type Output = Department;
    const POSTURE: Posture<Write, Self::Output> =
        casl(Action::Create, Resource::Department).audited(Action::Create, RESOURCE_TYPE, subject);

    fn asks(&self) -> Topics {
        asks_to_give(self.permissions.as_deref())
    }

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let campus = call.one_campus(Action::Create, Resource::Department, self.campus_id)?;
        let permissions = within_own(call, campus, self.permissions.unwrap_or_default())?;
        let created = department::insert(call.tx(), campus, &self.name, self.description.as_deref()).await;
        let created = created.map_err(name_taken)?.ok_or(ToolError::NotFound("Campus"))?;
        if !permissions.is_empty() {
            department::set_permissions(call.tx(), &created, &permissions).await?;
        }
        Ok(created)
    }
}

impl ToolHandler for UpdateDepartment {
    type Output = Department;
    const POSTURE: Posture<Write, Self::Output> =
        casl(Action::Update, Resource::Department).audited(Action::Update, RESOURCE_TYPE, subject);

    fn asks(&self) -> Topics {
        asks_to_give(self.permissions.as_deref())
    }

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let clear_description = self.clear.unwrap_or_default().contains(&DepartmentField::Description);
        if clear_description && self.description.is_some() {
            return Err(ToolError::Invalid(
                "clear: description is given and cleared at once".to_owned(),
            ));
        }
        if !clear_description && self.name.is_none() && self.description.is_none() && self.permissions.is_none() {
            return Err(ToolError::Invalid("arguments: name what to change".to_owned()));
        }
        let rows = call.rows(Action::Update, Resource::Department, None)?;
        let change = Change {
            name: self.name.as_deref(),
            description: self.description.as_deref(),
            clear_description,
        };
        let updated = department::update(call.tx(), self.department_id, &rows, change).await;
        let updated = updated.map_err(name_taken)?.ok_or(NOT_FOUND)?;
        if let Some(permissions) = self.permissions {
            let permissions = within_own(call, updated.campus_id, permissions)?;
            department::set_permissions(call.tx(), &updated, &permissions).await?;
        }
        Ok(updated)
    }
}

impl ToolHandler for DeleteDepartment {
    /// With all that goes with it: whoever approves of it is to see that.
    type Output = DepartmentDetails;
    const POSTURE: Posture<Write, Self::Output> = relationship_noted("This was one department.").audited(
        Action::Delete,
        RESOURCE_TYPE,
        |deleted: &DepartmentDetails| subject(&deleted.department),
    );

    fn asks(&self) -> Topics {
        Topics::of(Resource::Department)
    }

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let rows = call.open_rows(None)?;
        let found = department::find(call.tx(), self.department_id, &rows)
            .await?
            .ok_or(NOT_FOUND)?;
        answers_for(call, &found, MAY_NOT_DELETE).await?;
        let details = department::details(call.tx(), self.department_id, &rows).await?;
        department::delete(call.tx(), &found).await?;
        details.ok_or(NOT_FOUND)
    }
}

impl ToolHandler for AssignDepartmentHead {
    type Output = DepartmentDetails;
    const POSTURE: Posture<Write, Self::Output> = casl(Action::Update, Resource::Department).audited(
        Action::Update,
        RESOURCE_TYPE,
        |details: &DepartmentDetails| subject(&details.department),
    );

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let rows = call.rows(Action::Update, Resource::Department, None)?;
        let found = department::find(call.tx(), self.department_id, &rows)
            .await?
            .ok_or(NOT_FOUND)?;
        // a head may delete the department: nobody makes one who could not
        answers_for(call, &found, MAY_NOT_LEAD).await?;
        let added = department::add_head(call.tx(), &found, self.target_staff_id).await?;
        if !added.on_staff {
            return Err(ToolError::NotFound("Staff member"));
        }
        if !added.is_new {
            return Err(ToolError::Conflict(
                "That member of staff is a head of this department already.".to_owned(),
            ));
        }
        department::details(call.tx(), self.department_id, &rows)
            .await?
            .ok_or(NOT_FOUND)
    }
}

/// A head of the department answers for it, and so does whoever may delete departments on its campus. To whoever may not even read
/// it, it does not exist.
async fn answers_for(call: &mut Call<'_>, found: &Department, refusal: &'static str) -> Result<(), ToolError> {
    let may = |action| {
        call.ability()
            .can_on(action, Resource::Department, Some(found.campus_id))
    };
    let (may_delete, may_read) = (may(Action::Delete)?, may(Action::Read)?);
    if may_delete {
        return Ok(());
    }
    match call.actor().staff_id {
        Some(staff) if department::is_head(call.tx(), found, staff).await? => Ok(()),
        _ if may_read => Err(ToolError::Forbidden(refusal)),
        _ => Err(NOT_FOUND),
    }
}

/// What has to be held to give these.
fn asks_to_give(permissions: Option<&[Permission]>) -> Topics {
    let given = permissions.unwrap_or_default().iter();
    given.fold(Topics::NONE, |topics, permission| {
        topics.and(Topics::of(permission.resource))
    })
}

/// What members may do is never more than the actor may do on that campus.
fn within_own(call: &Call<'_>, campus: Uuid, permissions: Vec<Permission>) -> Result<Vec<Permission>, ToolError> {
    let rule = |permission: &Permission| Rule {
        action: permission.action,
        resource: permission.resource,
        verdict: Verdict::Allow,
        condition: Condition::Campus(campus),
    };
    let rules: Vec<Rule> = permissions.iter().map(rule).collect();
    match call.ability().uncovered(&rules, call.standing().campus_ids())? {
        None => Ok(permissions),
        Some(&Rule { action, resource, .. }) => Err(ToolError::Denied { action, resource }),
    }
}

fn name_taken(error: crate::db::DbError) -> ToolError {
    if error.is_duplicate_of("departments_name_key") {
        ToolError::Conflict("A department of that name exists on this campus.".to_owned())
    } else {
        error.into()
    }
}

fn subject(department: &Department) -> AuditSubject {
    AuditSubject {
        school_id: department.school_id,
        campus_id: Some(department.campus_id),
        resource_id: department.id,
    }
}

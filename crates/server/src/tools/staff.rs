//! The staff, and the roles that they hold.

mod ceiling;

use super::{
    Call, ToolHandler,
    page::{self, Page, fetch, page},
};
use crate::{
    ability::{CampusRule, Condition, Rule, Topics, Verdict},
    db::{
        DbError,
        invitation::{self, Place},
        staff::{self, Change, Granted, HeldRole, InDepartment, Role, StaffDetails, StaffMember},
        teaching::{self, Classroom},
    },
    error::ToolError,
    posture::{AuditSubject, Posture, casl},
};
use contract::{
    Action, Resource,
    argument::{PageLimit, RequestedCampus},
    tool::{Read, Write},
    tools::staff::{
        AssignStaffRole, GetStaffMember, InviteStaffMember, ListCampusStaff, ListStaff, RevokeStaffRole, StaffField,
        UpdateStaffMember,
    },
};
use serde::Serialize;
use uuid::Uuid;

const NOT_FOUND: ToolError = ToolError::NotFound("Staff member");
const CAMPUS_NOT_FOUND: ToolError = ToolError::NotFound("Campus");
const ON_STAFF: &str = "Somebody with that address is on the staff of this school already.";
const HAS_LEFT: &str =
    "Somebody with that address was on the staff of this school and has left; they cannot be invited again.";

/// A member of staff with all that a reader may know of them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Profile {
    #[serde(flatten)]
    member: StaffMember,
    roles: Vec<HeldRole>,
    departments: Vec<InDepartment>,
    /// In the current year.
    teaching: Vec<Classroom>,
}

/// A role that was given to somebody or taken from them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StaffRole {
    id: Uuid,
    staff_id: Uuid,
    staff_name: String,
    role: String,
    /// None where it is held as it is defined.
    campus_id: Option<Uuid>,
    campus_name: Option<String>,
    /// What it says, in its order: whoever approves of it is to see that.
    rules: Vec<GivenRule>,
    #[serde(skip)]
    subject: AuditSubject,
}

/// A rule as a member of staff has it by a role.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct GivenRule {
    action: Action,
    resource: Resource,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    forbids: bool,
    /// The rows that it is about; all where it says neither.
    #[serde(skip_serializing_if = "Option::is_none")]
    of_campus_id: Option<Uuid>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    of_no_campus: bool,
}

impl From<&Rule> for GivenRule {
    fn from(rule: &Rule) -> Self {
        Self {
            action: rule.action,
            resource: rule.resource,
            forbids: rule.verdict == Verdict::Deny,
            of_campus_id: match rule.condition {
                Condition::Campus(campus) => Some(campus),
                Condition::Always | Condition::NoCampus => None,
            },
            of_no_campus: rule.condition == Condition::NoCampus,
        }
    }
}

impl StaffRole {
    fn of(member: StaffMember, role: Role, rules: &[Rule], campus_id: Option<Uuid>, granted: Granted) -> Self {
        Self {
            id: granted.id,
            staff_id: member.id,
            staff_name: member.name,
            role: role.name,
            campus_id,
            campus_name: granted.campus_name,
            rules: rules.iter().map(GivenRule::from).collect(),
            subject: AuditSubject {
                school_id: member.school_id,
                campus_id: campus_id.or(member.campus_id),
                resource_id: granted.id,
            },
        }
    }
}

impl ToolHandler for ListStaff {
    type Output = Page<StaffMember>;
    const POSTURE: Posture<Read, Self::Output> = casl(Action::List, Resource::Staff);
    const ONE_PLAN: bool = true;

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let rows = call.rows(Action::List, Resource::Staff, None)?;
        let after = page::after(call, self.cursor.as_deref())?;
        let found = staff::list(call.tx(), &rows, after, fetch(self.limit)).await?;
        page(call, found, self.limit, |row| row.id)
    }
}

impl ToolHandler for ListCampusStaff {
    type Output = Page<StaffMember>;
    const POSTURE: Posture<Read, Self::Output> = casl(Action::List, Resource::Staff);
    const ONE_PLAN: bool = true;

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let campus = call.one_campus(Action::List, Resource::Staff, self.campus_id)?;
        let rows = CampusRule::All.within(campus);
        let after = page::after(call, self.cursor.as_deref())?;
        let found = staff::list(call.tx(), &rows, after, fetch(self.limit)).await?;
        page(call, found, self.limit, |row| row.id)
    }
}

impl ToolHandler for GetStaffMember {
    type Output = Profile;
    const POSTURE: Posture<Read, Self::Output> = casl(Action::Read, Resource::Staff);

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let rows = call.rows(Action::Read, Resource::Staff, None)?;
        let StaffDetails {
            member,
            roles,
            departments,
        } = staff::details(call.tx(), self.target_staff_id, &rows)
            .await?
            .ok_or(NOT_FOUND)?;
        let teaching = teaching::classrooms(call.tx(), member.id, &rows, i64::from(PageLimit::MAX)).await?;
        Ok(Profile {
            member,
            roles,
            departments,
            teaching,
        })
    }
}

impl ToolHandler for InviteStaffMember {
    type Output = StaffMember;
    const POSTURE: Posture<Write, Self::Output> =
        casl(Action::Create, Resource::Staff).audited(Action::Create, "STAFF", subject);

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let place = invited_to(call, self.campus_id).await?;
        let address = address(call, &self.email).await?;
        if let Some(active) = invitation::on_staff(call.tx(), place.school_id, &address).await? {
            return Err(ToolError::Conflict(if active { ON_STAFF } else { HAS_LEFT }.to_owned()));
        }
        let account = invitation::open_account(call.tx(), &address, &self.name)
            .await?
            .ok_or_else(|| ToolError::Conflict("That address cannot be invited.".to_owned()))?;
        let joined = invitation::join(call.tx(), place, account, self.title.as_deref()).await?;
        // whoever invited the same person at the same moment was quicker
        let joined = joined.ok_or_else(|| ToolError::Conflict(ON_STAFF.to_owned()))?;
        staff::find(call.tx(), joined, &CampusRule::All).await?.ok_or(NOT_FOUND)
    }
}

impl ToolHandler for UpdateStaffMember {
    type Output = StaffMember;
    const POSTURE: Posture<Write, Self::Output> =
        casl(Action::Update, Resource::Staff).audited(Action::Update, "STAFF", subject);

    fn asks(&self) -> Topics {
        Topics::ALL
    }

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let clear_title = self.clear.unwrap_or_default().contains(&StaffField::Title);
        if clear_title && self.title.is_some() {
            return Err(ToolError::Invalid(
                "clear: title is given and cleared at once".to_owned(),
            ));
        }
        let campus_id = match self.campus_id {
            Some(requested) => Some(call.one_campus(Action::Update, Resource::Staff, Some(requested))?),
            None => None,
        };
        let change = Change {
            title: self.title.as_deref(),
            clear_title,
            campus_id,
        };
        if self.name.is_none() && change.is_none() {
            return Err(ToolError::Invalid("arguments: name what to change".to_owned()));
        }
        let rows = call.rows(Action::Update, Resource::Staff, None)?;
        let found = staff::find(call.tx(), self.target_staff_id, &rows)
            .await?
            .ok_or(NOT_FOUND)?;
        if let Some(campus) = campus_id {
            ceiling::may_move(call, &found, campus).await?;
        }
        if let Some(name) = &self.name {
            // an account that has left may be another school's, whose trail would say nothing of it
            if !found.active || !staff::rename(call.tx(), &found, name).await? {
                return Err(ToolError::Conflict(
                    "The name of that account is not this school's to change.".to_owned(),
                ));
            }
        }
        if !change.is_none() {
            staff::update(call.tx(), &found, change)
                .await
                .map_err(campus_of_another_school)?;
        }
        staff::find(call.tx(), self.target_staff_id, &rows)
            .await?
            .ok_or(NOT_FOUND)
    }
}

impl ToolHandler for AssignStaffRole {
    type Output = StaffRole;
    const POSTURE: Posture<Write, Self::Output> =
        casl(Action::Manage, Resource::Role).audited(Action::Manage, "STAFF_ROLE", |role: &StaffRole| role.subject);

    fn asks(&self) -> Topics {
        Topics::ALL
    }

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let (target, role, campus_id) = role_of(call, self.target_staff_id, &self.role, self.campus_id).await?;
        if !target.active {
            return Err(ToolError::Conflict(
                "That member of staff is not active, and so cannot be given a role.".to_owned(),
            ));
        }
        let rules = ceiling::may_give(call, &target, &role, campus_id).await?;
        // a role that forbids can take the last administrator's power as well as revoking can
        let before = if ceiling::forbids(&rules) {
            Some(ceiling::administered(call, target.school_id).await?)
        } else {
            None
        };
        let granted = staff::grant(call.tx(), &target, &role, campus_id)
            .await
            .map_err(not_granted)?;
        if let Some(before) = before {
            ceiling::still_administered(call, target.school_id, before).await?;
        }
        Ok(StaffRole::of(target, role, &rules, campus_id, granted))
    }
}

impl ToolHandler for RevokeStaffRole {
    type Output = StaffRole;
    const POSTURE: Posture<Write, Self::Output> =
        casl(Action::Manage, Resource::Role).audited(Action::Manage, "STAFF_ROLE", |role: &StaffRole| role.subject);

    fn asks(&self) -> Topics {
        Topics::ALL
    }

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let (target, role, campus_id) = role_of(call, self.target_staff_id, &self.role, self.campus_id).await?;
        let rules = ceiling::may_take(call, &target, &role, campus_id).await?;
        let before = ceiling::administered(call, target.school_id).await?;
        let revoked = staff::revoke(call.tx(), &target, &role, campus_id).await?;
        let revoked = revoked.ok_or_else(|| ToolError::Conflict(not_held(campus_id).to_owned()))?;
        ceiling::still_administered(call, target.school_id, before).await?;
        Ok(StaffRole::of(target, role, &rules, campus_id, revoked))
    }
}

/// The campus that somebody is invited to, or the whole school for whoever may add to it.
async fn invited_to(call: &mut Call<'_>, requested: Option<RequestedCampus>) -> Result<Place, ToolError> {
    if call.named_campus(requested).is_some() {
        let campus = call.one_campus(Action::Create, Resource::Staff, requested)?;
        return invitation::campus(call.tx(), campus).await?.ok_or(CAMPUS_NOT_FOUND);
    }
    let Some(school_id) = call.actor().school_id else {
        return Err(ToolError::Invalid(
            "campusId: a platform administrator works for no school, and without a campus this names none".to_owned(),
        ));
    };
    if !call.ability().can_on(Action::Create, Resource::Staff, None)? {
        return Err(ToolError::Forbidden(
            "you may not add staff of the whole school; name a campus",
        ));
    }
    Ok(Place {
        school_id,
        campus_id: None,
    })
}

/// Whether a character is not seen where it stands: of the general categories Cc and Cf. An address with one looks like another.
fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}' | '\u{180e}'
                | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
                | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e007f}'
        )
}

/// An address as accounts have it. Case is folded in ASCII only, as it is where people sign in: among all letters there are others
/// that fold to those of somebody else's address.
async fn address(call: &mut Call<'_>, email: &str) -> Result<String, ToolError> {
    let address = email.to_ascii_lowercase();
    if address.chars().any(is_unseen)
        || address.to_lowercase() != address
        || !invitation::is_plain(call.tx(), &address).await?
    {
        return Err(ToolError::Invalid(
            "email: write its letters small and plain, as the person signs in with them".to_owned(),
        ));
    }
    Ok(address)
}

/// Somebody of the staff, a role of their school by its name, and the campus that it is or will be held on.
async fn role_of(
    call: &mut Call<'_>,
    target: Uuid,
    role: &str,
    requested: Option<RequestedCampus>,
) -> Result<(StaffMember, Role, Option<Uuid>), ToolError> {
    let campus_id = match call.named_campus(requested) {
        Some(_) => Some(call.one_campus(Action::Manage, Resource::Role, requested)?),
        None => None,
    };
    let rows = call.rows(Action::Manage, Resource::Role, None)?;
    let target = staff::find(call.tx(), target, &rows).await?.ok_or(NOT_FOUND)?;
    let Some(found) = staff::role_named(call.tx(), &target, role).await? else {
        let known = staff::role_names(call.tx(), &target).await?.join(", ");
        return Err(ToolError::Invalid(format!(
            "role: there is no such role; there are: {known}"
        )));
    };
    Ok((target, found, campus_id))
}

const fn not_held(campus: Option<Uuid>) -> &'static str {
    match campus {
        Some(_) => "That member of staff does not hold this role on that campus.",
        None => {
            "That member of staff does not hold this role without a campus. get_staff_member shows where it is held."
        }
    }
}

/// A platform admin may name any school's campus; only one of the person's own school can be stored.
fn campus_of_another_school(error: DbError) -> ToolError {
    if let DbError::Reference { constraint } = &error
        && matches!(constraint.as_str(), "staff_campus_fkey" | "user_roles_campus_fkey")
    {
        CAMPUS_NOT_FOUND
    } else {
        error.into()
    }
}

fn not_granted(error: DbError) -> ToolError {
    if error.is_duplicate_of("user_roles_grant_key") {
        ToolError::Conflict("That member of staff holds this role already.".to_owned())
    } else {
        campus_of_another_school(error)
    }
}

fn subject(member: &StaffMember) -> AuditSubject {
    AuditSubject {
        school_id: member.school_id,
        campus_id: member.campus_id,
        resource_id: member.id,
    }
}

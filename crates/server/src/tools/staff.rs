//! The staff, and the roles that they hold.

use super::{
    Call, ToolHandler,
    page::{self, Page, fetch, page},
};
use crate::{
    ability::{CampusRule, Rule, Topics, Verdict},
    db::{
        DbError,
        facts::RuleRow,
        staff::{self, Change, HeldRole, InDepartment, StaffDetails, StaffMember},
        teaching::{self, Classroom},
    },
    error::ToolError,
    posture::{AuditSubject, Posture, casl},
    standing::rule_of,
};
use contract::{
    Action, Resource,
    argument::PageLimit,
    tool::{Read, Write},
    tools::staff::{AssignStaffRole, GetStaffMember, ListCampusStaff, ListStaff, StaffField, UpdateStaffMember},
};
use serde::Serialize;
use uuid::Uuid;

const NOT_FOUND: ToolError = ToolError::NotFound("Staff member");
const CAMPUS_NOT_FOUND: ToolError = ToolError::NotFound("Campus");

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

/// A role that was given to somebody.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RoleGiven {
    id: Uuid,
    staff_id: Uuid,
    staff_name: String,
    role: String,
    /// None where it is held as it is defined.
    campus_id: Option<Uuid>,
    campus_name: Option<String>,
    #[serde(skip)]
    subject: AuditSubject,
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
            may_move(call, &found, campus).await?;
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
    type Output = RoleGiven;
    const POSTURE: Posture<Write, Self::Output> =
        casl(Action::Manage, Resource::Role).audited(Action::Manage, "STAFF_ROLE", |given: &RoleGiven| given.subject);

    fn asks(&self) -> Topics {
        Topics::ALL
    }

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let campus_id = match call.named_campus(self.campus_id) {
            Some(_) => Some(call.one_campus(Action::Manage, Resource::Role, self.campus_id)?),
            None => None,
        };
        let rows = call.rows(Action::Manage, Resource::Role, None)?;
        let target = staff::find(call.tx(), self.target_staff_id, &rows)
            .await?
            .ok_or(NOT_FOUND)?;
        if !target.active {
            return Err(ToolError::Conflict(
                "That member of staff is not active, and so cannot be given a role.".to_owned(),
            ));
        }
        let role = staff::role_named(call.tx(), &target, &self.role)
            .await?
            .ok_or(ToolError::NotFound("Role"))?;
        let rules = staff::rules_of_role(call.tx(), &target, &role, campus_id).await?;
        let rules: Vec<Rule> = rules
            .iter()
            .filter_map(|rule| rule_of(rule, target.campus_id))
            .collect();
        if !holds_all(call, &rules)? {
            return Err(ToolError::Forbidden("that role allows more than you may do yourself"));
        }
        let granted = staff::grant(call.tx(), &target, &role, campus_id)
            .await
            .map_err(not_granted)?;
        let subject = AuditSubject {
            school_id: target.school_id,
            campus_id: campus_id.or(target.campus_id),
            resource_id: granted.id,
        };
        Ok(RoleGiven {
            id: granted.id,
            staff_id: target.id,
            staff_name: target.name,
            role: role.name,
            campus_id,
            campus_name: granted.campus_name,
            subject,
        })
    }
}

/// Rules of a person's own campus follow them to another one, so moving somebody can grant something, as giving a role does.
async fn may_move(call: &mut Call<'_>, member: &StaffMember, campus: Uuid) -> Result<(), ToolError> {
    let rules = staff::rules_of_member(call.tx(), member).await?;
    if holds_all(call, &gained(&rules, member.campus_id, campus))? {
        Ok(())
    } else {
        Err(ToolError::Forbidden(
            "that person's roles would allow more there than you may do yourself",
        ))
    }
}

/// The rules that a move may give somebody: those that change with it, or all of them where it lifts one that forbids.
fn gained(rules: &[RuleRow], from: Option<Uuid>, to: Uuid) -> Vec<Rule> {
    let moves: Vec<_> = rules
        .iter()
        .map(|rule| (rule_of(rule, from), rule_of(rule, Some(to))))
        .collect();
    let lifts = moves
        .iter()
        .any(|(before, after)| before != after && before.is_some_and(|rule| rule.verdict == Verdict::Deny));
    moves
        .into_iter()
        .filter(|(before, after)| lifts || before != after)
        .filter_map(|(_, after)| after)
        .collect()
}

/// Nobody gives more than they hold.
fn holds_all(call: &Call<'_>, rules: &[Rule]) -> Result<bool, ToolError> {
    Ok(call.ability().uncovered(rules, call.standing().campus_ids())?.is_none())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ability::Condition;
    use serde_json::{Value, json};

    const HERE: Uuid = Uuid::from_u128(1);
    const THERE: Uuid = Uuid::from_u128(2);

    fn rule(resource: &str, allows: bool, condition: Option<Value>, held: Option<Uuid>) -> RuleRow {
        RuleRow {
            a: "LIST".into(),
            r: resource.into(),
            y: allows,
            c: condition,
            h: held,
        }
    }

    fn own() -> Value {
        json!({"campusId": "$own"})
    }

    fn resources(rules: &[Rule]) -> Vec<Resource> {
        rules.iter().map(|rule| rule.resource).collect()
    }

    /// fault 7
    #[test]
    fn a_move_gives_what_is_of_ones_own_campus() {
        let rules = [
            rule("STAFF", true, Some(own()), None),
            rule("SUBJECT", true, None, None),
            rule("STREAM", true, Some(json!({"campusId": HERE})), None),
            rule("ROLE", true, Some(own()), Some(HERE)),
        ];
        let gained = gained(&rules, Some(HERE), THERE);
        assert_eq!(resources(&gained), [Resource::Staff]);
        assert_eq!(gained[0].condition, Condition::Campus(THERE));
    }

    #[test]
    fn a_first_campus_gives_what_none_did() {
        let rules = [rule("STAFF", true, Some(own()), None)];
        assert_eq!(resources(&gained(&rules, None, THERE)), [Resource::Staff]);
        assert!(
            gained(&rules, Some(THERE), THERE).is_empty(),
            "and staying gives nothing"
        );
    }

    #[test]
    fn a_denial_left_behind_uncovers_everything_else() {
        let rules = [rule("STAFF", true, None, None), rule("STAFF", false, Some(own()), None)];
        let gained = gained(&rules, Some(HERE), THERE);
        assert!(
            gained
                .iter()
                .any(|rule| rule.verdict == Verdict::Allow && rule.condition == Condition::Always)
        );
    }
}

//! Step 7: where the caller stands now. The facts behind an identity are read again on every call, and the ability is built anew
//! from the rules as they are, inside the frame of the call. Nothing here is ever kept for the next call.

use crate::{
    ability::{Ability, CampusRule, Condition, Rule, Topics, Verdict},
    db::facts::{CampusRow, FactsRow, RuleRow},
    error::ToolError,
    grant::Caller,
    tenant::Frame,
};
use contract::{Action, Resource, UserType};
use serde_json::Value;
use uuid::Uuid;

/// Who acts, as the rows say.
#[derive(Debug, Clone)]
pub struct Actor {
    /// The account.
    pub sub: Uuid,
    /// Its e-mail address.
    pub email: String,
    /// Its kind.
    pub user_type: UserType,
    /// The school; none for platform admins.
    pub school_id: Option<Uuid>,
    /// The profile in the school; none for platform admins.
    pub staff_id: Option<Uuid>,
    /// The campus that the person works on; none for the whole school.
    pub campus_id: Option<Uuid>,
}

/// Where the caller stands: who they are, what they may do, and where.
#[derive(Debug)]
pub struct Standing {
    /// Who acts.
    pub actor: Actor,
    /// What they may do.
    pub ability: Ability,
    campuses: Vec<CampusRow>,
    campus_ids: Vec<Uuid>,
}

/// Why somebody has no standing; one text for all reasons, so that it tells nothing about accounts.
const NOT_ACTIVE: ToolError = ToolError::Forbidden("this account is not active in this school");
const CAMPUS_NOT_OPEN: ToolError = ToolError::Forbidden("this campus is not open to you");

impl Standing {
    /// Builds the caller's ability from the facts of their frame.
    ///
    /// # Errors
    ///
    /// Denied where the account or the profile is not active, is not of that school, is not what the identity says, or where the
    /// pinned campus is not the school's or not open to the caller.
    pub(crate) fn rebuild(frame: &mut Frame, caller: &Caller) -> Result<Self, ToolError> {
        let identity = caller.identity();
        let row = frame.facts.take().ok_or(NOT_ACTIVE)?;
        let standing = match identity.user_type {
            UserType::PlatformAdmin => Self::of_operator(caller, row)?,
            UserType::SchoolAdmin | UserType::Staff => Self::of_staff(caller, row, frame.topics)?,
        };
        if let Some(pinned) = caller.scope().pinned()
            && !standing.open_campuses()?.includes(Some(pinned))
        {
            return Err(CAMPUS_NOT_OPEN);
        }
        Ok(standing)
    }

    fn of_operator(caller: &Caller, row: FactsRow) -> Result<Self, ToolError> {
        if !row.active || row.user_type != UserType::PlatformAdmin.as_str() {
            return Err(NOT_ACTIVE);
        }
        let everything = Rule {
            action: Action::Manage,
            resource: Resource::Any,
            verdict: Verdict::Allow,
            condition: Condition::Always,
        };
        let actor = Actor {
            sub: caller.identity().sub,
            email: row.email,
            user_type: UserType::PlatformAdmin,
            school_id: None,
            staff_id: None,
            campus_id: None,
        };
        Ok(Self {
            actor,
            ability: Ability::new(vec![everything]),
            campuses: Vec::new(),
            campus_ids: Vec::new(),
        })
    }

    fn of_staff(caller: &Caller, row: FactsRow, topics: Topics) -> Result<Self, ToolError> {
        let identity = caller.identity();
        let works_here = row.active && row.staff_active == Some(true) && row.school_id == identity.school_id;
        let is_who_it_says = row.user_type == identity.user_type.as_str() && row.staff_id == Some(identity.profile_id);
        if !works_here || !is_who_it_says {
            return Err(NOT_ACTIVE);
        }
        let rules = row
            .rules
            .iter()
            .filter_map(|rule| rule_of(rule, row.campus_id))
            .collect();
        let actor = Actor {
            sub: identity.sub,
            email: row.email,
            user_type: identity.user_type,
            school_id: row.school_id,
            staff_id: row.staff_id,
            campus_id: row.campus_id,
        };
        let campus_ids = row.campuses.iter().map(|campus| campus.id).collect();
        Ok(Self {
            actor,
            ability: Ability::within(topics, rules),
            campuses: row.campuses,
            campus_ids,
        })
    }

    /// The school's campuses. Empty for platform admins, whose rules name none.
    #[must_use]
    pub fn campus_ids(&self) -> &[Uuid] {
        &self.campus_ids
    }

    /// A campus's name, if it is one of the school's.
    #[must_use]
    pub fn campus_name(&self, id: Uuid) -> Option<&str> {
        self.campuses
            .iter()
            .find(|campus| campus.id == id)
            .map(|campus| campus.name.as_str())
    }

    /// The campuses on which the caller has any business: all for whoever works for the whole school; else the own one, and those
    /// that they may list. It says where somebody may look around, not what they may do there.
    ///
    /// # Errors
    ///
    /// When the rule engine fails; to be taken as none.
    pub fn open_campuses(&self) -> Result<CampusRule, ToolError> {
        let all = CampusRule::Only {
            campuses: self.campus_ids.clone(),
            and_none: true,
        };
        match (self.actor.user_type, self.actor.campus_id) {
            (UserType::PlatformAdmin, _) => Ok(CampusRule::All),
            (UserType::SchoolAdmin | UserType::Staff, None) => Ok(all),
            (UserType::SchoolAdmin | UserType::Staff, Some(own)) => {
                let listed = self
                    .ability
                    .campuses(Action::List, Resource::Campus, &self.campus_ids)?;
                if listed == CampusRule::All {
                    return Ok(all);
                }
                let is_open = |campus: &Uuid| *campus == own || listed.includes(Some(*campus));
                let campuses = self.campus_ids.iter().copied().filter(is_open).collect();
                Ok(CampusRule::Only {
                    campuses,
                    and_none: false,
                })
            }
        }
    }
}

/// Decides one question over stored rules, with an ability that is gone again afterwards: for measuring what a fresh one costs.
///
/// # Errors
///
/// When the rules cannot be read, or the rule engine fails.
pub fn decide_afresh(
    stored: &str,
    own_campus: Option<Uuid>,
    action: Action,
    resource: Resource,
) -> Result<bool, ToolError> {
    let stored: Vec<RuleRow> = serde_json::from_str(stored)?;
    let rules = stored.iter().filter_map(|rule| rule_of(rule, own_campus));
    Ability::new(rules.collect()).can(action, resource)
}

/// A stored rule as it applies to somebody who works on this campus, or on none. What cannot be read allows nothing and forbids
/// everything.
pub(crate) fn rule_of(row: &RuleRow, own_campus: Option<Uuid>) -> Option<Rule> {
    let verdict = if row.y { Verdict::Allow } else { Verdict::Deny };
    let unreadable = |verdict| match verdict {
        Verdict::Allow => None,
        Verdict::Deny => Some(Condition::Always),
    };
    let condition = match &row.c {
        None => Some(Condition::Always),
        Some(condition) => match campus_of(condition, row.h.or(own_campus)) {
            Some(condition) => Some(condition),
            None => unreadable(verdict),
        },
    };
    let condition = narrow(condition?, row.h)?;
    match (Action::parse(&row.a), Resource::parse(&row.r)) {
        (Some(action), Some(resource)) => Some(Rule {
            action,
            resource,
            verdict,
            condition,
        }),
        _ if verdict == Verdict::Deny => Some(Rule {
            action: Action::Manage,
            resource: Resource::Any,
            verdict,
            condition,
        }),
        _ => None,
    }
}

/// The campus that a condition such as `{"campusId": "$own"}` names.
fn campus_of(condition: &Value, own: Option<Uuid>) -> Option<Condition> {
    let members = condition.as_object().filter(|members| members.len() == 1)?;
    match members.get("campusId")? {
        Value::Null => Some(Condition::NoCampus),
        Value::String(text) if text == "$own" => own.map(Condition::Campus),
        Value::String(text) => text.parse().ok().map(Condition::Campus),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A role held on a campus narrows its rules to that campus; a rule about another campus then says nothing.
fn narrow(condition: Condition, held_on: Option<Uuid>) -> Option<Condition> {
    match (condition, held_on) {
        (condition, None) => Some(condition),
        (Condition::Always, Some(held)) => Some(Condition::Campus(held)),
        (Condition::Campus(campus), Some(held)) => (campus == held).then_some(condition),
        (Condition::NoCampus, Some(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const OWN: Uuid = Uuid::from_u128(1);
    const HELD: Uuid = Uuid::from_u128(2);

    fn row(allows: bool, condition: Option<Value>, held: Option<Uuid>) -> RuleRow {
        RuleRow {
            a: "LIST".into(),
            r: "STAFF".into(),
            y: allows,
            c: condition,
            h: held,
        }
    }

    fn condition(row: &RuleRow, own: Option<Uuid>) -> Option<Condition> {
        rule_of(row, own).map(|rule| rule.condition)
    }

    #[test]
    fn own_is_where_the_role_is_held_or_where_one_works() {
        let own = || Some(json!({"campusId": "$own"}));
        assert_eq!(
            condition(&row(true, own(), None), Some(OWN)),
            Some(Condition::Campus(OWN))
        );
        assert_eq!(
            condition(&row(true, own(), Some(HELD)), Some(OWN)),
            Some(Condition::Campus(HELD))
        );
        assert_eq!(
            condition(&row(true, own(), None), None),
            None,
            "no campus is no privilege"
        );
        assert_eq!(
            condition(&row(false, own(), None), None),
            Some(Condition::Always),
            "and no way around a deny"
        );
    }

    #[test]
    fn a_role_held_on_a_campus_reaches_no_further() {
        assert_eq!(
            condition(&row(true, None, Some(HELD)), None),
            Some(Condition::Campus(HELD))
        );
        assert_eq!(
            condition(&row(true, Some(json!({"campusId": OWN})), Some(HELD)), None),
            None
        );
        assert_eq!(
            condition(&row(true, Some(json!({"campusId": null})), Some(HELD)), None),
            None
        );
        assert_eq!(
            condition(&row(true, Some(json!({"campusId": null})), None), None),
            Some(Condition::NoCampus)
        );
    }

    /// fault 3, fault 6
    #[test]
    fn what_cannot_be_read_fails_closed() {
        for unreadable in [
            json!({"teamId": OWN}),
            json!({"campusId": OWN, "x": 1}),
            json!({"campusId": "?"}),
            json!([]),
        ] {
            assert_eq!(
                condition(&row(true, Some(unreadable.clone()), None), None),
                None,
                "{unreadable}"
            );
            assert_eq!(
                condition(&row(false, Some(unreadable), None), None),
                Some(Condition::Always)
            );
        }
        let unknown = RuleRow {
            a: "FLY".into(),
            ..row(false, None, None)
        };
        assert_eq!(rule_of(&unknown, None).map(|rule| rule.resource), Some(Resource::Any));
        assert!(
            rule_of(
                &RuleRow {
                    a: "FLY".into(),
                    ..row(true, None, None)
                },
                None
            )
            .is_none()
        );
    }
}

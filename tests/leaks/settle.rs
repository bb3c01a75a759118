//! Makes a drawn write one whose outcome the facts foretell: what may succeed changes nobody's rules unnoticed, and carries marks of
//! the row that it changes; what must be refused carries the caller's own.

use super::{
    actors::{Actor, Claim},
    facts::{Facts, Held, Kind, Row},
    marks::{COMMON, Owner, PLATFORM},
};
use contract::{AgentCallScope, UserType};
use serde_json::{Value, json};
use uuid::Uuid;

/// What stands for a mark in a drawn text.
pub(super) const MARK: char = '§';

/// People who are given roles. Nobody else is, so that everybody else's rules stay what the seeds say.
const PROMOTED_IN_SCHOOL: &[&str] = &["moses.balikowa", "nathan.owuor"];
const PROMOTED_ON_CAMPUS: &[&str] = &["rose.nalubega", "isaac.ocen", "grace.mumbua", "ali.bakari"];

/// A write that was made foreseeable.
#[derive(Debug, Clone)]
pub(super) struct Settled {
    pub(super) args: Value,
    /// Whose marks its texts carry.
    pub(super) owner: Owner,
    /// A role that somebody may hold from now on.
    pub(super) gives: Option<(usize, Held)>,
}

/// How far an actor's power to change things reaches at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Authority {
    Everything,
    School(Uuid),
    Campus(Uuid),
    Nothing,
}

impl Authority {
    fn of(facts: &Facts, actor: &Actor) -> Self {
        let person = &facts.people[actor.person];
        let holds = |role: &str| person.roles.iter().any(|held| held.role == role);
        let who = person.who.as_str();
        let own = match (person.user_type, person.school, person.campus) {
            _ if actor.claim == Claim::False || !person.active => Self::Nothing,
            (UserType::PlatformAdmin, ..) => Self::Everything,
            (_, Some(school), _) if holds("school_admin") || PROMOTED_IN_SCHOOL.contains(&who) => Self::School(school),
            (_, _, Some(campus)) if holds("head_teacher") || PROMOTED_ON_CAMPUS.contains(&who) => Self::Campus(campus),
            _ => Self::Nothing,
        };
        match actor.scope {
            AgentCallScope::School {} => own,
            AgentCallScope::Campus { campus_id } => match facts.find(Kind::Campus, campus_id) {
                Some(pinned) if own.covers(pinned) => Self::Campus(campus_id),
                _ => Self::Nothing,
            },
        }
    }

    fn covers(self, row: Row) -> bool {
        match self {
            Self::Everything => true,
            Self::School(school) => row.school == school,
            Self::Campus(campus) => row.campus == Some(campus),
            Self::Nothing => false,
        }
    }
}

/// Settles a drawn call.
pub(super) fn settle(facts: &Facts, actor: &Actor, tool: &str, mut args: Value) -> Settled {
    let authority = Authority::of(facts, actor);
    let named = |args: &Value, member: &str, kind| named(facts, args, member, kind);
    let mut owner = own(facts, actor);
    let mut gives = None;
    match tool {
        "create_department" => {
            if let Some(campus) = lands_on(facts, actor, authority, &args) {
                owner = facts.owner(campus.school, campus.campus);
                make_harmless(&mut args);
            }
        }
        "update_department" => {
            if let Some(row) = named(&args, "departmentId", Kind::Department).filter(|row| authority.covers(*row)) {
                owner = facts.owner(row.school, row.campus);
                make_harmless(&mut args);
            }
        }
        "delete_department" => {
            if let Some(row) = named(&args, "departmentId", Kind::Department)
                && is_near(facts, actor, row)
                && !facts.spare.contains(&row)
            {
                args["departmentId"] = json!(spare_beside(facts, row));
            }
        }
        "update_staff_member" => {
            if let Some(row) = named(&args, "targetStaffId", Kind::Staff).filter(|row| authority.covers(*row)) {
                owner = facts.owner(row.school, row.campus);
                stay(&mut args, row);
            }
        }
        "assign_staff_role" => {
            if let Some(row) = named(&args, "targetStaffId", Kind::Staff).filter(|row| authority.covers(*row)) {
                gives = promote(facts, actor, authority, row, &mut args);
            }
        }
        _ => {}
    }
    Settled { args, owner, gives }
}

/// The row that an argument names, if there is one.
fn named(facts: &Facts, args: &Value, member: &str, kind: Kind) -> Option<Row> {
    facts.find(kind, args.get(member)?.as_str()?.parse().ok()?)
}

fn own(facts: &Facts, actor: &Actor) -> Owner {
    let person = &facts.people[actor.person];
    match person.school {
        None => Owner::new(PLATFORM, COMMON),
        Some(school) => facts.owner(school, person.campus),
    }
}

/// The campus on which a new department must be, where the actor may make one at all.
fn lands_on(facts: &Facts, actor: &Actor, authority: Authority, args: &Value) -> Option<Row> {
    let campus = match (actor.scope, args.get("campusId"), authority) {
        (AgentCallScope::Campus { campus_id }, ..) => facts.find(Kind::Campus, campus_id),
        (AgentCallScope::School {}, None | Some(Value::Null), Authority::Campus(only)) => {
            facts.find(Kind::Campus, only)
        }
        (AgentCallScope::School {}, ..) => named(facts, args, "campusId", Kind::Campus),
    };
    campus.filter(|campus| authority.covers(*campus))
}

/// Permissions of a department that no tool asks for.
fn make_harmless(args: &mut Value) {
    let Some(Value::Array(permissions)) = args.get_mut("permissions") else {
        return;
    };
    for permission in permissions.iter_mut().filter_map(Value::as_object_mut) {
        if permission.get("resource").is_some_and(Value::is_string) {
            permission.insert("resource".to_owned(), json!("REPORT"));
        }
    }
}

fn is_near(facts: &Facts, actor: &Actor, row: Row) -> bool {
    let person = &facts.people[actor.person];
    person.school.is_none_or(|school| school == row.school)
}

fn spare_beside(facts: &Facts, row: Row) -> Uuid {
    let beside: Vec<&Row> = facts.spare.iter().filter(|spare| spare.campus == row.campus).collect();
    beside[usize::from(row.id.as_bytes()[15]) % beside.len()].id
}

/// Whoever moves takes rules along; in this test nobody does.
fn stay(args: &mut Value, row: Row) {
    let Some(members) = args.as_object_mut() else { return };
    match row.campus {
        Some(campus) if members.contains_key("campusId") => {
            members.insert("campusId".to_owned(), json!(campus));
        }
        _ => {
            members.remove("campusId");
        }
    }
}

/// Turns the gift of a role to somebody who may get one; answers what they may hold then.
fn promote(facts: &Facts, actor: &Actor, authority: Authority, row: Row, args: &mut Value) -> Option<(usize, Held)> {
    let (names, campus) = match authority {
        Authority::Campus(campus) => (PROMOTED_ON_CAMPUS, Some(campus)),
        Authority::Everything | Authority::School(_) | Authority::Nothing => (PROMOTED_IN_SCHOOL, None),
    };
    let person = facts.people.iter().position(|person| {
        person.school == Some(row.school) && person.campus == campus && names.contains(&person.who.as_str())
    });
    let person = person.expect("each place has somebody to promote");
    args["targetStaffId"] = json!(facts.people[person].staff);
    let role = args.get("role")?.as_str()?;
    let (.., role, _) = facts
        .roles
        .iter()
        .find(|(school, _, marked)| *school == row.school && marked == role)
        .map(|(school, name, marked)| (school, name.clone(), marked))?;
    let requested = match (actor.scope, args.get("campusId")) {
        (AgentCallScope::Campus { campus_id }, _) => Some(campus_id),
        (AgentCallScope::School {}, None | Some(Value::Null)) => None,
        (AgentCallScope::School {}, Some(_)) => Some(named(facts, args, "campusId", Kind::Campus)?.id),
    };
    let is_theirs_to_give = match (authority, requested) {
        (Authority::Campus(own), Some(requested)) => own == requested,
        // as it is defined, only the role that means the holder's campus throughout
        (Authority::Campus(_), None) => role == "head_teacher",
        (_, Some(requested)) => facts.campuses_of(row.school).contains(&requested),
        (_, None) => true,
    };
    is_theirs_to_give.then_some((
        person,
        Held {
            role,
            campus: requested,
        },
    ))
}

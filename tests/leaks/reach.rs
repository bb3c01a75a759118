//! Who may see what, worked out from the seeded facts and the documented rules alone. Nothing here asks the product.

use super::{
    actors::{Actor, Claim},
    facts::{Facts, Held, Kind, Person, Row},
    marks::{COMMON, Mark, Owner, PLATFORM, UNPLACED},
};
use contract::{AgentCallScope, UserType};
use std::{
    collections::{BTreeSet, HashMap},
    sync::Mutex,
};
use uuid::Uuid;

/// The marks that a reply may hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reach {
    /// A platform administrator's.
    Everything,
    /// Whoever is refused.
    Nothing,
    /// Of one school: what it shares, and what belongs to these campuses.
    Some {
        school: String,
        campuses: BTreeSet<String>,
        /// Also what could belong to a campus and belongs to none.
        unplaced: bool,
    },
}

impl Reach {
    pub(super) fn admits(&self, owner: &Owner) -> bool {
        match self {
            Self::Everything => true,
            Self::Nothing => false,
            Self::Some {
                school,
                campuses,
                unplaced,
            } => {
                *school == owner.school
                    && (owner.place == COMMON
                        || (*unplaced && owner.place == UNPLACED)
                        || campuses.contains(&owner.place))
            }
        }
    }

    /// Whether there is more to be seen than what the school shares.
    pub(super) fn has_campuses(&self) -> bool {
        match self {
            Self::Everything => true,
            Self::Nothing => false,
            Self::Some { campuses, .. } => !campuses.is_empty(),
        }
    }

    /// Whether an audit row may name somebody: whoever acted, from wherever they come, the operator included.
    pub(super) fn admits_as_actor(&self, owner: &Owner) -> bool {
        match self {
            Self::Everything => true,
            Self::Nothing => false,
            Self::Some { school, .. } => *school == owner.school || owner.school == PLATFORM,
        }
    }
}

/// Rows by campus: those of some campuses, and perhaps those of none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Rows {
    campuses: BTreeSet<Uuid>,
    unplaced: bool,
}

/// Where a rule of a seeded role holds.
enum Limit {
    Everywhere,
    OwnCampus,
}

/// The rule of a seeded role about an action on a resource; no seeded role denies anything.
fn rule(role: &str, action: &str, resource: &str) -> Option<Limit> {
    let teaching = matches!(
        (action, resource),
        ("LIST", "CAMPUS" | "DEPARTMENT" | "STAFF") | ("READ", "DEPARTMENT")
    );
    match role {
        "school_admin" => Some(Limit::Everywhere),
        "head_teacher" => Some(Limit::OwnCampus),
        "clerk" => matches!(action, "READ" | "LIST").then_some(Limit::Everywhere),
        "class_teacher" | "subject_teacher" => teaching.then_some(Limit::OwnCampus),
        "director_of_studies" => (teaching || (action, resource) == ("READ", "STAFF")).then_some(Limit::OwnCampus),
        other => panic!("say what the role {other} allows"),
    }
}

/// Roles that calls of this test have given, or may have.
#[derive(Debug, Default)]
pub(super) struct Given(Mutex<HashMap<usize, Vec<Held>>>);

impl Given {
    /// From now on the person may hold this.
    pub(super) fn add(&self, person: usize, held: Held) {
        let mut given = self.0.lock().unwrap();
        let roles = given.entry(person).or_default();
        if !roles.contains(&held) {
            roles.push(held);
        }
    }

    fn of(&self, person: usize) -> Vec<Held> {
        self.0.lock().unwrap().get(&person).cloned().unwrap_or_default()
    }
}

/// What an actor's call of a tool may show.
pub(super) fn reach(facts: &Facts, given: &Given, actor: &Actor, tool: &str) -> Reach {
    let person = &facts.people[actor.person];
    if actor.claim == Claim::False || !person.active {
        return Reach::Nothing;
    }
    if person.user_type == UserType::PlatformAdmin {
        return Reach::Everything;
    }
    let Some(school) = person.school else {
        return Reach::Nothing;
    };
    let eyes = Eyes {
        facts,
        person,
        held: [person.roles.clone(), given.of(actor.person)].concat(),
        all: facts.campuses_of(school),
    };
    let mut rows = eyes.rows_of(tool);
    if let AgentCallScope::Campus { campus_id } = actor.scope {
        if !eyes.open().campuses.contains(&campus_id) {
            return Reach::Nothing;
        }
        rows.campuses.retain(|campus| *campus == campus_id);
        rows.unplaced = false;
    }
    Reach::Some {
        school: Owner::new(&facts.names.0[&school], COMMON).school,
        campuses: rows
            .campuses
            .iter()
            .map(|campus| Owner::new("", &facts.names.0[campus]).place)
            .collect(),
        // heads of a campus's departments may work for the whole school
        unplaced: rows.unplaced || matches!(tool, "get_department" | "assign_department_head"),
    }
}

/// Somebody who looks.
struct Eyes<'a> {
    facts: &'a Facts,
    person: &'a Person,
    held: Vec<Held>,
    all: BTreeSet<Uuid>,
}

impl Eyes<'_> {
    /// The rows that a tool may show.
    fn rows_of(&self, tool: &str) -> Rows {
        match tool {
            "get_school_branding" => Rows::default(),
            // whoever may delete a department, or heads one: where they have any business
            "get_academic_calendar" | "delete_department" => self.open(),
            "list_campuses" => self.rule("LIST", "CAMPUS"),
            "list_departments" => self.rule("LIST", "DEPARTMENT"),
            "get_department" => self.rule("READ", "DEPARTMENT"),
            "create_department" => self.rule("CREATE", "DEPARTMENT"),
            "update_department" | "assign_department_head" => self.rule("UPDATE", "DEPARTMENT"),
            "list_staff" => self.rule("LIST", "STAFF"),
            "list_campus_staff" => Rows {
                unplaced: false,
                ..self.rule("LIST", "STAFF")
            },
            "get_staff_member" => self.rule("READ", "STAFF"),
            "update_staff_member" => self.rule("UPDATE", "STAFF"),
            "assign_staff_role" => self.rule("MANAGE", "ROLE"),
            "list_my_classrooms" => self.campuses_of(&self.person.teaches_in),
            "list_stream_roster" => {
                let mut rows = self.campuses_of(&self.person.class_teacher_of);
                rows.campuses.extend(&self.person.directs);
                rows
            }
            "list_audit_entries" => self.rule("LIST", "AUDIT_LOG"),
            other => panic!("say who may see what of {other}"),
        }
    }

    fn rule(&self, action: &str, resource: &str) -> Rows {
        let mut rows = Rows::default();
        for held in &self.held {
            match (rule(&held.role, action, resource), held.campus, self.person.campus) {
                (Some(Limit::Everywhere), None, _) => {
                    rows.campuses.extend(&self.all);
                    rows.unplaced = true;
                }
                (Some(_), Some(campus), _) | (Some(Limit::OwnCampus), None, Some(campus)) => {
                    rows.campuses.insert(campus);
                }
                (Some(Limit::OwnCampus), None, None) | (None, ..) => {}
            }
        }
        rows
    }

    /// Where they have any business: the whole school, or their campus and those that they may list.
    fn open(&self) -> Rows {
        match self.person.campus {
            None => Rows {
                campuses: self.all.clone(),
                unplaced: true,
            },
            Some(own) => {
                let mut rows = self.rule("LIST", "CAMPUS");
                rows.campuses.insert(own);
                rows
            }
        }
    }

    fn campuses_of(&self, streams: &BTreeSet<Uuid>) -> Rows {
        let streams = streams.iter().filter_map(|id| self.facts.find(Kind::Stream, *id));
        Rows {
            campuses: streams.filter_map(|row: Row| row.campus).collect(),
            unplaced: false,
        }
    }
}

/// Students are shown to the class teacher of their stream and to the director of studies of its campus, and to nobody else.
pub(super) fn may_see_student(facts: &Facts, actor: &Actor, mark: &Mark) -> bool {
    let person = &facts.people[actor.person];
    let origin = facts.marked.marks.get(&mark.serial);
    let Some(student) = origin
        .filter(|origin| origin.table == "students")
        .and_then(|origin| origin.row)
    else {
        return true;
    };
    facts.streams_of.get(&student).into_iter().flatten().any(|stream| {
        let campus = facts.find(Kind::Stream, *stream).and_then(|row| row.campus);
        person.class_teacher_of.contains(stream) || campus.is_some_and(|campus| person.directs.contains(&campus))
    })
}

//! How far a call may look, worked out from the seeded facts, the posture of its tool and where that is offered. Nothing here asks the
//! product what somebody may do, and nothing knows a tool by its name, but for what [`ALSO`] lists.

use super::{
    actors::{Actor, Claim},
    facts::{Facts, Held, Permission, Person},
    marks::{COMMON, Owner, PLATFORM, UNPLACED},
};
use contract::{
    AgentCallScope, RpcTool, ToolRole, UserType,
    tool::{Placement, ToolScope},
};
use server::posture::Auth;
use std::{
    collections::{BTreeSet, HashSet},
    sync::Mutex,
};
use uuid::Uuid;

/// Tools that serve somebody whose belt they are not on, and why.
const ALSO: &[(&str, ToolRole, &str)] = &[(
    "get.grading_config",
    ToolRole::Dos,
    "who sets the bands of a campus reads them too",
)];

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

    /// Whether something of the whole school may be seen, which also is who may make such a thing.
    pub(super) const fn has_unplaced(&self) -> bool {
        match self {
            Self::Everything => true,
            Self::Nothing => false,
            Self::Some { unplaced, .. } => *unplaced,
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
pub(super) struct Rows {
    pub(super) campuses: BTreeSet<Uuid>,
    pub(super) unplaced: bool,
}

impl Rows {
    fn and(mut self, other: Self) -> Self {
        self.campuses.extend(other.campuses);
        self.unplaced |= other.unplaced;
        self
    }
}

/// A change that calls of this test have made to who is what, or may have.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Change {
    /// A person holds a role.
    Holds(usize, Held),
    /// A person is class teacher of a stream.
    AnswersFor(usize, Uuid),
    /// A person teaches a subject to a stream.
    Teaches(usize, Uuid, Uuid),
    /// A person leads a department.
    Leads(usize, Uuid),
    /// A student is in a stream.
    IsIn(Uuid, Uuid),
}

impl Change {
    /// The stream that it is about.
    pub(super) const fn stream(&self) -> Option<Uuid> {
        match self {
            Self::AnswersFor(_, stream) | Self::Teaches(_, stream, _) | Self::IsIn(_, stream) => Some(*stream),
            Self::Holds(..) | Self::Leads(..) => None,
        }
    }
}

/// All such changes so far.
#[derive(Debug, Default)]
pub(super) struct Given(Mutex<HashSet<Change>>);

impl Given {
    /// From now on it may be so.
    pub(super) fn add(&self, change: Change) {
        self.0.lock().unwrap().insert(change);
    }

    pub(super) fn all(&self) -> Vec<Change> {
        self.0.lock().unwrap().iter().cloned().collect()
    }
}

/// What an actor's call of a tool may show.
pub(super) fn reach(facts: &Facts, changes: &[Change], actor: &Actor, tool: &RpcTool) -> Reach {
    bounded(facts, changes, actor, |eyes| {
        let mut rows = eyes.rows_of(tool);
        // a list about one campus shows what belongs to it
        let of_a_campus = tool.definition.scope == ToolScope::Campus && tool.definition.event.verb() == "list";
        if of_a_campus && matches!(facts.posture(tool), Auth::Casl { .. }) {
            rows.unplaced = false;
        }
        rows
    })
}

/// Where an actor has any business: what they may be told as a turn begins.
pub(super) fn business(facts: &Facts, changes: &[Change], actor: &Actor) -> Reach {
    bounded(facts, changes, actor, open)
}

fn bounded(facts: &Facts, changes: &[Change], actor: &Actor, rows: impl FnOnce(&Eyes<'_>) -> Rows) -> Reach {
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
    let eyes = Eyes::of(facts, changes, actor.person);
    let mut rows = rows(&eyes);
    if let AgentCallScope::Campus { campus_id } = actor.scope {
        if !open(&eyes).campuses.contains(&campus_id) {
            return Reach::Nothing;
        }
        rows.campuses.retain(|campus| *campus == campus_id);
        rows.unplaced = false;
    }
    Reach::Some {
        school: facts.shared(school).school,
        campuses: rows.campuses.iter().map(|campus| facts.place(*campus)).collect(),
        unplaced: rows.unplaced,
    }
}

/// Somebody who looks, with what they are by now.
pub(super) struct Eyes<'a> {
    facts: &'a Facts,
    pub(super) person: &'a Person,
    held: Vec<Held>,
    all: BTreeSet<Uuid>,
    pub(super) class_teacher_of: BTreeSet<Uuid>,
    pub(super) teaches: BTreeSet<(Uuid, Uuid)>,
    pub(super) leads: BTreeSet<Uuid>,
}

impl<'a> Eyes<'a> {
    pub(super) fn of(facts: &'a Facts, changes: &[Change], at: usize) -> Self {
        let person = &facts.people[at];
        let mut eyes = Self {
            facts,
            person,
            held: person.roles.clone(),
            all: person
                .school
                .map(|school| facts.campuses_of(school))
                .unwrap_or_default(),
            class_teacher_of: person.class_teacher_of.clone(),
            teaches: person.teaches.clone(),
            leads: person.leads.clone(),
        };
        for change in changes {
            match change {
                Change::Holds(who, held) if *who == at => eyes.held.push(held.clone()),
                Change::AnswersFor(who, stream) if *who == at => drop(eyes.class_teacher_of.insert(*stream)),
                Change::Teaches(who, stream, subject) if *who == at => drop(eyes.teaches.insert((*stream, *subject))),
                Change::Leads(who, department) if *who == at => drop(eyes.leads.insert(*department)),
                Change::Holds(..)
                | Change::AnswersFor(..)
                | Change::Teaches(..)
                | Change::Leads(..)
                | Change::IsIn(..) => {}
            }
        }
        eyes
    }

    /// The rows that a tool may show: by its gate; by the relationship that its belt stands for; or wherever somebody has any business.
    fn rows_of(&self, tool: &RpcTool) -> Rows {
        if let Auth::Casl { action, resource } = self.facts.posture(tool) {
            let (action, resource) = (action.to_string(), resource.to_string());
            return self.allowed(|permission| permission.is_about(&action, &resource));
        }
        let roles = match tool.definition.placement {
            Placement::Roles(roles) => roles.as_slice(),
            Placement::Supervisor | Placement::Shared => {
                let all = [ToolRole::ClassTeacher, ToolRole::SubjectTeacher, ToolRole::Dos];
                let rows = open(self).and(self.related(&all));
                return Rows { unplaced: true, ..rows };
            }
        };
        let also = ALSO
            .iter()
            .filter(|(event, ..)| *event == tool.definition.event.as_str())
            .map(|(_, role, _)| *role);
        let roles: Vec<ToolRole> = roles.iter().copied().chain(also).collect();
        self.related(&roles)
    }

    /// Where they are what these roles say.
    fn related(&self, roles: &[ToolRole]) -> Rows {
        let mut rows = Rows::default();
        let streams = |streams: &mut dyn Iterator<Item = Uuid>| -> Vec<Uuid> {
            streams.filter_map(|id| self.facts.campus_of_stream(id)).collect()
        };
        for role in roles {
            rows.campuses.extend(match role {
                ToolRole::ClassTeacher => streams(&mut self.class_teacher_of.iter().copied()),
                ToolRole::SubjectTeacher => streams(&mut self.teaches.iter().map(|(stream, _)| *stream)),
                ToolRole::Dos => self.person.directs.iter().copied().collect(),
            });
        }
        rows
    }

    /// What their roles and departments allow.
    pub(super) fn allowed(&self, is_it: impl Fn(&Permission) -> bool) -> Rows {
        let mut rows = Rows::default();
        let by_department = self.person.of_departments.iter();
        rows.campuses.extend(
            by_department
                .filter(|(_, permission)| is_it(permission))
                .map(|(campus, _)| *campus),
        );
        for held in &self.held {
            let key = (self.person.school.unwrap_or_default(), held.role.clone());
            let Some(permissions) = self.facts.permissions.get(&key) else {
                panic!("nobody knows what {} allows", held.role)
            };
            for permission in permissions.iter().filter(|permission| is_it(permission)) {
                match (permission.own_campus, held.campus, self.person.campus) {
                    (false, None, _) => {
                        rows.campuses.extend(&self.all);
                        rows.unplaced = true;
                    }
                    (_, Some(campus), _) | (true, None, Some(campus)) => {
                        rows.campuses.insert(campus);
                    }
                    (true, None, None) => {}
                }
            }
        }
        rows
    }
}

/// Where somebody has any business: the whole school, or their campus and those that they may list.
fn open(eyes: &Eyes<'_>) -> Rows {
    match eyes.person.campus {
        None => Rows {
            campuses: eyes.all.clone(),
            unplaced: true,
        },
        Some(own) => {
            let mut rows = eyes.allowed(|permission| permission.is_about("LIST", "CAMPUS"));
            rows.campuses.insert(own);
            rows
        }
    }
}

//! Who calls: everybody of both schools, in school mode and on each campus, whether it is open to them or not; and people with
//! grants that say what is not so.

use super::facts::{Facts, Person};
use contract::{AgentCallScope, AgentIdentity, UserType};
use e2e::{Stage, stage::now_ms};
use server::grant::{Door, TurnGrant};
use std::fmt;
use uuid::Uuid;

/// Somebody in a turn.
pub(super) struct Actor {
    pub(super) person: usize,
    /// Who that is, for whoever reads a failure.
    label: String,
    pub(super) claim: Claim,
    pub(super) identity: AgentIdentity,
    pub(super) scope: AgentCallScope,
    pub(super) turn: Uuid,
    pub(super) grant: String,
}

/// Whether the identity in the grant is the person's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    /// It is.
    True,
    /// It says something that the rows do not.
    False,
}

impl fmt::Debug for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

/// Everybody everywhere.
pub(super) fn everybody(stage: &Stage, facts: &Facts) -> Vec<Actor> {
    let mut actors = Vec::new();
    for (person, who) in facts.people.iter().enumerate() {
        let campuses = facts.of("campuses").iter().map(|row| Some(row.id));
        for campus in [None, Some(Uuid::from_u128(0xdead))].into_iter().chain(campuses) {
            actors.push(actor(stage, facts, person, identity(who), campus, Claim::True));
        }
        for identity in false_identities(facts, who) {
            actors.push(actor(stage, facts, person, identity, None, Claim::False));
        }
    }
    actors
}

fn actor(
    stage: &Stage,
    facts: &Facts,
    person: usize,
    identity: AgentIdentity,
    campus: Option<Uuid>,
    claim: Claim,
) -> Actor {
    let scope = campus.map_or(AgentCallScope::School {}, |campus_id| AgentCallScope::Campus {
        campus_id,
    });
    let who = &facts.people[person];
    let named = |id: Option<Uuid>| {
        id.and_then(|id| facts.names.0.get(&id))
            .map_or("nowhere", String::as_str)
    };
    let place = campus.map_or("the whole school", |campus| named(Some(campus)));
    let mut label = format!("{}@{} in {place}", who.who, named(who.school));
    if claim == Claim::False {
        label = format!(
            "{label} as {} of {}",
            identity.user_type.as_str(),
            named(identity.school_id)
        );
    }
    let turn = Uuid::now_v7();
    let grant = TurnGrant {
        identity: identity.clone(),
        scope,
        turn_id: turn,
        door: Door::Chat,
        expires_at_ms: now_ms() + 3_600_000,
    };
    Actor {
        person,
        label,
        claim,
        identity,
        scope,
        turn,
        grant: stage.config().grants.mint(&grant).unwrap(),
    }
}

fn identity(who: &Person) -> AgentIdentity {
    AgentIdentity {
        sub: who.user,
        email: who.email.clone(),
        user_type: who.user_type,
        profile_id: who.staff.unwrap_or(who.user),
        school_id: who.school,
        campus_id: who.campus,
    }
}

/// Identities that somebody once had, or never: what the grant says is no longer what the rows say.
fn false_identities(facts: &Facts, who: &Person) -> Vec<AgentIdentity> {
    let own = identity(who);
    let Some(school) = who.school else {
        // an operator who says that he works in a school
        return facts
            .people
            .iter()
            .find_map(|other| other.school)
            .map_or(vec![], |school| {
                vec![AgentIdentity {
                    user_type: UserType::Staff,
                    school_id: Some(school),
                    ..own
                }]
            });
    };
    let is_twin = |other: &&Person| other.who == who.who && other.school.is_some_and(|other| other != school);
    let Some(twin) = facts.people.iter().find(is_twin) else {
        return vec![];
    };
    vec![
        AgentIdentity {
            school_id: twin.school,
            ..own.clone()
        },
        AgentIdentity {
            school_id: twin.school,
            profile_id: twin.staff.unwrap_or_default(),
            ..own.clone()
        },
        AgentIdentity {
            school_id: None,
            ..own.clone()
        },
        AgentIdentity {
            user_type: UserType::PlatformAdmin,
            school_id: None,
            ..own.clone()
        },
        AgentIdentity { sub: twin.user, ..own },
    ]
}

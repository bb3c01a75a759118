//! Who calls: the people of a data set, and the grants under which ours takes their calls.

use crate::load::{Event, now_ms};
use anyhow::{Context as _, ensure};
use contract::{AgentCallScope, AgentIdentity};
use serde_json::json;
use server::grant::{Door, GrantKey, TurnGrant, Ungranted};
use uuid::Uuid;

/// How long a turn's grant lasts: longer than any measurement.
const TURN_MS: i64 = 24 * 3600 * 1000;

/// Everybody of ours who calls, a JSON object a line.
pub(crate) const OURS: &str = "
    SELECT json_strip_nulls(json_build_object('sub', u.id, 'email', u.email, 'type', u.type, 'profileId', s.id,
                                              'schoolId', s.school_id, 'campusId', s.campus_id))
      FROM staff s JOIN users u ON u.id = s.user_id ORDER BY u.email";
/// The same of the peers.
pub(crate) const PEERS: &str = "
    SELECT json_strip_nulls(json_build_object('sub', id, 'email', email, 'type', type, 'profileId', profile_id,
                                              'schoolId', school_id, 'campusId', campus_id))
      FROM hop.app_user WHERE type = 'STAFF' ORDER BY email";

/// One caller.
#[derive(Debug)]
pub(crate) struct Person {
    /// As it goes over the wire.
    pub(crate) identity: String,
    pub(crate) granted: Option<Granted>,
}

/// A turn of theirs.
#[derive(Debug)]
pub(crate) struct Granted {
    pub(crate) turn_id: Uuid,
    pub(crate) token: String,
}

/// Who calls what.
#[derive(Debug)]
pub(crate) struct People {
    readers: Vec<Person>,
    writers: Vec<Person>,
    teachers: Vec<Person>,
    /// Where departments are made.
    campuses: Vec<String>,
}

impl People {
    /// Of the answers to [`OURS`] or [`PEERS`], and to a query for the campuses of the school that is written to. With a secret, each
    /// has a turn.
    pub(crate) fn of(identities: &str, campuses: &str, secret: Option<&str>) -> anyhow::Result<Self> {
        let key = match secret {
            Some(secret) => {
                Some(GrantKey::new(secret.as_bytes(), Ungranted::Refuse).context("the secret is too short")?)
            }
            None => None,
        };
        let mut people = Self {
            readers: Vec::new(),
            writers: Vec::new(),
            teachers: Vec::new(),
            campuses: campuses.lines().map(str::to_owned).collect(),
        };
        for line in identities.lines() {
            let identity: AgentIdentity = serde_json::from_str(line).context("reading an identity")?;
            let is_written_to = identity.email.ends_with("@school6.test");
            let place = match (
                identity.email.starts_with("head"),
                identity.email.starts_with("teacher"),
            ) {
                (true, _) if is_written_to => &mut people.writers,
                (true, _) => &mut people.readers,
                (_, true) if !is_written_to => &mut people.teachers,
                _ => continue,
            };
            place.push(Person::new(identity, key.as_ref())?);
        }
        let sizes = (
            people.readers.len(),
            people.writers.len(),
            people.teachers.len(),
            people.campuses.len(),
        );
        ensure!(
            sizes == (20, 4, 60, 3),
            "the data set is not what it should be: {sizes:?}"
        );
        Ok(people)
    }

    /// Who makes the so-manieth call.
    pub(crate) fn caller(&self, event: Event, number: usize) -> &Person {
        let people = match event {
            Event::ListDepartments => &self.readers,
            Event::CreateDepartment => &self.writers,
            Event::ListMyClassrooms => &self.teachers,
        };
        people
            .get(number % people.len())
            .expect("nobody is missing, as was checked")
    }

    /// The arguments of a call that makes a department.
    pub(crate) fn new_department(&self, run: &str, number: usize) -> String {
        let campus = self.campuses.get(number % self.campuses.len());
        json!({"name": format!("bench {run} {number}"), "description": "made by the load driver", "campusId": campus})
            .to_string()
    }
}

impl Person {
    fn new(identity: AgentIdentity, key: Option<&GrantKey>) -> anyhow::Result<Self> {
        let on_the_wire = serde_json::to_string(&identity)?;
        let granted = match key {
            None => None,
            Some(key) => {
                let turn_id = Uuid::now_v7();
                let token = key.mint(&TurnGrant {
                    identity,
                    scope: AgentCallScope::School {},
                    turn_id,
                    door: Door::Chat,
                    expires_at_ms: now_ms()? + TURN_MS,
                })?;
                Some(Granted { turn_id, token })
            }
        };
        Ok(Self {
            identity: on_the_wire,
            granted,
        })
    }
}

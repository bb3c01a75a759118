//! Who is calling ([`AgentIdentity`]) and where the call is pinned ([`AgentCallScope`]).
//!
//! Both are minted by the server at dispatch and echoed by the worker; neither is ever taken from what a model wrote.

use crate::context::AgentUserDetails;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What kind of account calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum UserType {
    /// Runs the platform, belongs to no school.
    PlatformAdmin,
    /// Runs one school; what that allows is in the school's roles, not in this word.
    SchoolAdmin,
    /// Works at one school.
    Staff,
}

impl UserType {
    /// The word on the wire and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PlatformAdmin => "PLATFORM_ADMIN",
            Self::SchoolAdmin => "SCHOOL_ADMIN",
            Self::Staff => "STAFF",
        }
    }
}

/// Who a call is made for. Rides on every call; the server proves it by the turn's grant and reads its facts anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentIdentity {
    /// The account.
    pub sub: Uuid,
    /// The account's e-mail address.
    pub email: String,
    /// The kind of account.
    #[serde(rename = "type")]
    pub user_type: UserType,
    /// The person's profile in the school; for a platform admin, who has none, the account again.
    pub profile_id: Uuid,
    /// The tenant. Absent only for platform admins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub school_id: Option<Uuid>,
    /// The campus the person works on; absent for whoever works for the whole school.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub campus_id: Option<Uuid>,
}

/// The identity of whoever is chatting: a change of names, `userId` to `sub` and `userType` to `type`.
#[must_use]
pub fn identity_from_user_details(details: &AgentUserDetails) -> AgentIdentity {
    AgentIdentity {
        sub: details.user_id,
        email: details.email.clone(),
        user_type: details.user_type,
        profile_id: details.profile_id,
        school_id: details.school_id,
        campus_id: details.campus_id,
    }
}

/// Which campus a call is pinned to. Campus mode without a campus cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "lowercase")]
pub enum AgentCallScope {
    /// Not pinned: the model names a campus where it must.
    School {},
    /// Pinned to the campus the person is working in, whatever the arguments say.
    #[serde(rename_all = "camelCase")]
    Campus {
        /// The campus.
        campus_id: Uuid,
    },
}

impl AgentCallScope {
    /// The campus that this call is pinned to.
    #[must_use]
    pub const fn pinned(&self) -> Option<Uuid> {
        match self {
            Self::School {} => None,
            Self::Campus { campus_id } => Some(*campus_id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json, to_value};

    #[test]
    fn campus_mode_without_a_campus_is_refused() {
        assert!(from_value::<AgentCallScope>(json!({"mode": "campus"})).is_err());
        let pinned = json!({"mode": "campus", "campusId": "018f0000-0000-7000-8000-000000000001"});
        assert_eq!(
            to_value(from_value::<AgentCallScope>(pinned.clone()).unwrap()).unwrap(),
            pinned
        );
        assert_eq!(to_value(AgentCallScope::School {}).unwrap(), json!({"mode": "school"}));
    }

    #[test]
    fn absent_ids_are_left_off_the_wire() {
        let identity = json!({"sub": Uuid::nil(), "email": "a@b.example", "type": "STAFF", "profileId": Uuid::nil()});
        assert_eq!(
            to_value(from_value::<AgentIdentity>(identity.clone()).unwrap()).unwrap(),
            identity
        );
    }
}

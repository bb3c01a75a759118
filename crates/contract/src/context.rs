//! The runtime context: everything the agents need to know about this caller and this moment, minted by the server once a turn.
//!
//! The model never supplies it. Two of its fields look like authorisation and are not: `user_permissions` and `run_mode` shape
//! what is offered, and the server decides each call anew.

use crate::{
    identity::{AgentCallScope, UserType},
    permission::{Action, Resource},
};
use chrono::{DateTime, NaiveDate, TimeZone, Utc};
use chrono_tz::Tz;
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;
use uuid::Uuid;

/// The context as parsed. Whoever reads a field parses the wire shape first, so that defaults and dates are in place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentRuntimeContext {
    /// Who is chatting.
    pub user_details: AgentUserDetails,
    /// Whole school, or one campus.
    pub run_mode: AgentRunMode,
    /// When the turn was dispatched. On the wire an RFC 3339 text or milliseconds since 1970; the time of parsing if absent.
    #[serde(default = "now", deserialize_with = "date_from_wire")]
    pub current_time: DateTime<Utc>,
    /// The school's IANA zone; absent rather than guessed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<Tz>,
    /// The caller's rules at dispatch, flattened. Advisory only.
    #[serde(default)]
    pub user_permissions: Vec<PermissionSnapshot>,
    /// Which specialists this caller may be offered.
    #[serde(default)]
    pub capabilities: AgentCapabilities,
    /// The current academic year; absent where none is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_academic_year: Option<CurrentAcademicYear>,
    /// The current year's terms by number; empty where no campus is pinned.
    #[serde(default)]
    pub terms: Vec<Term>,
    /// What the caller teaches; absent for whoever does not teach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teaching_map: Option<Vec<TeachingAssignment>>,
    /// Files on this message, not on the whole thread.
    #[serde(default)]
    pub attachments: Vec<Attachment>,
}

/// Who is chatting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentUserDetails {
    /// The person's name.
    pub name: String,
    /// The account's e-mail address.
    pub email: String,
    /// The account.
    pub user_id: Uuid,
    /// The person's profile in the school.
    pub profile_id: Uuid,
    /// The kind of account.
    pub user_type: UserType,
    /// The school; absent only for platform admins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub school_id: Option<Uuid>,
    /// The school's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub school_name: Option<String>,
    /// The campus the person works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub campus_id: Option<Uuid>,
    /// That campus's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub campus_name: Option<String>,
}

/// Where the caller works in this turn. Campus mode without a campus cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "lowercase")]
pub enum AgentRunMode {
    /// The whole school.
    School {},
    /// One campus.
    Campus {
        /// The campus.
        campus: CampusReference,
    },
}

impl AgentRunMode {
    /// The mode without its campus.
    #[must_use]
    pub const fn name(&self) -> AgentRunModeName {
        match self {
            Self::School {} => AgentRunModeName::School,
            Self::Campus { .. } => AgentRunModeName::Campus,
        }
    }

    /// The scope that every call of this turn carries.
    #[must_use]
    pub const fn call_scope(&self) -> AgentCallScope {
        match self {
            Self::School {} => AgentCallScope::School {},
            Self::Campus { campus } => AgentCallScope::Campus { campus_id: campus.id },
        }
    }
}

/// A run mode's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentRunModeName {
    /// The whole school.
    School,
    /// One campus.
    Campus,
}

/// A campus by id and name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CampusReference {
    /// The campus.
    pub id: Uuid,
    /// Its name.
    pub name: String,
}

/// One rule of the caller's ability at dispatch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionSnapshot {
    /// What may be done.
    pub action: Action,
    /// To what.
    pub resource: Resource,
    /// On which rows only, such as `{"campusId": "…"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Value>,
    /// Whether the rule forbids instead of allowing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inverted: bool,
}

/// Which specialists a caller may be offered; resolved by the server from assignments, all false where unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentCapabilities {
    /// Is the class teacher of a stream this year.
    pub is_class_teacher: bool,
    /// Teaches a subject in a stream this year.
    pub is_subject_teacher: bool,
    /// Is director of studies of a campus.
    pub is_director_of_studies: bool,
}

/// The current academic year.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CurrentAcademicYear {
    /// Its name, such as "Academic year 2026".
    pub name: String,
    /// The calendar year it is counted under.
    pub year: i32,
    /// The pinned campus's row for that year.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub campus_academic_year_id: Option<Uuid>,
}

/// A term of the current year.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Term {
    /// The term.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Its place in the year, from 1.
    pub term_number: i32,
    /// Its first day.
    pub starts_on: NaiveDate,
    /// Its last day.
    pub ends_on: NaiveDate,
}

/// One thing that the caller teaches this year.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TeachingAssignment {
    /// The stream.
    pub stream_id: Uuid,
    /// The stream's name, with its class.
    pub stream_name: String,
    /// The subject; absent for the class teacher of the stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<SubjectReference>,
}

/// A subject by id and name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubjectReference {
    /// The subject.
    pub id: Uuid,
    /// Its name.
    pub name: String,
}

/// A file on the message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attachment {
    /// The file's name.
    pub name: String,
    /// Its media type.
    pub media_type: String,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Where the worker can read it.
    pub url: String,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the seeds' default is the moment of parsing, taken anew each time"
)]
fn now() -> DateTime<Utc> {
    Utc::now()
}

/// JSON has no dates: takes the text that a `Date` becomes, or milliseconds since 1970.
fn date_from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DateTime<Utc>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Wire {
        Text(DateTime<Utc>),
        Milliseconds(i64),
    }
    match Wire::deserialize(deserializer)? {
        Wire::Text(date) => Ok(date),
        Wire::Milliseconds(ms) => Utc
            .timestamp_millis_opt(ms)
            .single()
            .ok_or_else(|| de::Error::custom("no such moment")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json};

    fn least() -> Value {
        json!({
            "userDetails": {
                "name": "A", "email": "a@b.example", "userId": Uuid::nil(), "profileId": Uuid::nil(), "userType": "STAFF",
            },
            "runMode": {"mode": "school"},
        })
    }

    #[test]
    fn old_payloads_still_parse() {
        let context: AgentRuntimeContext = from_value(least()).unwrap();
        assert_eq!(context.capabilities, AgentCapabilities::default());
        assert!(context.terms.is_empty() && context.teaching_map.is_none() && context.time_zone.is_none());
    }

    #[test]
    fn dates_are_text_or_milliseconds() {
        let mut input = least();
        for wire in [json!("2026-02-03T04:05:06.007Z"), json!(1_770_091_506_007_i64)] {
            input["currentTime"] = wire;
            let context: AgentRuntimeContext = from_value(input.clone()).unwrap();
            assert_eq!(context.current_time.timestamp_millis(), 1_770_091_506_007);
        }
    }

    #[test]
    fn campus_mode_without_a_campus_is_refused() {
        let mut input = least();
        input["runMode"] = json!({"mode": "campus"});
        assert!(from_value::<AgentRuntimeContext>(input).is_err());
    }

    #[test]
    fn context_survives_the_wire() {
        let mut input = least();
        input["runMode"] = json!({"mode": "campus", "campus": {"id": Uuid::nil(), "name": "Main"}});
        input["timeZone"] = json!("Africa/Kampala");
        input["userPermissions"] = json!([{"action": "LIST", "resource": "STAFF", "condition": {"campusId": "x"}}]);
        input["capabilities"] = json!({"isClassTeacher": true});
        let context: AgentRuntimeContext = from_value(input).unwrap();
        assert!(context.capabilities.is_class_teacher && !context.capabilities.is_subject_teacher);
        assert_eq!(
            from_value::<AgentRuntimeContext>(serde_json::to_value(&context).unwrap()).unwrap(),
            context
        );
    }
}

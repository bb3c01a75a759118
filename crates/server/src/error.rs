//! Why a call ends without data, and what the model may read of it.
//!
//! Expected rejections keep their message, as a model can act on them. Everything else is logged with a label and masked with one
//! fixed sentence, so that no internals and no other row's contents reach a model.

use crate::db::DbError;
use contract::{Action, Resource};

/// What the model reads where it may not know more.
pub const MASKED_ERROR: &str =
    "That action could not be completed. Do not retry; tell the user what you were trying to do.";

/// What the model reads for a caller without a tenant.
pub const NO_TENANT_SCOPE_ERROR: &str = "No school context for this user.";

/// What the model reads for a call without an identity.
pub const MISSING_IDENTITY_ERROR: &str = "Missing tool-call identity.";

/// Why a step or a handler ended a call.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The envelope lacks `sub` or `type`.
    #[error("{MISSING_IDENTITY_ERROR}")]
    MissingIdentity,
    /// The envelope cannot be read.
    #[error("Malformed tool call: {0}.")]
    Malformed(String),
    /// The grant is missing, forged, expired, or for something else.
    #[error("Permission denied: {0}.")]
    Grant(#[from] crate::grant::GrantError),
    /// Caller and server know different versions of the tool.
    #[error(
        "The tool {event} is another one here than where this call comes from (contract {here} here, {there} there). It was not carried \
         out. Do not retry; tell the user that the system is being updated, and to ask again later."
    )]
    OtherContract {
        /// The tool's event.
        event: &'static str,
        /// The beginning of the hash of its contract here.
        here: String,
        /// And of that which the caller knows.
        there: String,
    },
    /// A caller that says which contract it knows calls what is no tool here.
    #[error(
        "The tool {event} is not known here, only where this call comes from (contract {there} there). It was not carried out. Do not \
         retry; tell the user that the system is being updated, and to ask again later."
    )]
    UnknownContract {
        /// The event that was called.
        event: String,
        /// The beginning of the hash of its contract where it is known.
        there: String,
    },
    /// The arguments do not fit the tool; the text says where and why.
    #[error("Invalid tool arguments: {0}")]
    Invalid(String),
    /// A caller who is not a platform admin, and has no school.
    #[error("{NO_TENANT_SCOPE_ERROR}")]
    NoTenantScope,
    /// The gate of a `casl` posture said no.
    #[error("Permission denied: you may not {action} {resource}.")]
    Denied {
        /// What would have been done.
        action: Action,
        /// To what.
        resource: Resource,
    },
    /// A rule about this caller or this row said no.
    #[error("Permission denied: {0}.")]
    Forbidden(&'static str),
    /// There is no such row, or the caller may not see it: the same answer for both.
    #[error("{0} not found.")]
    NotFound(&'static str),
    /// What is there already stands against it.
    #[error("{0}")]
    Conflict(String),
    /// The key of this call was used for another one.
    #[error("This call's key was already used for another call.")]
    KeyReused,
    /// The caller's deadline has passed.
    #[error("The time for this call has run out. It was not carried out.")]
    Expired,
    /// The time ran out in the middle; a write may have been carried out, and its key tells.
    #[error(
        "The time for this call ran out while it was carried out. Do not retry; tell the user that it may or may not have been done."
    )]
    TimedOut,
    /// The connection was lost under the commit; the key tells whether it was made.
    #[error(
        "This action may or may not have been carried out. Do not retry; tell the user what you were trying to do, and that it may have been done."
    )]
    InDoubt,
    /// The turn of a write was stopped or has ended; its person has read what was done.
    #[error("This was not carried out: the turn that it belongs to was stopped or has ended. Do not retry.")]
    TurnOver,
    /// The message was begun too often without an end.
    #[error(
        "This call was tried several times and never ended. Do not retry; tell the user what you were trying to do."
    )]
    TooManyTries,
    /// The database failed, or refused what it should never have been asked.
    #[error("database: {0}")]
    Database(#[from] DbError),
    /// The result could not be put into words.
    #[error("the result cannot be serialised: {0}")]
    Unserialisable(#[from] serde_json::Error),
    /// The result is one row of more than a reply may hold.
    #[error("the result does not fit a reply")]
    TooLarge,
    /// The rule engine failed; taken as a no.
    #[error("the rules cannot be evaluated: {0}")]
    Rules(String),
    /// A step or a handler panicked.
    #[error("panicked: {0}")]
    Panicked(String),
}

/// How a denial is counted and logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Somebody asked for what they may not do.
    Denial,
    /// An expected rejection that says nothing about permission.
    Rejection,
    /// A fault of ours.
    Fault,
}

/// How much of a hash is told, in characters: enough for an operator to find which is which.
const SHOWN_OF_HASH: usize = 12;
/// How long an event may be that is repeated to its caller.
const MAX_EVENT_CHARS: usize = 64;

impl ToolError {
    /// What is said to a caller that knows another version of a tool.
    pub(crate) fn other_contract(event: &'static str, here: &str, there: &str) -> Self {
        Self::OtherContract {
            event,
            here: beginning(here),
            there: beginning(there),
        }
    }

    /// What is said of an event that no tool here has: a caller that names a contract of it comes from another version.
    pub(crate) fn unknown_event(event: &str, contract: Option<&str>) -> Self {
        let is_part = |b: u8| b.is_ascii_lowercase() || b"._".contains(&b);
        match contract {
            Some(there) if event.len() <= MAX_EVENT_CHARS && event.bytes().all(is_part) => Self::UnknownContract {
                event: event.to_owned(),
                there: beginning(there),
            },
            Some(_) | None => Self::Malformed("there is no such tool".to_owned()),
        }
    }

    /// What kind of end this is.
    pub(crate) const fn kind(&self) -> Kind {
        match self {
            Self::Grant(_) | Self::NoTenantScope | Self::Denied { .. } | Self::Forbidden(_) => Kind::Denial,
            Self::MissingIdentity
            | Self::Malformed(_)
            | Self::OtherContract { .. }
            | Self::UnknownContract { .. }
            | Self::Invalid(_)
            | Self::NotFound(_)
            | Self::Conflict(_)
            | Self::KeyReused
            | Self::Expired
            | Self::TimedOut
            | Self::InDoubt
            | Self::TurnOver
            | Self::TooManyTries => Kind::Rejection,
            Self::Database(_) | Self::Unserialisable(_) | Self::TooLarge | Self::Rules(_) | Self::Panicked(_) => {
                Kind::Fault
            }
        }
    }

    /// Whether the same call may succeed when it is made again at once.
    pub(crate) const fn is_transient(&self) -> bool {
        matches!(self, Self::Database(DbError::Transient(_)))
    }
}

/// The text that the model reads. `label` names the call in the log and never reaches the model.
pub(crate) fn to_tool_error(error: &ToolError, label: &str) -> String {
    match error.kind() {
        Kind::Denial | Kind::Rejection => error.to_string(),
        Kind::Fault => {
            tracing::error!(label, error = %error, "tool failed");
            MASKED_ERROR.to_owned()
        }
    }
}

/// As much of a contract's hash as tells it from another.
fn beginning(hash: &str) -> String {
    hash.chars().take(SHOWN_OF_HASH).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_masked_and_rejections_are_not() {
        let fault = ToolError::Panicked("secret detail".into());
        assert_eq!(to_tool_error(&fault, "test"), MASKED_ERROR);
        assert_eq!(
            to_tool_error(&ToolError::NotFound("Department"), "test"),
            "Department not found."
        );
        let denied = ToolError::Denied {
            action: Action::Create,
            resource: Resource::Department,
        };
        assert_eq!(
            to_tool_error(&denied, "test"),
            "Permission denied: you may not CREATE DEPARTMENT."
        );
    }
}

//! What a person says about a call that waits.

use super::DecisionError;
use serde_json::Value;

/// The longest reason, in characters; the table holds it to that as well.
const MAX_REASON_CHARS: usize = 1000;

/// What a person says about a call that waits.
#[derive(Debug, Clone)]
pub struct Ruling(pub(super) What);

/// One of three.
#[derive(Debug, Clone)]
pub(super) enum What {
    Approve,
    Reject(Option<String>),
    Edit(Value),
}

impl Ruling {
    /// Yes.
    #[must_use]
    pub const fn approve() -> Self {
        Self(What::Approve)
    }

    /// No.
    ///
    /// # Errors
    ///
    /// [`DecisionError::Invalid`] where the reason cannot be stored.
    pub fn reject(reason: Option<String>) -> Result<Self, DecisionError> {
        let reason = reason.filter(|reason| !reason.trim().is_empty());
        if reason
            .as_ref()
            .is_some_and(|reason| reason.chars().nth(MAX_REASON_CHARS).is_some() || reason.contains('\0'))
        {
            let problem =
                format!("reason: it has more than {MAX_REASON_CHARS} characters, or some that cannot be stored");
            return Err(DecisionError::Invalid(problem));
        }
        Ok(Self(What::Reject(reason)))
    }

    /// Not so, but with these arguments.
    #[must_use]
    pub const fn edit(arguments: Value) -> Self {
        Self(What::Edit(arguments))
    }
}

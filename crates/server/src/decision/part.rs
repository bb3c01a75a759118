//! What somebody has to do with an approval, and why it may be too late for it.

use super::{DecisionError, ruling::What};
use crate::{clock, db::approval::Row, error::ToolError, standing::Standing};
use contract::{Action, Resource};

/// What somebody has to do with a call that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// They asked for it, and it is theirs to decide.
    Owns,
    /// They asked for it, and somebody else decides: they may take it back, or ask for something else.
    Asked,
    /// It was asked for by somebody else, and they decide about it as it is.
    Approves,
}

impl Part {
    /// Whether a yes is theirs to say.
    pub(super) const fn approves(self) -> bool {
        matches!(self, Self::Owns | Self::Approves)
    }

    /// Whether somebody with this part may say this. Whoever decides about another's call does not write it too: it is made with the
    /// other's rights, and in their name.
    pub(super) const fn allows(self, said: &What) -> Result<(), DecisionError> {
        match (self, said) {
            (Self::Owns, _)
            | (Self::Asked, What::Reject(_) | What::Edit(_))
            | (Self::Approves, What::Approve | What::Reject(_)) => Ok(()),
            (Self::Asked, What::Approve) => Err(DecisionError::NeedsAnother),
            (Self::Approves, What::Edit(_)) => Err(DecisionError::NeedsRequester),
        }
    }

    /// What may be said of a call that waits, by whoever has this part.
    pub(super) const fn words(self) -> &'static [&'static str] {
        match self {
            Self::Owns => &["approve", "reject", "edit"],
            Self::Asked => &["reject", "edit"],
            Self::Approves => &["approve", "reject"],
        }
    }
}

/// What somebody has to do with an approval: as who asked for it, or as somebody of the school who may now do what its approver must.
/// A permission that cannot be read is nobody's.
pub(super) fn part_in(standing: &Standing, row: &Row) -> Result<Option<Part>, ToolError> {
    let actor = &standing.actor;
    let is_own = actor.sub == row.requester;
    let (Some(action), Some(resource)) = (&row.approver_action, &row.approver_resource) else {
        return Ok(is_own.then_some(Part::Owns));
    };
    if is_own {
        return Ok(Some(Part::Asked));
    }
    let (Some(action), Some(resource)) = (Action::parse(action), Resource::parse(resource)) else {
        return Ok(None);
    };
    let campuses = standing.ability.campuses(action, resource, standing.campus_ids())?;
    let may = actor.school_id == Some(row.school_id) && campuses.includes(row.campus_id);
    Ok(may.then_some(Part::Approves))
}

/// Whether an approval can still be decided, as far as its row says.
pub(super) fn is_open(row: &Row) -> bool {
    row.status == "pending" && row.expires_at > clock::now()
}

/// Why an approval can no longer be decided.
pub(super) fn why_late(row: &Row) -> &'static str {
    match row.status.as_str() {
        "executing" | "executed" | "failed" => "it was approved before",
        "rejected" => "it was rejected before",
        "replaced" => "its arguments were changed, and another waits in its place",
        "asked_anew" => "it was approved, and would have done something else by then: another waits in its place",
        "expired" => "its time is over",
        "pending" if !is_open(row) => "its time is over",
        // the turn is over, or its person has left; the row follows
        _ => "it was taken back",
    }
}

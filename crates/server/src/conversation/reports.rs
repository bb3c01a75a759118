//! The ends of turns that no run reports: those that were not sent, are stopped by their person, or overdue.

use super::{ConversationError, Conversations, Followed, LIMIT, Person, ending::Why, running::end};
use crate::db::{DbError, Tenant, conversation as rows, turn};
use contract::turn::TurnOutcome;
use serde_json::Value;
use std::time::Duration;
use uuid::Uuid;

/// How long after its deadline a turn that nobody reports of is given up.
pub(super) const GIVE_UP_AFTER: Duration = Duration::from_secs(20);

/// Why a claim or a report was not taken.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// It will never be: no turn, no proof, no sense.
    #[error("{0}")]
    Malformed(&'static str),
    /// It may be later.
    #[error(transparent)]
    Database(#[from] DbError),
}

/// What became of the wish to stop a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// It is noted, and whoever has the turn is to be told.
    Noted,
    /// It has ended.
    TooLate,
}

impl Conversations {
    /// Ends a turn that no worker was handed.
    ///
    /// # Errors
    ///
    /// When the database fails; the turn is then given up once its time is over.
    pub async fn give_up(&self, turn: &Followed) -> Result<(), ConversationError> {
        self.end_by_ourselves(turn.school, turn.turn, Why::NotSent).await
    }

    /// Notes that a turn is to be stopped, so that it is also where no worker has it yet; no write of it takes effect from then on. One that
    /// nobody works on, because nobody has begun with it or because it waits for somebody, ends at once.
    ///
    /// # Errors
    ///
    /// [`ConversationError::Unknown`] where it is in no thread of theirs.
    pub async fn cancel(&self, person: &Person, id: Uuid) -> Result<Cancelled, ConversationError> {
        let (found, followed) = self.turn(person, id).await?;
        if found.has_ended() {
            return Ok(Cancelled::TooLate);
        }
        let key = format!("{id}:cancel");
        let tenant = Tenant::School(followed.school);
        let mut tx = self.database.begin_writing(tenant, &key, LIMIT).await?;
        let is_idle = rows::cancel(&mut tx, id).await?;
        tx.commit().await?;
        if is_idle {
            self.end_by_ourselves(followed.school, id, Why::Stopped).await?;
        }
        Ok(Cancelled::Noted)
    }

    /// Ends turns of which nobody reported an end in time. Answers which.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub async fn end_overdue(&self) -> Result<Vec<Uuid>, ConversationError> {
        let mut given_up = Vec::new();
        for overdue in rows::overdue(&self.database, GIVE_UP_AFTER).await? {
            let (school, turn) = (overdue.school_id, overdue.id);
            let why = if overdue.is_waiting {
                Why::NobodyAnswered
            } else {
                Why::Interrupted
            };
            match self.end_by_ourselves(school, turn, why).await {
                Ok(()) => given_up.push(turn),
                // the others are to end all the same
                Err(error) => tracing::error!(%error, %turn, "an overdue turn could not be ended"),
            }
        }
        Ok(given_up)
    }

    pub(super) async fn end_by_ourselves(&self, school: Uuid, id: Uuid, why: Why) -> Result<(), ConversationError> {
        let mut tx = self.hold_school(school, id).await?;
        if let Some(held) = turn::hold(&mut tx, id).await? {
            end(&mut tx, &held, why).await?;
        }
        Ok(tx.commit().await?)
    }
}

/// A value without NULs, which no column can store and no person can read; a model may write them.
pub(super) fn storable(value: Value) -> Value {
    match value {
        Value::String(text) if text.contains('\0') => Value::String(text.replace('\0', "")),
        Value::Array(items) => items.into_iter().map(storable).collect(),
        Value::Object(members) => {
            let members = members.into_iter();
            let member = |(name, value): (String, Value)| (name.replace('\0', ""), storable(value));
            Value::Object(members.map(member).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

pub(super) fn ended(outcome: &TurnOutcome) -> (&'static str, &str) {
    match outcome {
        TurnOutcome::Answer(text) => ("answered", text),
        TurnOutcome::Error(text) => ("failed", text),
        TurnOutcome::Cancelled(text) => ("cancelled", text),
    }
}

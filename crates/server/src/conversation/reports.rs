//! What becomes of a turn: what its workers report, its cancellation, and its end where they report none.

use super::{ConversationError, Conversations, Followed, LIMIT, Person, Place};
use crate::{
    db::{DbError, Tenant, conversation as rows},
    dispatch::DispatchError,
};
use contract::turn::{INTERRUPTED_TEXT, MAX_REPORTED_EVENTS, TurnEvent, TurnOutcome, TurnReport};
use serde_json::Value;
use std::time::Duration;
use uuid::Uuid;

/// How long after its deadline a turn that nobody reports of is given up.
const GIVE_UP_AFTER: Duration = Duration::from_secs(20);
/// The most attempts that workers report of. A turn is delivered a few times; the server's own end of it comes after all of them.
const MAX_ATTEMPTS: i32 = 100;
/// What a person reads who stopped a turn that nobody had begun with, as far as was known.
const STOPPED_TEXT: &str = "Stopped before anything was done, as far as is known. If it had just begun, some of what you asked for may \
                            have been done.";
/// What a person reads whose turn could not be handed to a worker.
const NOT_SENT_TEXT: &str = "Your message could not be passed on at the moment. Nothing was done. Please try again.";

/// Why a report was not taken.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// It will never be: no turn, no proof, no sense.
    #[error("{0}")]
    Malformed(&'static str),
    /// It may be later.
    #[error(transparent)]
    Database(#[from] DbError),
}

/// Whether what was reported is still wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// The turn goes on.
    Wanted,
    /// A worker has begun with a turn that is to be stopped, or has ended: it has not heard, and is to be told.
    Unwanted,
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
        let outcome = TurnOutcome::Error(NOT_SENT_TEXT.to_owned());
        self.end_by_ourselves(turn.school, turn.turn, outcome).await
    }

    /// Takes what a worker reports. A report that comes again changes nothing.
    ///
    /// # Errors
    ///
    /// See [`ReportError`].
    pub async fn record(&self, report: &TurnReport) -> Result<Recorded, ReportError> {
        let malformed = ReportError::Malformed;
        if report.events.len() > MAX_REPORTED_EVENTS {
            return Err(malformed("it has too many events"));
        }
        let grant = self
            .grants
            .read(&report.grant)
            .map_err(|_| malformed("its grant is not valid"))?;
        if grant.turn_id != report.turn_id {
            return Err(malformed("its grant is for another turn"));
        }
        let school = grant.identity.school_id.ok_or(malformed("its turn is of no school"))?;
        let place = |number: u32| i32::try_from(number).map_err(|_| malformed("its place is out of bounds"));
        let first = Place {
            attempt: place(report.attempt)?,
            place: place(report.first)?,
        };
        if !(1..=MAX_ATTEMPTS).contains(&first.attempt) || first.place < 1 {
            return Err(malformed("its place is out of bounds"));
        }
        let events: Result<Vec<Value>, _> = report.events.iter().map(serde_json::to_value).collect();
        let events = events.map_err(|_| malformed("its events cannot be stored"))?;
        let events: Vec<Value> = events.into_iter().map(storable).collect();
        let key = format!("{}:{}:{}", report.turn_id, first.attempt, first.place);
        let mut tx = self.database.begin_writing(Tenant::School(school), &key, LIMIT).await?;
        let stored = rows::store_events(&mut tx, report.turn_id, first, &events).await?;
        let standing = stored.ok_or(malformed("there is no such turn"))?;
        for event in &report.events {
            if let TurnEvent::Ended { outcome } = event {
                let (status, text) = ended(outcome);
                rows::end_turn(&mut tx, report.turn_id, status, &text.replace('\0', "")).await?;
            }
        }
        tx.commit().await?;
        let begins = report.events.iter().any(|event| matches!(event, TurnEvent::Started {}));
        Ok(if begins && (standing.cancelled || standing.ended) {
            Recorded::Unwanted
        } else {
            Recorded::Wanted
        })
    }

    /// Notes that a turn is to be stopped, so that it is also where no worker has it yet. One that nobody has begun with ends at once.
    ///
    /// # Errors
    ///
    /// [`ConversationError::Unknown`] where it is in no thread of theirs.
    pub async fn cancel(&self, person: &Person, turn: Uuid) -> Result<Cancelled, ConversationError> {
        let (found, followed) = self.turn(person, turn).await?;
        if found.has_ended() {
            return Ok(Cancelled::TooLate);
        }
        let key = format!("{turn}:cancel");
        let tenant = Tenant::School(followed.school);
        let mut tx = self.database.begin_writing(tenant, &key, LIMIT).await?;
        let unheard = rows::cancel(&mut tx, turn).await?;
        tx.commit().await?;
        if unheard {
            let outcome = TurnOutcome::Cancelled(STOPPED_TEXT.to_owned());
            self.end_by_ourselves(followed.school, turn, outcome).await?;
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
        for (school, turn) in rows::overdue(&self.database, GIVE_UP_AFTER).await? {
            let outcome = TurnOutcome::Error(INTERRUPTED_TEXT.to_owned());
            match self.end_by_ourselves(school, turn, outcome).await {
                Ok(()) => given_up.push(turn),
                // the others are to end all the same
                Err(error) => tracing::error!(%error, %turn, "an overdue turn could not be ended"),
            }
        }
        Ok(given_up)
    }

    async fn end_by_ourselves(&self, school: Uuid, turn: Uuid, outcome: TurnOutcome) -> Result<(), ConversationError> {
        let key = format!("{turn}:end");
        let mut tx = self.database.begin_writing(Tenant::School(school), &key, LIMIT).await?;
        let (status, text) = ended(&outcome);
        if rows::end_turn(&mut tx, turn, status, text).await? {
            let at = rows::next_attempt(&mut tx, turn).await?;
            let event = serde_json::to_value(TurnEvent::Ended { outcome }).map_err(DispatchError::from)?;
            rows::store_events(&mut tx, turn, at, &[event]).await?;
        }
        tx.commit().await?;
        Ok(())
    }
}

/// A value without NULs, which no column can store and no person can read; a model may write them.
fn storable(value: Value) -> Value {
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

fn ended(outcome: &TurnOutcome) -> (&'static str, &str) {
    match outcome {
        TurnOutcome::Answer(text) => ("answered", text),
        TurnOutcome::Error(text) => ("failed", text),
        TurnOutcome::Cancelled(text) => ("cancelled", text),
    }
}

//! A turn under way: which run has it, and what the run reports.
//!
//! A run claims a turn with each delivery of its message, and is superseded by the next that does. What it reports is stored once,
//! events and journal together, and only while the turn is its own.

use super::{
    ConversationError, Conversations, Due, LIMIT, Place, WAIT_LIMIT,
    ending::{self, Why},
    reports::{GIVE_UP_AFTER, ReportError, ended, storable},
    telling::{tell_settled, tell_waiting},
    waiting::{Until, go_on},
};
use crate::{
    clock,
    db::{
        DbError, Tenant, Tx, conversation as rows,
        turn::{self, Asked, Held},
    },
    grant::TurnGrant,
};
use chrono::DateTime;
use contract::turn::{
    JournalEntry, MAX_COUNTED_TOKENS, MAX_REPORTED_EVENTS, ReportTaken, TurnClaim, TurnClaimed, TurnEvent, TurnOutcome,
    TurnReport,
};
use serde_json::{Value, json};
use std::{borrow::Cow, time::Duration};
use uuid::Uuid;

/// The most runs that a turn has. Each delivery is one, and there are a few a dispatch; a turn with more goes in circles.
const MAX_ATTEMPTS: i32 = 100;
/// The most entries of one report's journal: those of a step and of what its specialists did meanwhile.
const MAX_KEPT: usize = 256;
/// The most entries that runs may keep of one turn: more than a worker's bounds let any turn have.
const MAX_KEPT_ENTRIES: i32 = 4096;
/// The most that these may hold, in bytes. All of it goes into the reply to a claim, which the broker must take, and is read again for
/// each message that follows in the thread.
const MAX_KEPT_BYTES: i64 = 8 * 1024 * 1024;
/// How long after its grant's end a turn may be claimed: as long as it is not given up.
const CLAIM_GRACE: Duration = GIVE_UP_AFTER;
/// How long after its grant's end a report is taken that says no run: as long as a worker sends it.
const REPORT_GRACE: Duration = Duration::from_mins(1);
/// The longest question; the worker holds itself to that as well.
const MAX_QUESTION_CHARS: usize = 2000;

/// What came of a message of a worker, and the turn that is to be sent anew because of it.
#[derive(Debug)]
pub struct Taken<T> {
    /// The reply.
    pub reply: T,
    /// The turn, where it goes on.
    pub due: Option<Due>,
}

impl<T> Taken<T> {
    const fn with(reply: T) -> Self {
        Self { reply, due: None }
    }
}

impl Conversations {
    /// Gives a turn to the run that asks for it, with all that was kept of it, or refuses it.
    ///
    /// # Errors
    ///
    /// See [`ReportError`].
    pub async fn claim(&self, claim: &TurnClaim) -> Result<Taken<TurnClaimed>, ReportError> {
        let (school, grant) = self.proven(&claim.grant, claim.turn_id)?;
        if has_expired_for(&grant, CLAIM_GRACE) {
            // whoever goes on with the turn has a newer one; where nobody does, the turn's time is over as well
            return Ok(Taken::with(TurnClaimed::Refused {}));
        }
        let mut tx = self.hold_school(school, claim.turn_id).await?;
        let held = turn::hold(&mut tx, claim.turn_id)
            .await?
            .ok_or(ReportError::Malformed("there is no such turn"))?;
        let is_current = u32::try_from(held.dispatch) == Ok(claim.dispatch);
        let is_open = !held.ended && held.status == "running" && is_current;
        let is_lost = claim.redelivered && held.run.is_some_and(|run| run != claim.run);
        let is_free = is_lost || held.run.is_none_or(|run| run == claim.run);
        if !is_open || !is_free || held.earlier_runs.contains(&claim.run) {
            tx.rollback().await?;
            return Ok(Taken::with(TurnClaimed::Refused {}));
        }
        let stop = self.reason_to_stop(&mut tx, &held).await?;
        if let Some(why) = stop {
            end(&mut tx, &held, why).await?;
            tx.commit().await?;
            return Ok(Taken::with(TurnClaimed::Refused {}));
        }
        if is_lost {
            // by a message of its own, so that the broker does not count this one's deliveries to its end
            let due = go_on(&mut tx, &held, Until::Unchanged).await.map_err(as_report_error)?;
            tx.commit().await?;
            return Ok(Taken {
                reply: TurnClaimed::Refused {},
                due: Some(due),
            });
        }
        let attempt = if held.run == Some(claim.run) {
            held.attempt
        } else {
            // settled between its dispatch and this
            tell_settled(&mut tx, &held).await.map_err(as_report_error)?;
            turn::give_to(&mut tx, &held, claim.run).await?
        };
        let journal = turn::journal(&mut tx, held.id).await?;
        tx.commit().await?;
        Ok(Taken::with(TurnClaimed::Granted {
            attempt: u32::try_from(attempt).unwrap_or_default(),
            journal: journal.into_iter().map(|entry| entry.0).collect(),
        }))
    }

    /// Why a turn that may be run is not to be.
    async fn reason_to_stop(&self, tx: &mut Tx, held: &Held) -> Result<Option<Why>, ReportError> {
        Ok(if held.cancelled {
            Some(Why::Stopped)
        } else if held.attempt >= MAX_ATTEMPTS {
            Some(Why::TooOften)
        } else if self.is_over_budget(tx, held.school_id).await? {
            Some(Why::OverBudget)
        } else {
            None
        })
    }

    /// Takes what a run reports. A report that comes again changes nothing.
    ///
    /// # Errors
    ///
    /// See [`ReportError`].
    pub async fn record(&self, report: &TurnReport) -> Result<Taken<ReportTaken>, ReportError> {
        let (school, grant) = self.proven(&report.grant, report.turn_id)?;
        let first = place_of(report)?;
        if report.run.is_none() && has_expired_for(&grant, REPORT_GRACE) {
            return Ok(Taken::with(ReportTaken::Superseded));
        }
        let mut tx = self.hold_school(school, report.turn_id).await?;
        let held = turn::hold(&mut tx, report.turn_id)
            .await?
            .ok_or(ReportError::Malformed("there is no such turn"))?;
        // the last run of a turn that waits has it no more, and may not know yet
        let run = held.run.or(held.earlier_runs.last().copied());
        if held.ended || held.attempt != first.attempt || (report.run.is_some() && report.run != run) {
            tx.rollback().await?;
            return Ok(Taken::with(ReportTaken::Superseded));
        }
        if held.run.is_none() {
            // its last report, that it waits, come again; or the turn was taken from a run that does not know
            tx.rollback().await?;
            let is_waiting = held.status == "waiting";
            return Ok(Taken::with(if is_waiting {
                ReportTaken::GoOn
            } else {
                ReportTaken::Superseded
            }));
        }
        let events = store(&mut tx, &held, first, report).await?;
        let due = self.follow(&mut tx, &held, &events).await?;
        let is_over_budget = self.is_over_budget(&mut tx, school).await?;
        tx.commit().await?;
        let reply = if held.cancelled {
            ReportTaken::Cancelled
        } else if is_over_budget {
            ReportTaken::OverBudget
        } else {
            ReportTaken::GoOn
        };
        Ok(Taken { reply, due })
    }

    /// What follows from events that were stored.
    async fn follow(&self, tx: &mut Tx, held: &Held, events: &[TurnEvent]) -> Result<Option<Due>, ReportError> {
        for event in events {
            match event {
                TurnEvent::Asked {
                    tool_call_id,
                    question,
                    choices,
                    ..
                } => {
                    let text: String = question
                        .chars()
                        .filter(|&c| c != '\0')
                        .take(MAX_QUESTION_CHARS)
                        .collect();
                    let choices: Vec<String> = choices.iter().map(|choice| choice.replace('\0', "")).collect();
                    let asked = Asked::Question {
                        text: &text,
                        choices: &choices,
                    };
                    turn::wait_for(tx, held, tool_call_id, asked).await?;
                }
                TurnEvent::ApprovalAsked {
                    tool_call_id, pending, ..
                } => {
                    let id = pending.approval_id;
                    turn::wait_for(tx, held, tool_call_id, Asked::Approval { id }).await?;
                }
                TurnEvent::Waiting {} => return wait_or_go_on(tx, held).await,
                TurnEvent::Ended { outcome } => {
                    let (status, text) = ended(outcome);
                    rows::end_turn(tx, held.id, status, &text.replace('\0', "")).await?;
                }
                TurnEvent::Started {}
                | TurnEvent::Text { .. }
                | TurnEvent::ToolStarted { .. }
                | TurnEvent::ToolEnded { .. }
                | TurnEvent::Shown { .. }
                | TurnEvent::Delegated { .. }
                | TurnEvent::Usage { .. }
                | TurnEvent::Unknown
                | TurnEvent::Answered { .. }
                | TurnEvent::Decided { .. } => {}
            }
        }
        Ok(None)
    }

    /// The school of a turn whose grant proves that whoever has it was handed the turn, and that grant.
    fn proven(&self, grant: &str, turn: Uuid) -> Result<(Uuid, TurnGrant), ReportError> {
        let malformed = ReportError::Malformed;
        let grant = self
            .grants
            .read(grant)
            .map_err(|_| malformed("its grant is not valid"))?;
        if grant.turn_id != turn {
            return Err(malformed("its grant is for another turn"));
        }
        let school = grant.identity.school_id.ok_or(malformed("its turn is of no school"))?;
        Ok((school, grant))
    }

    pub(super) async fn hold_school(&self, school: Uuid, turn: Uuid) -> Result<Tx, DbError> {
        let key = format!("{turn}:books");
        self.database.begin_writing(Tenant::School(school), &key, LIMIT).await
    }

    pub(super) async fn is_over_budget(&self, tx: &mut Tx, school: Uuid) -> Result<bool, DbError> {
        let spent = turn::spent(tx, school).await?;
        Ok(u64::try_from(spent).unwrap_or_default() >= self.daily_tokens)
    }
}

/// Whether a grant's time was over this long ago.
fn has_expired_for(grant: &TurnGrant, grace: Duration) -> bool {
    let grace_ms = i64::try_from(grace.as_millis()).unwrap_or(i64::MAX);
    clock::left_until(grant.expires_at_ms.saturating_add(grace_ms)).is_none()
}

fn place_of(report: &TurnReport) -> Result<Place, ReportError> {
    let malformed = ReportError::Malformed;
    if report.events.len() > MAX_REPORTED_EVENTS || report.journal.len() > MAX_KEPT {
        return Err(malformed("it holds too much"));
    }
    let number = |number: u32| i32::try_from(number).map_err(|_| malformed("its place is out of bounds"));
    let (attempt, place) = (number(report.attempt)?, number(report.first)?);
    if attempt < 1 || place < 1 {
        return Err(malformed("its place is out of bounds"));
    }
    Ok(Place { attempt, place })
}

/// Stores journal and events; what is there already stays as it is, and costs nothing twice. Answers the events as they are stored.
async fn store<'r>(
    tx: &mut Tx,
    held: &Held,
    first: Place,
    report: &'r TurnReport,
) -> Result<Cow<'r, [TurnEvent]>, ReportError> {
    let unstorable = |_| ReportError::Malformed("it cannot be stored");
    if !report.journal.is_empty() {
        let names: Vec<String> = report.journal.iter().map(JournalEntry::name).collect();
        let entries: Result<Vec<Value>, _> = report.journal.iter().map(serde_json::to_value).collect();
        let entries: Vec<Value> = entries.map_err(unstorable)?.into_iter().map(storable).collect();
        let kept = turn::keep(tx, held, &names, &entries).await?;
        if kept.entries > MAX_KEPT_ENTRIES || kept.bytes > MAX_KEPT_BYTES {
            return Err(ReportError::Malformed("its turn keeps too much"));
        }
    }
    let told = as_known(tx, held, &report.events).await?;
    let events: Result<Vec<Value>, _> = told.iter().map(bounded).map(serde_json::to_value).collect();
    let events: Vec<Value> = events.map_err(unstorable)?.into_iter().map(storable).collect();
    let tokens = rows::store_events(tx, held.id, first, &events).await?;
    if tokens > 0 {
        turn::spend(tx, held, tokens).await?;
    }
    Ok(told)
}

/// What a run tells, but for what was done before it was stopped: it left calls under way, and the books know what became of them.
async fn as_known<'r>(tx: &mut Tx, held: &Held, events: &'r [TurnEvent]) -> Result<Cow<'r, [TurnEvent]>, DbError> {
    let is_stopped = |event: &TurnEvent| {
        let TurnEvent::Ended { outcome } = event else {
            return false;
        };
        matches!(outcome, TurnOutcome::Cancelled(_))
    };
    let mut events = Cow::Borrowed(events);
    if let Some(at) = events.iter().position(is_stopped)
        && let Some(event) = events.to_mut().get_mut(at)
    {
        let outcome = ending::outcome(tx, held, Why::Stopped).await?;
        *event = TurnEvent::Ended { outcome };
    }
    Ok(events)
}

/// An event with no more tokens than any answer has: what an endpoint counts is nobody's word but its own.
fn bounded(event: &TurnEvent) -> Cow<'_, TurnEvent> {
    let TurnEvent::Usage {
        agent,
        input_tokens,
        output_tokens,
    } = event
    else {
        return Cow::Borrowed(event);
    };
    Cow::Owned(TurnEvent::Usage {
        agent: agent.clone(),
        input_tokens: MAX_COUNTED_TOKENS.min(*input_tokens),
        output_tokens: MAX_COUNTED_TOKENS.min(*output_tokens),
    })
}

/// A run has come to where it waits. Whatever it waited for may be there by now.
async fn wait_or_go_on(tx: &mut Tx, held: &Held) -> Result<Option<Due>, ReportError> {
    if turn::is_waiting(tx, held).await? {
        let until = DateTime::from_timestamp_millis(clock::deadline_in(WAIT_LIMIT)).unwrap_or_default();
        turn::let_wait(tx, held, until).await?;
        tell_waiting(tx, held).await.map_err(as_report_error)?;
        return Ok(None);
    }
    Ok(Some(go_on(tx, held, Until::Anew).await.map_err(as_report_error)?))
}

fn as_report_error(error: ConversationError) -> ReportError {
    match error {
        ConversationError::Database(error) => ReportError::Database(error),
        ConversationError::Unknown(_)
        | ConversationError::Busy
        | ConversationError::Settled
        | ConversationError::OverBudget
        | ConversationError::TooManyOpen(_)
        | ConversationError::Invalid(_)
        | ConversationError::NoSchool
        | ConversationError::Dispatch(_) => ReportError::Malformed("the turn cannot go on"),
    }
}

/// Ends a turn by the server's own word, in an attempt after all that runs reported.
pub(super) async fn end(tx: &mut Tx, held: &Held, why: Why) -> Result<(), DbError> {
    if held.ended {
        return Ok(());
    }
    let outcome = ending::outcome(tx, held, why).await?;
    let (status, text) = ended(&outcome);
    if rows::end_turn(tx, held.id, status, text).await? {
        let at = rows::next_attempt(tx, held.id).await?;
        let event = json!(TurnEvent::Ended { outcome });
        rows::store_events(tx, held.id, at, &[event]).await?;
    }
    Ok(())
}

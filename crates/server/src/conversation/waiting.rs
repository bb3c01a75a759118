//! Turns that wait for somebody, and how they go on: a question that is answered, an approval that is settled, and the next dispatch
//! once nothing is open any more.

use super::{
    ConversationError, Conversations, Due, Person, TURN_LIMIT,
    ending::Why,
    history,
    telling::{tell_settled, tell_waiting},
    wanted,
};
use crate::{
    clock,
    db::{
        Tx, conversation as rows,
        turn::{self, Asked, Held, Settled},
    },
    dispatch::{self, DispatchError},
    error::Kind,
    grant::is_call_id,
};
use chrono::DateTime;
use contract::{
    AgentToolResult,
    tools::contract_hash,
    turn::{Decision, JournalEntry, TurnMessage},
};
use serde_json::json;
use std::time::Duration;
use uuid::Uuid;

/// The longest answer to a question, in characters; the table holds it to that as well.
const MAX_ANSWER_CHARS: usize = 4000;
/// How old a dispatch is before its message is sent again, of which nobody knows that the broker has it.
const SEND_AGAIN_AFTER: Duration = Duration::from_secs(10);
/// What is too little time for a turn that begins or goes on.
const TOO_SHORT: Duration = Duration::from_secs(30);

/// What a person answers to a question of an agent.
#[derive(Debug)]
pub struct Answer(String);

impl Answer {
    /// An answer, without characters that no column can store.
    ///
    /// # Errors
    ///
    /// [`ConversationError::Invalid`] where there is nothing in it, or too much.
    pub fn new(text: &str) -> Result<Self, ConversationError> {
        let text = text.replace('\0', "");
        if text.trim().is_empty() {
            return Err(ConversationError::Invalid("answer: there is nothing in it".to_owned()));
        }
        if text.chars().nth(MAX_ANSWER_CHARS).is_some() {
            return Err(ConversationError::Invalid(format!(
                "answer: it has more than {MAX_ANSWER_CHARS} characters"
            )));
        }
        Ok(Self(text))
    }
}

impl Conversations {
    /// Takes the answer to a question of one of the person's turns. Answers the turn where it goes on now.
    ///
    /// # Errors
    ///
    /// [`ConversationError::Unknown`] where there is no such question of theirs, [`ConversationError::Settled`] where it was answered
    /// before or its turn has ended, [`ConversationError::Invalid`] where it is none of the choices.
    pub async fn answer(
        &self,
        person: &Person,
        id: Uuid,
        tool_call_id: &str,
        answer: Answer,
    ) -> Result<Option<Due>, ConversationError> {
        let Answer(answer) = answer;
        let (_, followed) = self.turn(person, id).await?;
        if !is_call_id(tool_call_id) {
            return Err(ConversationError::Unknown("question"));
        }
        let mut tx = self.hold_school(followed.school, id).await?;
        let held = turn::hold(&mut tx, id)
            .await?
            .ok_or(ConversationError::Unknown("turn"))?;
        let wait = turn::wait(&mut tx, &held, tool_call_id).await?;
        let question = wait.filter(|wait| wait.approval_id.is_none());
        let question = question.ok_or(ConversationError::Unknown("question"))?;
        if held.ended || question.is_settled {
            return Err(ConversationError::Settled);
        }
        if !question.choices.is_empty() && !question.choices.contains(&answer) {
            return Err(ConversationError::Invalid(format!(
                "answer: choose one of: {}",
                question.choices.join(", ")
            )));
        }
        turn::settle(&mut tx, &held, tool_call_id, Settled::Answer(&answer)).await?;
        let result = AgentToolResult::Data {
            data: json!({"answer": answer}),
            scope_context: "What the person answered, in their own words.".to_owned(),
        };
        let due = keep_and_go_on(&mut tx, &held, tool_call_id, &result).await?;
        tx.commit().await?;
        Ok(due)
    }

    /// Tells a turn what became of a call that waited for an approval. Answers the turn where it goes on now. Told again, it changes
    /// nothing; and so for a turn that is not kept.
    ///
    /// # Errors
    ///
    /// When the database fails; it is to be told again then.
    pub async fn call_settled(
        &self,
        school: Uuid,
        turn: Uuid,
        tool_call_id: &str,
        approval: Uuid,
        decision: Decision,
        result: &AgentToolResult,
    ) -> Result<Option<Due>, ConversationError> {
        let mut tx = self.hold_school(school, turn).await?;
        let Some(held) = turn::hold(&mut tx, turn).await?.filter(|held| !held.ended) else {
            tx.rollback().await?;
            return Ok(None);
        };
        // the decision may come before the run has reported that it waits
        turn::wait_for(&mut tx, &held, tool_call_id, Asked::Approval { id: approval }).await?;
        let settled = Settled::Decision { approval, decision };
        if !turn::settle(&mut tx, &held, tool_call_id, settled).await? {
            tx.rollback().await?;
            return Ok(None);
        }
        let due = keep_and_go_on(&mut tx, &held, tool_call_id, result).await?;
        tx.commit().await?;
        Ok(due)
    }

    /// Tells a turn that waits that something is asked in the place of what it waited for. Told again, it changes nothing.
    ///
    /// # Errors
    ///
    /// When the database fails; it is to be told again then.
    pub async fn asked_instead(&self, school: Uuid, turn: Uuid) -> Result<(), ConversationError> {
        let mut tx = self.hold_school(school, turn).await?;
        let held = turn::hold(&mut tx, turn).await?;
        if let Some(held) = held.filter(|held| held.status == "waiting") {
            tell_waiting(&mut tx, &held).await?;
        }
        Ok(tx.commit().await?)
    }

    /// The message of a turn that is due, unless it has been taken up or has ended meanwhile. A turn whose person may not come in any
    /// more ends here.
    ///
    /// # Errors
    ///
    /// When the database fails; the turn is still due then.
    pub async fn message_of(&self, due: Due) -> Result<Option<TurnMessage>, ConversationError> {
        let mut tx = self.hold_school(due.school, due.turn).await?;
        let held = turn::hold(&mut tx, due.turn).await?;
        let is_due = |held: &Held| !held.ended && held.status == "running" && held.run.is_none();
        let Some(held) = held.filter(is_due) else {
            tx.rollback().await?;
            return Ok(None);
        };
        let owner = turn::owner(&mut tx, &held).await?;
        let told = rows::told(&mut tx, held.thread_id, history::MAX_TURNS).await?;
        tx.rollback().await?;
        let person = Person { email: owner.email };
        let campus = owner.campus_id.map(|campus| campus.to_string());
        let wanted = dispatch::Wanted {
            turn: Some(held.id),
            ..wanted(&person, Some(owner.school_slug), campus)
        };
        let minted = match dispatch::mint(&self.database, &self.grants, wanted).await {
            Err(error) if is_final(&error) => {
                self.end_by_ourselves(due.school, due.turn, Why::NotInAnyMore).await?;
                return Ok(None);
            }
            minted => minted?,
        };
        Ok(Some(TurnMessage {
            turn_id: held.id,
            grant: minted.grant,
            context: minted.context,
            history: history::within_budget(told),
            deadline_ms: deadline_of(&held),
            message: held.message,
            dispatch: u32::try_from(held.dispatch).unwrap_or_default(),
            contract: Some(contract_hash().to_owned()),
        }))
    }

    /// Notes that the message of a turn is with the broker.
    ///
    /// # Errors
    ///
    /// When the database fails; it is then sent again, and whoever gets it second is refused.
    pub async fn note_sent(&self, due: Due, message: &TurnMessage) -> Result<(), ConversationError> {
        let mut tx = self.hold_school(due.school, due.turn).await?;
        let dispatch = i32::try_from(message.dispatch).unwrap_or_default();
        let deadline = DateTime::from_timestamp_millis(message.deadline_ms).unwrap_or_default();
        turn::note_sent(&mut tx, due.turn, dispatch, deadline).await?;
        Ok(tx.commit().await?)
    }

    /// Turns that were dispatched a while ago, and of whose message nobody knows that the broker has it.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub async fn unsent(&self) -> Result<Vec<Due>, ConversationError> {
        let found = turn::unsent(&self.database, SEND_AGAIN_AFTER).await?;
        Ok(found.into_iter().map(|(school, turn)| Due { school, turn }).collect())
    }
}

/// When a turn must have ended; later where its message could not be sent for so long that there is no time left for it.
fn deadline_of(held: &Held) -> i64 {
    let deadline = held.deadline.timestamp_millis();
    if deadline < clock::deadline_in(TOO_SHORT) {
        clock::deadline_in(TURN_LIMIT)
    } else {
        deadline
    }
}

impl ConversationError {
    /// Whether it says no for good, rather than that nobody could be asked.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Self::Dispatch(error) => is_final(error),
            Self::Unknown(_) | Self::NoSchool => true,
            Self::Busy
            | Self::Settled
            | Self::OverBudget
            | Self::TooManyOpen(_)
            | Self::Invalid(_)
            | Self::Database(_) => false,
        }
    }
}

/// Whether somebody is refused for good, rather than that nobody could be asked.
fn is_final(error: &DispatchError) -> bool {
    match error {
        DispatchError::UnknownAccount(_)
        | DispatchError::NotInSchool(_)
        | DispatchError::UnknownCampus(_)
        | DispatchError::SeveralCampuses(_)
        | DispatchError::Unreadable(_) => true,
        DispatchError::Refused(refusal) => refusal.kind() == Kind::Denial,
        DispatchError::Database(_) | DispatchError::Grant(_) => false,
    }
}

/// Keeps the result of a call, and lets the turn go on where it waited for nothing else.
async fn keep_and_go_on(
    tx: &mut Tx,
    held: &Held,
    tool_call_id: &str,
    result: &AgentToolResult,
) -> Result<Option<Due>, ConversationError> {
    let entry = JournalEntry::Result {
        tool_call_id: tool_call_id.to_owned(),
        content: serde_json::to_string(result).map_err(DispatchError::from)?,
        succeeded: result.is_data(),
    };
    let value = serde_json::to_value(&entry).map_err(DispatchError::from)?;
    turn::keep(tx, held, &[entry.name()], &[value]).await?;
    if held.status != "waiting" {
        // a run has it, and what that tells comes first
        return Ok(None);
    }
    if turn::is_waiting(tx, held).await? {
        tell_waiting(tx, held).await?;
        return Ok(None);
    }
    Ok(Some(go_on(tx, held, Until::Anew).await?))
}

/// How long a turn that goes on may be worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// As long as a new one: it has waited.
    Anew,
    /// As long as it could before: its run was lost.
    Unchanged,
}

/// Lets a turn go on: tells what was settled, and dispatches it anew.
pub(super) async fn go_on(tx: &mut Tx, held: &Held, until: Until) -> Result<Due, ConversationError> {
    tell_settled(tx, held).await?;
    let deadline = match until {
        Until::Anew => DateTime::from_timestamp_millis(clock::deadline_in(TURN_LIMIT)).unwrap_or_default(),
        Until::Unchanged => held.deadline,
    };
    turn::let_go_on(tx, held, deadline).await?;
    Ok(Due {
        school: held.school_id,
        turn: held.id,
    })
}

//! Conversations: threads that people open, the turns that they begin in them, and what workers report of those.
//!
//! Whoever comes in is looked up and judged again at each request; a thread is its owner's alone, and a report is taken only with
//! the grant of its turn. The turn itself runs elsewhere: what begins here is a message for a worker.

mod ending;
mod history;
pub(crate) mod hub;
mod order;
mod reports;
mod running;
mod telling;
mod waiting;

pub use self::{
    order::Gaps,
    reports::{Cancelled, ReportError},
    running::Taken,
    waiting::Answer,
};
pub use crate::db::conversation::{Place, Thread, Turn};
use crate::{
    clock,
    db::{
        Access, Database, DbError, Tenant, account,
        conversation::{self as rows, NewTurn},
        news,
        turn::{self as turns, Open},
    },
    dispatch::{self, DispatchError, Entered, Wanted},
    error::Kind,
    grant::{Door, GrantKey},
};
use chrono::DateTime;
use contract::{
    agent_map::{AgentMapEntry, offered_agents, search},
    tools::contract_hash,
    turn::TurnMessage,
};
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;
use uuid::Uuid;

/// How long a turn may be worked on, from each dispatch of it.
pub const TURN_LIMIT: Duration = Duration::from_mins(5);
/// How many turns of a person in a school may be open at once, where nothing is said: all schools' wait in one queue.
pub const OPEN_TURNS: u32 = 10;
/// How long a turn waits for its person.
const WAIT_LIMIT: Duration = Duration::from_hours(7 * 24);
/// How long a request's own statements may take.
const LIMIT: Duration = Duration::from_secs(10);
/// The longest message, in characters; the table holds it to that as well.
const MAX_MESSAGE_CHARS: usize = 20_000;
/// The most threads that are listed.
const MAX_THREADS_SHOWN: i64 = 50;
/// The most turns of a thread that are shown at once.
const MAX_TURNS_SHOWN: i64 = 200;
/// The most events that are read at once.
const MAX_EVENTS_READ: i64 = 500;

/// Why something could not be done in a conversation.
#[derive(Debug, thiserror::Error)]
pub enum ConversationError {
    /// There is no such thing, or it is somebody else's: the same answer for both.
    #[error("There is no such {0}.")]
    Unknown(&'static str),
    /// A turn of the thread has not ended.
    #[error("The message before is still being worked on. Wait for its end, or cancel it.")]
    Busy,
    /// It was answered before, or its turn has ended.
    #[error("This was answered already, or its turn has ended.")]
    Settled,
    /// The school has used up its tokens of today.
    #[error("{}", ending::OVER_BUDGET_TEXT)]
    OverBudget,
    /// So many of the person's turns are open that there may be no more.
    #[error(
        "{0} of your messages are still being worked on, or wait for you, and there may be no more at once. Wait for the end of one, \
         answer what it asks, or cancel it."
    )]
    TooManyOpen(u32),
    /// What was sent cannot be taken.
    #[error("{0}")]
    Invalid(String),
    /// A platform administrator belongs to no school, and threads do.
    #[error("Conversations belong to a school, and this account to none.")]
    NoSchool,
    /// The person has no standing, or cannot be told from others.
    #[error(transparent)]
    Dispatch(#[from] DispatchError),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DbError),
}

/// Who comes in, as whoever let them in has found out.
#[derive(Debug, Clone)]
pub struct Person {
    /// The account's e-mail address.
    pub email: String,
}

/// What a person writes: something, and no more than can be stored.
#[derive(Debug)]
pub struct Message(String);

impl Message {
    /// A message, without characters that no column can store.
    ///
    /// # Errors
    ///
    /// [`ConversationError::Invalid`] where there is nothing in it, or too much.
    pub fn new(text: String) -> Result<Self, ConversationError> {
        let text = if text.contains('\0') {
            text.replace('\0', "")
        } else {
            text
        };
        if text.trim().is_empty() {
            return Err(ConversationError::Invalid("message: there is nothing in it".to_owned()));
        }
        if text.chars().nth(MAX_MESSAGE_CHARS).is_some() {
            return Err(ConversationError::Invalid(format!(
                "message: it has more than {MAX_MESSAGE_CHARS} characters"
            )));
        }
        Ok(Self(text))
    }
}

/// A thread with its turns.
#[derive(Debug, Serialize)]
pub struct ThreadView {
    #[serde(flatten)]
    thread: Thread,
    turns: Vec<Turn>,
}

impl ThreadView {
    /// The thread.
    #[must_use]
    pub const fn id(&self) -> Uuid {
        self.thread.id
    }
}

/// A turn with what it waits for.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnView {
    #[serde(flatten)]
    turn: Turn,
    /// Only while it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_for: Option<Open>,
}

/// A turn whose events somebody may follow.
#[derive(Debug, Clone)]
pub struct Followed {
    school: Uuid,
    /// The turn.
    pub turn: Uuid,
}

/// A turn whose message is to be sent to the workers.
#[derive(Debug, Clone, Copy)]
pub struct Due {
    school: Uuid,
    /// The turn.
    pub turn: Uuid,
}

impl Followed {
    /// The turn, as one whose message is to be sent.
    #[must_use]
    pub const fn due(&self) -> Due {
        Due {
            school: self.school,
            turn: self.turn,
        }
    }
}

/// One event on its way to a person.
#[derive(Debug, Clone)]
pub struct Told {
    /// Where it stands; whoever reconnects goes on after it.
    pub at: Place,
    /// Its kind.
    pub kind: String,
    /// The event; none for what is not for people.
    pub event: Option<Value>,
    /// Whether nothing follows.
    pub is_last: bool,
}

/// Conversations of all schools.
pub struct Conversations {
    database: Database,
    grants: GrantKey,
    daily_tokens: u64,
    open_turns: u32,
}

impl Conversations {
    /// Over a database, with the key that grants are signed with, and with how many tokens a school's agents may use a day.
    #[must_use]
    pub const fn new(database: Database, grants: GrantKey, daily_tokens: u64) -> Self {
        Self {
            database,
            grants,
            daily_tokens,
            open_turns: OPEN_TURNS,
        }
    }

    /// With this many turns of a person that may be open at once, instead of [`OPEN_TURNS`].
    #[must_use]
    pub fn with_open_turns(self, open_turns: u32) -> Self {
        Self { open_turns, ..self }
    }

    /// The database, for the news of it.
    pub(crate) const fn database(&self) -> &Database {
        &self.database
    }

    /// Whether the database answers.
    ///
    /// # Errors
    ///
    /// When it does not.
    pub async fn check(&self) -> Result<(), ConversationError> {
        Ok(self.database.check().await?)
    }

    /// Opens a thread, in the person's school or one of their schools, on one campus or in the whole of it.
    ///
    /// # Errors
    ///
    /// Where the person has no standing there.
    pub async fn open_thread(
        &self,
        person: &Person,
        school: Option<String>,
        campus: Option<String>,
    ) -> Result<ThreadView, ConversationError> {
        let key = format!("thread:{}", Uuid::new_v4());
        let wanted = wanted(person, school, campus);
        let mut entered = dispatch::enter(&self.database, &self.grants, wanted, Access::Write { key: &key }).await?;
        let (school, staff) = at_work(&entered)?;
        let campus = entered.caller.scope().pinned();
        let thread = rows::open_thread(&mut entered.tx, school, staff, campus).await?;
        entered.tx.commit().await?;
        Ok(ThreadView {
            thread,
            turns: Vec::new(),
        })
    }

    /// The person's newest threads, in their school or one of their schools.
    ///
    /// # Errors
    ///
    /// Where the person has no standing there.
    pub async fn threads(&self, person: &Person, school: Option<String>) -> Result<Vec<Thread>, ConversationError> {
        let wanted = wanted(person, school, None);
        let mut entered = dispatch::enter(&self.database, &self.grants, wanted, Access::Read).await?;
        let (_, staff) = at_work(&entered)?;
        let threads = rows::threads(&mut entered.tx, staff, MAX_THREADS_SHOWN).await?;
        entered.tx.rollback().await?;
        Ok(threads)
    }

    /// A thread with its newest turns.
    ///
    /// # Errors
    ///
    /// [`ConversationError::Unknown`] where it is not theirs.
    pub async fn thread(&self, person: &Person, id: Uuid) -> Result<ThreadView, ConversationError> {
        let (mut entered, thread, _) = self.find_thread(person, id).await?;
        let turns = rows::turns(&mut entered.tx, &thread, MAX_TURNS_SHOWN).await?;
        entered.tx.rollback().await?;
        Ok(ThreadView { thread, turns })
    }

    /// Begins a turn: stores it, and answers the message for a worker, with the right to follow it. Whoever cannot send that
    /// message calls [`Conversations::give_up`].
    ///
    /// # Errors
    ///
    /// [`ConversationError::Busy`] where the thread has an open turn, [`ConversationError::TooManyOpen`] where others of the person are,
    /// [`ConversationError::OverBudget`] where the school has used up what it may use today.
    pub async fn begin_turn(
        &self,
        person: &Person,
        thread: Uuid,
        message: Message,
    ) -> Result<(TurnMessage, Followed), ConversationError> {
        let Message(message) = message;
        let (entered, thread, school) = self.find_thread(person, thread).await?;
        let (school_id, staff) = at_work(&entered)?;
        entered.tx.rollback().await?;
        let wanted = wanted(person, Some(school), thread.campus_id.map(|campus| campus.to_string()));
        let minted = dispatch::mint(&self.database, &self.grants, wanted).await?;
        let deadline_ms = clock::deadline_in(TURN_LIMIT);
        let tenant = Tenant::School(school_id);
        let mut tx = self
            .database
            .begin_writing(tenant, &minted.turn_id.to_string(), LIMIT)
            .await?;
        let turn = NewTurn {
            id: minted.turn_id,
            message: &message,
            deadline: DateTime::from_timestamp_millis(deadline_ms).unwrap_or_default(),
        };
        let open = rows::open_turns(&mut tx, school_id, staff).await?;
        match rows::open_turn(&mut tx, school_id, &thread, turn).await {
            Err(error) if error.is_duplicate_of("turns_open_key") => return Err(ConversationError::Busy),
            opened => opened?,
        }
        if open >= i64::from(self.open_turns) {
            return Err(ConversationError::TooManyOpen(self.open_turns));
        }
        if self.is_over_budget(&mut tx, school_id).await? {
            return Err(ConversationError::OverBudget);
        }
        let told = rows::told(&mut tx, thread.id, history::MAX_TURNS).await?;
        tx.commit().await?;
        let followed = Followed {
            school: school_id,
            turn: minted.turn_id,
        };
        let message = TurnMessage {
            turn_id: minted.turn_id,
            grant: minted.grant,
            context: minted.context,
            history: history::within_budget(told),
            message,
            deadline_ms,
            dispatch: 1,
            contract: Some(contract_hash().to_owned()),
        };
        Ok((message, followed))
    }

    /// A turn, and the right to follow it.
    ///
    /// # Errors
    ///
    /// [`ConversationError::Unknown`] where it is in no thread of theirs.
    pub async fn turn(&self, person: &Person, id: Uuid) -> Result<(Turn, Followed), ConversationError> {
        let mut refused = None;
        for school in self.schools_of(person).await? {
            let wanted = wanted(person, Some(school), None);
            let entered = dispatch::enter(&self.database, &self.grants, wanted, Access::Read).await;
            let Some(mut entered) = or_elsewhere(entered, &mut refused)? else {
                continue;
            };
            let (school, staff) = at_work(&entered)?;
            let found = rows::turn(&mut entered.tx, id, staff).await?;
            entered.tx.rollback().await?;
            if let Some(turn) = found {
                return Ok((turn, Followed { school, turn: id }));
            }
        }
        Err(refused.unwrap_or(ConversationError::Unknown("turn")))
    }

    /// A turn with what it waits for.
    ///
    /// # Errors
    ///
    /// [`ConversationError::Unknown`] where it is in no thread of theirs.
    pub async fn turn_view(&self, person: &Person, id: Uuid) -> Result<TurnView, ConversationError> {
        let (turn, followed) = self.turn(person, id).await?;
        let waits_for = if turn.status == "waiting" {
            let mut tx = self.database.begin(Tenant::School(followed.school), LIMIT).await?;
            let open = turns::open(&mut tx, id).await?;
            tx.rollback().await?;
            Some(open)
        } else {
            None
        };
        Ok(TurnView { turn, waits_for })
    }

    /// What happened after a place, in order: as far as it is known without a gap, or whatever is known.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub async fn events(&self, followed: &Followed, after: Place, gaps: Gaps) -> Result<Vec<Told>, ConversationError> {
        let mut tx = self.database.begin(Tenant::School(followed.school), LIMIT).await?;
        let stored = rows::events(&mut tx, followed.turn, after, MAX_EVENTS_READ).await?;
        tx.rollback().await?;
        Ok(order::in_order(stored, after, gaps))
    }

    /// Whether nothing of a turn that has ended comes after a place.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub async fn is_over_at(&self, followed: &Followed, at: Place) -> Result<bool, ConversationError> {
        let mut tx = self.database.begin(Tenant::School(followed.school), LIMIT).await?;
        let end = rows::end_place(&mut tx, followed.turn).await?;
        tx.rollback().await?;
        Ok(at >= end)
    }

    /// Tells all servers that these turns have news.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub async fn tell(&self, turns: &[Uuid]) -> Result<(), ConversationError> {
        Ok(news::tell(&self.database, turns).await?)
    }

    /// The agents that this person is offered, and their tools; of those only what a search mentions.
    ///
    /// # Errors
    ///
    /// Where the person has no standing there.
    pub async fn agent_map(
        &self,
        person: &Person,
        school: Option<String>,
        campus: Option<String>,
        query: &str,
    ) -> Result<Vec<AgentMapEntry>, ConversationError> {
        let minted = dispatch::mint(&self.database, &self.grants, wanted(person, school, campus)).await?;
        let offered = offered_agents(minted.context.run_mode.name(), minted.context.capabilities);
        Ok(search(offered, query))
    }

    /// The schools, by slug, in which an account works.
    async fn schools_of(&self, person: &Person) -> Result<Vec<String>, ConversationError> {
        let accounts = account::by_email(&self.database, &person.email).await?;
        if accounts.is_empty() {
            return Err(DispatchError::UnknownAccount(person.email.clone()).into());
        }
        Ok(accounts.into_iter().filter_map(|account| account.school_slug).collect())
    }

    /// A thread of the person's, in a frame for reading of its school, and the school's slug.
    async fn find_thread(&self, person: &Person, id: Uuid) -> Result<(Entered, Thread, String), ConversationError> {
        let mut refused = None;
        for school in self.schools_of(person).await? {
            let wanted = wanted(person, Some(school.clone()), None);
            let entered = dispatch::enter(&self.database, &self.grants, wanted, Access::Read).await;
            let Some(mut entered) = or_elsewhere(entered, &mut refused)? else {
                continue;
            };
            let (_, staff) = at_work(&entered)?;
            if let Some(thread) = rows::thread(&mut entered.tx, id, staff).await? {
                return Ok((entered, thread, school));
            }
            entered.tx.rollback().await?;
        }
        Err(refused.unwrap_or(ConversationError::Unknown("thread")))
    }
}

/// Whoever may not come in to one school may still work in another.
fn or_elsewhere(
    entered: Result<Entered, DispatchError>,
    refused: &mut Option<ConversationError>,
) -> Result<Option<Entered>, ConversationError> {
    match entered {
        Ok(entered) => Ok(Some(entered)),
        Err(DispatchError::Refused(refusal)) if refusal.kind() == Kind::Denial => {
            *refused = Some(DispatchError::Refused(refusal).into());
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

fn wanted(person: &Person, school: Option<String>, campus: Option<String>) -> Wanted {
    Wanted {
        email: person.email.clone(),
        school,
        campus,
        door: Door::Chat,
        lasts: TURN_LIMIT,
        turn: None,
    }
}

/// The school and the profile of whoever came in.
fn at_work(entered: &Entered) -> Result<(Uuid, Uuid), ConversationError> {
    let actor = &entered.standing.actor;
    actor.school_id.zip(actor.staff_id).ok_or(ConversationError::NoSchool)
}

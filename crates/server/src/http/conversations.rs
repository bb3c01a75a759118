//! Threads, turns, and who the agents are.

use super::{
    Door, Problem,
    auth::{Session, SignedIn},
    events::{self, Following},
    input::{Body, Id, Nothing, Params},
};
use crate::{
    conversation::{Answer, Cancelled, Followed, Message, Person, Place, Thread, ThreadView, TurnView},
    rpc::turns::Sent,
};
use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderName, StatusCode, header::LOCATION},
    response::{AppendHeaders, IntoResponse, Response},
};
use contract::{agent_map::AgentMapEntry, turn::CancelTurn};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use uuid::Uuid;

/// Which turn was begun, for whoever gets its events at once.
const TURN_ID: HeaderName = HeaderName::from_static("x-turn-id");
/// In which thread.
const THREAD_ID: HeaderName = HeaderName::from_static("x-thread-id");

/// In which school, for whoever works in several, on which campus, and perhaps with a first message.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewThread {
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    school: Option<String>,
    #[serde(default)]
    campus: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewTurn {
    message: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MapQuery {
    #[serde(default)]
    q: String,
    #[serde(default)]
    school: Option<String>,
    #[serde(default)]
    campus: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InSchool {
    #[serde(default)]
    school: Option<String>,
}

/// A turn that was begun, and where to follow it.
#[derive(Debug, Serialize)]
pub(super) struct Begun {
    id: Uuid,
    thread: Uuid,
    events: String,
}

/// Opens a thread, and begins a turn in it where there is a message already.
pub(super) async fn open_thread(
    State(door): State<Arc<Door>>,
    session: Session,
    Params(Nothing {}): Params<Nothing>,
    headers: HeaderMap,
    Body(wanted): Body<NewThread>,
) -> Result<Response, Problem> {
    let message = wanted.message.map(Message::new).transpose()?;
    // before anything is done for it
    let following = events::following(&door, &session, &headers)?;
    let opened = door
        .books
        .conversations
        .open_thread(&session.person, wanted.school, wanted.campus);
    let thread = opened.await?;
    if let Some(message) = message {
        return begin(&door, session.person, thread.id(), message, following).await;
    }
    let at = [(LOCATION, format!("/v1/threads/{}", thread.id()))];
    Ok((StatusCode::CREATED, at, Json(thread)).into_response())
}

/// The newest threads.
pub(super) async fn threads(
    State(door): State<Arc<Door>>,
    SignedIn(person): SignedIn,
    Params(InSchool { school }): Params<InSchool>,
) -> Result<Json<Vec<Thread>>, Problem> {
    Ok(Json(door.books.conversations.threads(&person, school).await?))
}

pub(super) async fn thread(
    State(door): State<Arc<Door>>,
    SignedIn(person): SignedIn,
    Id(id): Id,
    Params(Nothing {}): Params<Nothing>,
) -> Result<Json<ThreadView>, Problem> {
    Ok(Json(door.books.conversations.thread(&person, id).await?))
}

pub(super) async fn begin_turn(
    State(door): State<Arc<Door>>,
    session: Session,
    Id(thread): Id,
    Params(Nothing {}): Params<Nothing>,
    headers: HeaderMap,
    Body(turn): Body<NewTurn>,
) -> Result<Response, Problem> {
    let message = Message::new(turn.message)?;
    let following = events::following(&door, &session, &headers)?;
    begin(&door, session.person, thread, message, following).await
}

/// Begins a turn. Answers its events to whoever wants them at once, and else where they are.
async fn begin(
    door: &Arc<Door>,
    person: Person,
    thread: Uuid,
    message: Message,
    following: Option<Following>,
) -> Result<Response, Problem> {
    let followed = store_and_send(Arc::clone(door), person, thread, message).await?;
    let begun = Begun {
        id: followed.turn,
        thread,
        events: format!("/v1/turns/{}/events", followed.turn),
    };
    let at = AppendHeaders([
        (LOCATION, begun.events.clone()),
        (TURN_ID, followed.turn.to_string()),
        (THREAD_ID, thread.to_string()),
    ]);
    Ok(match following {
        Some(following) => (at, following.stream_of(door, followed, Place::default())).into_response(),
        None => (StatusCode::ACCEPTED, at, Json(begun)).into_response(),
    })
}

/// A turn that is stored is sent, whether or not its person is still there: a request that is given up in between would leave a
/// thread that waits for nobody.
#[expect(
    clippy::disallowed_methods,
    reason = "it is awaited here, by whoever has not hung up; its panics are reported as failures"
)]
async fn store_and_send(door: Arc<Door>, person: Person, thread: Uuid, message: Message) -> Result<Followed, Problem> {
    let sending = tokio::spawn(async move {
        let (message, followed) = door.books.conversations.begin_turn(&person, thread, message).await?;
        match door.books.turns.send(&message).await {
            Ok(Sent::Stored) => door.books.conversations.note_sent(followed.due(), &message).await?,
            // it is sent again in a while, and whichever comes second is refused
            Ok(Sent::Unknown) => {}
            Err(error) => {
                door.books.conversations.give_up(&followed).await?;
                door.hub.stored(followed.turn);
                return Err(error.into());
            }
        }
        Ok(followed)
    });
    sending.await.unwrap_or_else(|error| {
        tracing::error!(%error, "a turn could not be begun");
        Err(Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "This is not possible at the moment.",
        ))
    })
}

pub(super) async fn turn(
    State(door): State<Arc<Door>>,
    SignedIn(person): SignedIn,
    Id(id): Id,
    Params(Nothing {}): Params<Nothing>,
) -> Result<Json<TurnView>, Problem> {
    Ok(Json(door.books.conversations.turn_view(&person, id).await?))
}

/// The answer to a question of an agent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct NewAnswer {
    /// The call that asked, as the event says.
    tool_call_id: String,
    answer: String,
}

/// Takes an answer. The turn goes on once nothing that it waits for is open.
pub(super) async fn answer(
    State(door): State<Arc<Door>>,
    SignedIn(person): SignedIn,
    Id(id): Id,
    Params(Nothing {}): Params<Nothing>,
    Body(NewAnswer { tool_call_id, answer }): Body<NewAnswer>,
) -> Result<StatusCode, Problem> {
    let answer = Answer::new(&answer)?;
    let due = door
        .books
        .conversations
        .answer(&person, id, &tool_call_id, answer)
        .await?;
    if let Some(due) = due {
        door.books.send(due).await;
    }
    door.hub.stored(id);
    Ok(StatusCode::ACCEPTED)
}

/// Asks whichever worker has the turn to stop. Its end is among its events.
pub(super) async fn cancel(
    State(door): State<Arc<Door>>,
    SignedIn(person): SignedIn,
    Id(id): Id,
    Params(Nothing {}): Params<Nothing>,
) -> Result<StatusCode, Problem> {
    if door.books.conversations.cancel(&person, id).await? == Cancelled::TooLate {
        return Err(Problem::new(StatusCode::CONFLICT, "This turn has ended."));
    }
    door.hub.stored(id);
    door.books.turns.cancel(&CancelTurn { turn_id: id }).await?;
    Ok(StatusCode::ACCEPTED)
}

pub(super) async fn agent_map(
    State(door): State<Arc<Door>>,
    SignedIn(person): SignedIn,
    Params(MapQuery { q, school, campus }): Params<MapQuery>,
) -> Result<Json<Vec<AgentMapEntry>>, Problem> {
    Ok(Json(
        door.books.conversations.agent_map(&person, school, campus, &q).await?,
    ))
}

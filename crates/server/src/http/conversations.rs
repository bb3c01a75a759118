//! Threads, turns, and who the agents are.

use super::{Door, Problem, auth::SignedIn};
use crate::conversation::{ThreadView, Turn};
use axum::{
    Json,
    extract::{
        Path, Query, State,
        rejection::{JsonRejection, PathRejection, QueryRejection},
    },
    http::{HeaderName, StatusCode, header::LOCATION},
};
use contract::{agent_map::AgentMapEntry, turn::CancelTurn};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use uuid::Uuid;

/// In which school, for whoever works in several, and on which campus.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewThread {
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

/// A turn that was begun, and where to follow it.
#[derive(Debug, Serialize)]
pub(super) struct Begun {
    id: Uuid,
    events: String,
}

type At = [(HeaderName, String); 1];
type Id = Result<Path<Uuid>, PathRejection>;

pub(super) async fn open_thread(
    State(door): State<Arc<Door>>,
    SignedIn(person): SignedIn,
    wanted: Result<Json<NewThread>, JsonRejection>,
) -> Result<(StatusCode, At, Json<ThreadView>), Problem> {
    let Json(wanted) = wanted?;
    let opened = door.conversations.open_thread(&person, wanted.school, wanted.campus);
    let thread = opened.await?;
    let at = [(LOCATION, format!("/v1/threads/{}", thread.id()))];
    Ok((StatusCode::CREATED, at, Json(thread)))
}

pub(super) async fn thread(
    State(door): State<Arc<Door>>,
    SignedIn(person): SignedIn,
    id: Id,
) -> Result<Json<ThreadView>, Problem> {
    let Path(id) = id?;
    Ok(Json(door.conversations.thread(&person, id).await?))
}

pub(super) async fn begin_turn(
    State(door): State<Arc<Door>>,
    SignedIn(person): SignedIn,
    thread: Id,
    turn: Result<Json<NewTurn>, JsonRejection>,
) -> Result<(StatusCode, At, Json<Begun>), Problem> {
    let (Path(thread), Json(turn)) = (thread?, turn?);
    let message = door.conversations.begin_turn(&person, thread, turn.message).await?;
    let id = message.turn_id;
    if let Err(error) = door.turns.send(&message).await {
        door.conversations.give_up(&message).await?;
        door.hub.stored(id);
        return Err(error.into());
    }
    let events = format!("/v1/turns/{id}/events");
    let at = [(LOCATION, events.clone())];
    Ok((StatusCode::ACCEPTED, at, Json(Begun { id, events })))
}

pub(super) async fn turn(
    State(door): State<Arc<Door>>,
    SignedIn(person): SignedIn,
    id: Id,
) -> Result<Json<Turn>, Problem> {
    let Path(id) = id?;
    Ok(Json(door.conversations.turn(&person, id).await?.0))
}

/// Asks whichever worker has the turn to stop. Its end is among its events.
pub(super) async fn cancel(
    State(door): State<Arc<Door>>,
    SignedIn(person): SignedIn,
    id: Id,
) -> Result<StatusCode, Problem> {
    let Path(id) = id?;
    let (turn, _) = door.conversations.turn(&person, id).await?;
    if turn.has_ended() {
        return Err(Problem::new(StatusCode::CONFLICT, "This turn has ended."));
    }
    door.turns.cancel(&CancelTurn { turn_id: id }).await?;
    Ok(StatusCode::ACCEPTED)
}

pub(super) async fn agent_map(
    State(door): State<Arc<Door>>,
    SignedIn(person): SignedIn,
    query: Result<Query<MapQuery>, QueryRejection>,
) -> Result<Json<Vec<AgentMapEntry>>, Problem> {
    let Query(MapQuery { q, school, campus }) = query?;
    Ok(Json(door.conversations.agent_map(&person, school, campus, &q).await?))
}

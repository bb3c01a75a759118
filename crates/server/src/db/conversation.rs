//! `threads`, `turns` and `turn_events`: conversations, and what happened in them.

use super::{Database, DbResult, Tx};
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use sqlx::types::Json;
use std::time::Duration;
use uuid::Uuid;

/// A thread, as its owner may know it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Thread {
    pub(crate) id: Uuid,
    pub(crate) campus_id: Option<Uuid>,
    pub(crate) created_at: DateTime<Utc>,
}

/// A turn, as its owner may know it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    pub(crate) id: Uuid,
    pub(crate) thread_id: Uuid,
    pub(crate) message: String,
    pub(crate) status: String,
    pub(crate) outcome: Option<String>,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) ended_at: Option<DateTime<Utc>>,
}

impl Turn {
    pub(crate) const fn has_ended(&self) -> bool {
        self.ended_at.is_some()
    }
}

/// A turn to be opened.
#[derive(Debug)]
pub(crate) struct NewTurn<'a> {
    pub(crate) id: Uuid,
    pub(crate) message: &'a str,
    pub(crate) deadline: DateTime<Utc>,
}

/// An ended turn, as it may be told to a model.
#[derive(Debug)]
pub(crate) struct ToldTurn {
    pub(crate) message: String,
    pub(crate) status: String,
    pub(crate) outcome: String,
    /// Messages of the chat-completions protocol, in order.
    pub(crate) messages: Vec<Value>,
    /// How many ended turns the thread has.
    pub(crate) of: i64,
}

/// Where an event stands among those of its turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Which delivery of the turn it is from.
    pub attempt: i32,
    /// Its place in it.
    pub place: i32,
}

/// A stored event.
#[derive(Debug, Clone)]
pub(crate) struct StoredEvent {
    pub(crate) at: Place,
    pub(crate) event: Value,
}

/// Opens a thread of a member of staff.
pub(crate) async fn open_thread(tx: &mut Tx, school: Uuid, staff: Uuid, campus: Option<Uuid>) -> DbResult<Thread> {
    Ok(sqlx::query_as!(
        Thread,
        "INSERT INTO threads (school_id, id, staff_id, campus_id) VALUES ($1, $2, $3, $4) RETURNING id, campus_id, created_at",
        school,
        Uuid::now_v7(),
        staff,
        campus
    )
    .fetch_one(tx.connection()?)
    .await?)
}

/// A thread, if it is theirs.
pub(crate) async fn thread(tx: &mut Tx, id: Uuid, staff: Uuid) -> DbResult<Option<Thread>> {
    Ok(sqlx::query_as!(
        Thread,
        "SELECT id, campus_id, created_at FROM threads WHERE id = $1 AND staff_id = $2",
        id,
        staff
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// Somebody's newest threads, newest first.
pub(crate) async fn threads(tx: &mut Tx, staff: Uuid, limit: i64) -> DbResult<Vec<Thread>> {
    Ok(sqlx::query_as!(
        Thread,
        "SELECT id, campus_id, created_at FROM threads WHERE staff_id = $1 ORDER BY id DESC LIMIT $2",
        staff,
        limit
    )
    .fetch_all(tx.connection()?)
    .await?)
}

/// The newest turns of a thread, oldest of them first.
pub(crate) async fn turns(tx: &mut Tx, thread: &Thread, limit: i64) -> DbResult<Vec<Turn>> {
    let mut found = sqlx::query_as!(
        Turn,
        "SELECT id, thread_id, message, status, outcome, created_at, ended_at FROM turns WHERE thread_id = $1 ORDER BY id DESC LIMIT $2",
        thread.id,
        limit
    )
    .fetch_all(tx.connection()?)
    .await?;
    found.reverse();
    Ok(found)
}

/// Opens a turn. The index `turns_open_key` refuses one beside another that is open.
pub(crate) async fn open_turn(tx: &mut Tx, school: Uuid, thread: &Thread, turn: NewTurn<'_>) -> DbResult<()> {
    sqlx::query!(
        "INSERT INTO turns (school_id, id, thread_id, message, deadline_at) VALUES ($1, $2, $3, $4, $5)",
        school,
        turn.id,
        thread.id,
        turn.message,
        turn.deadline
    )
    .execute(tx.connection()?)
    .await?;
    Ok(())
}

/// A turn, if it is in a thread of theirs.
pub(crate) async fn turn(tx: &mut Tx, id: Uuid, staff: Uuid) -> DbResult<Option<Turn>> {
    Ok(sqlx::query_as!(
        Turn,
        "SELECT t.id, t.thread_id, t.message, t.status, t.outcome, t.created_at, t.ended_at
           FROM turns t JOIN threads h ON h.school_id = t.school_id AND h.id = t.thread_id
          WHERE t.id = $1 AND h.staff_id = $2",
        id,
        staff
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// The newest ended turns of a thread, newest first.
pub(crate) async fn told(tx: &mut Tx, thread: &Thread, limit: i64) -> DbResult<Vec<ToldTurn>> {
    let rows = sqlx::query!(
        r#"
        SELECT t.message, t.status, t.outcome AS "outcome!", count(*) OVER () AS "of!",
               (SELECT json_agg(said.message ORDER BY e.attempt, e.place, said.at)
                  FROM turn_events e, jsonb_array_elements(e.event -> 'messages') WITH ORDINALITY AS said (message, at)
                 WHERE e.school_id = t.school_id AND e.turn_id = t.id AND e.event ->> 'type' = 'messages'
               ) AS "messages: Json<Vec<Value>>"
          FROM turns t
         WHERE t.thread_id = $1 AND t.ended_at IS NOT NULL
         ORDER BY t.id DESC
         LIMIT $2
        "#,
        thread.id,
        limit
    )
    .fetch_all(tx.connection()?)
    .await?;
    let told = rows.into_iter().map(|row| ToldTurn {
        message: row.message,
        status: row.status,
        outcome: row.outcome,
        messages: row.messages.map(|messages| messages.0).unwrap_or_default(),
        of: row.of,
    });
    Ok(told.collect())
}

/// How a turn stands to which events were to be added.
#[derive(Debug)]
pub(crate) struct Standing {
    /// Whether its person has asked for it to be stopped.
    pub(crate) cancelled: bool,
    /// Whether it has ended.
    pub(crate) ended: bool,
}

/// Stores events of a turn that is open, or has ended a moment ago; those that are there already stay as they are, and so does its end.
/// None where the tenant has no such turn.
pub(crate) async fn store_events(
    tx: &mut Tx,
    turn: Uuid,
    first: Place,
    events: &[Value],
) -> DbResult<Option<Standing>> {
    let stored = sqlx::query_as!(
        Standing,
        r#"
        WITH known AS (
            SELECT school_id, id, cancelled, ended_at IS NOT NULL AS ended,
                   ended_at IS NULL OR ended_at > now() - interval '1 minute' AS takes
              FROM turns WHERE id = $1), stored AS (
            INSERT INTO turn_events (school_id, turn_id, attempt, place, event)
            SELECT known.school_id, known.id, $2, $3 + told.at::int - 1, told.event
              FROM known, jsonb_array_elements($4) WITH ORDINALITY AS told (event, at)
             WHERE known.takes
            ON CONFLICT DO NOTHING)
        SELECT cancelled, ended AS "ended!" FROM known
        "#,
        turn,
        first.attempt,
        first.place,
        Json(events) as _
    )
    .fetch_optional(tx.connection()?)
    .await?;
    Ok(stored)
}

/// Notes that a turn is to be stopped. Answers whether nobody has reported anything of it yet.
pub(crate) async fn cancel(tx: &mut Tx, turn: Uuid) -> DbResult<bool> {
    Ok(sqlx::query_scalar!(
        r#"
        WITH asked AS (UPDATE turns SET cancelled = true WHERE id = $1 AND ended_at IS NULL RETURNING school_id, id)
        SELECT EXISTS (SELECT 1 FROM asked) AND NOT EXISTS (SELECT 1 FROM turn_events WHERE turn_id = $1) AS "unheard!"
        "#,
        turn
    )
    .fetch_one(tx.connection()?)
    .await?)
}

/// Ends a turn that is open. False where it had ended, or there is none.
pub(crate) async fn end_turn(tx: &mut Tx, turn: Uuid, status: &str, outcome: &str) -> DbResult<bool> {
    let ended = sqlx::query!(
        "UPDATE turns SET status = $2, outcome = $3, ended_at = now() WHERE id = $1 AND ended_at IS NULL",
        turn,
        status,
        outcome
    )
    .execute(tx.connection()?)
    .await?;
    Ok(ended.rows_affected() == 1)
}

/// Events of a turn after a place, in their order.
pub(crate) async fn events(tx: &mut Tx, turn: Uuid, after: Place, limit: i64) -> DbResult<Vec<StoredEvent>> {
    let rows = sqlx::query!(
        r#"SELECT attempt, place, event AS "event: Json<Value>" FROM turn_events
            WHERE turn_id = $1 AND (attempt, place) > ($2, $3)
            ORDER BY attempt, place LIMIT $4"#,
        turn,
        after.attempt,
        after.place,
        limit
    )
    .fetch_all(tx.connection()?)
    .await?;
    let events = rows.into_iter().map(|row| StoredEvent {
        at: Place {
            attempt: row.attempt,
            place: row.place,
        },
        event: row.event.0,
    });
    Ok(events.collect())
}

/// The place of the end of a turn.
pub(crate) async fn end_place(tx: &mut Tx, turn: Uuid) -> DbResult<Place> {
    let last = sqlx::query_as!(
        Place,
        "SELECT attempt, place FROM turn_events WHERE turn_id = $1 AND event ->> 'type' = 'ended'",
        turn
    )
    .fetch_optional(tx.connection()?)
    .await?;
    Ok(last.unwrap_or_default())
}

/// The place after all that was stored of a turn: an attempt of its own.
pub(crate) async fn next_attempt(tx: &mut Tx, turn: Uuid) -> DbResult<Place> {
    let attempt = sqlx::query_scalar!(
        r#"SELECT coalesce(max(attempt), 0) + 1 AS "attempt!" FROM turn_events WHERE turn_id = $1"#,
        turn
    )
    .fetch_one(tx.connection()?)
    .await?;
    Ok(Place { attempt, place: 1 })
}

/// Open turns of any school that should have ended this long ago.
pub(crate) async fn overdue(database: &Database, by: Duration) -> DbResult<Vec<(Uuid, Uuid)>> {
    let rows = sqlx::query!(
        "SELECT school_id, id FROM turns
          WHERE ended_at IS NULL AND status = 'running' AND deadline_at < now() - make_interval(secs => $1)
          ORDER BY deadline_at LIMIT 100",
        by.as_secs_f64()
    )
    .fetch_all(database.operator())
    .await?;
    Ok(rows.into_iter().map(|row| (row.school_id, row.id)).collect())
}

//! `threads`, `turns` and `turn_events`: conversations, and what happened in them.

use super::{Database, DbResult, Tx};
use chrono::{DateTime, Utc};
use contract::turn::JournalEntry;
use serde::{Deserialize, Serialize};
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
    /// How its first message begins; none before there is one.
    pub(crate) first_message: Option<String>,
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
    /// What was kept of the supervisor's conversation, in no order.
    pub(crate) kept: Vec<JournalEntry>,
    /// What its agents asked approval for.
    pub(crate) approvals: Vec<ToldApproval>,
    /// How many ended turns the thread has.
    pub(crate) of: i64,
}

/// What became of a call that waited for approval in an ended turn.
#[derive(Debug, Deserialize)]
pub(crate) struct ToldApproval {
    pub(crate) tool_call_id: String,
    pub(crate) event: String,
    pub(crate) status: String,
    /// As the model reads it, once it is final.
    pub(crate) result: Option<Value>,
}

/// Where an event stands among those of its turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Which attempt at the turn it is from.
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
        r#"INSERT INTO threads (school_id, id, staff_id, campus_id) VALUES ($1, $2, $3, $4)
           RETURNING id, campus_id, created_at, NULL::text AS first_message"#,
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
        r#"SELECT h.id, h.campus_id, h.created_at,
                  (SELECT left(t.message, 80) FROM turns t
                    WHERE t.school_id = h.school_id AND t.thread_id = h.id ORDER BY t.id LIMIT 1) AS first_message
             FROM threads h WHERE h.id = $1 AND h.staff_id = $2"#,
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
        r#"SELECT h.id, h.campus_id, h.created_at,
                  (SELECT left(t.message, 80) FROM turns t
                    WHERE t.school_id = h.school_id AND t.thread_id = h.id ORDER BY t.id LIMIT 1) AS first_message
             FROM threads h WHERE h.staff_id = $1 ORDER BY h.id DESC LIMIT $2"#,
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

/// Lets nobody else begin a turn of this member of staff before the transaction ends, and answers how many of theirs are open.
pub(crate) async fn open_turns(tx: &mut Tx, school: Uuid, staff: Uuid) -> DbResult<i64> {
    // before the count, in a statement of its own: it must see what the last holder did
    sqlx::query!(
        "SELECT pg_advisory_xact_lock(hashtextextended('turns:' || $1::text, 0))",
        staff.to_string()
    )
    .execute(tx.connection()?)
    .await?;
    Ok(sqlx::query_scalar!(
        r#"SELECT count(*) AS "open!" FROM turns t JOIN threads h ON h.school_id = t.school_id AND h.id = t.thread_id
            WHERE t.school_id = $1 AND t.ended_at IS NULL AND h.staff_id = $2"#,
        school,
        staff
    )
    .fetch_one(tx.connection()?)
    .await?)
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

/// The newest ended turns of a thread, newest first, each with what was kept of the supervisor's conversation.
pub(crate) async fn told(tx: &mut Tx, thread: Uuid, limit: i64) -> DbResult<Vec<ToldTurn>> {
    let rows = sqlx::query!(
        r#"
        SELECT t.message, t.status, t.outcome AS "outcome!", count(*) OVER () AS "of!",
               (SELECT json_agg(m.entry)
                  FROM turn_messages m
                 WHERE m.school_id = t.school_id AND m.turn_id = t.id
                   AND (m.entry ->> 'within' = '' OR (m.entry ->> 'kept' = 'result' AND position('/' IN m.name) = 0))
               ) AS "kept: Json<Vec<JournalEntry>>",
               (SELECT json_agg(json_build_object('tool_call_id', a.tool_call_id, 'event', a.event, 'status', a.status, 'result', a.result)
                                ORDER BY a.id)
                  FROM approvals a
                 WHERE a.school_id = t.school_id AND a.turn_id = t.id AND a.status NOT IN ('replaced', 'asked_anew')
               ) AS "approvals: Json<Vec<ToldApproval>>"
          FROM turns t
         WHERE t.thread_id = $1 AND t.ended_at IS NOT NULL
         ORDER BY t.id DESC
         LIMIT $2
        "#,
        thread,
        limit
    )
    .fetch_all(tx.connection()?)
    .await?;
    let told = rows.into_iter().map(|row| ToldTurn {
        message: row.message,
        status: row.status,
        outcome: row.outcome,
        kept: row.kept.map(|kept| kept.0).unwrap_or_default(),
        approvals: row.approvals.map(|approvals| approvals.0).unwrap_or_default(),
        of: row.of,
    });
    Ok(told.collect())
}

/// Stores events of a turn, but for those that only a newer version knows of; those that are there already stay as they are, and so does
/// its end. Answers how many tokens those cost that were not.
pub(crate) async fn store_events(tx: &mut Tx, turn: Uuid, first: Place, events: &[Value]) -> DbResult<i64> {
    Ok(sqlx::query_scalar!(
        r#"
        WITH stored AS (
            INSERT INTO turn_events (school_id, turn_id, attempt, place, event)
            SELECT known.school_id, known.id, $2, $3 + told.at::int - 1, told.event
              FROM turns known, jsonb_array_elements($4) WITH ORDINALITY AS told (event, at)
             WHERE known.id = $1 AND told.event ->> 'type' <> 'unknown'
            ON CONFLICT DO NOTHING
            RETURNING event)
        SELECT least(coalesce(sum((event ->> 'inputTokens')::numeric + (event ->> 'outputTokens')::numeric), 0),
                     9223372036854775807)::bigint AS "tokens!"
          FROM stored WHERE event ->> 'type' = 'usage'
        "#,
        turn,
        first.attempt,
        first.place,
        Json(events) as _
    )
    .fetch_one(tx.connection()?)
    .await?)
}

/// Notes that a turn is to be stopped. Answers whether nobody works on it: no run has begun with it, or it waits for somebody.
pub(crate) async fn cancel(tx: &mut Tx, turn: Uuid) -> DbResult<bool> {
    let is_idle = sqlx::query_scalar!(
        r#"UPDATE turns SET cancelled = true WHERE id = $1 AND ended_at IS NULL RETURNING run IS NULL AS "idle!""#,
        turn
    )
    .fetch_optional(tx.connection()?)
    .await?;
    Ok(is_idle.unwrap_or_default())
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

/// An open turn that should have ended.
#[derive(Debug)]
pub(crate) struct Overdue {
    pub(crate) school_id: Uuid,
    pub(crate) id: Uuid,
    /// Whether it waits for somebody.
    pub(crate) is_waiting: bool,
}

/// Open turns of any school that should have ended this long ago. One that could not be handed to a worker yet is given an hour more.
pub(crate) async fn overdue(database: &Database, by: Duration) -> DbResult<Vec<Overdue>> {
    Ok(sqlx::query_as!(
        Overdue,
        r#"SELECT school_id, id, status = 'waiting' AS "is_waiting!" FROM turns
            WHERE ended_at IS NULL
              AND deadline_at < now() - make_interval(secs => $1) - CASE WHEN sent OR status = 'waiting' THEN '0' ELSE '1 hour'::interval END
            ORDER BY deadline_at LIMIT 100"#,
        by.as_secs_f64()
    )
    .fetch_all(database.operator())
    .await?)
}

//! How far a turn has come, and who has it: `turns` as their runs see them, `turn_messages`, `turn_waits` and `turn_tokens`.
//!
//! Whoever changes one of these holds the turn's row first ([`hold`]), so that a turn's changes follow one another.

use super::{Database, DbResult, Tx, conversation::Place};
use chrono::{DateTime, Utc};
use contract::turn::{Decision, JournalEntry};
use serde::Serialize;
use serde_json::Value;
use sqlx::types::Json;
use std::time::Duration;
use uuid::Uuid;

/// A turn that is held until the transaction ends.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) school_id: Uuid,
    pub(crate) id: Uuid,
    pub(crate) thread_id: Uuid,
    pub(crate) status: String,
    pub(crate) message: String,
    pub(crate) deadline: DateTime<Utc>,
    pub(crate) cancelled: bool,
    pub(crate) ended: bool,
    pub(crate) dispatch: i32,
    pub(crate) attempt: i32,
    pub(crate) run: Option<Uuid>,
    pub(crate) earlier_runs: Vec<Uuid>,
}

/// Something that a turn waits for.
#[derive(Debug)]
pub(crate) struct Wait {
    pub(crate) approval_id: Option<Uuid>,
    pub(crate) choices: Vec<String>,
    pub(crate) is_settled: bool,
}

/// What a turn waits for, as its person may know it.
#[derive(Debug, Serialize)]
pub(crate) struct Open {
    /// The questions that are to be answered, in the order in which they were asked.
    pub(crate) questions: Vec<OpenQuestion>,
    /// The approvals that are to be decided, or were and are being carried out.
    pub(crate) approvals: Vec<Uuid>,
}

/// A question that is not answered.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OpenQuestion {
    pub(crate) tool_call_id: String,
    pub(crate) question: String,
    pub(crate) choices: Vec<String>,
}

/// What is asked for by a call that then waits.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Asked<'a> {
    /// An answer.
    Question { text: &'a str, choices: &'a [String] },
    /// A decision.
    Approval { id: Uuid },
}

/// How something that was waited for was settled.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Settled<'a> {
    /// By an answer.
    Answer(&'a str),
    /// By a decision.
    Decision {
        /// About what; it may have taken the place of what was waited for.
        approval: Uuid,
        /// Which.
        decision: Decision,
    },
}

/// What was settled, and what came of the call where that was approved or not.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) tool_call_id: String,
    pub(crate) approval_id: Option<Uuid>,
    pub(crate) answer: Option<String>,
    pub(crate) decision: Option<String>,
    pub(crate) result: Option<Value>,
    pub(crate) arguments: Option<Value>,
}

/// A call, as the turn's events tell it.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) agent: String,
    pub(crate) tool: String,
}

/// Whose turn it is, so that it can be dispatched anew.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) email: String,
    pub(crate) school_slug: String,
    pub(crate) campus_id: Option<Uuid>,
}

/// Holds a turn's row.
pub(crate) async fn hold(tx: &mut Tx, turn: Uuid) -> DbResult<Option<Held>> {
    Ok(sqlx::query_as!(
        Held,
        r#"SELECT school_id, id, thread_id, status, message, deadline_at AS deadline, cancelled, ended_at IS NOT NULL AS "ended!",
                  dispatch, attempt, run, earlier_runs
             FROM turns WHERE id = $1 FOR UPDATE"#,
        turn
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// Gives a turn to a run, as its next attempt.
pub(crate) async fn give_to(tx: &mut Tx, turn: &Held, run: Uuid) -> DbResult<i32> {
    Ok(sqlx::query_scalar!(
        "UPDATE turns SET attempt = attempt + 1, run = $3, sent = true,
                          earlier_runs = CASE WHEN run IS NULL THEN earlier_runs ELSE earlier_runs || run END
          WHERE school_id = $1 AND id = $2
         RETURNING attempt",
        turn.school_id,
        turn.id,
        run
    )
    .fetch_one(tx.connection()?)
    .await?)
}

/// Lets a turn wait for somebody, until the last of its deadlines.
pub(crate) async fn let_wait(tx: &mut Tx, turn: &Held, until: DateTime<Utc>) -> DbResult<()> {
    sqlx::query!(
        "UPDATE turns SET status = 'waiting', deadline_at = $3, run = NULL,
                          earlier_runs = CASE WHEN run IS NULL THEN earlier_runs ELSE earlier_runs || run END
          WHERE school_id = $1 AND id = $2",
        turn.school_id,
        turn.id,
        until
    )
    .execute(tx.connection()?)
    .await?;
    Ok(())
}

/// Lets a turn go on: the next dispatch, whose message is yet to be sent.
pub(crate) async fn let_go_on(tx: &mut Tx, turn: &Held, deadline: DateTime<Utc>) -> DbResult<()> {
    sqlx::query!(
        "UPDATE turns SET status = 'running', deadline_at = $3, dispatch = dispatch + 1, dispatched_at = now(), sent = false,
                          run = NULL, earlier_runs = CASE WHEN run IS NULL THEN earlier_runs ELSE earlier_runs || run END
          WHERE school_id = $1 AND id = $2",
        turn.school_id,
        turn.id,
        deadline
    )
    .execute(tx.connection()?)
    .await?;
    Ok(())
}

/// Notes that the message of a dispatch is with the broker, and from when on its time runs.
pub(crate) async fn note_sent(tx: &mut Tx, turn: Uuid, dispatch: i32, deadline: DateTime<Utc>) -> DbResult<()> {
    sqlx::query!(
        "UPDATE turns SET sent = true, deadline_at = $3 WHERE id = $1 AND dispatch = $2 AND status = 'running'",
        turn,
        dispatch,
        deadline
    )
    .execute(tx.connection()?)
    .await?;
    Ok(())
}

/// Open turns of any school whose dispatch is this old, and of whose message nobody knows that the broker has it.
pub(crate) async fn unsent(database: &Database, by: Duration) -> DbResult<Vec<(Uuid, Uuid)>> {
    let rows = sqlx::query!(
        "SELECT school_id, id FROM turns
          WHERE ended_at IS NULL AND status = 'running' AND NOT sent AND dispatched_at < now() - make_interval(secs => $1)
          ORDER BY dispatched_at LIMIT 100",
        by.as_secs_f64()
    )
    .fetch_all(database.operator())
    .await?;
    Ok(rows.into_iter().map(|row| (row.school_id, row.id)).collect())
}

/// How much is kept of a turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept {
    pub(crate) entries: i32,
    pub(crate) bytes: i64,
}

/// Keeps entries of a turn's journal; what is there stays as it is. Answers how much that makes.
pub(crate) async fn keep(tx: &mut Tx, turn: &Held, names: &[String], entries: &[Value]) -> DbResult<Kept> {
    Ok(sqlx::query_as!(
        Kept,
        r#"
        WITH added AS (
            INSERT INTO turn_messages (school_id, turn_id, name, entry)
            SELECT $1, $2, kept.name, said.entry
              FROM unnest($3::text[]) WITH ORDINALITY AS kept (name, at)
              JOIN jsonb_array_elements($4) WITH ORDINALITY AS said (entry, at) USING (at)
            ON CONFLICT DO NOTHING
            RETURNING octet_length(entry::text) AS bytes)
        UPDATE turns
           SET kept_entries = kept_entries + (SELECT count(*) FROM added)::int,
               kept_bytes = kept_bytes + (SELECT coalesce(sum(bytes), 0) FROM added)::bigint
         WHERE school_id = $1 AND id = $2
        RETURNING kept_entries AS entries, kept_bytes AS bytes
        "#,
        turn.school_id,
        turn.id,
        names,
        Json(entries) as _
    )
    .fetch_one(tx.connection()?)
    .await?)
}

/// Everything that was kept of a turn.
pub(crate) async fn journal(tx: &mut Tx, turn: Uuid) -> DbResult<Vec<Json<JournalEntry>>> {
    Ok(sqlx::query_scalar!(
        r#"SELECT entry AS "entry: Json<JournalEntry>" FROM turn_messages WHERE turn_id = $1 ORDER BY created_at, name"#,
        turn
    )
    .fetch_all(tx.connection()?)
    .await?)
}

/// The events of the writes that are done of a turn, in their order: of the calls that its journal holds, those whose keys are used. None
/// is run of which the journal does not know.
pub(crate) async fn done(tx: &mut Tx, turn: &Held) -> DbResult<Vec<String>> {
    Ok(sqlx::query_scalar!(
        "SELECT event FROM tool_calls
          WHERE school_id = $1 AND reply IS NOT NULL AND key = ANY (ARRAY(
                SELECT $2::uuid || ':' || concat_ws('/', nullif(m.entry ->> 'within', ''), called.id #>> '{}')
                  FROM turn_messages m CROSS JOIN jsonb_path_query(m.entry, '$.message.tool_calls[*].id') AS called (id)
                 WHERE m.school_id = $1 AND m.turn_id = $2))
          ORDER BY created_at, key",
        turn.school_id,
        turn.id
    )
    .fetch_all(tx.connection()?)
    .await?)
}

/// Notes that a call waits; once a call.
pub(crate) async fn wait_for(tx: &mut Tx, turn: &Held, tool_call_id: &str, asked: Asked<'_>) -> DbResult<()> {
    let (question, choices, approval) = match asked {
        Asked::Question { text, choices } => (Some(text), choices, None),
        Asked::Approval { id } => (None, &[][..], Some(id)),
    };
    sqlx::query!(
        "INSERT INTO turn_waits (school_id, turn_id, tool_call_id, approval_id, question, choices) VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT DO NOTHING",
        turn.school_id,
        turn.id,
        tool_call_id,
        approval,
        question,
        choices
    )
    .execute(tx.connection()?)
    .await?;
    Ok(())
}

/// What a call waits for, if it does.
pub(crate) async fn wait(tx: &mut Tx, turn: &Held, tool_call_id: &str) -> DbResult<Option<Wait>> {
    Ok(sqlx::query_as!(
        Wait,
        r#"SELECT approval_id, choices, settled_at IS NOT NULL AS "is_settled!"
             FROM turn_waits WHERE school_id = $1 AND turn_id = $2 AND tool_call_id = $3"#,
        turn.school_id,
        turn.id,
        tool_call_id
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// What a turn waits for that is not settled.
pub(crate) async fn open(tx: &mut Tx, turn: Uuid) -> DbResult<Open> {
    let questions = sqlx::query_as!(
        OpenQuestion,
        r#"SELECT tool_call_id, question AS "question!", choices
             FROM turn_waits WHERE turn_id = $1 AND question IS NOT NULL AND settled_at IS NULL ORDER BY asked_at, tool_call_id"#,
        turn
    )
    .fetch_all(tx.connection()?)
    .await?;
    let approvals = sqlx::query_scalar!(
        "SELECT id FROM approvals WHERE turn_id = $1 AND status IN ('pending', 'executing') ORDER BY id",
        turn
    )
    .fetch_all(tx.connection()?)
    .await?;
    Ok(Open { questions, approvals })
}

/// Settles what a call waits for. False where it was settled before.
pub(crate) async fn settle(tx: &mut Tx, turn: &Held, tool_call_id: &str, settled: Settled<'_>) -> DbResult<bool> {
    let (answer, decision, approval) = match settled {
        Settled::Answer(text) => (Some(text), None, None),
        Settled::Decision { approval, decision } => (None, Some(decision.as_str()), Some(approval)),
    };
    let updated = sqlx::query!(
        "UPDATE turn_waits SET answer = $4, decision = $5, approval_id = $6, settled_at = now()
          WHERE school_id = $1 AND turn_id = $2 AND tool_call_id = $3 AND settled_at IS NULL",
        turn.school_id,
        turn.id,
        tool_call_id,
        answer,
        decision,
        approval
    )
    .execute(tx.connection()?)
    .await?;
    Ok(updated.rows_affected() == 1)
}

/// Whether a turn waits for something that is not settled.
pub(crate) async fn is_waiting(tx: &mut Tx, turn: &Held) -> DbResult<bool> {
    Ok(sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT 1 FROM turn_waits WHERE school_id = $1 AND turn_id = $2 AND settled_at IS NULL) AS "is!""#,
        turn.school_id,
        turn.id
    )
    .fetch_one(tx.connection()?)
    .await?)
}

/// What was settled and is not among the turn's events yet, in the order in which it was; it is from now on.
pub(crate) async fn untold(tx: &mut Tx, turn: &Held) -> DbResult<Vec<Told>> {
    let mut found = sqlx::query!(
        r#"UPDATE turn_waits w SET told = true
            WHERE school_id = $1 AND turn_id = $2 AND settled_at IS NOT NULL AND NOT told
           RETURNING tool_call_id, approval_id, answer, decision, settled_at AS "settled_at!",
                     (SELECT a.result FROM approvals a WHERE a.school_id = w.school_id AND a.id = w.approval_id) AS result,
                     (SELECT a.arguments FROM approvals a WHERE a.school_id = w.school_id AND a.id = w.approval_id) AS arguments"#,
        turn.school_id,
        turn.id
    )
    .fetch_all(tx.connection()?)
    .await?;
    found.sort_by(|a, b| (a.settled_at, &a.tool_call_id).cmp(&(b.settled_at, &b.tool_call_id)));
    let told = found.into_iter().map(|row| Told {
        tool_call_id: row.tool_call_id,
        approval_id: row.approval_id,
        answer: row.answer,
        decision: row.decision,
        result: row.result,
        arguments: row.arguments,
    });
    Ok(told.collect())
}

/// Whose call this is and of which tool, where the turn's events say.
pub(crate) async fn call(tx: &mut Tx, turn: &Held, tool_call_id: &str) -> DbResult<Option<Call>> {
    Ok(sqlx::query_as!(
        Call,
        r#"SELECT event ->> 'agent' AS "agent!", event ->> 'tool' AS "tool!" FROM turn_events
            WHERE school_id = $1 AND turn_id = $2 AND event ->> 'type' IN ('tool_started', 'approval_asked')
              AND event ->> 'toolCallId' = $3
            LIMIT 1"#,
        turn.school_id,
        turn.id,
        tool_call_id
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// The place after the last event of a turn's current attempt.
pub(crate) async fn next_place(tx: &mut Tx, turn: &Held) -> DbResult<Place> {
    let attempt = turn.attempt.max(1);
    let place = sqlx::query_scalar!(
        r#"SELECT coalesce(max(place), 0) + 1 AS "place!" FROM turn_events WHERE school_id = $1 AND turn_id = $2 AND attempt = $3"#,
        turn.school_id,
        turn.id,
        attempt
    )
    .fetch_one(tx.connection()?)
    .await?;
    Ok(Place { attempt, place })
}

/// Whose turn it is.
pub(crate) async fn owner(tx: &mut Tx, turn: &Held) -> DbResult<Owner> {
    Ok(sqlx::query_as!(
        Owner,
        "SELECT u.email, c.slug AS school_slug, h.campus_id
           FROM threads h
           JOIN staff s ON s.school_id = h.school_id AND s.id = h.staff_id
           JOIN users u ON u.id = s.user_id
           JOIN schools c ON c.id = h.school_id
          WHERE h.school_id = $1 AND h.id = $2",
        turn.school_id,
        turn.thread_id
    )
    .fetch_one(tx.connection()?)
    .await?)
}

/// Adds to the tokens that a turn has used today, as far as there is room for the number.
pub(crate) async fn spend(tx: &mut Tx, turn: &Held, tokens: i64) -> DbResult<()> {
    sqlx::query!(
        "INSERT INTO turn_tokens (school_id, day, turn_id, tokens)
         SELECT id, (now() AT TIME ZONE time_zone)::date, $2, $3 FROM schools WHERE id = $1
         ON CONFLICT (school_id, day, turn_id)
         DO UPDATE SET tokens = least(turn_tokens.tokens::numeric + excluded.tokens, 9223372036854775807)::bigint",
        turn.school_id,
        turn.id,
        tokens
    )
    .execute(tx.connection()?)
    .await?;
    Ok(())
}

/// The tokens that a school has used today; the largest number there is, where they are more.
pub(crate) async fn spent(tx: &mut Tx, school: Uuid) -> DbResult<i64> {
    Ok(sqlx::query_scalar!(
        r#"SELECT least(coalesce(sum(t.tokens), 0), 9223372036854775807)::bigint AS "tokens!" FROM turn_tokens t JOIN schools s ON s.id = t.school_id
            WHERE t.school_id = $1 AND t.day = (now() AT TIME ZONE s.time_zone)::date"#,
        school
    )
    .fetch_one(tx.connection()?)
    .await?)
}

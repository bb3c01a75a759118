//! Approvals: calls that wait for a person's yes. Asked for and settled within the frames of calls, decided in frames of their own, and
//! looked after across schools.

use super::{Database, DbResult, Tx, one_row};
use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::types::Json;
use std::time::Duration;
use uuid::Uuid;

/// The most rows that one look across schools takes up; what is left is found by the next.
const MAX_SWEPT: i64 = 100;

/// A call that is to wait.
#[derive(Debug)]
pub(crate) struct NewApproval<'a> {
    pub(crate) school_id: Uuid,
    pub(crate) turn_id: Option<Uuid>,
    pub(crate) tool_call_id: &'a str,
    pub(crate) key: &'a str,
    pub(crate) event: &'a str,
    pub(crate) arguments: &'a Value,
    pub(crate) digest: &'a [u8],
    pub(crate) requester: Uuid,
    pub(crate) identity: &'a Value,
    pub(crate) scope: &'a Value,
    pub(crate) door: &'a str,
    pub(crate) shown: Shown<'a>,
    pub(crate) replaces: Option<Uuid>,
    pub(crate) lasts: Duration,
}

/// What is decided about: the call's own answer before it was undone, and by whose permission.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shown<'a> {
    pub(crate) contract_hash: &'a str,
    pub(crate) campus_id: Option<Uuid>,
    pub(crate) preview: &'a Value,
    pub(crate) scope_context: &'a str,
    pub(crate) previewed_at: DateTime<Utc>,
    pub(crate) approver_action: Option<&'a str>,
    pub(crate) approver_resource: Option<&'a str>,
}

/// What was asked for under a key before.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) id: Uuid,
    pub(crate) event: String,
    pub(crate) requester: Uuid,
    pub(crate) digest: Vec<u8>,
    pub(crate) preview: Value,
    pub(crate) scope_context: String,
    pub(crate) expires_at: DateTime<Utc>,
    pub(crate) result: Option<Value>,
}

/// An approval, whole.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) school_id: Uuid,
    pub(crate) id: Uuid,
    pub(crate) turn_id: Option<Uuid>,
    pub(crate) tool_call_id: String,
    pub(crate) key: String,
    pub(crate) event: String,
    pub(crate) contract_hash: String,
    pub(crate) arguments: Value,
    pub(crate) requester: Uuid,
    pub(crate) identity: Value,
    pub(crate) scope: Value,
    pub(crate) door: String,
    pub(crate) campus_id: Option<Uuid>,
    pub(crate) preview: Value,
    pub(crate) scope_context: String,
    pub(crate) previewed_at: DateTime<Utc>,
    pub(crate) approver_action: Option<String>,
    pub(crate) approver_resource: Option<String>,
    pub(crate) status: String,
    pub(crate) attempts: i32,
    pub(crate) decided_at: Option<DateTime<Utc>>,
    pub(crate) reason: Option<String>,
    pub(crate) result: Option<Value>,
    pub(crate) replaces: Option<Uuid>,
    /// Whether these are other arguments than the call came with.
    pub(crate) is_changed: bool,
    pub(crate) expires_at: DateTime<Utc>,
    pub(crate) created_at: DateTime<Utc>,
}

/// What was asked for under a key, in order: the call itself, and then what took its place, the last of which counts. The school is that
/// of the frame, or for a platform administrator any.
pub(crate) async fn asked(tx: &mut Tx, key: &str) -> DbResult<Vec<Asked>> {
    Ok(sqlx::query_as!(
        Asked,
        r#"SELECT a.id, a.event, a.requester_sub AS requester, a.arguments_digest AS digest, a.preview, a.scope_context,
                  a.expires_at, a.result
             FROM schools s JOIN approvals a ON a.school_id = s.id AND a.key = $1
            ORDER BY a.replaces IS NOT NULL, a.status NOT IN ('replaced', 'asked_anew'), a.id"#,
        key
    )
    .fetch_all(tx.connection()?)
    .await?)
}

/// Whether a call with these arguments was asked for in the turn, and nobody approved it as it was.
pub(crate) async fn was_refused(tx: &mut Tx, turn: Uuid, event: &str, digest: &[u8]) -> DbResult<bool> {
    let found = sqlx::query_scalar!(
        r#"SELECT EXISTS (
             SELECT FROM schools s JOIN approvals a ON a.school_id = s.id AND a.turn_id = $1 AND a.event = $2
              WHERE a.arguments_digest = $3 AND a.status IN ('rejected', 'expired', 'revoked', 'replaced')) AS "found!""#,
        turn,
        event,
        digest
    )
    .fetch_one(tx.connection()?)
    .await?;
    Ok(found)
}

/// What was asked about in the turn with the same tool, and not approved as it was.
pub(crate) async fn refused(tx: &mut Tx, turn: Uuid, event: &str) -> DbResult<Vec<Refused>> {
    Ok(sqlx::query_as!(
        Refused,
        "SELECT a.preview, a.scope_context, a.previewed_at
           FROM schools s JOIN approvals a ON a.school_id = s.id AND a.turn_id = $1 AND a.event = $2
          WHERE a.status IN ('rejected', 'expired', 'revoked', 'replaced')
          ORDER BY a.id DESC LIMIT $3",
        turn,
        event,
        MAX_SWEPT
    )
    .fetch_all(tx.connection()?)
    .await?)
}

/// What was shown of a call that was not approved as it was.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) preview: Value,
    pub(crate) scope_context: String,
    pub(crate) previewed_at: DateTime<Utc>,
}

/// Finds what would only be found by a commit: a preview ends before it.
pub(crate) async fn check_deferred(tx: &mut Tx) -> DbResult<()> {
    sqlx::query!("SET CONSTRAINTS ALL IMMEDIATE")
        .execute(tx.connection()?)
        .await?;
    Ok(())
}

/// Asks; none where the same key has asked before, or the same call of the turn waits already.
pub(crate) async fn ask(tx: &mut Tx, new: NewApproval<'_>) -> DbResult<Option<Uuid>> {
    let shown = new.shown;
    Ok(sqlx::query_scalar!(
        "INSERT INTO approvals (school_id, id, turn_id, tool_call_id, key, event, contract_hash, arguments, arguments_digest,
                                requester_sub, identity, scope, door, campus_id, preview, scope_context, previewed_at,
                                approver_action, approver_resource, replaces, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
                 now() + make_interval(secs => $21))
         ON CONFLICT DO NOTHING
         RETURNING id",
        new.school_id,
        Uuid::now_v7(),
        new.turn_id,
        new.tool_call_id,
        new.key,
        new.event,
        shown.contract_hash,
        Json(new.arguments) as _,
        new.digest,
        new.requester,
        Json(new.identity) as _,
        Json(new.scope) as _,
        new.door,
        shown.campus_id,
        Json(shown.preview) as _,
        shown.scope_context,
        shown.previewed_at,
        shown.approver_action,
        shown.approver_resource,
        new.replaces,
        new.lasts.as_secs_f64(),
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// One approval, in the school of the frame.
pub(crate) async fn find(tx: &mut Tx, id: Uuid) -> DbResult<Option<Row>> {
    Ok(sqlx::query_as!(
        Row,
        r#"SELECT a.school_id, a.id, a.turn_id, a.tool_call_id, a.key, a.event, a.contract_hash, a.arguments,
                a.requester_sub AS requester, a.identity, a.scope, a.door, a.campus_id, a.preview, a.scope_context, a.previewed_at,
                a.approver_action, a.approver_resource, a.status, a.attempts, a.decided_at, a.reason, a.result, a.replaces,
                a.arguments_digest <> (SELECT f.arguments_digest FROM approvals f
                                        WHERE f.school_id = a.school_id AND f.key = a.key AND f.replaces IS NULL) AS "is_changed!",
                a.expires_at, a.created_at
           FROM schools s JOIN approvals a ON a.school_id = s.id AND a.id = $1"#,
        id
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// What waits in the school of the frame, newest first and older than another: what this account asked for, and what others may be
/// needed for.
pub(crate) async fn waiting(tx: &mut Tx, requester: Uuid, before: Option<Uuid>, rows: usize) -> DbResult<Vec<Row>> {
    Ok(sqlx::query_as!(
        Row,
        r#"SELECT a.school_id, a.id, a.turn_id, a.tool_call_id, a.key, a.event, a.contract_hash, a.arguments,
                a.requester_sub AS requester, a.identity, a.scope, a.door, a.campus_id, a.preview, a.scope_context, a.previewed_at,
                a.approver_action, a.approver_resource, a.status, a.attempts, a.decided_at, a.reason, a.result, a.replaces,
                a.arguments_digest <> (SELECT f.arguments_digest FROM approvals f
                                        WHERE f.school_id = a.school_id AND f.key = a.key AND f.replaces IS NULL) AS "is_changed!",
                a.expires_at, a.created_at
           FROM schools s JOIN approvals a ON a.school_id = s.id
          WHERE a.status = 'pending' AND a.expires_at > now()
            AND (a.requester_sub = $1 OR a.approver_action IS NOT NULL)
            AND ($3::uuid IS NULL OR a.id < $3)
          ORDER BY a.id DESC LIMIT $2"#,
        requester,
        i64::try_from(rows).unwrap_or(i64::MAX),
        before
    )
    .fetch_all(tx.connection()?)
    .await?)
}

/// What becomes of an approval that somebody decides.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Verdict<'a> {
    /// `executing`, `rejected` or `replaced`.
    pub(crate) status: &'static str,
    pub(crate) by: Uuid,
    pub(crate) reason: Option<&'a str>,
    pub(crate) result: Option<&'a Value>,
}

/// Decides: for one of all who try. False where it was decided before, has expired, or its turn has ended or is to be stopped.
pub(crate) async fn claim(tx: &mut Tx, school: Uuid, id: Uuid, verdict: Verdict<'_>) -> DbResult<bool> {
    let claimed = sqlx::query!(
        "UPDATE approvals a
            SET status = $3, decided_by = $4, decided_at = now(), reason = $5, result = $6, attempts = 1, claimed_at = now()
          WHERE a.school_id = $1 AND a.id = $2 AND a.status = 'pending' AND a.expires_at > now()
            AND NOT EXISTS (SELECT FROM turns t
                             WHERE t.school_id = a.school_id AND t.id = a.turn_id AND (t.ended_at IS NOT NULL OR t.cancelled))",
        school,
        id,
        verdict.status,
        verdict.by,
        verdict.reason,
        verdict.result.map(Json) as _,
    )
    .execute(tx.connection()?)
    .await?;
    Ok(claimed.rows_affected() == 1)
}

/// Ends an approved call that was done, in the transaction in which it is.
pub(crate) async fn executed(tx: &mut Tx, school: Uuid, id: Uuid, result: &Value) -> DbResult<()> {
    let ended = sqlx::query!(
        "UPDATE approvals SET status = 'executed', result = $3 WHERE school_id = $1 AND id = $2 AND status = 'executing'",
        school,
        id,
        Json(result) as _,
    )
    .execute(tx.connection()?)
    .await?;
    one_row(ended.rows_affected())
}

/// Ends an approved call that was refused after all.
pub(crate) async fn failed(tx: &mut Tx, school: Uuid, id: Uuid, result: &Value) -> DbResult<()> {
    sqlx::query!(
        "UPDATE approvals SET status = 'failed', result = $3 WHERE school_id = $1 AND id = $2 AND status = 'executing'",
        school,
        id,
        Json(result) as _,
    )
    .execute(tx.connection()?)
    .await?;
    Ok(())
}

/// Ends an approval whose call would do something else by now. False where it is not being carried out any more.
pub(crate) async fn ask_anew(tx: &mut Tx, school: Uuid, id: Uuid) -> DbResult<bool> {
    let ended = sqlx::query!(
        "UPDATE approvals SET status = 'asked_anew' WHERE school_id = $1 AND id = $2 AND status = 'executing'",
        school,
        id,
    )
    .execute(tx.connection()?)
    .await?;
    Ok(ended.rows_affected() == 1)
}

/// The approval that waits in the place of another, if one does.
pub(crate) async fn instead(tx: &mut Tx, school: Uuid, replaced: Uuid) -> DbResult<Option<Uuid>> {
    Ok(sqlx::query_scalar!(
        "SELECT id FROM approvals WHERE school_id = $1 AND replaces = $2",
        school,
        replaced
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// Ends what nobody decided in time, in all schools.
pub(crate) async fn expire(database: &Database, result: &Value) -> DbResult<u64> {
    let ended = sqlx::query!(
        "UPDATE approvals SET status = 'expired', result = $1 WHERE status = 'pending' AND expires_at <= now()",
        Json(result) as _,
    )
    .execute(database.operator())
    .await?;
    Ok(ended.rows_affected())
}

/// Ends what waits for a turn that has ended, or for somebody who no longer works there, in all schools.
pub(crate) async fn revoke(database: &Database, result: &Value) -> DbResult<u64> {
    let ended = sqlx::query!(
        "UPDATE approvals a SET status = 'revoked', result = $1
          WHERE a.status = 'pending'
            AND (EXISTS (SELECT FROM turns t
                          WHERE t.school_id = a.school_id AND t.id = a.turn_id AND (t.ended_at IS NOT NULL OR t.cancelled))
              OR EXISTS (SELECT FROM users u WHERE u.id = a.requester_sub AND NOT u.active)
              OR EXISTS (SELECT FROM staff m WHERE m.school_id = a.school_id AND m.user_id = a.requester_sub AND NOT m.active))",
        Json(result) as _,
    )
    .execute(database.operator())
    .await?;
    Ok(ended.rows_affected())
}

/// Approved calls that were begun this long ago and did not end: begun again by whoever asks, and counted.
pub(crate) async fn resume(database: &Database, after: Duration) -> DbResult<Vec<Row>> {
    Ok(sqlx::query_as!(
        Row,
        r#"UPDATE approvals a SET attempts = a.attempts + 1, claimed_at = now()
          WHERE a.status = 'executing' AND (a.school_id, a.id) IN (
                SELECT school_id, id FROM approvals
                 WHERE status = 'executing' AND claimed_at <= now() - make_interval(secs => $1)
                 ORDER BY claimed_at LIMIT $2 FOR UPDATE SKIP LOCKED)
         RETURNING a.school_id, a.id, a.turn_id, a.tool_call_id, a.key, a.event, a.contract_hash, a.arguments,
                a.requester_sub AS requester, a.identity, a.scope, a.door, a.campus_id, a.preview, a.scope_context, a.previewed_at,
                a.approver_action, a.approver_resource, a.status, a.attempts, a.decided_at, a.reason, a.result, a.replaces,
                a.arguments_digest <> (SELECT f.arguments_digest FROM approvals f
                                        WHERE f.school_id = a.school_id AND f.key = a.key AND f.replaces IS NULL) AS "is_changed!",
                a.expires_at, a.created_at"#,
        after.as_secs_f64(),
        MAX_SWEPT,
    )
    .fetch_all(database.operator())
    .await?)
}

/// Something final of which its turn does not know.
#[derive(Debug)]
pub(crate) struct Untold {
    pub(crate) school_id: Uuid,
    pub(crate) id: Uuid,
    pub(crate) turn_id: Uuid,
    pub(crate) tool_call_id: String,
    pub(crate) status: String,
    /// What came of the call; none where another approval waits in the place of this one.
    pub(crate) result: Option<Value>,
}

/// What turns that have not ended do not know yet, in all schools: those that could not be told come after the others. Whoever has no
/// turn to go on is not told. A turn under way is told by whoever lets it wait or go on that something was asked in the place of something
/// else.
pub(crate) async fn untold(database: &Database) -> DbResult<Vec<Untold>> {
    sqlx::query!(
        "UPDATE approvals a SET told = true
          WHERE NOT a.told AND a.turn_id IS NOT NULL AND a.status NOT IN ('pending', 'executing')
            AND NOT EXISTS (SELECT FROM turns t WHERE t.school_id = a.school_id AND t.id = a.turn_id AND t.ended_at IS NULL)"
    )
    .execute(database.operator())
    .await?;
    Ok(sqlx::query_as!(
        Untold,
        r#"SELECT a.school_id, a.id, a.turn_id AS "turn_id!", a.tool_call_id, a.status, a.result
             FROM approvals a
            WHERE NOT a.told AND a.turn_id IS NOT NULL
              AND (a.result IS NOT NULL
                   OR a.status IN ('replaced', 'asked_anew')
                      AND EXISTS (SELECT FROM turns t WHERE t.school_id = a.school_id AND t.id = a.turn_id AND t.status = 'waiting'))
            ORDER BY a.tell_tried_at NULLS FIRST, a.school_id, a.id LIMIT $1"#,
        MAX_SWEPT
    )
    .fetch_all(database.operator())
    .await?)
}

/// Notes that a turn could not be told, so that the others are before it is tried again.
pub(crate) async fn not_told(database: &Database, school: Uuid, id: Uuid) -> DbResult<()> {
    sqlx::query!(
        "UPDATE approvals SET tell_tried_at = now() WHERE school_id = $1 AND id = $2",
        school,
        id
    )
    .execute(database.operator())
    .await?;
    Ok(())
}

/// Notes that a turn knows.
pub(crate) async fn told(database: &Database, school: Uuid, id: Uuid) -> DbResult<()> {
    sqlx::query!(
        "UPDATE approvals SET told = true WHERE school_id = $1 AND id = $2",
        school,
        id
    )
    .execute(database.operator())
    .await?;
    Ok(())
}

/// An approval that waits in the place of another.
#[derive(Debug)]
pub(crate) struct Instead {
    pub(crate) replaced: Uuid,
    pub(crate) status: String,
    pub(crate) id: Uuid,
    pub(crate) tool_call_id: String,
    pub(crate) preview: Value,
    pub(crate) scope_context: String,
    pub(crate) expires_at: DateTime<Utc>,
}

/// What was asked in the place of something else and is not among the turn's events yet, in order; it is from now on, and is what the
/// calls wait for.
pub(crate) async fn moved(tx: &mut Tx, school: Uuid, turn: Uuid) -> DbResult<Vec<Instead>> {
    let mut found = sqlx::query_as!(
        Instead,
        "UPDATE approvals a SET told = true FROM approvals n
          WHERE a.school_id = $1 AND a.turn_id = $2 AND a.status IN ('replaced', 'asked_anew') AND NOT a.told
            AND n.school_id = a.school_id AND n.replaces = a.id
         RETURNING a.id AS replaced, a.status, n.id, n.tool_call_id, n.preview, n.scope_context, n.expires_at",
        school,
        turn
    )
    .fetch_all(tx.connection()?)
    .await?;
    found.sort_by_key(|instead| instead.id);
    for instead in &found {
        sqlx::query!(
            "UPDATE turn_waits SET approval_id = $3 WHERE school_id = $1 AND turn_id = $2 AND approval_id = $4",
            school,
            turn,
            instead.id,
            instead.replaced
        )
        .execute(tx.connection()?)
        .await?;
    }
    Ok(found)
}

//! The audit log: written by step 12 of `execute()`, read by `list.audit_entries`.

use super::{DbResult, Tenant, Tx, one_row, tool_call::Key};
use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::types::Json;
use uuid::Uuid;

/// One row to be written.
#[derive(Debug)]
pub(crate) struct NewEntry<'a> {
    pub(crate) school_id: Uuid,
    pub(crate) campus_id: Option<Uuid>,
    pub(crate) actor_sub: Uuid,
    pub(crate) actor_email: &'a str,
    pub(crate) actor_type: &'a str,
    pub(crate) action: &'a str,
    pub(crate) resource_type: &'a str,
    pub(crate) resource_id: Uuid,
    pub(crate) event: &'a str,
    pub(crate) door: &'a str,
    pub(crate) turn_id: Option<String>,
    pub(crate) tool_call_id: &'a str,
    pub(crate) approval_id: Option<Uuid>,
    pub(crate) arguments: &'a Value,
}

/// Ends a write: stores the reply under its key and writes its audit row, in one statement, so that neither can be without the
/// other. False, and it is not to take effect, where its turn was stopped or has ended. As the turn's row is shared until the frame
/// ends, whoever stops or ends the turn comes before this or after the commit. A turn that is not kept has no row.
pub(crate) async fn seal(tx: &mut Tx, entry: NewEntry<'_>, key: Key<'_>, reply: &Value) -> DbResult<bool> {
    let written = match tx.tenant() {
        Tenant::School(school) => {
            sqlx::query!(
                "WITH turn AS (
                     SELECT cancelled OR ended_at IS NOT NULL AS is_over FROM turns
                      WHERE school_id = $14 AND id = $12::text::uuid FOR SHARE),
                 finished AS (
                     INSERT INTO tool_calls (school_id, key, event, actor_sub, arguments_digest, reply, finished_at)
                     SELECT $14, $15, $10, $4, $18, $16, now() WHERE NOT EXISTS (SELECT FROM turn WHERE is_over) RETURNING key)
                 INSERT INTO audit_log (school_id, id, campus_id, actor_sub, actor_email, actor_type, action, resource_type,
                                        resource_id, event, door, turn_id, tool_call_id, arguments, approval_id)
                 SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $17, $19 FROM finished",
                entry.school_id,
                Uuid::now_v7(),
                entry.campus_id,
                entry.actor_sub,
                entry.actor_email,
                entry.actor_type,
                entry.action,
                entry.resource_type,
                entry.resource_id,
                entry.event,
                entry.door,
                entry.turn_id,
                entry.tool_call_id,
                school,
                key.text,
                Json(reply) as _,
                Json(entry.arguments) as _,
                key.digest,
                entry.approval_id,
            )
            .execute(tx.connection()?)
            .await?
        }
        Tenant::Unscoped => {
            sqlx::query!(
                "WITH finished AS (
                     INSERT INTO operator_tool_calls (key, event, actor_sub, arguments_digest, reply, finished_at)
                     VALUES ($14, $10, $4, $17, $15, now()) RETURNING key)
                 INSERT INTO audit_log (school_id, id, campus_id, actor_sub, actor_email, actor_type, action, resource_type,
                                        resource_id, event, door, turn_id, tool_call_id, arguments, approval_id)
                 SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $16, $18 FROM finished",
                entry.school_id,
                Uuid::now_v7(),
                entry.campus_id,
                entry.actor_sub,
                entry.actor_email,
                entry.actor_type,
                entry.action,
                entry.resource_type,
                entry.resource_id,
                entry.event,
                entry.door,
                entry.turn_id,
                entry.tool_call_id,
                key.text,
                Json(reply) as _,
                Json(entry.arguments) as _,
                key.digest,
                entry.approval_id,
            )
            .execute(tx.connection()?)
            .await?
        }
    };
    let rows = written.rows_affected();
    Ok(rows > 0 && one_row(rows).map(|()| true)?)
}

/// Writes a row that stands alone: of what is no tool's write and has a record of its own, in the same transaction.
pub(crate) async fn note(tx: &mut Tx, entry: NewEntry<'_>) -> DbResult<()> {
    let written = sqlx::query!(
        "INSERT INTO audit_log (school_id, id, campus_id, actor_sub, actor_email, actor_type, action, resource_type, resource_id,
                                event, door, turn_id, tool_call_id, approval_id, arguments)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
        entry.school_id,
        Uuid::now_v7(),
        entry.campus_id,
        entry.actor_sub,
        entry.actor_email,
        entry.actor_type,
        entry.action,
        entry.resource_type,
        entry.resource_id,
        entry.event,
        entry.door,
        entry.turn_id,
        entry.tool_call_id,
        entry.approval_id,
        Json(entry.arguments) as _,
    )
    .execute(tx.connection()?)
    .await?;
    one_row(written.rows_affected())
}

/// One row as it is listed.
#[derive(Debug, Clone, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub(crate) id: Uuid,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) actor_email: String,
    pub(crate) actor_type: String,
    pub(crate) action: String,
    pub(crate) resource_type: String,
    pub(crate) resource_id: Option<Uuid>,
    pub(crate) campus_id: Option<Uuid>,
    pub(crate) event: String,
    pub(crate) door: String,
    pub(crate) turn_id: Option<String>,
    pub(crate) tool_call_id: Option<String>,
    pub(crate) arguments: Value,
}

/// Which rows are wanted.
#[derive(Debug)]
pub(crate) struct Filter<'a> {
    pub(crate) campuses: Option<&'a [Uuid]>,
    pub(crate) and_none: bool,
    pub(crate) actor_email: Option<&'a str>,
    pub(crate) resource_type: Option<&'a str>,
    pub(crate) resource_id: Option<Uuid>,
    pub(crate) from: Option<DateTime<Utc>>,
    pub(crate) to: Option<DateTime<Utc>>,
    /// The last id of the page before.
    pub(crate) before: Option<Uuid>,
    pub(crate) rows: i64,
}

/// Lists rows, newest first.
pub(crate) async fn list(tx: &mut Tx, filter: Filter<'_>) -> DbResult<Vec<Entry>> {
    Ok(sqlx::query_as!(
        Entry,
        "SELECT id, created_at, actor_email, actor_type, action, resource_type, resource_id, campus_id, event, door, turn_id,
                tool_call_id, arguments
           FROM audit_log
          WHERE ($1::uuid[] IS NULL OR campus_id = ANY($1) OR ($2 AND campus_id IS NULL))
            AND ($3::text IS NULL OR actor_email = lower($3))
            AND ($4::text IS NULL OR resource_type = upper($4))
            AND ($5::uuid IS NULL OR resource_id = $5)
            AND ($6::timestamptz IS NULL OR created_at >= $6)
            AND ($7::timestamptz IS NULL OR created_at < $7)
            AND ($8::uuid IS NULL OR id < $8)
          ORDER BY id DESC
          LIMIT $9",
        filter.campuses,
        filter.and_none,
        filter.actor_email,
        filter.resource_type,
        filter.resource_id,
        filter.from,
        filter.to,
        filter.before,
        filter.rows,
    )
    .fetch_all(tx.connection()?)
    .await?)
}

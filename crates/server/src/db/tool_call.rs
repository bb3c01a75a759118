//! Idempotency keys: `tool_calls` for a school's calls, `operator_tool_calls` for platform admins, who call from no school.
//!
//! A key is locked when the frame of its call is opened, and its row is written with the reply as the frame is sealed: a row that
//! anybody sees is of a write that is done.

use super::{DbResult, Tenant};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;
use sha2::{Digest, Sha256};
use sqlx::{AssertSqlSafe, PgConnection, Row, postgres::PgRow, types::Json};
use std::time::Duration;
use uuid::Uuid;

/// A call's key, with what it is used for beside the entry's event and actor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key<'a> {
    pub(crate) text: &'a str,
    /// SHA-256 over the canonical arguments and the pinned scope.
    pub(crate) digest: &'a [u8],
}

/// A write that was done before, under the key of a call.
#[derive(Debug)]
pub(crate) struct EarlierCall {
    pub(crate) event: String,
    pub(crate) actor: Uuid,
    pub(crate) digest: Vec<u8>,
    /// What was answered.
    pub(crate) reply: Value,
}

/// Looks up what was done under a key; prepared on each connection, so that it runs in the round trip that opens a frame.
const EARLIER_CALL: &str = include_str!("earlier_call.sql");
const EARLIER_OPERATOR_CALL: &str = include_str!("earlier_operator_call.sql");

/// Prepares the statements on a new connection.
pub(super) async fn prepare(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let prepare = AssertSqlSafe(format!(
        "PREPARE earlier_call (uuid, text) AS {EARLIER_CALL}; PREPARE earlier_operator_call (text) AS {EARLIER_OPERATOR_CALL}"
    ));
    sqlx::raw_sql(prepare).execute(connection).await.map(drop)
}

/// Runs the statement of the tenants as the macros check it: a database in which it cannot run is not migrated.
pub(super) async fn check(connection: &mut PgConnection) -> DbResult<()> {
    sqlx::query_file!("src/db/earlier_call.sql", Uuid::nil(), "")
        .fetch_optional(connection)
        .await?;
    Ok(())
}

/// The statements that make a key this transaction's, as long as that lasts, and look up what was done under it before. The lock
/// comes first, so that the other sees what its last holder did.
pub(super) fn take_key(tenant: Tenant, key: &str) -> String {
    let lock = lock_of(tenant, key);
    // no character of it can end the text: a key is whatever a caller says
    let key = format!(
        "convert_from(decode('{}', 'base64'), 'UTF8')",
        BASE64_STANDARD.encode(key)
    );
    match tenant {
        Tenant::School(school) => {
            format!("SELECT pg_advisory_xact_lock({lock}); EXECUTE earlier_call ('{school}', {key})")
        }
        Tenant::Unscoped => format!("SELECT pg_advisory_xact_lock({lock}); EXECUTE earlier_operator_call ({key})"),
    }
}

/// The number that a key is locked by. Two keys that share one wait for each other without need, and no more than that.
fn lock_of(tenant: Tenant, key: &str) -> i64 {
    let mut digest = Sha256::new();
    if let Tenant::School(school) = tenant {
        digest.update(school.as_bytes());
    }
    digest.update(key.as_bytes());
    let digest = digest.finalize();
    digest.first_chunk().map_or(0, |&first| i64::from_be_bytes(first))
}

/// Reads what [`take_key`] found; none where nothing was done under the key.
pub(super) fn read_earlier(rows: &[PgRow]) -> DbResult<Option<EarlierCall>> {
    let Some(row) = rows.iter().find(|row| row.try_get_raw("arguments_digest").is_ok()) else {
        return Ok(None);
    };
    Ok(Some(EarlierCall {
        event: row.try_get("event")?,
        actor: row.try_get("actor_sub")?,
        digest: row.try_get("arguments_digest")?,
        reply: row.try_get::<Json<Value>, _>("reply")?.0,
    }))
}

/// Whether a constraint is what keeps a key from being used twice, whoever writes it.
pub(super) fn is_key(constraint: Option<&str>) -> bool {
    matches!(constraint, Some("tool_calls_pkey" | "operator_tool_calls_pkey"))
}

/// Counts another try of a redelivered message, at once and on its own, so that the count outlives a crash. Answers how many
/// tries that makes, this one included.
pub(crate) async fn count_attempt(database: &super::Database, key: &str, limit: Duration) -> DbResult<i32> {
    let attempts = sqlx::query_scalar!(
        "INSERT INTO delivery_attempts AS tried (key, attempts) VALUES ($1, 2)
         ON CONFLICT (key) DO UPDATE SET attempts = tried.attempts + 1, last_at = now()
         RETURNING attempts",
        key
    )
    .fetch_one(&mut database.outside(limit).await?)
    .await?;
    Ok(attempts)
}

/// Forgets the tries of a message, one of which came to an end.
pub(crate) async fn forget_attempts(database: &super::Database, key: &str, limit: Duration) -> DbResult<()> {
    sqlx::query!("DELETE FROM delivery_attempts WHERE key = $1", key)
        .execute(&mut database.outside(limit).await?)
        .await?;
    Ok(())
}

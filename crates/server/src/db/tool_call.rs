//! Idempotency keys: `tool_calls` for a school's calls, `operator_tool_calls` for platform admins, who call from no school.
//!
//! A key is claimed in the transaction of its call, so a row that another transaction sees is one that is done.

use super::{DbResult, Tenant, Tx};
use serde_json::Value;
use sqlx::types::Json;
use std::time::Duration;
use uuid::Uuid;

/// A call's key, with what it was used for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key<'a> {
    pub(crate) text: &'a str,
    pub(crate) event: &'a str,
    pub(crate) actor: Uuid,
    /// SHA-256 over the canonical arguments and the pinned scope.
    pub(crate) digest: &'a [u8],
}

/// What became of a claim.
#[derive(Debug, PartialEq)]
pub(crate) enum Claim {
    /// The key is this call's; the call goes on.
    Ours,
    /// The same call was done before; this is its reply.
    Done(Value),
    /// The key was used for another call.
    Reused,
}

/// Claims a key. Waits for a transaction that holds the same key, and then tells what came of it.
pub(crate) async fn claim(tx: &mut Tx, key: Key<'_>) -> DbResult<Claim> {
    let Key {
        text: key,
        event,
        actor,
        digest,
    } = key;
    let claimed = match tx.tenant() {
        Tenant::School(school) => {
            sqlx::query!(
                "INSERT INTO tool_calls (school_id, key, event, actor_sub, arguments_digest)
                 VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
                school,
                key,
                event,
                actor,
                digest
            )
            .execute(tx.connection()?)
            .await?
        }
        Tenant::Unscoped => {
            sqlx::query!(
                "INSERT INTO operator_tool_calls (key, event, actor_sub, arguments_digest)
                 VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
                key,
                event,
                actor,
                digest
            )
            .execute(tx.connection()?)
            .await?
        }
    };
    if claimed.rows_affected() == 1 {
        Ok(Claim::Ours)
    } else {
        earlier(tx, event, actor, key, digest).await
    }
}

async fn earlier(tx: &mut Tx, event: &str, actor: Uuid, key: &str, digest: &[u8]) -> DbResult<Claim> {
    let reply = match tx.tenant() {
        Tenant::School(school) => {
            sqlx::query_scalar!(
                r#"SELECT reply AS "reply!: Json<Value>" FROM tool_calls
                    WHERE school_id = $1 AND key = $2 AND event = $3 AND actor_sub = $4 AND arguments_digest = $5"#,
                school,
                key,
                event,
                actor,
                digest
            )
            .fetch_optional(tx.connection()?)
            .await?
        }
        Tenant::Unscoped => {
            sqlx::query_scalar!(
                r#"SELECT reply AS "reply!: Json<Value>" FROM operator_tool_calls
                    WHERE key = $1 AND event = $2 AND actor_sub = $3 AND arguments_digest = $4"#,
                key,
                event,
                actor,
                digest
            )
            .fetch_optional(tx.connection()?)
            .await?
        }
    };
    Ok(reply.map_or(Claim::Reused, |reply| Claim::Done(reply.0)))
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

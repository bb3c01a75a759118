//! The operator's view of the audit log: the newest rows, and those to come by LISTEN and NOTIFY.

use super::{Database, DbError, DbResult, Tenant, Tx};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{PgPool, postgres::PgListener};
use std::time::Duration;
use tokio::task::JoinSet;
use uuid::Uuid;

/// How long reading a few rows may take.
const LIMIT: Duration = Duration::from_secs(10);

/// A row of the trail.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TrailRow {
    pub(crate) id: Uuid,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) school: String,
    pub(crate) campus: Option<String>,
    pub(crate) actor: String,
    pub(crate) actor_type: String,
    pub(crate) action: String,
    pub(crate) resource_type: String,
    pub(crate) resource_id: Option<Uuid>,
    pub(crate) event: String,
    pub(crate) door: String,
    pub(crate) turn_id: Option<String>,
    pub(crate) tool_call_id: Option<String>,
    pub(crate) arguments: Value,
}

/// What a notification says.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Announced {
    pub(crate) school_id: Uuid,
    pub(crate) id: Uuid,
}

/// The newest rows of a tenant, the oldest of them first.
pub(crate) async fn newest(database: &Database, tenant: Tenant, rows: i64) -> DbResult<Vec<TrailRow>> {
    let mut tx = database.begin(tenant, LIMIT).await?;
    let mut found = read(&mut tx, None, rows).await?;
    tx.rollback().await?;
    found.reverse();
    Ok(found)
}

/// One row, if the tenant may see it.
pub(crate) async fn one(database: &Database, tenant: Tenant, id: Uuid) -> DbResult<Option<TrailRow>> {
    let mut tx = database.begin(tenant, LIMIT).await?;
    let found = read(&mut tx, Some(id), 1).await?.pop();
    tx.rollback().await?;
    Ok(found)
}

/// The rows of a tenant whose ids come after one, the oldest of them first.
pub(crate) async fn after(database: &Database, tenant: Tenant, id: Uuid, rows: i64) -> DbResult<Vec<TrailRow>> {
    let mut tx = database.begin(tenant, LIMIT).await?;
    let found = read_after(&mut tx, id, rows).await?;
    tx.rollback().await?;
    Ok(found)
}

async fn read(tx: &mut Tx, id: Option<Uuid>, rows: i64) -> DbResult<Vec<TrailRow>> {
    Ok(sqlx::query_as!(
        TrailRow,
        r#"SELECT a.id, a.created_at, s.slug AS school, c.name AS "campus?", a.actor_email AS actor, a.actor_type, a.action,
                  a.resource_type, a.resource_id, a.event, a.door, a.turn_id, a.tool_call_id, a.arguments
             FROM schools s
             -- each school's newest by its own key: there is no order across schools
             CROSS JOIN LATERAL (SELECT * FROM audit_log l
                                  WHERE l.school_id = s.id AND ($1::uuid IS NULL OR l.id = $1)
                                  ORDER BY l.id DESC LIMIT $2) a
             LEFT JOIN campuses c ON c.school_id = a.school_id AND c.id = a.campus_id
            ORDER BY a.id DESC
            LIMIT $2"#,
        id,
        rows
    )
    .fetch_all(tx.connection()?)
    .await?)
}

async fn read_after(tx: &mut Tx, id: Uuid, rows: i64) -> DbResult<Vec<TrailRow>> {
    Ok(sqlx::query_as!(
        TrailRow,
        r#"SELECT a.id, a.created_at, s.slug AS school, c.name AS "campus?", a.actor_email AS actor, a.actor_type, a.action,
                  a.resource_type, a.resource_id, a.event, a.door, a.turn_id, a.tool_call_id, a.arguments
             FROM schools s
             CROSS JOIN LATERAL (SELECT * FROM audit_log l
                                  WHERE l.school_id = s.id AND l.id > $1
                                  ORDER BY l.id LIMIT $2) a
             LEFT JOIN campuses c ON c.school_id = a.school_id AND c.id = a.campus_id
            ORDER BY a.id
            LIMIT $2"#,
        id,
        rows
    )
    .fetch_all(tx.connection()?)
    .await?)
}

/// The advisory lock that makes writers announce their rows; the trigger of `audit_log` names the same number.
const FOLLOWED: i64 = 7_165_905_771_442_992_641;
/// How often the connection that holds the lock is asked whether it still does.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// How often to look whether the lock is held by now.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Notifications of new rows.
pub(crate) struct Announcements {
    listener: PgListener,
    /// Holds the lock, or waits for it behind another follower; ends when its connection does.
    holder: JoinSet<DbResult<()>>,
}

/// Begins to listen. Rows committed after this returns are announced; what was committed before can be read.
pub(crate) async fn listen(database: &Database) -> DbResult<Announcements> {
    let mut listener = PgListener::connect_with(database.operator()).await?;
    listener.listen("audit_log").await?;
    let mut holder = JoinSet::new();
    holder.spawn(hold(database.operator().clone()));
    let mut announcements = Announcements { listener, holder };
    // writers that began before the lock was held do not announce; once it is held, they have ended
    while !is_followed(database.operator()).await? {
        if let Some(ended) = announcements.holder.try_join_next() {
            return Err(ended.map_or(DbError::Unavailable(sqlx::Error::WorkerCrashed), lost));
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Ok(announcements)
}

async fn hold(pool: PgPool) -> DbResult<()> {
    let mut connection = pool.acquire().await?;
    // the lock is the connection's, which must end with it
    connection.close_on_drop();
    sqlx::query!("SELECT pg_advisory_lock($1)", FOLLOWED)
        .execute(&mut *connection)
        .await?;
    loop {
        tokio::time::sleep(KEEP_ALIVE).await;
        let asked = sqlx::query!("SELECT 1 AS one").fetch_one(&mut *connection);
        tokio::time::timeout(LIMIT, asked)
            .await
            .map_err(|_| DbError::Unavailable(sqlx::Error::PoolTimedOut))??;
    }
}

async fn is_followed(pool: &PgPool) -> DbResult<bool> {
    let [high, low] = [FOLLOWED >> 32, FOLLOWED & 0xffff_ffff];
    Ok(sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT 1 FROM pg_locks
                           WHERE locktype = 'advisory' AND granted AND mode = 'ExclusiveLock'
                             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                             AND classid::bigint = $1 AND objid::bigint = $2) AS "held!""#,
        high,
        low
    )
    .fetch_one(pool)
    .await?)
}

fn lost(ended: DbResult<()>) -> DbError {
    ended.err().unwrap_or(DbError::Unavailable(sqlx::Error::PoolClosed))
}

impl Announcements {
    /// Waits for the next.
    ///
    /// # Errors
    ///
    /// When a connection was lost and rows may have been missed: whoever follows listens anew, and reads what is there.
    pub(crate) async fn next(&mut self) -> DbResult<Announced> {
        loop {
            let notification = tokio::select! {
                notification = self.listener.try_recv() => notification?,
                Some(ended) = self.holder.join_next() => {
                    return Err(ended.map_or(DbError::Unavailable(sqlx::Error::WorkerCrashed), lost));
                }
            };
            let notification = notification.ok_or(DbError::Unavailable(sqlx::Error::PoolClosed))?;
            if let Ok(announced) = serde_json::from_str(notification.payload()) {
                return Ok(announced);
            }
        }
    }
}

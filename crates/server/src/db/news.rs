//! News of turns between servers: which turns have new events, by LISTEN and NOTIFY.
//!
//! News is told in a transaction of its own that writes nothing, and many turns at once: told in the one that stores the events, it
//! would take the lock that all commits with news share for as long as a flush to disk lasts.

use super::{Database, DbError, DbResult};
use sqlx::postgres::PgListener;
use uuid::Uuid;

const CHANNEL: &str = "turn_events";
/// A notification has room for 8,000 bytes; an id and its comma take 37.
const MOST_AT_ONCE: usize = 200;

/// Tells every server that these turns have new events.
pub(crate) async fn tell(database: &Database, turns: &[Uuid]) -> DbResult<()> {
    for some in turns.chunks(MOST_AT_ONCE) {
        let ids: Vec<String> = some.iter().map(Uuid::to_string).collect();
        sqlx::query!("SELECT pg_notify($1, $2)", CHANNEL, ids.join(","))
            .execute(database.operator())
            .await?;
    }
    Ok(())
}

/// What is told from now on.
pub(crate) struct News(PgListener);

impl News {
    /// Begins to listen.
    pub(crate) async fn listen(database: &Database) -> DbResult<Self> {
        let mut listener = PgListener::connect_with(database.operator()).await?;
        listener.listen(CHANNEL).await?;
        Ok(Self(listener))
    }

    /// The turns of the next news.
    ///
    /// # Errors
    ///
    /// When the connection was lost, and news may have been missed.
    pub(crate) async fn next(&mut self) -> DbResult<Vec<Uuid>> {
        let told = self.0.try_recv().await?;
        let told = told.ok_or(DbError::Unavailable(sqlx::Error::PoolClosed))?;
        Ok(told.payload().split(',').filter_map(|id| id.parse().ok()).collect())
    }
}

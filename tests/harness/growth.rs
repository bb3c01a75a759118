//! A school that has grown, and what the database counts while somebody looks at it.

use crate::Stage;
use sqlx::{AssertSqlSafe, Connection};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// What turns the seeded Hilltop into a school of 20,000 students.
pub const GROWTH: &str = include_str!("growth.sql");
/// The connections of a pipeline that is gone end in far less.
const QUIET_LIMIT: Duration = Duration::from_secs(20);

/// What was read of a table.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct TableReads {
    /// The table.
    pub name: String,
    /// How many rows it has, as far as the database knows.
    pub rows: i64,
    /// How often it was read from one end to the other.
    pub scans: i64,
    /// How many rows were read so.
    pub scanned: i64,
    /// How many entries of its indexes were read.
    pub looked_up: i64,
}

impl TableReads {
    /// What was read since.
    #[must_use]
    pub fn since(&self, before: &[Self]) -> Self {
        let before = before.iter().find(|table| table.name == self.name);
        let of = |field: fn(&Self) -> i64| field(self) - before.map_or(0, field);
        Self {
            name: self.name.clone(),
            rows: self.rows,
            scans: of(|table| table.scans),
            scanned: of(|table| table.scanned),
            looked_up: of(|table| table.looked_up),
        }
    }

    /// All that was read.
    #[must_use]
    pub const fn read(&self) -> i64 {
        self.scanned + self.looked_up
    }
}

impl Stage {
    /// Makes Hilltop a school of 20,000 students.
    pub async fn grow(&self) {
        self.arrange(GROWTH).await;
    }

    /// What was read of each table until now. Ends the server's connections first, because a connection reports what it has read when
    /// it ends.
    pub async fn reads(&self) -> Vec<TableReads> {
        let mut owner = self.owner().await;
        let deadline = Instant::now() + QUIET_LIMIT;
        loop {
            let open: i64 = sqlx::query_scalar(
                "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity
                  WHERE datname = current_database() AND pid <> pg_backend_pid()",
            )
            .fetch_one(&mut owner)
            .await
            .expect("the activity can be read");
            if open == 0 {
                break;
            }
            assert!(Instant::now() < deadline, "{open} connections stay open");
            sleep(Duration::from_millis(5)).await;
        }
        let tables = sqlx::query_as(AssertSqlSafe(
            "SELECT t.relname::text AS name, c.reltuples::bigint AS rows, t.seq_scan AS scans, t.seq_tup_read AS scanned,
                    coalesce((SELECT sum(idx_tup_read) FROM pg_stat_user_indexes i WHERE i.relid = t.relid), 0)::bigint AS looked_up
               FROM pg_stat_user_tables t JOIN pg_class c ON c.oid = t.relid
              WHERE t.schemaname = 'public' ORDER BY 1"
                .to_owned(),
        ))
        .fetch_all(&mut owner)
        .await
        .expect("the statistics can be read");
        owner.close().await.expect("it is left alone");
        tables
    }
}

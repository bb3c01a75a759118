//! The only place that knows the database: pools, frames, and one file of statements a table.
//!
//! Every statement of a call runs on a `Tx`, which is opened with its tenant and its access and cannot outlive its call. A
//! connection whose transaction did not end cleanly is closed, never handed to another call.

pub(crate) mod academic_year;
pub(crate) mod account;
pub(crate) mod announcement;
pub(crate) mod approval;
pub(crate) mod assessment;
pub(crate) mod attendance;
pub(crate) mod audit_log;
pub(crate) mod campus;
pub(crate) mod conversation;
pub(crate) mod coverage;
pub(crate) mod department;
pub(crate) mod facts;
pub(crate) mod gradebook;
pub(crate) mod grading;
#[cfg(feature = "test-hooks")]
mod inspection;
pub(crate) mod invitation;
pub(crate) mod lesson;
pub mod migrate;
pub(crate) mod news;
pub(crate) mod operator;
mod pool;
pub(crate) mod relationship;
pub(crate) mod report;
pub(crate) mod results;
pub(crate) mod school;
pub mod seed;
pub(crate) mod staff;
pub(crate) mod stream;
pub(crate) mod student;
pub(crate) mod student_word;
pub(crate) mod subject;
pub(crate) mod teaching;
pub(crate) mod tool_call;
pub(crate) mod turn;
pub(crate) mod turn_context;

use crate::{
    ability::Topics,
    config::{RoleUrls, Secret},
};
use chrono::Datelike;
use facts::FactsRow;
use pool::Pool;
use serde::Deserialize;
use sqlx::{
    AssertSqlSafe, PgConnection, PgPool, Postgres,
    pool::PoolConnection,
    postgres::{PgConnectOptions, PgPoolOptions, PgRow},
};
use std::{str::FromStr, time::Duration};
use tool_call::EarlierCall;
use uuid::Uuid;

/// Reads a day or a moment of a key whose year is one that people write, all of which the database knows.
fn in_calendar<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Datelike,
{
    let day = T::deserialize(from)?;
    if (1..=9999).contains(&day.year()) {
        Ok(day)
    } else {
        Err(serde::de::Error::custom("not in the calendar"))
    }
}

/// How long a call waits for a connection; less than any caller's deadline, so that it learns of it.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(8);

/// How the database failed.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// Two transactions stood in each other's way; the same one may succeed when it is run again.
    #[error("transient conflict: {0}")]
    Transient(sqlx::Error),
    /// A unique constraint refused a row.
    #[error("already there: {constraint}")]
    Duplicate {
        /// The constraint's name.
        constraint: String,
    },
    /// A foreign key refused a row: what it names does not exist, or something still names it.
    #[error("reference refused: {constraint}")]
    Reference {
        /// The constraint's name.
        constraint: String,
    },
    /// A row was expected to change and did not.
    #[error("expected to change one row, changed {0}")]
    Unchanged(u64),
    /// The connection was lost or not to be had.
    #[error("no connection: {0}")]
    Unavailable(sqlx::Error),
    /// Anything else.
    #[error("{0}")]
    Other(sqlx::Error),
}

impl DbError {
    /// Whether the same statements may succeed a little later.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Transient(_) | Self::Unavailable(_) => true,
            Self::Duplicate { .. } | Self::Reference { .. } | Self::Unchanged(_) => false,
            // values, constraints, and statements that are wrong stay so; a lock, a limit or a lack of room does not
            Self::Other(error) => error
                .as_database_error()
                .and_then(sqlx::error::DatabaseError::code)
                .is_some_and(|code| !["22", "23", "42"].iter().any(|class| code.starts_with(class))),
        }
    }

    /// Whether this unique constraint refused.
    pub(crate) fn is_duplicate_of(&self, name: &str) -> bool {
        matches!(self, Self::Duplicate { constraint } if constraint == name)
    }
}

impl From<sqlx::Error> for DbError {
    fn from(error: sqlx::Error) -> Self {
        if let sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::Tls(_) = error {
            return Self::Unavailable(error);
        }
        let Some(database) = error.as_database_error() else {
            return Self::Other(error);
        };
        let constraint = || database.constraint().unwrap_or_default().to_owned();
        match database.code().as_deref() {
            Some("40001" | "40P01") => Self::Transient(error),
            // the key was taken by somebody who does not lock it: run again, it finds what they did
            Some("23505") if tool_call::is_key(database.constraint()) => Self::Transient(error),
            Some("23505") => Self::Duplicate {
                constraint: constraint(),
            },
            Some("23503") => Self::Reference {
                constraint: constraint(),
            },
            // shutting down, starting up, or killed by an operator
            Some("57P01" | "57P02" | "57P03") => Self::Unavailable(error),
            _ => Self::Other(error),
        }
    }
}

/// The result of a statement.
pub(crate) type DbResult<T> = Result<T, DbError>;

/// Whose rows a frame may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tenant {
    /// One school's, by row-level security.
    School(Uuid),
    /// Every school's: platform admins only.
    Unscoped,
}

/// What a frame may do; the database holds it to that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access<'a> {
    /// `READ ONLY`.
    Read,
    /// `READ ONLY`, with one plan for each statement, whatever its arguments.
    ReadAsPlanned,
    /// Everything that the role may, as the only call of the tenant under this key.
    Write {
        /// The idempotency key.
        key: &'a str,
    },
}

/// How a frame is opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opening<'a> {
    pub(crate) tenant: Tenant,
    pub(crate) access: Access<'a>,
    /// A statement in the frame is stopped after this long.
    pub(crate) limit: Duration,
}

/// The pools: one for each role that the server connects as.
#[derive(Clone)]
pub struct Database {
    app: Pool,
    platform: Pool,
    directory: PgPool,
    operator: PgPool,
}

impl Database {
    /// Pools that connect when they are first used. The configured size bounds the tenants' pool; the others serve few.
    ///
    /// # Errors
    ///
    /// When a URL cannot be read.
    pub fn connect_lazily(urls: &RoleUrls) -> Result<Self, DbError> {
        let options = |url: &Secret| PgConnectOptions::from_str(url.reveal()).map_err(DbError::from);
        let few = || PgPoolOptions::new().max_connections(4).acquire_timeout(ACQUIRE_TIMEOUT);
        Ok(Self {
            app: pool::of(options(&urls.app)?, urls.pool)?,
            platform: pool::of(options(&urls.platform)?, urls.pool.clamp(1, 4))?,
            directory: few().connect_lazy_with(options(&urls.directory)?),
            operator: few().connect_lazy_with(options(&urls.platform)?),
        })
    }

    /// Opens a frame for reading: one transaction, of one tenant. A statement in it is stopped after `limit`.
    pub(crate) async fn begin(&self, tenant: Tenant, limit: Duration) -> DbResult<Tx> {
        let opening = Opening {
            tenant,
            access: Access::Read,
            limit,
        };
        Ok(self.open(tenant, &opening.statements()).await?.0)
    }

    /// Opens a frame for what the server writes of its own accord about a tenant's rows, such as what a worker reports.
    pub(crate) async fn begin_writing(&self, tenant: Tenant, key: &str, limit: Duration) -> DbResult<Tx> {
        let opening = Opening {
            tenant,
            access: Access::Write { key },
            limit,
        };
        Ok(self.open(tenant, &opening.statements()).await?.0)
    }

    /// Opens the frame of a call. In the same round trip the key of a write is taken, what was done under it before is looked up,
    /// and then, as nothing is waited for any more, the caller's facts are read.
    pub(crate) async fn begin_call(
        &self,
        opening: Opening<'_>,
        sub: Uuid,
        topics: Topics,
    ) -> DbResult<(Tx, Option<FactsRow>, Option<EarlierCall>)> {
        let mut statements = opening.statements();
        if let Access::Write { key } = opening.access {
            statements.extend(["; ", &tool_call::take_key(opening.tenant, key)]);
        }
        statements.extend(["; ", &facts::execute(sub, topics)]);
        let (tx, rows) = self.open(opening.tenant, &statements).await?;
        Ok((tx, facts::read(&rows)?, tool_call::read_earlier(&rows)?))
    }

    async fn open(&self, tenant: Tenant, statements: &str) -> DbResult<(Tx, Vec<PgRow>)> {
        let pool = match tenant {
            Tenant::School(_) => &self.app,
            Tenant::Unscoped => &self.platform,
        };
        match Tx::begin(pool.get().await?, statements, tenant).await {
            // the database was away, and with it every connection that waited here
            Err(DbError::Unavailable(_)) => {
                pool.retain(|_, _| false);
                Tx::begin(pool.get().await?, statements, tenant).await
            }
            begun => begun,
        }
    }

    /// A connection that answers whose e-mail address one is, before there is a tenant.
    pub(crate) async fn directory(&self) -> DbResult<PoolConnection<Postgres>> {
        Ok(self.directory.acquire().await?)
    }

    /// Connections across schools, for the operator's own commands.
    pub(crate) const fn operator(&self) -> &PgPool {
        &self.operator
    }

    /// A connection of the tenants' role outside any frame, where only what is no tenant's can be reached. A statement on it is
    /// stopped after `limit`. It does not go back to its pool, where one that was given up could keep another call waiting.
    pub(crate) async fn outside(&self, limit: Duration) -> DbResult<PgConnection> {
        let mut connection = pool::Connection::take(self.app.get().await?);
        let limit = statement_timeout(limit);
        sqlx::raw_sql(AssertSqlSafe(format!("SET statement_timeout = {limit}")))
            .execute(&mut connection)
            .await?;
        Ok(connection)
    }

    /// Whether the database answers each of the roles.
    pub(crate) async fn check(&self) -> DbResult<()> {
        for pool in [&self.app, &self.platform] {
            let mut connection = pool.get().await?;
            facts::check(&mut connection).await?;
            tool_call::check(&mut connection).await?;
        }
        sqlx::query!("SELECT 1 AS one").fetch_one(&self.directory).await?;
        Ok(())
    }

    /// Closes all connections.
    pub(crate) async fn close(&self) {
        self.app.close();
        self.platform.close();
        self.directory.close().await;
        self.operator.close().await;
    }
}

impl Opening<'_> {
    /// The values are a number and hexadecimal digits.
    fn statements(&self) -> String {
        let begin = match self.access {
            Access::Read => "BEGIN READ ONLY",
            Access::ReadAsPlanned => "BEGIN READ ONLY; SET LOCAL plan_cache_mode = force_generic_plan",
            Access::Write { .. } => "BEGIN",
        };
        let limit = statement_timeout(self.limit);
        match self.tenant {
            Tenant::School(school) => {
                format!("{begin}; SET LOCAL statement_timeout = {limit}; SET LOCAL app.school_id = '{school}'")
            }
            Tenant::Unscoped => format!("{begin}; SET LOCAL statement_timeout = {limit}"),
        }
    }
}

/// In milliseconds; 0 would be no limit.
fn statement_timeout(limit: Duration) -> u128 {
    limit.as_millis().clamp(1, 3_600_000)
}

/// One transaction. Dropped before it ended, it takes its connection with it: what the server still does on that connection can
/// then reach no other call.
pub(crate) struct Tx {
    connection: Option<pool::Connection>,
    tenant: Tenant,
}

impl Tx {
    async fn begin(connection: pool::Connection, statements: &str, tenant: Tenant) -> DbResult<(Self, Vec<PgRow>)> {
        let mut tx = Self {
            connection: Some(connection),
            tenant,
        };
        let rows = sqlx::raw_sql(AssertSqlSafe(statements))
            .fetch_all(tx.connection()?)
            .await?;
        Ok((tx, rows))
    }

    /// Whose rows this frame may reach.
    pub(crate) const fn tenant(&self) -> Tenant {
        self.tenant
    }

    pub(super) fn connection(&mut self) -> DbResult<&mut PgConnection> {
        let connection = self
            .connection
            .as_mut()
            .ok_or(DbError::Unavailable(sqlx::Error::PoolClosed))?;
        Ok(&mut **connection)
    }

    /// Makes it so. On an error nobody knows whether it is; the idempotency key tells.
    pub(crate) async fn commit(self) -> DbResult<()> {
        self.end("COMMIT").await
    }

    /// Undoes it.
    pub(crate) async fn rollback(self) -> DbResult<()> {
        self.end("ROLLBACK").await
    }

    async fn end(mut self, statement: &'static str) -> DbResult<()> {
        sqlx::raw_sql(statement).execute(self.connection()?).await?;
        // only now is the connection clean, and goes back to its pool
        drop(self.connection.take());
        Ok(())
    }
}

impl Drop for Tx {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            drop(pool::Connection::take(connection));
        }
    }
}

/// Checks that a statement changed exactly one row.
pub(crate) fn one_row(changed: u64) -> DbResult<()> {
    if changed == 1 {
        Ok(())
    } else {
        Err(DbError::Unchanged(changed))
    }
}

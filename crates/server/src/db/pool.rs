//! Connections for frames: kept open, handed out as they are, handed back at once.
//!
//! Whether a connection still lives shows at its first statement, and whether it is clean is the frame's to know; so nothing is asked
//! of the server between two calls.

use super::{ACQUIRE_TIMEOUT, DbError, facts, tool_call};
use deadpool::{
    Runtime,
    managed::{Manager, Metrics, Object, PoolError, RecycleResult, Timeouts},
};
use sqlx::{Connection as _, PgConnection, postgres::PgConnectOptions};

pub(super) type Pool = deadpool::managed::Pool<Connector>;
/// A connection out of a pool; back in it when dropped, gone from it when taken.
pub(crate) type Connection = Object<Connector>;

/// Opens connections.
#[derive(Debug)]
pub(crate) struct Connector(PgConnectOptions);

/// A pool of at most `size` connections.
pub(super) fn of(options: PgConnectOptions, size: u32) -> Result<Pool, DbError> {
    let limits = Timeouts {
        wait: Some(ACQUIRE_TIMEOUT),
        create: Some(ACQUIRE_TIMEOUT),
        recycle: None,
    };
    Pool::builder(Connector(options))
        .max_size(usize::try_from(size).unwrap_or(1))
        .timeouts(limits)
        .runtime(Runtime::Tokio1)
        .build()
        .map_err(|_| DbError::Unavailable(sqlx::Error::PoolClosed))
}

impl Manager for Connector {
    type Type = PgConnection;
    type Error = sqlx::Error;

    async fn create(&self) -> Result<PgConnection, sqlx::Error> {
        let mut connection = PgConnection::connect_with(&self.0).await?;
        facts::prepare(&mut connection).await?;
        tool_call::prepare(&mut connection).await?;
        Ok(connection)
    }

    async fn recycle(&self, _: &mut PgConnection, _: &Metrics) -> RecycleResult<sqlx::Error> {
        Ok(())
    }
}

impl From<PoolError<sqlx::Error>> for DbError {
    fn from(error: PoolError<sqlx::Error>) -> Self {
        match error {
            PoolError::Backend(error) => Self::Unavailable(error),
            PoolError::Timeout(_) => Self::Unavailable(sqlx::Error::PoolTimedOut),
            PoolError::Closed | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
                Self::Unavailable(sqlx::Error::PoolClosed)
            }
        }
    }
}

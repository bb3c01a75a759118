//! For tests only: what calls leave behind on the connections of their frames.

use super::{Database, DbError};
use sqlx::Row;

impl Database {
    /// Takes every connection that the frames' pools may have, all at once, and asks each the same question, outside of any frame.
    ///
    /// # Errors
    ///
    /// When a pool does not give out as many connections as it may have, or one of them does not answer.
    pub async fn ask_every_connection(&self, question: &'static str) -> Result<Vec<String>, DbError> {
        let mut answers = Vec::new();
        for pool in [&self.app, &self.platform] {
            let mut taken = Vec::new();
            for _ in 0..pool.status().max_size {
                taken.push(pool.get().await?);
            }
            for connection in &mut taken {
                // the simple protocol: a prepared statement would begin its transaction before it runs
                let row = sqlx::raw_sql(question).fetch_one(&mut **connection).await?;
                answers.push(row.try_get(0)?);
            }
        }
        Ok(answers)
    }
}

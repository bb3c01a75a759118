//! `campuses`.

use super::{DbResult, Tx};
use crate::ability::CampusRule;
use serde::Serialize;
use uuid::Uuid;

/// A campus.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Campus {
    pub(crate) id: Uuid,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) address: Option<String>,
}

/// Lists campuses in the order in which they were entered. A campus is a row of itself.
pub(crate) async fn list(tx: &mut Tx, rows: &CampusRule, after: Option<Uuid>, limit: i64) -> DbResult<Vec<Campus>> {
    Ok(sqlx::query_as!(
        Campus,
        "SELECT id, name, description, address
           FROM campuses
          WHERE ($1::uuid[] IS NULL OR id = ANY($1))
            AND id > $2
          ORDER BY id
          LIMIT $3",
        rows.campuses() as _,
        after.unwrap_or_default(),
        limit
    )
    .fetch_all(tx.connection()?)
    .await?)
}

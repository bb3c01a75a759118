//! `schools`: the tenant's own row.

use super::{DbResult, Tx};
use serde::Serialize;
use uuid::Uuid;

/// How a school presents itself.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Branding {
    pub(crate) name: String,
    pub(crate) motto: Option<String>,
    /// The most important first.
    pub(crate) colours: Vec<String>,
    pub(crate) logo_url: Option<String>,
}

/// Reads how a school presents itself.
pub(crate) async fn branding(tx: &mut Tx, school: Uuid) -> DbResult<Option<Branding>> {
    Ok(sqlx::query_as!(
        Branding,
        "SELECT name, motto, colours, logo_url FROM schools WHERE id = $1",
        school
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

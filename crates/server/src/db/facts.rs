//! The caller's facts, as the rows say now: account, profile, campuses of the school, and the rules they hold.

use super::DbResult;
use sqlx::{AssertSqlSafe, PgConnection, Row, postgres::PgRow, types::Json};
use uuid::Uuid;

/// One row of facts about an account, in the frame's tenant.
#[derive(Debug)]
pub(crate) struct FactsRow {
    pub(crate) email: String,
    pub(crate) user_type: String,
    pub(crate) active: bool,
    /// The profile; none for an account that is not on this school's staff.
    pub(crate) staff_id: Option<Uuid>,
    pub(crate) school_id: Option<Uuid>,
    pub(crate) campus_id: Option<Uuid>,
    pub(crate) staff_active: Option<bool>,
    pub(crate) campuses: Vec<CampusRow>,
    /// In order of precedence, the weakest first.
    pub(crate) rules: Vec<RuleRow>,
}

/// A campus of the school.
#[derive(Debug, Clone, serde::Deserialize)]
pub(crate) struct CampusRow {
    pub(crate) id: Uuid,
    pub(crate) name: String,
}

/// A rule as stored, with the campus on which its role is held.
#[derive(Debug, Clone, serde::Deserialize)]
pub(crate) struct RuleRow {
    pub(crate) a: String,
    pub(crate) r: String,
    /// Whether it allows.
    pub(crate) y: bool,
    /// Its condition.
    #[serde(default)]
    pub(crate) c: Option<serde_json::Value>,
    /// The campus on which the role is held.
    #[serde(default)]
    pub(crate) h: Option<Uuid>,
}

/// The statement, prepared on each connection under [`NAME`] so that it runs in the round trip that opens a frame. Rules come as one
/// JSON text: a row each would cost more than all the rest.
const STATEMENT: &str = include_str!("facts.sql");
const NAME: &str = "caller_facts";

/// Prepares the statement on a new connection.
pub(super) async fn prepare(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let prepare = AssertSqlSafe(format!("PREPARE {NAME} (uuid) AS {STATEMENT}"));
    sqlx::raw_sql(prepare).execute(connection).await.map(drop)
}

/// The prepared statement for one account, as the last of the statements that open a frame.
pub(super) fn execute(sub: Uuid) -> String {
    // nothing but hexadecimal digits and dashes comes of a UUID
    format!("EXECUTE {NAME} ('{sub}')")
}

/// Runs the statement as the macros check it: a database in which it cannot run is not migrated.
pub(super) async fn check(connection: &mut PgConnection) -> DbResult<()> {
    sqlx::query_file!("src/db/facts.sql", Uuid::nil())
        .fetch_optional(connection)
        .await?;
    Ok(())
}

/// Reads the row that [`execute`] gave; none where the frame's tenant has no such account.
pub(super) fn read(rows: &[PgRow]) -> DbResult<Option<FactsRow>> {
    let Some(row) = rows.first() else { return Ok(None) };
    let campuses: Option<Json<Vec<CampusRow>>> = row.try_get("campuses")?;
    let rules: Option<Json<Vec<RuleRow>>> = row.try_get("rules")?;
    Ok(Some(FactsRow {
        email: row.try_get("email")?,
        user_type: row.try_get("user_type")?,
        active: row.try_get("active")?,
        staff_id: row.try_get("staff_id")?,
        school_id: row.try_get("school_id")?,
        campus_id: row.try_get("campus_id")?,
        staff_active: row.try_get("staff_active")?,
        campuses: campuses.map(|campuses| campuses.0).unwrap_or_default(),
        rules: rules.map(|rules| rules.0).unwrap_or_default(),
    }))
}

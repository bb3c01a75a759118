//! The caller's facts, as the rows say now: account, profile, campuses of the school, and the rules they hold.

use super::DbResult;
use crate::ability::Topics;
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

/// A rule as stored, with the campus on which its role is held. In JSON a list of these fields in their order, which is shorter.
#[derive(Debug, Clone, serde::Deserialize)]
pub(crate) struct RuleRow {
    pub(crate) a: String,
    pub(crate) r: String,
    /// Whether it allows.
    pub(crate) y: bool,
    /// Its condition.
    pub(crate) c: Option<serde_json::Value>,
    /// The campus on which the role is held.
    pub(crate) h: Option<Uuid>,
}

/// The statement, prepared on each connection under [`NAME`] so that it runs in the round trip that opens a frame. Rules come as one
/// JSON text: a row each would cost more than all the rest.
const STATEMENT: &str = include_str!("facts.sql");
const NAME: &str = "caller_facts";

/// Prepares the statement on a new connection.
pub(super) async fn prepare(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let prepare = AssertSqlSafe(format!("PREPARE {NAME} (uuid, text[]) AS {STATEMENT}"));
    sqlx::raw_sql(prepare).execute(connection).await.map(drop)
}

/// The prepared statement for one account and the rules about these topics, as the last of the statements that open a frame.
pub(super) fn execute(sub: Uuid, topics: Topics) -> String {
    let topics: Vec<&str> = topics.words().collect();
    // a UUID is hexadecimal digits and dashes, and a resource one of our own words
    format!("EXECUTE {NAME} ('{sub}', '{{{}}}')", topics.join(","))
}

/// Runs the statement as the macros check it: a database in which it cannot run is not migrated.
pub(super) async fn check(connection: &mut PgConnection) -> DbResult<()> {
    sqlx::query_file!("src/db/facts.sql", Uuid::nil(), &Vec::<String>::new())
        .fetch_optional(connection)
        .await?;
    Ok(())
}

/// Reads the row that [`execute`] gave; none where the frame's tenant has no such account.
pub(super) fn read(rows: &[PgRow]) -> DbResult<Option<FactsRow>> {
    let Some(row) = rows.iter().find(|row| row.try_get_raw("role_rules").is_ok()) else {
        return Ok(None);
    };
    let campuses: Option<Json<Vec<CampusRow>>> = row.try_get("campuses")?;
    // what membership of a department gives is the weakest
    let mut rules = rules_of(row, "department_rules")?;
    rules.append(&mut rules_of(row, "role_rules")?);
    Ok(Some(FactsRow {
        email: row.try_get("email")?,
        user_type: row.try_get("user_type")?,
        active: row.try_get("active")?,
        staff_id: row.try_get("staff_id")?,
        school_id: row.try_get("school_id")?,
        campus_id: row.try_get("campus_id")?,
        staff_active: row.try_get("staff_active")?,
        campuses: campuses.map(|campuses| campuses.0).unwrap_or_default(),
        rules,
    }))
}

fn rules_of(row: &PgRow, column: &str) -> DbResult<Vec<RuleRow>> {
    let rules: Option<Json<Vec<RuleRow>>> = row.try_get(column)?;
    Ok(rules.map(|rules| rules.0).unwrap_or_default())
}

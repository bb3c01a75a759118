//! Whose e-mail address one is: asked before there is a tenant, by a role that may read nothing else.

use super::{Database, DbResult};
use uuid::Uuid;

/// An account, and one school in which it works.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    pub(crate) user_id: Uuid,
    pub(crate) email: String,
    pub(crate) name: String,
    pub(crate) user_type: String,
    pub(crate) staff_id: Option<Uuid>,
    pub(crate) school_id: Option<Uuid>,
    pub(crate) school_slug: Option<String>,
    pub(crate) school_name: Option<String>,
    pub(crate) time_zone: Option<String>,
    pub(crate) campus_id: Option<Uuid>,
}

/// The account with an address, once for each school in which it works, the one first that it joined first. Whether it is active is for each call to find out.
pub(crate) async fn by_email(database: &Database, email: &str) -> DbResult<Vec<Account>> {
    if email.contains('\0') {
        return Ok(Vec::new());
    }
    // case is folded in ASCII only: among all letters there are others that fold to those of somebody else's address
    let email = email.to_ascii_lowercase();
    let mut connection = database.directory().await?;
    Ok(sqlx::query_as!(
        Account,
        r#"SELECT u.id AS user_id, u.email, u.name, u.type AS user_type, s.id AS "staff_id?", s.school_id AS "school_id?",
                  c.slug AS "school_slug?", c.name AS "school_name?", c.time_zone AS "time_zone?", s.campus_id AS "campus_id?"
             FROM users u
             LEFT JOIN staff s ON s.user_id = u.id
             LEFT JOIN schools c ON c.id = s.school_id
            WHERE u.email = $1
            ORDER BY s.created_at, c.slug"#,
        email
    )
    .fetch_all(&mut *connection)
    .await?)
}

/// A campus by its id or its name, in one school; in any school where none is given.
pub(crate) async fn campus(
    database: &Database,
    school: Option<Uuid>,
    id_or_name: &str,
) -> DbResult<Vec<(Uuid, String)>> {
    if id_or_name.contains('\0') {
        return Ok(Vec::new());
    }
    let mut connection = database.directory().await?;
    let rows = sqlx::query!(
        "SELECT id, name FROM campuses
          WHERE ($1::uuid IS NULL OR school_id = $1) AND (id::text = lower($2) OR lower(name) = lower($2))
          ORDER BY id LIMIT 2",
        school,
        id_or_name
    )
    .fetch_all(&mut *connection)
    .await?;
    Ok(rows.into_iter().map(|row| (row.id, row.name)).collect())
}

/// A school by its slug.
pub(crate) async fn school(database: &Database, slug: &str) -> DbResult<Option<Uuid>> {
    let mut connection = database.directory().await?;
    Ok(sqlx::query_scalar!("SELECT id FROM schools WHERE slug = $1", slug)
        .fetch_optional(&mut *connection)
        .await?)
}

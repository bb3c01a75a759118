//! `departments`, with their heads, members and permissions.

use super::{DbResult, Tx, one_row};
use crate::ability::CampusRule;
use contract::permission::Permission;
use serde::{Deserialize, Serialize};
use sqlx::types::Json;
use uuid::Uuid;

/// A department.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Department {
    /// For the audit row; a reply does not name the tenant.
    #[serde(skip)]
    pub(crate) school_id: Uuid,
    pub(crate) id: Uuid,
    pub(crate) campus_id: Uuid,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
}

/// A department with its people.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DepartmentDetails {
    #[serde(flatten)]
    pub(crate) department: Department,
    pub(crate) campus_name: String,
    pub(crate) heads: Vec<Head>,
    pub(crate) member_count: i64,
    pub(crate) permissions: Vec<Permission>,
}

/// A head of a department.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Head {
    pub(crate) staff_id: Uuid,
    pub(crate) name: String,
}

/// Where a list by name goes on.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NameKey(pub(crate) String, pub(crate) Uuid);

/// What to change; what is `None` stays.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change<'a> {
    pub(crate) name: Option<&'a str>,
    pub(crate) description: Option<&'a str>,
    pub(crate) clear_description: bool,
}

/// Lists departments by name.
pub(crate) async fn list(
    tx: &mut Tx,
    rows: &CampusRule,
    after: Option<&NameKey>,
    limit: i64,
) -> DbResult<Vec<Department>> {
    Ok(sqlx::query_as!(
        Department,
        "SELECT school_id, id, campus_id, name, description
           FROM departments
          WHERE ($1::uuid[] IS NULL OR campus_id = ANY($1))
            AND (name, id) > ($2, $3)
          ORDER BY name, id
          LIMIT $4",
        rows.campuses() as _,
        after.map_or("", |key| key.0.as_str()),
        after.map_or(Uuid::nil(), |key| key.1),
        limit
    )
    .fetch_all(tx.connection()?)
    .await?)
}

/// Finds one department among the rows that may be seen, and holds it until the transaction ends where it may be changed.
pub(crate) async fn find(tx: &mut Tx, id: Uuid, rows: &CampusRule) -> DbResult<Option<Department>> {
    Ok(sqlx::query_as!(
        Department,
        "SELECT school_id, id, campus_id, name, description
           FROM departments
          WHERE id = $1 AND ($2::uuid[] IS NULL OR campus_id = ANY($2))
            FOR UPDATE",
        id,
        rows.campuses() as _
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// Reads one department with its people.
pub(crate) async fn details(tx: &mut Tx, id: Uuid, rows: &CampusRule) -> DbResult<Option<DepartmentDetails>> {
    let row = sqlx::query!(
        r#"
        SELECT d.school_id, d.id, d.campus_id, d.name, d.description, c.name AS campus_name,
               (SELECT json_agg(json_build_object('staffId', s.id, 'name', u.name) ORDER BY u.name, s.id)
                  FROM department_heads h
                  JOIN staff s ON s.school_id = h.school_id AND s.id = h.staff_id
                  JOIN users u ON u.id = s.user_id
                 WHERE h.school_id = d.school_id AND h.department_id = d.id) AS "heads: Json<Vec<Head>>",
               (SELECT count(*) FROM department_members m
                 WHERE m.school_id = d.school_id AND m.department_id = d.id) AS "member_count!",
               (SELECT json_agg(json_build_object('action', p.action, 'resource', p.resource) ORDER BY p.resource, p.action)
                  FROM department_permissions p
                 WHERE p.school_id = d.school_id AND p.department_id = d.id) AS "permissions: Json<Vec<Permission>>"
          FROM departments d
          JOIN campuses c ON c.school_id = d.school_id AND c.id = d.campus_id
         WHERE d.id = $1 AND ($2::uuid[] IS NULL OR d.campus_id = ANY($2))
        "#,
        id,
        rows.campuses() as _
    )
    .fetch_optional(tx.connection()?)
    .await?;
    Ok(row.map(|row| DepartmentDetails {
        department: Department {
            school_id: row.school_id,
            id: row.id,
            campus_id: row.campus_id,
            name: row.name,
            description: row.description,
        },
        campus_name: row.campus_name,
        heads: row.heads.map(|heads| heads.0).unwrap_or_default(),
        member_count: row.member_count,
        permissions: row.permissions.map(|permissions| permissions.0).unwrap_or_default(),
    }))
}

/// Adds a department to a campus; `None` where the frame sees no such campus. The school is the campus's, in every frame.
pub(crate) async fn insert(
    tx: &mut Tx,
    campus: Uuid,
    name: &str,
    description: Option<&str>,
) -> DbResult<Option<Department>> {
    Ok(sqlx::query_as!(
        Department,
        "INSERT INTO departments (school_id, id, campus_id, name, description)
         SELECT c.school_id, $1, c.id, $3, $4 FROM campuses c WHERE c.id = $2
         RETURNING school_id, id, campus_id, name, description",
        Uuid::now_v7(),
        campus,
        name,
        description
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// Changes a department among the rows that may be changed.
pub(crate) async fn update(
    tx: &mut Tx,
    id: Uuid,
    rows: &CampusRule,
    change: Change<'_>,
) -> DbResult<Option<Department>> {
    Ok(sqlx::query_as!(
        Department,
        "UPDATE departments
            SET name = coalesce($3, name), description = CASE WHEN $5 THEN NULL ELSE coalesce($4, description) END
          WHERE id = $1 AND ($2::uuid[] IS NULL OR campus_id = ANY($2))
         RETURNING school_id, id, campus_id, name, description",
        id,
        rows.campuses() as _,
        change.name,
        change.description,
        change.clear_description
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// Deletes a department; its heads, members and permissions go with it.
pub(crate) async fn delete(tx: &mut Tx, department: &Department) -> DbResult<()> {
    let deleted = sqlx::query!(
        "DELETE FROM departments WHERE school_id = $1 AND id = $2",
        department.school_id,
        department.id
    )
    .execute(tx.connection()?)
    .await?;
    one_row(deleted.rows_affected())
}

/// Puts these permissions in the place of those that the members had.
pub(crate) async fn set_permissions(tx: &mut Tx, department: &Department, permissions: &[Permission]) -> DbResult<()> {
    sqlx::query!(
        "DELETE FROM department_permissions WHERE school_id = $1 AND department_id = $2",
        department.school_id,
        department.id
    )
    .execute(tx.connection()?)
    .await?;
    if permissions.is_empty() {
        return Ok(());
    }
    let actions: Vec<String> = permissions
        .iter()
        .map(|permission| permission.action.to_string())
        .collect();
    let resources: Vec<String> = permissions
        .iter()
        .map(|permission| permission.resource.to_string())
        .collect();
    sqlx::query!(
        "INSERT INTO department_permissions (school_id, department_id, action, resource)
         SELECT $1, $2, p.action, p.resource FROM unnest($3::text[], $4::text[]) AS p (action, resource)
         ON CONFLICT DO NOTHING",
        department.school_id,
        department.id,
        &actions,
        &resources
    )
    .execute(tx.connection()?)
    .await?;
    Ok(())
}

/// Whether a member of staff is a head of a department.
pub(crate) async fn is_head(tx: &mut Tx, department: &Department, staff: Uuid) -> DbResult<bool> {
    Ok(sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT 1 FROM department_heads WHERE school_id = $1 AND department_id = $2 AND staff_id = $3) AS "is!""#,
        department.school_id,
        department.id,
        staff
    )
    .fetch_one(tx.connection()?)
    .await?)
}

/// What came of making somebody a head.
#[derive(Debug)]
pub(crate) struct Added {
    pub(crate) on_staff: bool,
    pub(crate) is_new: bool,
}

/// Makes an active member of the department's school a head of it: of its campus, or of the whole school.
pub(crate) async fn add_head(tx: &mut Tx, department: &Department, staff: Uuid) -> DbResult<Added> {
    let row = sqlx::query!(
        r#"
        WITH candidate AS (
            SELECT s.school_id, s.id
              FROM staff s
              JOIN users u ON u.id = s.user_id AND u.active
             WHERE s.school_id = $1 AND s.id = $3 AND s.active AND (s.campus_id IS NULL OR s.campus_id = $4)
        ), added AS (
            INSERT INTO department_heads (school_id, department_id, staff_id)
            SELECT school_id, $2, id FROM candidate
            ON CONFLICT ON CONSTRAINT department_heads_staff_key DO NOTHING
            RETURNING 1
        )
        SELECT EXISTS (SELECT 1 FROM candidate) AS "on_staff!", EXISTS (SELECT 1 FROM added) AS "is_new!"
        "#,
        department.school_id,
        department.id,
        staff,
        department.campus_id
    )
    .fetch_one(tx.connection()?)
    .await?;
    Ok(Added {
        on_staff: row.on_staff,
        is_new: row.is_new,
    })
}

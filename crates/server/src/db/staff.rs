//! `staff`, with the account behind a profile (`users`) and the roles that a person holds (`user_roles`, `roles`,
//! `role_permissions`).

use super::{DbResult, Tx, facts::RuleRow, one_row};
use crate::ability::CampusRule;
use serde::{Deserialize, Serialize};
use sqlx::types::Json;
use uuid::Uuid;

/// A member of staff.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StaffMember {
    /// For the audit row; a reply does not name the tenant.
    #[serde(skip)]
    pub(crate) school_id: Uuid,
    #[serde(skip)]
    pub(crate) user_id: Uuid,
    pub(crate) id: Uuid,
    pub(crate) name: String,
    pub(crate) email: String,
    pub(crate) title: Option<String>,
    /// None for the whole school.
    pub(crate) campus_id: Option<Uuid>,
    pub(crate) campus_name: Option<String>,
    /// False once the person has left or the account is closed.
    pub(crate) active: bool,
}

/// A member of staff with what they hold and belong to.
#[derive(Debug)]
pub(crate) struct StaffDetails {
    pub(crate) member: StaffMember,
    pub(crate) roles: Vec<HeldRole>,
    pub(crate) departments: Vec<InDepartment>,
}

/// A role that somebody holds.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HeldRole {
    pub(crate) role: String,
    /// None where it is held as it is defined.
    pub(crate) campus_id: Option<Uuid>,
    pub(crate) campus_name: Option<String>,
}

/// A department that somebody belongs to.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InDepartment {
    pub(crate) department_id: Uuid,
    pub(crate) name: String,
    pub(crate) campus_id: Uuid,
    pub(crate) is_head: bool,
    pub(crate) is_member: bool,
}

/// What to change of a profile; what is `None` stays.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change<'a> {
    pub(crate) title: Option<&'a str>,
    pub(crate) clear_title: bool,
    pub(crate) campus_id: Option<Uuid>,
}

impl Change<'_> {
    /// Whether the profile stays as it is.
    pub(crate) const fn is_none(&self) -> bool {
        self.title.is_none() && !self.clear_title && self.campus_id.is_none()
    }
}

/// A role of a school.
#[derive(Debug)]
pub(crate) struct Role {
    pub(crate) id: Uuid,
    pub(crate) name: String,
}

/// Lists members of staff in the order in which they joined.
pub(crate) async fn list(
    tx: &mut Tx,
    rows: &CampusRule,
    after: Option<Uuid>,
    limit: i64,
) -> DbResult<Vec<StaffMember>> {
    Ok(sqlx::query_as!(
        StaffMember,
        r#"
        SELECT s.school_id, s.user_id, s.id, u.name, u.email, s.title, s.campus_id, c.name AS "campus_name?",
               s.active AND u.active AS "active!"
          FROM staff s
          JOIN users u ON u.id = s.user_id
          LEFT JOIN campuses c ON c.school_id = s.school_id AND c.id = s.campus_id
         WHERE ($1::uuid[] IS NULL OR s.campus_id = ANY($1) OR ($2 AND s.campus_id IS NULL))
           AND s.id > $3
         ORDER BY s.id
         LIMIT $4
        "#,
        rows.campuses() as _,
        rows.and_none(),
        after.unwrap_or_default(),
        limit
    )
    .fetch_all(tx.connection()?)
    .await?)
}

/// Finds one member of staff among the rows that may be changed, and holds the profile until the transaction ends.
pub(crate) async fn find(tx: &mut Tx, id: Uuid, rows: &CampusRule) -> DbResult<Option<StaffMember>> {
    Ok(sqlx::query_as!(
        StaffMember,
        r#"
        SELECT s.school_id, s.user_id, s.id, u.name, u.email, s.title, s.campus_id, c.name AS "campus_name?",
               s.active AND u.active AS "active!"
          FROM staff s
          JOIN users u ON u.id = s.user_id
          LEFT JOIN campuses c ON c.school_id = s.school_id AND c.id = s.campus_id
         WHERE s.id = $1 AND ($2::uuid[] IS NULL OR s.campus_id = ANY($2) OR ($3 AND s.campus_id IS NULL))
           FOR UPDATE OF s
        "#,
        id,
        rows.campuses() as _,
        rows.and_none()
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// Reads one member of staff with roles and departments. What is of a campus outside the rows is left out of these as well.
pub(crate) async fn details(tx: &mut Tx, id: Uuid, rows: &CampusRule) -> DbResult<Option<StaffDetails>> {
    let row = sqlx::query!(
        r#"
        SELECT s.school_id, s.user_id, s.id, u.name, u.email, s.title, s.campus_id, c.name AS "campus_name?",
               s.active AND u.active AS "active!",
               (SELECT json_agg(json_build_object('role', r.name, 'campusId', ur.campus_id, 'campusName', rc.name)
                                ORDER BY r.rank DESC, rc.name NULLS FIRST, ur.id)
                  FROM user_roles ur
                  JOIN roles r ON r.school_id = ur.school_id AND r.id = ur.role_id
                  LEFT JOIN campuses rc ON rc.school_id = ur.school_id AND rc.id = ur.campus_id
                 WHERE ur.school_id = s.school_id AND ur.staff_id = s.id
                   AND ($2::uuid[] IS NULL OR ur.campus_id IS NULL OR ur.campus_id = ANY($2))) AS "roles: Json<Vec<HeldRole>>",
               (SELECT json_agg(json_build_object('departmentId', d.id, 'name', d.name, 'campusId', d.campus_id,
                                                  'isHead', h.id IS NOT NULL, 'isMember', m.id IS NOT NULL) ORDER BY d.name, d.id)
                  FROM departments d
                  LEFT JOIN department_heads h
                         ON h.school_id = d.school_id AND h.department_id = d.id AND h.staff_id = s.id
                  LEFT JOIN department_members m
                         ON m.school_id = d.school_id AND m.department_id = d.id AND m.staff_id = s.id
                 WHERE d.school_id = s.school_id AND (h.id IS NOT NULL OR m.id IS NOT NULL)
                   AND ($2::uuid[] IS NULL OR d.campus_id = ANY($2))) AS "departments: Json<Vec<InDepartment>>"
          FROM staff s
          JOIN users u ON u.id = s.user_id
          LEFT JOIN campuses c ON c.school_id = s.school_id AND c.id = s.campus_id
         WHERE s.id = $1 AND ($2::uuid[] IS NULL OR s.campus_id = ANY($2) OR ($3 AND s.campus_id IS NULL))
        "#,
        id,
        rows.campuses() as _,
        rows.and_none()
    )
    .fetch_optional(tx.connection()?)
    .await?;
    Ok(row.map(|row| StaffDetails {
        member: StaffMember {
            school_id: row.school_id,
            user_id: row.user_id,
            id: row.id,
            name: row.name,
            email: row.email,
            title: row.title,
            campus_id: row.campus_id,
            campus_name: row.campus_name,
            active: row.active,
        },
        roles: row.roles.map(|roles| roles.0).unwrap_or_default(),
        departments: row.departments.map(|departments| departments.0).unwrap_or_default(),
    }))
}

/// Gives the account behind a profile another name; not an operator's, which is no school's, nor one that works in several, which is not
/// one school's alone. Answers whether it did.
pub(crate) async fn rename(tx: &mut Tx, member: &StaffMember, name: &str) -> DbResult<bool> {
    let renamed = sqlx::query!(
        "UPDATE users SET name = $2 WHERE id = $1 AND type <> 'PLATFORM_ADMIN' AND NOT shared",
        member.user_id,
        name
    )
    .execute(tx.connection()?)
    .await?;
    Ok(renamed.rows_affected() == 1)
}

/// Changes a profile.
pub(crate) async fn update(tx: &mut Tx, member: &StaffMember, change: Change<'_>) -> DbResult<()> {
    let updated = sqlx::query!(
        "UPDATE staff
            SET title = CASE WHEN $4 THEN NULL ELSE coalesce($3, title) END, campus_id = coalesce($5, campus_id)
          WHERE school_id = $1 AND id = $2",
        member.school_id,
        member.id,
        change.title,
        change.clear_title,
        change.campus_id
    )
    .execute(tx.connection()?)
    .await?;
    one_row(updated.rows_affected())
}

/// The rules that a member of staff has by their roles, as stored.
pub(crate) async fn rules_of_member(tx: &mut Tx, member: &StaffMember) -> DbResult<Vec<RuleRow>> {
    Ok(sqlx::query_as!(
        RuleRow,
        r#"
        SELECT p.action AS a, p.resource AS r, p.effect = 'allow' AS "y!", p.condition AS c, ur.campus_id AS h
          FROM user_roles ur
          JOIN role_permissions p ON p.school_id = ur.school_id AND p.role_id = ur.role_id
         WHERE ur.school_id = $1 AND ur.staff_id = $2
        "#,
        member.school_id,
        member.id
    )
    .fetch_all(tx.connection()?)
    .await?)
}

/// The rules that a role gives where it is held on a campus, or as it is defined.
pub(crate) async fn rules_of_role(
    tx: &mut Tx,
    member: &StaffMember,
    role: &Role,
    held_on: Option<Uuid>,
) -> DbResult<Vec<RuleRow>> {
    Ok(sqlx::query_as!(
        RuleRow,
        r#"
        SELECT action AS a, resource AS r, effect = 'allow' AS "y!", condition AS c, $3::uuid AS h
          FROM role_permissions
         WHERE school_id = $1 AND role_id = $2
         ORDER BY position
        "#,
        member.school_id,
        role.id,
        held_on
    )
    .fetch_all(tx.connection()?)
    .await?)
}

/// Finds a role of a member's school by its name, whatever its case.
pub(crate) async fn role_named(tx: &mut Tx, member: &StaffMember, name: &str) -> DbResult<Option<Role>> {
    Ok(sqlx::query_as!(
        Role,
        "SELECT id, name FROM roles WHERE school_id = $1 AND lower(name) = lower(btrim($2))",
        member.school_id,
        name
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// The names of the roles of a member's school, the mightiest first.
pub(crate) async fn role_names(tx: &mut Tx, member: &StaffMember) -> DbResult<Vec<String>> {
    Ok(sqlx::query_scalar!(
        "SELECT name FROM roles WHERE school_id = $1 ORDER BY rank DESC LIMIT 50",
        member.school_id
    )
    .fetch_all(tx.connection()?)
    .await?)
}

/// What was granted to whom.
#[derive(Debug)]
pub(crate) struct Granted {
    pub(crate) id: Uuid,
    pub(crate) campus_name: Option<String>,
}

/// Gives a member of staff a role, on one campus or as it is defined.
pub(crate) async fn grant(tx: &mut Tx, member: &StaffMember, role: &Role, campus: Option<Uuid>) -> DbResult<Granted> {
    Ok(sqlx::query_as!(
        Granted,
        r#"
        WITH granted AS (
            INSERT INTO user_roles (school_id, id, staff_id, role_id, campus_id)
            VALUES ($1, $2, $3, $4, $5)
            RETURNING school_id, id, campus_id
        )
        SELECT g.id, c.name AS "campus_name?"
          FROM granted g
          LEFT JOIN campuses c ON c.school_id = g.school_id AND c.id = g.campus_id
        "#,
        member.school_id,
        Uuid::now_v7(),
        member.id,
        role.id,
        campus
    )
    .fetch_one(tx.connection()?)
    .await?)
}

/// Takes a role from a member of staff, as it is held: on one campus or as it is defined. `None` where it is not held so.
pub(crate) async fn revoke(
    tx: &mut Tx,
    member: &StaffMember,
    role: &Role,
    campus: Option<Uuid>,
) -> DbResult<Option<Granted>> {
    Ok(sqlx::query_as!(
        Granted,
        r#"
        WITH revoked AS (
            DELETE FROM user_roles
             WHERE school_id = $1 AND staff_id = $2 AND role_id = $3 AND campus_id IS NOT DISTINCT FROM $4
            RETURNING school_id, id, campus_id
        )
        SELECT r.id AS "id!", c.name AS "campus_name?"
          FROM revoked r
          LEFT JOIN campuses c ON c.school_id = r.school_id AND c.id = r.campus_id
        "#,
        member.school_id,
        member.id,
        role.id,
        campus
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// Waits until no other call changes who administers a school, and lets none until this one ends.
pub(crate) async fn hold_administrators(tx: &mut Tx, school: Uuid) -> DbResult<()> {
    sqlx::query!(
        "SELECT pg_advisory_xact_lock(hashtextextended('administrators of ' || $1::uuid::text, 0))",
        school
    )
    .execute(tx.connection()?)
    .await?;
    Ok(())
}

/// How a school is administered: by nobody, by somebody of whose power something is taken away, or by somebody who may do everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Administered {
    Not,
    Partly,
    Wholly,
}

/// How a school is administered. An administrator is active and holds, on no one campus, a rule that allows everything everywhere; one
/// wholly, where no later rule takes the managing of roles away.
pub(crate) async fn administered(tx: &mut Tx, school: Uuid) -> DbResult<Administered> {
    let row = sqlx::query!(
        r#"
        SELECT count(*) > 0 AS "any!",
               count(*) FILTER (WHERE NOT EXISTS (
                   SELECT FROM user_roles held
                     JOIN roles dr ON dr.school_id = held.school_id AND dr.id = held.role_id
                     JOIN role_permissions d ON d.school_id = dr.school_id AND d.role_id = dr.id
                    WHERE held.school_id = ur.school_id AND held.staff_id = ur.staff_id
                      AND d.action = 'MANAGE' AND d.resource IN ('ALL', 'ROLE') AND d.effect = 'deny'
                      AND (dr.rank, d.position) > (r.rank, p.position))) > 0 AS "wholly!"
          FROM role_permissions p
          JOIN roles r ON r.school_id = p.school_id AND r.id = p.role_id
          JOIN user_roles ur ON ur.school_id = r.school_id AND ur.role_id = r.id AND ur.campus_id IS NULL
          JOIN staff s ON s.school_id = ur.school_id AND s.id = ur.staff_id AND s.active
          JOIN users u ON u.id = s.user_id AND u.active AND u.type <> 'PLATFORM_ADMIN'
         WHERE p.school_id = $1 AND p.action = 'MANAGE' AND p.resource = 'ALL' AND p.effect = 'allow' AND p.condition IS NULL
        "#,
        school
    )
    .fetch_one(tx.connection()?)
    .await?;
    Ok(match (row.any, row.wholly) {
        (_, true) => Administered::Wholly,
        (true, false) => Administered::Partly,
        (false, false) => Administered::Not,
    })
}

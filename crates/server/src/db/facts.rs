//! The caller's facts, as the rows say now: account, profile, campuses of the school, and the rules they hold.

use super::{DbResult, Tx};
use sqlx::types::Json;
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

/// Reads the facts of one account; `None` where the frame's tenant has no such account.
///
/// One statement, as it is part of every call. Rules come as one JSON text: a row each would cost more than all the rest.
pub(crate) async fn load(tx: &mut Tx, sub: Uuid) -> DbResult<Option<FactsRow>> {
    let row = sqlx::query!(
        r#"
        SELECT u.email, u.type AS user_type, u.active,
               s.id AS "staff_id?", s.school_id AS "school_id?", s.campus_id AS "campus_id?", s.active AS "staff_active?",
               (SELECT json_agg(json_build_object('id', c.id, 'name', c.name) ORDER BY c.name, c.id)
                  FROM campuses c WHERE c.school_id = s.school_id) AS "campuses: Json<Vec<CampusRow>>",
               (SELECT json_agg(json_build_object('a', held.action, 'r', held.resource, 'y', held.allows, 'c', held.condition,
                                                  'h', held.campus_id) ORDER BY held.rank, held.position)
                  FROM (SELECT 0 AS rank, 0 AS position, p.action, p.resource, true AS allows, NULL::jsonb AS condition, d.campus_id
                          FROM department_members m
                          JOIN departments d ON d.school_id = m.school_id AND d.id = m.department_id
                          JOIN department_permissions p ON p.school_id = d.school_id AND p.department_id = d.id
                         WHERE m.school_id = s.school_id AND m.staff_id = s.id
                        UNION ALL
                        SELECT r.rank, p.position, p.action, p.resource, p.effect = 'allow', p.condition, ur.campus_id
                          FROM user_roles ur
                          JOIN roles r ON r.school_id = ur.school_id AND r.id = ur.role_id
                          JOIN role_permissions p ON p.school_id = r.school_id AND p.role_id = r.id
                         WHERE ur.school_id = s.school_id AND ur.staff_id = s.id) held) AS "rules: Json<Vec<RuleRow>>"
          FROM users u
          LEFT JOIN staff s ON s.user_id = u.id AND u.type <> 'PLATFORM_ADMIN'
         WHERE u.id = $1
        "#,
        sub
    )
    .fetch_optional(tx.connection()?)
    .await?;
    Ok(row.map(|row| FactsRow {
        email: row.email,
        user_type: row.user_type,
        active: row.active,
        staff_id: row.staff_id,
        school_id: row.school_id,
        campus_id: row.campus_id,
        staff_active: row.staff_active,
        campuses: row.campuses.map(|campuses| campuses.0).unwrap_or_default(),
        rules: row.rules.map(|rules| rules.0).unwrap_or_default(),
    }))
}

//! `grading_configs` with their `grading_bands`: how a campus grades.

use super::{
    DbResult, Tx,
    relationship::{DirectorOfStudiesOf, TeachesOn},
};
use serde::{Deserialize, Serialize};
use sqlx::types::Json;
use uuid::Uuid;

/// How a campus grades.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GradingConfig {
    /// For the audit row; a reply does not name the tenant.
    #[serde(skip)]
    pub(crate) school_id: Uuid,
    pub(crate) id: Uuid,
    pub(crate) campus_id: Uuid,
    pub(crate) campus_name: String,
    /// The highest first.
    pub(crate) bands: Vec<Band>,
}

/// A band of percentages.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Band {
    pub(crate) label: String,
    pub(crate) from: i32,
    /// Where the next band begins; none for the highest, which reaches up to 100 and includes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) below: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) remark: Option<String>,
}

/// A band as somebody wants it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewBand<'a> {
    pub(crate) label: &'a str,
    pub(crate) from: i32,
    pub(crate) remark: Option<&'a str>,
}

/// Reads how a campus grades, for whoever teaches on it; none where nobody said yet.
pub(crate) async fn get(tx: &mut Tx, proof: &TeachesOn) -> DbResult<Option<GradingConfig>> {
    read(tx, proof.school(), proof.campus()).await
}

/// Puts these bands in the place of those that a campus had, for a director of its studies. Answers with those, too.
pub(crate) async fn replace(
    tx: &mut Tx,
    proof: &DirectorOfStudiesOf,
    bands: &[NewBand<'_>],
) -> DbResult<Option<(GradingConfig, Vec<Band>)>> {
    // whoever replaces them at the same time waits here
    let config = sqlx::query_scalar!(
        "INSERT INTO grading_configs (school_id, id, campus_id) VALUES ($1, $2, $3)
         ON CONFLICT ON CONSTRAINT grading_configs_campus_key DO UPDATE SET updated_at = now()
         RETURNING id",
        proof.school(),
        Uuid::now_v7(),
        proof.campus()
    )
    .fetch_one(tx.connection()?)
    .await?;
    let before = read(tx, proof.school(), proof.campus()).await?;
    sqlx::query!(
        "DELETE FROM grading_bands WHERE school_id = $1 AND grading_config_id = $2",
        proof.school(),
        config
    )
    .execute(tx.connection()?)
    .await?;
    let labels: Vec<&str> = bands.iter().map(|band| band.label).collect();
    let bounds: Vec<i32> = bands.iter().map(|band| band.from).collect();
    let remarks: Vec<Option<&str>> = bands.iter().map(|band| band.remark).collect();
    sqlx::query!(
        "INSERT INTO grading_bands (school_id, grading_config_id, label, lower_bound, remark)
         SELECT $1, $2, b.label, b.lower_bound, b.remark
           FROM unnest($3::text[], $4::int[], $5::text[]) AS b (label, lower_bound, remark)",
        proof.school(),
        config,
        labels as _,
        &bounds,
        remarks as _
    )
    .execute(tx.connection()?)
    .await?;
    let after = read(tx, proof.school(), proof.campus()).await?;
    Ok(after.map(|after| (after, before.map(|before| before.bands).unwrap_or_default())))
}

async fn read(tx: &mut Tx, school: Uuid, campus: Uuid) -> DbResult<Option<GradingConfig>> {
    let row = sqlx::query!(
        r#"
        SELECT g.school_id, g.id, g.campus_id, c.name AS campus_name,
               (SELECT json_agg(json_build_object('label', b.label, 'from', b.lower_bound, 'below', b.below, 'remark', b.remark)
                                ORDER BY b.lower_bound DESC)
                  FROM (SELECT label, lower_bound, remark, lead(lower_bound) OVER (ORDER BY lower_bound) AS below
                          FROM grading_bands
                         WHERE school_id = g.school_id AND grading_config_id = g.id) b) AS "bands: Json<Vec<Band>>"
          FROM grading_configs g
          JOIN campuses c ON c.school_id = g.school_id AND c.id = g.campus_id
         WHERE g.school_id = $1 AND g.campus_id = $2
        "#,
        school,
        campus
    )
    .fetch_optional(tx.connection()?)
    .await?;
    Ok(row.map(|row| GradingConfig {
        school_id: row.school_id,
        id: row.id,
        campus_id: row.campus_id,
        campus_name: row.campus_name,
        bands: row.bands.map(|bands| bands.0).unwrap_or_default(),
    }))
}

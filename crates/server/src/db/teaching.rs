//! What is taught to whom: the streams that somebody teaches, and the students enrolled in one.

use super::{DbResult, Tx, relationship::InChargeOf};
use crate::ability::CampusRule;
use serde::{Deserialize, Serialize};
use sqlx::types::Json;
use uuid::Uuid;

/// A stream that somebody teaches.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Classroom {
    pub(crate) stream_id: Uuid,
    pub(crate) stream_name: String,
    pub(crate) class_name: String,
    pub(crate) campus_id: Uuid,
    pub(crate) campus_name: String,
    pub(crate) is_class_teacher: bool,
    /// What they teach in it.
    pub(crate) subjects: Vec<Subject>,
}

/// A subject.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Subject {
    pub(crate) subject_id: Uuid,
    pub(crate) name: String,
}

/// A student as a roster names them.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RosterRow {
    pub(crate) student_id: Uuid,
    pub(crate) admission_number: String,
    pub(crate) given_name: String,
    pub(crate) family_name: String,
}

/// Where a roster goes on.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RosterKey(pub(crate) String, pub(crate) String, pub(crate) Uuid);

/// Lists the students enrolled in a stream by name, for whoever answers for it.
pub(crate) async fn roster(
    tx: &mut Tx,
    proof: &InChargeOf,
    after: Option<&RosterKey>,
    limit: i64,
) -> DbResult<Vec<RosterRow>> {
    let stream = proof.stream();
    Ok(sqlx::query_as!(
        RosterRow,
        "SELECT p.id AS student_id, p.admission_number, p.given_name, p.family_name
           FROM enrolments e
           JOIN students p ON p.school_id = e.school_id AND p.id = e.student_id AND p.active
          WHERE e.school_id = $1 AND e.stream_id = $2
            AND ($3::text IS NULL OR (p.family_name, p.given_name, p.id) > ($3, $4, $5))
          ORDER BY p.family_name, p.given_name, p.id
          LIMIT $6",
        stream.school(),
        stream.id(),
        after.map(|key| key.0.as_str()),
        after.map(|key| key.1.as_str()),
        after.map(|key| key.2),
        limit
    )
    .fetch_all(tx.connection()?)
    .await?)
}

/// Lists the streams of the current year that a member of staff is class teacher of or teaches a subject in, on the campuses of a
/// rule.
pub(crate) async fn classrooms(tx: &mut Tx, staff: Uuid, rows: &CampusRule, limit: i64) -> DbResult<Vec<Classroom>> {
    let found = sqlx::query!(
        r#"
        SELECT st.id, st.name, k.name AS class_name, st.campus_id, c.name AS campus_name,
               EXISTS (SELECT 1 FROM class_teachers t
                        WHERE t.school_id = st.school_id AND t.stream_id = st.id AND t.staff_id = $1) AS "is_class_teacher!",
               (SELECT json_agg(json_build_object('subjectId', b.id, 'name', b.name) ORDER BY b.name, b.id)
                  FROM subject_teachers t
                  JOIN subjects b ON b.school_id = t.school_id AND b.id = t.subject_id
                 WHERE t.school_id = st.school_id AND t.stream_id = st.id AND t.staff_id = $1) AS "subjects: Json<Vec<Subject>>"
          FROM (SELECT school_id, stream_id FROM class_teachers WHERE staff_id = $1
                UNION
                SELECT school_id, stream_id FROM subject_teachers WHERE staff_id = $1) taught
          -- each by its key, however many the school has: a join of them all looks cheaper than it is
          CROSS JOIN LATERAL (SELECT s.school_id, s.id, s.name, s.campus_id, s.class_id, s.campus_academic_year_id
                                FROM streams s
                               WHERE s.school_id = taught.school_id AND s.id = taught.stream_id
                               LIMIT 1) st
          JOIN campus_academic_years y ON y.school_id = st.school_id AND y.id = st.campus_academic_year_id AND y.is_current
          JOIN classes k ON k.school_id = st.school_id AND k.id = st.class_id
          JOIN campuses c ON c.school_id = st.school_id AND c.id = st.campus_id
         WHERE ($2::uuid[] IS NULL OR st.campus_id = ANY($2))
         ORDER BY c.name, k.level, st.name, st.id
         LIMIT $3
        "#,
        staff,
        rows.campuses() as _,
        limit
    )
    .fetch_all(tx.connection()?)
    .await?;
    let classrooms = found.into_iter().map(|row| Classroom {
        stream_id: row.id,
        stream_name: row.name,
        class_name: row.class_name,
        campus_id: row.campus_id,
        campus_name: row.campus_name,
        is_class_teacher: row.is_class_teacher,
        subjects: row.subjects.map(|subjects| subjects.0).unwrap_or_default(),
    });
    Ok(classrooms.collect())
}

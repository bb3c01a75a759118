//! What is missing in the teaching of a campus in its current year. Whoever left, or whose account is closed, teaches nobody.

use super::{DbResult, Tx, relationship::DirectorOfStudiesOf};
use chrono::NaiveDate;
use serde::Serialize;
use uuid::Uuid;

/// A subject that a stream's class takes, and that nobody teaches the stream.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Untaught {
    pub(crate) stream_id: Uuid,
    pub(crate) stream_name: String,
    pub(crate) subject_id: Uuid,
    pub(crate) subject_name: String,
}

/// A stream that has no class teacher.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WithoutClassTeacher {
    pub(crate) stream_id: Uuid,
    pub(crate) stream_name: String,
    pub(crate) class_name: String,
}

/// A teacher with plans whose lesson has come, and which are not handed in.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Overdue {
    pub(crate) teacher_id: Uuid,
    pub(crate) teacher_name: String,
    pub(crate) drafts: i64,
    pub(crate) returned: i64,
    pub(crate) oldest_lesson_on: NaiveDate,
}

/// The first rows of a list, and how many there are in all.
#[derive(Debug)]
pub(crate) struct First<T> {
    pub(crate) rows: Vec<T>,
    pub(crate) total: i64,
}

/// Teachers with overdue plans, and how many plans those are in all.
#[derive(Debug)]
pub(crate) struct OverduePlans {
    pub(crate) teachers: First<Overdue>,
    pub(crate) plans: i64,
}

/// How many streams a director's campus has.
pub(crate) async fn streams(tx: &mut Tx, proof: &DirectorOfStudiesOf) -> DbResult<i64> {
    Ok(sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!"
             FROM campus_academic_years y
             JOIN streams st ON st.school_id = y.school_id AND st.campus_academic_year_id = y.id
            WHERE y.school_id = $1 AND y.campus_id = $2 AND y.is_current"#,
        proof.school(),
        proof.campus()
    )
    .fetch_one(tx.connection()?)
    .await?)
}

/// Subjects of a director's streams that nobody teaches them, the youngest classes first.
pub(crate) async fn untaught(tx: &mut Tx, proof: &DirectorOfStudiesOf, limit: i64) -> DbResult<First<Untaught>> {
    let found = sqlx::query!(
        r#"
        SELECT st.id AS stream_id, st.name AS stream_name, b.id AS subject_id, b.name AS subject_name, count(*) OVER () AS "total!"
          FROM campus_academic_years y
          JOIN streams st ON st.school_id = y.school_id AND st.campus_academic_year_id = y.id
          JOIN classes k ON k.school_id = st.school_id AND k.id = st.class_id
          JOIN class_subjects c ON c.school_id = st.school_id AND c.class_id = st.class_id
          JOIN subjects b ON b.school_id = c.school_id AND b.id = c.subject_id
         WHERE y.school_id = $1 AND y.campus_id = $2 AND y.is_current
           AND NOT EXISTS (SELECT 1
                             FROM subject_teachers t
                             JOIN staff s ON s.school_id = t.school_id AND s.id = t.staff_id AND s.active
                             JOIN users u ON u.id = s.user_id AND u.active
                            WHERE t.school_id = st.school_id AND t.stream_id = st.id AND t.subject_id = b.id)
         ORDER BY k.level, st.name, b.name, st.id, b.id
         LIMIT $3
        "#,
        proof.school(),
        proof.campus(),
        limit
    )
    .fetch_all(tx.connection()?)
    .await?;
    let total = found.first().map_or(0, |row| row.total);
    let rows = found.into_iter().map(|row| Untaught {
        stream_id: row.stream_id,
        stream_name: row.stream_name,
        subject_id: row.subject_id,
        subject_name: row.subject_name,
    });
    Ok(First {
        rows: rows.collect(),
        total,
    })
}

/// A director's streams that have no class teacher, the youngest classes first.
pub(crate) async fn without_class_teacher(
    tx: &mut Tx,
    proof: &DirectorOfStudiesOf,
    limit: i64,
) -> DbResult<First<WithoutClassTeacher>> {
    let found = sqlx::query!(
        r#"
        SELECT st.id AS stream_id, st.name AS stream_name, k.name AS class_name, count(*) OVER () AS "total!"
          FROM campus_academic_years y
          JOIN streams st ON st.school_id = y.school_id AND st.campus_academic_year_id = y.id
          JOIN classes k ON k.school_id = st.school_id AND k.id = st.class_id
         WHERE y.school_id = $1 AND y.campus_id = $2 AND y.is_current
           AND NOT EXISTS (SELECT 1
                             FROM class_teachers t
                             JOIN staff s ON s.school_id = t.school_id AND s.id = t.staff_id AND s.active
                             JOIN users u ON u.id = s.user_id AND u.active
                            WHERE t.school_id = st.school_id AND t.stream_id = st.id)
         ORDER BY k.level, st.name, st.id
         LIMIT $3
        "#,
        proof.school(),
        proof.campus(),
        limit
    )
    .fetch_all(tx.connection()?)
    .await?;
    let total = found.first().map_or(0, |row| row.total);
    let rows = found.into_iter().map(|row| WithoutClassTeacher {
        stream_id: row.stream_id,
        stream_name: row.stream_name,
        class_name: row.class_name,
    });
    Ok(First {
        rows: rows.collect(),
        total,
    })
}

/// Plans for a director's streams whose lesson is today or was earlier, and which are not handed in: by teacher, the longest overdue
/// first.
pub(crate) async fn overdue(tx: &mut Tx, proof: &DirectorOfStudiesOf, limit: i64) -> DbResult<OverduePlans> {
    let found = sqlx::query!(
        r#"
        SELECT late.teacher_id, u.name AS teacher_name, late.drafts AS "drafts!", late.returned AS "returned!",
               late.oldest_lesson_on AS "oldest_lesson_on!",
               count(*) OVER () AS "teachers!", (sum(late.drafts + late.returned) OVER ())::bigint AS "plans!"
          FROM (SELECT p.school_id, p.teacher_id, min(p.taught_on) AS oldest_lesson_on,
                       count(*) FILTER (WHERE p.status = 'draft') AS drafts,
                       count(*) FILTER (WHERE p.status = 'returned') AS returned
                  FROM schools o
                  JOIN lesson_plans p ON p.school_id = o.id
                 WHERE o.id = $1 AND p.status IN ('draft', 'returned') AND p.taught_on <= (now() AT TIME ZONE o.time_zone)::date
                   AND p.campus_academic_year_id = (SELECT y.id FROM campus_academic_years y
                                                     WHERE y.school_id = $1 AND y.campus_id = $2 AND y.is_current)
                 GROUP BY p.school_id, p.teacher_id) late
          JOIN staff s ON s.school_id = late.school_id AND s.id = late.teacher_id
          JOIN users u ON u.id = s.user_id
         ORDER BY late.oldest_lesson_on, u.name, late.teacher_id
         LIMIT $3
        "#,
        proof.school(),
        proof.campus(),
        limit
    )
    .fetch_all(tx.connection()?)
    .await?;
    let total = found.first().map_or(0, |row| row.teachers);
    let plans = found.first().map_or(0, |row| row.plans);
    let rows = found.into_iter().map(|row| Overdue {
        teacher_id: row.teacher_id,
        teacher_name: row.teacher_name,
        drafts: row.drafts,
        returned: row.returned,
        oldest_lesson_on: row.oldest_lesson_on,
    });
    Ok(OverduePlans {
        teachers: First {
            rows: rows.collect(),
            total,
        },
        plans,
    })
}

//! What a turn's runtime context says about the caller, besides their standing: read once, when the turn is dispatched.

use super::{DbResult, Tx};
use chrono::NaiveDate;
use uuid::Uuid;

/// Which hats a member of staff wears this year.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hats {
    pub(crate) class_teacher: bool,
    pub(crate) subject_teacher: bool,
    pub(crate) director_of_studies: bool,
}

/// Reads the hats of a member of staff.
pub(crate) async fn hats(tx: &mut Tx, staff: Uuid) -> DbResult<Hats> {
    Ok(sqlx::query_as!(
        Hats,
        r#"
        SELECT EXISTS (SELECT 1 FROM class_teachers t
                         JOIN streams s ON s.school_id = t.school_id AND s.id = t.stream_id
                         JOIN campus_academic_years y ON y.school_id = s.school_id AND y.id = s.campus_academic_year_id
                        WHERE t.staff_id = $1 AND y.is_current) AS "class_teacher!",
               EXISTS (SELECT 1 FROM subject_teachers t
                         JOIN streams s ON s.school_id = t.school_id AND s.id = t.stream_id
                         JOIN campus_academic_years y ON y.school_id = s.school_id AND y.id = s.campus_academic_year_id
                        WHERE t.staff_id = $1 AND y.is_current) AS "subject_teacher!",
               EXISTS (SELECT 1 FROM directors_of_studies d WHERE d.staff_id = $1) AS "director_of_studies!"
        "#,
        staff
    )
    .fetch_one(tx.connection()?)
    .await?)
}

/// The current year of a campus, or of the school where no campus is given and its campuses agree.
#[derive(Debug, Clone)]
pub(crate) struct Year {
    pub(crate) name: String,
    pub(crate) number: i32,
    pub(crate) campus_academic_year_id: Option<Uuid>,
}

/// Reads the current year.
pub(crate) async fn current_year(tx: &mut Tx, campus: Option<Uuid>) -> DbResult<Option<Year>> {
    let mut years = sqlx::query_as!(
        Year,
        r#"SELECT DISTINCT a.name, a.year AS number,
                  CASE WHEN $1::uuid IS NULL THEN NULL ELSE y.id END AS "campus_academic_year_id?"
             FROM campus_academic_years y
             JOIN academic_years a ON a.school_id = y.school_id AND a.id = y.academic_year_id
            WHERE y.is_current AND ($1::uuid IS NULL OR y.campus_id = $1)
            LIMIT 2"#,
        campus
    )
    .fetch_all(tx.connection()?)
    .await?;
    let first = years.pop();
    Ok(first.filter(|_| years.is_empty()))
}

/// A term of a campus's year.
#[derive(Debug, Clone)]
pub(crate) struct TermRow {
    pub(crate) id: Uuid,
    pub(crate) name: String,
    pub(crate) term_number: i32,
    pub(crate) starts_on: NaiveDate,
    pub(crate) ends_on: NaiveDate,
}

/// Reads the terms of a campus's year, by number.
pub(crate) async fn terms(tx: &mut Tx, campus_academic_year: Uuid) -> DbResult<Vec<TermRow>> {
    Ok(sqlx::query_as!(
        TermRow,
        "SELECT id, name, term_number, starts_on, ends_on FROM terms WHERE campus_academic_year_id = $1 ORDER BY term_number",
        campus_academic_year
    )
    .fetch_all(tx.connection()?)
    .await?)
}

/// One thing that somebody teaches.
#[derive(Debug, Clone)]
pub(crate) struct TeachingRow {
    pub(crate) stream_id: Uuid,
    pub(crate) stream_name: String,
    pub(crate) subject_id: Option<Uuid>,
    pub(crate) subject_name: Option<String>,
}

/// How many assignments a context tells: more than anybody teaches.
const MAX_ASSIGNMENTS: i64 = 100;

/// Reads what a member of staff teaches this year, on one campus where one is given.
pub(crate) async fn teaching_map(tx: &mut Tx, staff: Uuid, campus: Option<Uuid>) -> DbResult<Vec<TeachingRow>> {
    Ok(sqlx::query_as!(
        TeachingRow,
        r#"
        SELECT s.id AS "stream_id!", c.name || ' ' || s.name AS "stream_name!", j.id AS "subject_id?", j.name AS "subject_name?"
          FROM (SELECT school_id, stream_id, NULL::uuid AS subject_id FROM class_teachers WHERE staff_id = $1
                UNION ALL
                SELECT school_id, stream_id, subject_id FROM subject_teachers WHERE staff_id = $1) t
          JOIN streams s ON s.school_id = t.school_id AND s.id = t.stream_id
          JOIN classes c ON c.school_id = s.school_id AND c.id = s.class_id
          JOIN campus_academic_years y ON y.school_id = s.school_id AND y.id = s.campus_academic_year_id
          LEFT JOIN subjects j ON j.school_id = t.school_id AND j.id = t.subject_id
         WHERE y.is_current AND ($2::uuid IS NULL OR s.campus_id = $2)
         ORDER BY 2, 4 NULLS FIRST
         LIMIT $3
        "#,
        staff,
        campus,
        MAX_ASSIGNMENTS
    )
    .fetch_all(tx.connection()?)
    .await?)
}

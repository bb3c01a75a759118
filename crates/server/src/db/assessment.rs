//! `assessments`, the `scores` in them, and the term that they count for.

use super::{
    DbError, DbResult, Tx,
    relationship::{AnswersForSubject, CurrentStream, Teaches},
};
use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A term of a stream's year.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TermOfStream {
    #[serde(skip)]
    pub(crate) school_id: Uuid,
    #[serde(rename = "termId")]
    pub(crate) id: Uuid,
    #[serde(rename = "termName")]
    pub(crate) name: String,
    /// Whether no score of it changes any more.
    pub(crate) results_published: bool,
    /// The terms of its number in its school year, one a campus: a student who comes from another campus brings the marks of its term.
    #[serde(skip)]
    pub(crate) on_all_campuses: Vec<Uuid>,
    /// The first and the last day on which its year has something to assess: today is one, even between two years.
    #[serde(skip)]
    pub(crate) year_from: NaiveDate,
    #[serde(skip)]
    pub(crate) year_to: NaiveDate,
}

/// An assessment as a list shows it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListedAssessment {
    pub(crate) id: Uuid,
    pub(crate) name: String,
    pub(crate) out_of: i32,
    pub(crate) weight: i32,
    pub(crate) held_on: NaiveDate,
    /// How many of the stream's students have a score.
    pub(crate) scored: i64,
    /// How many of them owe one: they were in the stream when it was held, and it was.
    pub(crate) missing: i64,
}

/// Where a list of assessments goes on.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AssessmentKey(
    #[serde(deserialize_with = "super::in_calendar")] pub(crate) NaiveDate,
    pub(crate) Uuid,
);

/// An assessment.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Assessment {
    /// For the audit row; a reply does not name the tenant.
    #[serde(skip)]
    pub(crate) school_id: Uuid,
    pub(crate) id: Uuid,
    pub(crate) stream_id: Uuid,
    pub(crate) subject_id: Uuid,
    pub(crate) term_id: Uuid,
    pub(crate) name: String,
    pub(crate) out_of: i32,
    pub(crate) weight: i32,
    pub(crate) held_on: NaiveDate,
}

/// An assessment as somebody wants it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewAssessment<'a> {
    pub(crate) name: &'a str,
    pub(crate) out_of: i32,
    pub(crate) weight: i32,
    /// Today where none is given.
    pub(crate) held_on: Option<NaiveDate>,
}

/// Of which subject in which stream an assessment is. It says nothing about who may know it.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) stream_id: Uuid,
    pub(crate) subject_id: Uuid,
}

/// What came of recording scores.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recorded {
    pub(crate) new: usize,
    pub(crate) replaced: usize,
}

/// Finds a term of the stream's year: the one named, else the one that began last, else the first.
pub(crate) async fn term(tx: &mut Tx, stream: &CurrentStream, named: Option<Uuid>) -> DbResult<Option<TermOfStream>> {
    Ok(sqlx::query_as!(
        TermOfStream,
        r#"
        SELECT t.school_id, t.id, t.name,
               EXISTS (SELECT 1 FROM published_results r
                        WHERE r.school_id = t.school_id AND r.term_id = t.id) AS "results_published!",
               ARRAY(SELECT other.id
                       FROM campus_academic_years own
                       JOIN campus_academic_years y
                         ON y.school_id = own.school_id AND y.academic_year_id = own.academic_year_id
                       JOIN terms other ON other.school_id = y.school_id AND other.campus_academic_year_id = y.id
                      WHERE own.school_id = t.school_id AND own.id = t.campus_academic_year_id
                        AND other.term_number = t.term_number) AS "on_all_campuses!",
               least(year.starts_on, now.today) AS "year_from!", greatest(year.ends_on, now.today) AS "year_to!"
          FROM terms t
          JOIN schools s ON s.id = t.school_id
          CROSS JOIN LATERAL (SELECT (now() at time zone s.time_zone)::date AS today) now
          CROSS JOIN LATERAL (SELECT min(y.starts_on) AS starts_on, max(y.ends_on) AS ends_on
                                FROM terms y
                               WHERE y.school_id = t.school_id
                                 AND y.campus_academic_year_id = t.campus_academic_year_id) year
         WHERE t.school_id = $1 AND t.campus_academic_year_id = $2 AND ($3::uuid IS NULL OR t.id = $3)
         ORDER BY t.starts_on > now.today, abs(t.starts_on - now.today), t.term_number
         LIMIT 1
        "#,
        stream.school(),
        stream.year(),
        named
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// A day before all assessments.
fn long_ago() -> NaiveDate {
    NaiveDate::from_ymd_opt(1900, 1, 1).unwrap_or_default()
}

/// Lists the assessments of a term by the day on which they are held.
pub(crate) async fn list(
    tx: &mut Tx,
    proof: &AnswersForSubject,
    term: &TermOfStream,
    after: Option<&AssessmentKey>,
    limit: i64,
) -> DbResult<Vec<ListedAssessment>> {
    let stream = proof.stream();
    Ok(sqlx::query_as!(
        ListedAssessment,
        r#"
        SELECT a.id, a.name, a.out_of, a.weight, a.held_on, counted.scored AS "scored!", counted.missing AS "missing!"
          FROM assessments a
          JOIN schools s ON s.id = a.school_id
          CROSS JOIN LATERAL (
            SELECT count(x.id) AS scored,
                   count(*) FILTER (WHERE x.id IS NULL AND e.enrolled_on <= a.held_on
                                      AND a.held_on <= (now() at time zone s.time_zone)::date) AS missing
              FROM enrolments e
              JOIN students p ON p.school_id = e.school_id AND p.id = e.student_id AND p.active
              LEFT JOIN scores x
                     ON x.school_id = e.school_id AND x.assessment_id = a.id AND x.student_id = e.student_id
             WHERE e.school_id = a.school_id AND e.stream_id = a.stream_id) counted
         WHERE a.school_id = $1 AND a.stream_id = $2 AND a.subject_id = $3 AND a.term_id = $4
           AND (a.held_on, a.id) > ($5, $6)
         ORDER BY a.held_on, a.id
         LIMIT $7
        "#,
        stream.school(),
        stream.id(),
        proof.subject(),
        term.id,
        after.map_or_else(long_ago, |key| key.0),
        after.map_or(Uuid::nil(), |key| key.1),
        limit
    )
    .fetch_all(tx.connection()?)
    .await?)
}

/// Counts a term's assessments of who teaches the subject to the stream. Nobody else counts or adds to them until the transaction
/// ends.
pub(crate) async fn count(tx: &mut Tx, proof: &Teaches, term: &TermOfStream) -> DbResult<i64> {
    let stream = proof.stream();
    sqlx::query!(
        "SELECT pg_advisory_xact_lock(hashtextextended(concat($1::uuid, $2::uuid, $3::uuid), 0))",
        stream.id(),
        proof.subject(),
        term.id
    )
    .execute(tx.connection()?)
    .await?;
    // only a statement after the lock sees what was added by whoever had it
    Ok(sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM assessments
            WHERE school_id = $1 AND stream_id = $2 AND subject_id = $3 AND term_id = $4"#,
        stream.school(),
        stream.id(),
        proof.subject(),
        term.id
    )
    .fetch_one(tx.connection()?)
    .await?)
}

/// Adds an assessment to a stream's term, for who teaches it the subject.
pub(crate) async fn insert(
    tx: &mut Tx,
    proof: &Teaches,
    term: &TermOfStream,
    new: NewAssessment<'_>,
) -> DbResult<Assessment> {
    let stream = proof.stream();
    Ok(sqlx::query_as!(
        Assessment,
        "INSERT INTO assessments (school_id, id, stream_id, subject_id, campus_academic_year_id, term_id, name, out_of, weight,
                                  held_on)
         SELECT s.id, $2, $3, $4, $5, $6, $7, $8, $9, coalesce($10, (now() at time zone s.time_zone)::date)
           FROM schools s WHERE s.id = $1
         RETURNING school_id, id, stream_id, subject_id, term_id, name, out_of, weight, held_on",
        stream.school(),
        Uuid::now_v7(),
        stream.id(),
        proof.subject(),
        stream.year(),
        term.id,
        new.name,
        new.out_of,
        new.weight,
        new.held_on
    )
    .fetch_one(tx.connection()?)
    .await?)
}

/// Finds of what an assessment is.
pub(crate) async fn place(tx: &mut Tx, id: Uuid) -> DbResult<Option<Place>> {
    Ok(
        sqlx::query_as!(Place, "SELECT stream_id, subject_id FROM assessments WHERE id = $1", id)
            .fetch_optional(tx.connection()?)
            .await?,
    )
}

/// Finds an assessment of what somebody teaches.
pub(crate) async fn find(tx: &mut Tx, proof: &Teaches, id: Uuid) -> DbResult<Option<Assessment>> {
    let stream = proof.stream();
    Ok(sqlx::query_as!(
        Assessment,
        "SELECT school_id, id, stream_id, subject_id, term_id, name, out_of, weight, held_on
           FROM assessments
          WHERE school_id = $1 AND id = $2 AND stream_id = $3 AND subject_id = $4",
        stream.school(),
        id,
        stream.id(),
        proof.subject()
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// The places, from 1, of those among these students who are not in the stream or have left.
pub(crate) async fn strangers(tx: &mut Tx, proof: &Teaches, students: &[Uuid]) -> DbResult<Vec<i64>> {
    let stream = proof.stream();
    Ok(sqlx::query_scalar!(
        r#"
        SELECT given.place AS "place!"
          FROM unnest($3::uuid[]) WITH ORDINALITY AS given (student_id, place)
         WHERE NOT EXISTS (SELECT 1
                             FROM enrolments e
                             JOIN students p ON p.school_id = e.school_id AND p.id = e.student_id AND p.active
                            WHERE e.school_id = $1 AND e.stream_id = $2 AND e.student_id = given.student_id)
         ORDER BY given.place
        "#,
        stream.school(),
        stream.id(),
        students
    )
    .fetch_all(tx.connection()?)
    .await?)
}

/// Records scores in an assessment, in place of those that were there.
pub(crate) async fn record(
    tx: &mut Tx,
    assessment: &Assessment,
    students: &[Uuid],
    scores: &[f64],
) -> DbResult<Recorded> {
    // in the order of the students, so that two batches at once wait for each other and do not both wait
    let written = sqlx::query_scalar!(
        r#"
        INSERT INTO scores (school_id, assessment_id, out_of, student_id, score)
        SELECT $1, $2, $3, given.student_id, given.score::numeric(6, 2)
          FROM unnest($4::uuid[], $5::float8[]) AS given (student_id, score)
         ORDER BY given.student_id
        ON CONFLICT ON CONSTRAINT scores_student_key DO UPDATE SET score = excluded.score, recorded_at = now()
        RETURNING xmax = 0 AS "is_new!"
        "#,
        assessment.school_id,
        assessment.id,
        assessment.out_of,
        students,
        scores
    )
    .fetch_all(tx.connection()?)
    .await?;
    if written.len() != students.len() {
        return Err(DbError::Unchanged(u64::try_from(written.len()).unwrap_or(u64::MAX)));
    }
    let new = written.iter().filter(|is_new| **is_new).count();
    Ok(Recorded {
        new,
        replaced: written.len() - new,
    })
}

//! `published_results`: the terms whose scores do not change any more.
//!
//! A term is locked by number while its results are published, and shared by whoever adds to it: so a publication waits for the scores
//! that are being recorded, and those that come after it find it. Whoever takes the lock looks only then whether results are out.

use super::{DbResult, Tx, relationship::DirectorOfStudiesOf};
use chrono::{DateTime, Utc};
use serde::Serialize;
use uuid::Uuid;

/// A term of a campus's current year.
#[derive(Debug)]
pub(crate) struct TermOfCampus {
    school_id: Uuid,
    pub(crate) id: Uuid,
    pub(crate) name: String,
}

/// What a term was assessed by.
#[derive(Debug)]
pub(crate) struct Assessed {
    pub(crate) assessments: i64,
    pub(crate) streams: i64,
    /// How many of the assessments lie ahead.
    pub(crate) ahead: i64,
}

/// An assessment in which scores are missing.
#[derive(Debug)]
pub(crate) struct Missing {
    pub(crate) assessment: String,
    pub(crate) subject: String,
    pub(crate) stream: String,
    pub(crate) students: i64,
    /// How many such assessments there are in all.
    pub(crate) of: i64,
}

/// The results of a term, published.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PublishedResults {
    /// For the audit row; a reply does not name the tenant.
    #[serde(skip)]
    pub(crate) school_id: Uuid,
    pub(crate) id: Uuid,
    pub(crate) term_id: Uuid,
    pub(crate) published_at: DateTime<Utc>,
}

/// The campus that a term of a current year belongs to. It says nothing about who may know it.
pub(crate) async fn campus_of_term(tx: &mut Tx, term: Uuid) -> DbResult<Option<Uuid>> {
    Ok(sqlx::query_scalar!(
        "SELECT y.campus_id
           FROM terms t
           JOIN campus_academic_years y ON y.school_id = t.school_id AND y.id = t.campus_academic_year_id AND y.is_current
          WHERE t.id = $1",
        term
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// Finds a term of the campus's current year: the one named, else the one that began last, else the first.
pub(crate) async fn term(
    tx: &mut Tx,
    proof: &DirectorOfStudiesOf,
    named: Option<Uuid>,
) -> DbResult<Option<TermOfCampus>> {
    Ok(sqlx::query_as!(
        TermOfCampus,
        "SELECT t.school_id, t.id, t.name
           FROM campus_academic_years y
           JOIN terms t ON t.school_id = y.school_id AND t.campus_academic_year_id = y.id
           JOIN schools s ON s.id = y.school_id
           CROSS JOIN LATERAL (SELECT (now() at time zone s.time_zone)::date AS today) now
          WHERE y.school_id = $1 AND y.campus_id = $2 AND y.is_current AND ($3::uuid IS NULL OR t.id = $3)
          ORDER BY t.starts_on > now.today, abs(t.starts_on - now.today), t.term_number
          LIMIT 1",
        proof.school(),
        proof.campus(),
        named
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// Keeps a term's results from being published until the transaction ends; false where they are.
pub(crate) async fn keep_open(tx: &mut Tx, school: Uuid, term: Uuid) -> DbResult<bool> {
    sqlx::query!(
        "SELECT pg_advisory_xact_lock_shared(hashtextextended($1::uuid::text, 0))",
        term
    )
    .execute(tx.connection()?)
    .await?;
    Ok(!is_published(tx, school, term).await?)
}

/// Keeps everybody from adding to a term until the transaction ends; false where its results are published.
pub(crate) async fn close(tx: &mut Tx, term: &TermOfCampus) -> DbResult<bool> {
    sqlx::query!(
        "SELECT pg_advisory_xact_lock(hashtextextended($1::uuid::text, 0))",
        term.id
    )
    .execute(tx.connection()?)
    .await?;
    Ok(!is_published(tx, term.school_id, term.id).await?)
}

async fn is_published(tx: &mut Tx, school: Uuid, term: Uuid) -> DbResult<bool> {
    Ok(sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT 1 FROM published_results WHERE school_id = $1 AND term_id = $2) AS "is!""#,
        school,
        term
    )
    .fetch_one(tx.connection()?)
    .await?)
}

/// Counts what a term was assessed by.
pub(crate) async fn assessed(tx: &mut Tx, term: &TermOfCampus) -> DbResult<Assessed> {
    Ok(sqlx::query_as!(
        Assessed,
        r#"
        SELECT count(*) AS "assessments!", count(DISTINCT a.stream_id) AS "streams!",
               count(*) FILTER (WHERE a.held_on > (now() at time zone s.time_zone)::date) AS "ahead!"
          FROM terms t
          JOIN schools s ON s.id = t.school_id
          JOIN assessments a ON a.school_id = t.school_id
                            AND a.campus_academic_year_id = t.campus_academic_year_id AND a.term_id = t.id
         WHERE t.school_id = $1 AND t.id = $2
        "#,
        term.school_id,
        term.id
    )
    .fetch_one(tx.connection()?)
    .await?)
}

/// Lists the first of a term's assessments in which students owe a score: those who are in the stream, were so on the day that it was
/// held, and have none. Who came back to a stream was in it on every day since they are known there (see [`super::student::transfer`]).
/// Who has left the school owes nothing; if they are back after the results are out, they go without those scores.
pub(crate) async fn missing(tx: &mut Tx, term: &TermOfCampus, limit: i64) -> DbResult<Vec<Missing>> {
    Ok(sqlx::query_as!(
        Missing,
        r#"
        SELECT a.name AS assessment, b.name AS subject, st.name AS stream, owed.students AS "students!", owed.total AS "of!"
          FROM (SELECT a.school_id, a.id, count(*) AS students, count(*) OVER () AS total
                  FROM terms t
                  JOIN schools s ON s.id = t.school_id
                  JOIN assessments a ON a.school_id = t.school_id
                                    AND a.campus_academic_year_id = t.campus_academic_year_id AND a.term_id = t.id
                                    AND a.held_on <= (now() at time zone s.time_zone)::date
                  JOIN enrolments e
                    ON e.school_id = a.school_id AND e.stream_id = a.stream_id AND e.enrolled_on <= a.held_on
                  JOIN students p ON p.school_id = e.school_id AND p.id = e.student_id AND p.active
                 WHERE t.school_id = $1 AND t.id = $2
                   AND NOT EXISTS (SELECT 1 FROM scores x
                                    WHERE x.school_id = a.school_id AND x.assessment_id = a.id AND x.student_id = e.student_id)
                 GROUP BY a.school_id, a.id) owed
          JOIN assessments a ON a.school_id = owed.school_id AND a.id = owed.id
          JOIN subjects b ON b.school_id = a.school_id AND b.id = a.subject_id
          JOIN streams st ON st.school_id = a.school_id AND st.id = a.stream_id
         ORDER BY st.name, b.name, a.held_on, a.id
         LIMIT $3
        "#,
        term.school_id,
        term.id,
        limit
    )
    .fetch_all(tx.connection()?)
    .await?)
}

/// Publishes the results of a term in the name of a member of staff, with the bands as they are now: a campus that grades otherwise later
/// does not change what is published.
pub(crate) async fn publish(tx: &mut Tx, term: &TermOfCampus, staff: Uuid) -> DbResult<PublishedResults> {
    Ok(sqlx::query_as!(
        PublishedResults,
        "INSERT INTO published_results (school_id, id, term_id, published_by, bands)
         SELECT t.school_id, $2, t.id, $4,
                coalesce((SELECT jsonb_agg(jsonb_build_object('label', b.label, 'lower_bound', b.lower_bound))
                            FROM grading_configs g
                            JOIN grading_bands b ON b.school_id = g.school_id AND b.grading_config_id = g.id
                           WHERE g.school_id = y.school_id AND g.campus_id = y.campus_id), '[]')
           FROM terms t
           JOIN campus_academic_years y ON y.school_id = t.school_id AND y.id = t.campus_academic_year_id
          WHERE t.school_id = $1 AND t.id = $3
         RETURNING school_id, id, term_id, published_at",
        term.school_id,
        Uuid::now_v7(),
        term.id,
        staff
    )
    .fetch_one(tx.connection()?)
    .await?)
}

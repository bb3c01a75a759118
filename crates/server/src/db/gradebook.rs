//! Gradebooks: what the scores of a stream's students come to in a term.
//!
//! A student's average in a subject is over what is scored, each assessment by its weight, in percent, and from whatever stream and
//! campus the score is: terms of one number in one school year are one term, whichever campus they are of. The band is one
//! of those of the campus; of published results, one of those that it had when they were published. It is rounded far behind what a band or a tie is decided by, so that thirds which add up to a whole number are that
//! number, and for show to one decimal.

use super::{
    DbResult, Tx,
    assessment::TermOfStream,
    relationship::{AnswersForSubject, InChargeOf},
    teaching::RosterKey,
};
use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use sqlx::types::Json;
use std::collections::BTreeMap;
use uuid::Uuid;

/// An assessment as a gradebook's head names it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Column {
    pub(crate) assessment_id: Uuid,
    pub(crate) name: String,
    pub(crate) out_of: i32,
    pub(crate) weight: i32,
    pub(crate) held_on: NaiveDate,
}

/// A student's score in an assessment of the gradebook's head.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Score {
    pub(crate) assessment_id: Uuid,
    pub(crate) score: f64,
}

/// A student of a stream, with what they reached in a subject.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SubjectRow {
    pub(crate) student_id: Uuid,
    pub(crate) admission_number: String,
    pub(crate) given_name: String,
    pub(crate) family_name: String,
    pub(crate) scores: Vec<Score>,
    /// How many scores of a stream that they were in before count too.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) scores_from_other_streams: i64,
    /// Absent where nothing is scored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) average: Option<f64>,
    /// Absent where there is no average, or nobody said how the campus grades.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) band: Option<String>,
}

/// A subject with the average of a stream's students in it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SubjectAverage {
    pub(crate) subject_id: Uuid,
    pub(crate) name: String,
    /// The mean of the students' averages; absent where nothing is scored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) class_average: Option<f64>,
}

/// A student of a stream, with what they reached in all subjects.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClassRow {
    pub(crate) student_id: Uuid,
    pub(crate) admission_number: String,
    pub(crate) given_name: String,
    pub(crate) family_name: String,
    /// By the subject's name; without the subjects in which nothing is scored, and those for which the reply has no room.
    pub(crate) averages: BTreeMap<String, f64>,
    /// The mean of those.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) average: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) band: Option<String>,
    /// The place in the stream by that mean, from 1; whoever has the same shares it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) position: Option<i64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// Lists the assessments of a term in a subject by the day on which they are held.
pub(crate) async fn columns(
    tx: &mut Tx,
    proof: &AnswersForSubject,
    term: &TermOfStream,
    limit: i64,
) -> DbResult<Vec<Column>> {
    let stream = proof.stream();
    Ok(sqlx::query_as!(
        Column,
        "SELECT id AS assessment_id, name, out_of, weight, held_on
           FROM assessments
          WHERE school_id = $1 AND stream_id = $2 AND subject_id = $3 AND term_id = $4
          ORDER BY held_on, id
          LIMIT $5",
        stream.school(),
        stream.id(),
        proof.subject(),
        term.id,
        limit
    )
    .fetch_all(tx.connection()?)
    .await?)
}

/// Lists the students of a stream by name with what they reached in a subject.
pub(crate) async fn of_subject(
    tx: &mut Tx,
    proof: &AnswersForSubject,
    term: &TermOfStream,
    after: Option<&RosterKey>,
    limit: i64,
) -> DbResult<Vec<SubjectRow>> {
    let stream = proof.stream();
    let found = sqlx::query!(
        r#"
        SELECT p.id AS student_id, p.admission_number, p.given_name, p.family_name,
               m.scores AS "scores: Json<Vec<Score>>", m.elsewhere AS "elsewhere!",
               round(m.percent, 1)::float8 AS average, band.label AS "band?"
          FROM enrolments e
          JOIN students p ON p.school_id = e.school_id AND p.id = e.student_id AND p.active
          CROSS JOIN LATERAL (
            SELECT round(100 * sum(x.score * a.weight / a.out_of) / sum(a.weight), 10) AS percent,
                   count(*) FILTER (WHERE a.stream_id <> e.stream_id) AS elsewhere,
                   json_agg(json_build_object('assessmentId', a.id, 'score', x.score::float8) ORDER BY a.held_on, a.id)
                       FILTER (WHERE a.stream_id = e.stream_id) AS scores
              FROM scores x
              JOIN assessments a ON a.school_id = x.school_id AND a.id = x.assessment_id
             WHERE x.school_id = e.school_id AND x.student_id = e.student_id AND a.subject_id = $3 AND a.term_id = ANY($4)) m
          LEFT JOIN LATERAL (
            SELECT b.label
              FROM (SELECT b.label, b.lower_bound
                      FROM grading_configs g
                      JOIN grading_bands b ON b.school_id = g.school_id AND b.grading_config_id = g.id
                     WHERE g.school_id = e.school_id AND g.campus_id = $5 AND NOT $11::bool
                    UNION ALL
                    SELECT b.label, b.lower_bound
                      FROM published_results r
                     CROSS JOIN LATERAL jsonb_to_recordset(r.bands) AS b (label text, lower_bound integer)
                     WHERE r.school_id = e.school_id AND r.term_id = $10) b
             WHERE b.lower_bound <= m.percent
             ORDER BY b.lower_bound DESC
             LIMIT 1) band ON true
         WHERE e.school_id = $1 AND e.stream_id = $2
           AND ($6::text IS NULL OR (p.family_name, p.given_name, p.id) > ($6, $7, $8))
         ORDER BY p.family_name, p.given_name, p.id
         LIMIT $9
        "#,
        stream.school(),
        stream.id(),
        proof.subject(),
        &term.on_all_campuses,
        stream.campus(),
        after.map(|key| key.0.as_str()),
        after.map(|key| key.1.as_str()),
        after.map(|key| key.2),
        limit,
        term.id,
        term.results_published
    )
    .fetch_all(tx.connection()?)
    .await?;
    let rows = found.into_iter().map(|row| SubjectRow {
        student_id: row.student_id,
        admission_number: row.admission_number,
        given_name: row.given_name,
        family_name: row.family_name,
        scores: row.scores.map(|scores| scores.0).unwrap_or_default(),
        scores_from_other_streams: row.elsewhere,
        average: row.average,
        band: row.band,
    });
    Ok(rows.collect())
}

/// Lists the subjects of a stream by name: those that it is taught, and those in which its students have scores.
pub(crate) async fn subjects(
    tx: &mut Tx,
    proof: &InChargeOf,
    term: &TermOfStream,
    limit: i64,
) -> DbResult<Vec<SubjectAverage>> {
    let stream = proof.stream();
    Ok(sqlx::query_as!(
        SubjectAverage,
        r#"
        SELECT b.id AS subject_id, b.name, round(avg(m.percent), 1)::float8 AS class_average
          FROM (SELECT DISTINCT school_id, subject_id, NULL::numeric AS percent
                  FROM subject_teachers WHERE school_id = $1 AND stream_id = $2
                UNION ALL
                SELECT a.school_id, a.subject_id,
                       round(100 * sum(x.score * a.weight / a.out_of) / sum(a.weight), 10) AS percent
                  FROM enrolments e
                  JOIN students p ON p.school_id = e.school_id AND p.id = e.student_id AND p.active
                  JOIN scores x ON x.school_id = e.school_id AND x.student_id = e.student_id
                  JOIN assessments a ON a.school_id = x.school_id AND a.id = x.assessment_id AND a.term_id = ANY($3)
                 WHERE e.school_id = $1 AND e.stream_id = $2
                 GROUP BY a.school_id, a.subject_id, e.student_id) m
          JOIN subjects b ON b.school_id = m.school_id AND b.id = m.subject_id
         GROUP BY b.id, b.name
         ORDER BY b.name, b.id
         LIMIT $4
        "#,
        stream.school(),
        stream.id(),
        &term.on_all_campuses,
        limit
    )
    .fetch_all(tx.connection()?)
    .await?)
}

/// Lists the students of a stream by name with what they reached in all subjects. Positions are in the whole stream, whatever the page.
pub(crate) async fn of_class(
    tx: &mut Tx,
    proof: &InChargeOf,
    term: &TermOfStream,
    after: Option<&RosterKey>,
    limit: i64,
) -> DbResult<Vec<ClassRow>> {
    let found = sqlx::query!(
        r#"
        WITH by_subject AS (
            SELECT e.student_id, b.name,
                   round(100 * sum(x.score * a.weight / a.out_of) / sum(a.weight), 10) AS percent
              FROM enrolments e
              JOIN students p ON p.school_id = e.school_id AND p.id = e.student_id AND p.active
              JOIN scores x ON x.school_id = e.school_id AND x.student_id = e.student_id
              JOIN assessments a ON a.school_id = x.school_id AND a.id = x.assessment_id AND a.term_id = ANY($3)
              JOIN subjects b ON b.school_id = a.school_id AND b.id = a.subject_id
             WHERE e.school_id = $1 AND e.stream_id = $2
             GROUP BY e.student_id, b.id, b.name
        ), overall AS (
            SELECT student_id, round(avg(percent), 10) AS percent,
                   json_object_agg(name, round(percent, 1)) AS averages,
                   rank() OVER (ORDER BY round(avg(percent), 10) DESC) AS position
              FROM by_subject
             GROUP BY student_id
        )
        SELECT p.id AS student_id, p.admission_number, p.given_name, p.family_name,
               o.averages AS "averages?: Json<BTreeMap<String, f64>>",
               round(o.percent, 1)::float8 AS average, band.label AS "band?", o.position AS "position?"
          FROM enrolments e
          JOIN students p ON p.school_id = e.school_id AND p.id = e.student_id AND p.active
          LEFT JOIN overall o ON o.student_id = e.student_id
          LEFT JOIN LATERAL (
            SELECT b.label
              FROM (SELECT b.label, b.lower_bound
                      FROM grading_configs g
                      JOIN grading_bands b ON b.school_id = g.school_id AND b.grading_config_id = g.id
                     WHERE g.school_id = e.school_id AND g.campus_id = $4 AND NOT $10::bool
                    UNION ALL
                    SELECT b.label, b.lower_bound
                      FROM published_results r
                     CROSS JOIN LATERAL jsonb_to_recordset(r.bands) AS b (label text, lower_bound integer)
                     WHERE r.school_id = e.school_id AND r.term_id = $9) b
             WHERE b.lower_bound <= o.percent
             ORDER BY b.lower_bound DESC
             LIMIT 1) band ON true
         WHERE e.school_id = $1 AND e.stream_id = $2
           AND ($5::text IS NULL OR (p.family_name, p.given_name, p.id) > ($5, $6, $7))
         ORDER BY p.family_name, p.given_name, p.id
         LIMIT $8
        "#,
        proof.stream().school(),
        proof.stream().id(),
        &term.on_all_campuses,
        proof.stream().campus(),
        after.map(|key| key.0.as_str()),
        after.map(|key| key.1.as_str()),
        after.map(|key| key.2),
        limit,
        term.id,
        term.results_published
    )
    .fetch_all(tx.connection()?)
    .await?;
    let rows = found.into_iter().map(|row| ClassRow {
        student_id: row.student_id,
        admission_number: row.admission_number,
        given_name: row.given_name,
        family_name: row.family_name,
        averages: row.averages.map(|averages| averages.0).unwrap_or_default(),
        average: row.average,
        band: row.band,
        position: row.position,
    });
    Ok(rows.collect())
}

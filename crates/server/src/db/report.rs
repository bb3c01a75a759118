//! `report_comments`: what class teachers write on reports.

use super::{
    DbResult, Tx,
    academic_year::Term,
    relationship::{ClassTeacherOfStudent, InChargeOf},
    teaching::RosterKey,
};
use chrono::{DateTime, Utc};
use serde::Serialize;
use uuid::Uuid;

/// A comment that was written.
#[derive(Debug)]
pub(crate) struct Comment {
    pub(crate) id: Uuid,
    /// Whether the student had a comment for the term before.
    pub(crate) replaced: bool,
}

/// Writes the class teacher's comment on a student, in the place of the one that there was; `None` where the student has left the
/// stream meanwhile, or another has become its class teacher.
pub(crate) async fn write(
    tx: &mut Tx,
    proof: &ClassTeacherOfStudent,
    term: &Term,
    comment: &str,
) -> DbResult<Option<Comment>> {
    let stream = proof.stream();
    Ok(sqlx::query_as!(
        Comment,
        r#"
        INSERT INTO report_comments (school_id, student_id, term_id, stream_id, comment, written_by)
        SELECT e.school_id, e.student_id, m.id, e.stream_id, $5, t.staff_id
          FROM enrolments e
          JOIN class_teachers t ON t.school_id = e.school_id AND t.stream_id = e.stream_id AND t.staff_id = $6
          JOIN terms m ON m.school_id = e.school_id AND m.campus_academic_year_id = e.campus_academic_year_id AND m.id = $4
         WHERE e.school_id = $1 AND e.stream_id = $2 AND e.student_id = $3
            ON CONFLICT ON CONSTRAINT report_comments_term_key DO UPDATE
           SET stream_id = excluded.stream_id, comment = excluded.comment, written_by = excluded.written_by,
               written_at = excluded.written_at
        RETURNING id, written_at <> created_at AS "replaced!"
        "#,
        stream.school(),
        stream.id(),
        proof.student(),
        term.id,
        comment,
        proof.staff()
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// A student with the comment for a term.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CommentRow {
    pub(crate) student_id: Uuid,
    pub(crate) admission_number: String,
    pub(crate) given_name: String,
    pub(crate) family_name: String,
    /// None where none was written yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) comment: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) written_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) written_at: Option<DateTime<Utc>>,
}

/// Lists the students of a stream by name, each with the comment for a term.
pub(crate) async fn list(
    tx: &mut Tx,
    proof: &InChargeOf,
    term: &Term,
    after: Option<&RosterKey>,
    limit: i64,
) -> DbResult<Vec<CommentRow>> {
    let stream = proof.stream();
    Ok(sqlx::query_as!(
        CommentRow,
        r#"
        SELECT p.id AS student_id, p.admission_number, p.given_name, p.family_name,
               c.comment AS "comment?", u.name AS "written_by?", c.written_at AS "written_at?"
          FROM enrolments e
          JOIN students p ON p.school_id = e.school_id AND p.id = e.student_id AND p.active
          LEFT JOIN report_comments c ON c.school_id = e.school_id AND c.student_id = e.student_id AND c.term_id = $3
          LEFT JOIN staff s ON s.school_id = c.school_id AND s.id = c.written_by
          LEFT JOIN users u ON u.id = s.user_id
         WHERE e.school_id = $1 AND e.stream_id = $2
           AND ($4::text IS NULL OR (p.family_name, p.given_name, p.id) > ($4, $5, $6))
         ORDER BY p.family_name, p.given_name, p.id
         LIMIT $7
        "#,
        stream.school(),
        stream.id(),
        term.id,
        after.map(|key| key.0.as_str()),
        after.map(|key| key.1.as_str()),
        after.map(|key| key.2),
        limit
    )
    .fetch_all(tx.connection()?)
    .await?)
}

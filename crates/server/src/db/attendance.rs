//! `attendance_marks`: who was there.

use super::{
    DbResult, Tx,
    relationship::{ClassTeacherOf, InChargeOf},
};
use chrono::NaiveDate;
use serde::Serialize;
use uuid::Uuid;

/// A day of a stream, as it is to be recorded.
#[derive(Debug)]
pub(crate) struct Day<'a> {
    pub(crate) on: NaiveDate,
    /// Students, each once, with their marks in the next two.
    pub(crate) students: &'a [Uuid],
    pub(crate) statuses: &'a [String],
    pub(crate) notes: &'a [Option<String>],
    /// What every other student of the stream gets.
    pub(crate) everyone_else: Option<&'a str>,
}

/// A mark that was stored.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) student_id: Uuid,
    pub(crate) status: String,
    /// Whether the student had a mark for the day before.
    pub(crate) replaced: bool,
}

/// Stores the marks of a day for its class teacher, in the place of those that there were. Who was not enrolled yet on that day gets
/// none, so that what another stream recorded before a student came stays, and is missing from what was stored. Nothing is stored
/// where another has become class teacher meanwhile.
pub(crate) async fn record(tx: &mut Tx, proof: &ClassTeacherOf, day: &Day<'_>) -> DbResult<Vec<Stored>> {
    let stream = proof.stream();
    Ok(sqlx::query_as!(
        Stored,
        r#"
        INSERT INTO attendance_marks (school_id, student_id, stream_id, on_date, status, note, recorded_by)
        SELECT e.school_id, e.student_id, e.stream_id, $3, coalesce(g.status, $7), g.note, t.staff_id
          FROM enrolments e
          JOIN students p ON p.school_id = e.school_id AND p.id = e.student_id AND p.active
          JOIN class_teachers t ON t.school_id = e.school_id AND t.stream_id = e.stream_id AND t.staff_id = $8
          LEFT JOIN unnest($4::uuid[], $5::text[], $6::text[]) AS g (student_id, status, note) ON g.student_id = e.student_id
         WHERE e.school_id = $1 AND e.stream_id = $2 AND e.enrolled_on <= $3
           AND (g.student_id IS NOT NULL OR $7::text IS NOT NULL)
         -- in one order, so that two at once wait for each other and never in a ring
         ORDER BY e.student_id
            ON CONFLICT ON CONSTRAINT attendance_marks_day_key DO UPDATE
           SET stream_id = excluded.stream_id, status = excluded.status, note = excluded.note,
               recorded_by = excluded.recorded_by, recorded_at = excluded.recorded_at
        RETURNING student_id, status, recorded_at <> created_at AS "replaced!"
        "#,
        stream.school(),
        stream.id(),
        day.on,
        day.students,
        day.statuses,
        day.notes as _,
        day.everyone_else,
        proof.staff()
    )
    .fetch_all(tx.connection()?)
    .await?)
}

/// Which of the students of a day came into the stream after it; `None` where the actor is no longer its class teacher.
pub(crate) async fn came_later(tx: &mut Tx, proof: &ClassTeacherOf, day: &Day<'_>) -> DbResult<Option<Vec<Uuid>>> {
    let stream = proof.stream();
    Ok(sqlx::query_scalar!(
        r#"
        SELECT array(SELECT e.student_id
                       FROM enrolments e
                       JOIN students p ON p.school_id = e.school_id AND p.id = e.student_id AND p.active
                      WHERE e.school_id = t.school_id AND e.stream_id = t.stream_id AND e.enrolled_on > $4
                        AND e.student_id = ANY($5)) AS "students!"
          FROM class_teachers t
         WHERE t.school_id = $1 AND t.stream_id = $2 AND t.staff_id = $3
        "#,
        stream.school(),
        stream.id(),
        proof.staff(),
        day.on,
        day.students
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// A student's marks of a period, counted.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StudentAttendance {
    pub(crate) student_id: Uuid,
    pub(crate) admission_number: String,
    pub(crate) given_name: String,
    pub(crate) family_name: String,
    pub(crate) present: i64,
    pub(crate) absent: i64,
    pub(crate) late: i64,
    pub(crate) excused: i64,
}

/// Counts the marks of a stream's students by name, also of those who have none.
pub(crate) async fn by_student(
    tx: &mut Tx,
    proof: &InChargeOf,
    (from, to): (NaiveDate, NaiveDate),
    limit: i64,
) -> DbResult<Vec<StudentAttendance>> {
    let stream = proof.stream();
    Ok(sqlx::query_as!(
        StudentAttendance,
        r#"
        SELECT p.id AS student_id, p.admission_number, p.given_name, p.family_name,
               count(*) FILTER (WHERE m.status = 'present') AS "present!", count(*) FILTER (WHERE m.status = 'absent') AS "absent!",
               count(*) FILTER (WHERE m.status = 'late') AS "late!", count(*) FILTER (WHERE m.status = 'excused') AS "excused!"
          FROM enrolments e
          JOIN students p ON p.school_id = e.school_id AND p.id = e.student_id AND p.active
          LEFT JOIN attendance_marks m
                 ON m.school_id = e.school_id AND m.student_id = e.student_id AND m.on_date BETWEEN $3 AND $4
         WHERE e.school_id = $1 AND e.stream_id = $2
         GROUP BY p.id, p.admission_number, p.given_name, p.family_name
         ORDER BY p.family_name, p.given_name, p.id
         LIMIT $5
        "#,
        stream.school(),
        stream.id(),
        from,
        to,
        limit
    )
    .fetch_all(tx.connection()?)
    .await?)
}

/// The marks of a period of all of a stream's students, counted.
#[derive(Debug)]
pub(crate) struct StreamAttendance {
    pub(crate) students: i64,
    pub(crate) present: i64,
    pub(crate) absent: i64,
    pub(crate) late: i64,
    pub(crate) excused: i64,
}

/// Counts the marks of all of a stream's students, and the students.
pub(crate) async fn of_stream(
    tx: &mut Tx,
    proof: &InChargeOf,
    (from, to): (NaiveDate, NaiveDate),
) -> DbResult<StreamAttendance> {
    let stream = proof.stream();
    Ok(sqlx::query_as!(
        StreamAttendance,
        r#"
        SELECT count(DISTINCT e.student_id) AS "students!",
               count(*) FILTER (WHERE m.status = 'present') AS "present!", count(*) FILTER (WHERE m.status = 'absent') AS "absent!",
               count(*) FILTER (WHERE m.status = 'late') AS "late!", count(*) FILTER (WHERE m.status = 'excused') AS "excused!"
          FROM enrolments e
          JOIN students p ON p.school_id = e.school_id AND p.id = e.student_id AND p.active
          LEFT JOIN attendance_marks m
                 ON m.school_id = e.school_id AND m.student_id = e.student_id AND m.on_date BETWEEN $3 AND $4
         WHERE e.school_id = $1 AND e.stream_id = $2
        "#,
        stream.school(),
        stream.id(),
        from,
        to
    )
    .fetch_one(tx.connection()?)
    .await?)
}

/// Counts the days of a period on which the stream's attendance was recorded.
pub(crate) async fn days(tx: &mut Tx, proof: &InChargeOf, (from, to): (NaiveDate, NaiveDate)) -> DbResult<i64> {
    let stream = proof.stream();
    Ok(sqlx::query_scalar!(
        r#"SELECT count(DISTINCT on_date) AS "days!" FROM attendance_marks
            WHERE school_id = $1 AND stream_id = $2 AND on_date BETWEEN $3 AND $4"#,
        stream.school(),
        stream.id(),
        from,
        to
    )
    .fetch_one(tx.connection()?)
    .await?)
}

//! `students`, with their `guardians`, and the streams that they are in (`enrolments`).

use super::{DbResult, Tx, one_row, relationship::CurrentStream};
use crate::ability::CampusRule;
use chrono::NaiveDate;
use contract::tools::student::Guardian;
use serde::Serialize;
use sqlx::types::Json;
use uuid::Uuid;

/// A student with the stream of the current year.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Student {
    /// For the audit row; a reply does not name the tenant.
    #[serde(skip)]
    pub(crate) school_id: Uuid,
    #[serde(rename = "studentId")]
    pub(crate) id: Uuid,
    pub(crate) admission_number: String,
    pub(crate) given_name: String,
    pub(crate) family_name: String,
    /// False once the student has left.
    pub(crate) active: bool,
    pub(crate) campus_id: Uuid,
    pub(crate) campus_name: String,
    /// None for whoever is in no stream this year.
    pub(crate) stream_id: Option<Uuid>,
    pub(crate) stream_name: Option<String>,
}

/// A student with all that a reader may know of them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StudentDetails {
    #[serde(flatten)]
    pub(crate) student: Student,
    pub(crate) class_id: Option<Uuid>,
    pub(crate) class_name: Option<String>,
    pub(crate) class_teacher_id: Option<Uuid>,
    pub(crate) class_teacher_name: Option<String>,
    pub(crate) enrolled_on: Option<NaiveDate>,
    pub(crate) born_on: Option<NaiveDate>,
    pub(crate) notes: Option<String>,
    /// Whom to ask first before the others.
    pub(crate) guardians: Vec<Guardian>,
}

/// A student who is to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewStudent<'a> {
    pub(crate) given_name: &'a str,
    pub(crate) family_name: &'a str,
    pub(crate) admission_number: &'a str,
    pub(crate) born_on: Option<NaiveDate>,
    pub(crate) notes: Option<&'a str>,
}

/// What to change; what is `None` stays.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change<'a> {
    pub(crate) given_name: Option<&'a str>,
    pub(crate) family_name: Option<&'a str>,
    pub(crate) admission_number: Option<&'a str>,
    pub(crate) born_on: Option<NaiveDate>,
    pub(crate) clear_born_on: bool,
    pub(crate) notes: Option<&'a str>,
    pub(crate) clear_notes: bool,
    pub(crate) active: Option<bool>,
}

impl Change<'_> {
    /// Whether the row stays as it is.
    pub(crate) const fn is_none(&self) -> bool {
        self.given_name.is_none()
            && self.family_name.is_none()
            && self.admission_number.is_none()
            && self.born_on.is_none()
            && !self.clear_born_on
            && self.notes.is_none()
            && !self.clear_notes
            && self.active.is_none()
    }
}

/// A student whose row is held until the transaction ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    pub(crate) school_id: Uuid,
    pub(crate) id: Uuid,
    pub(crate) active: bool,
}

/// The stream that a student is in.
#[derive(Debug)]
pub(crate) struct Enrolment {
    pub(crate) id: Uuid,
    pub(crate) stream_id: Uuid,
    pub(crate) stream_name: String,
    pub(crate) campus_id: Uuid,
}

/// Finds a student among the rows that may be changed, and holds the row, and with it the enrolments, until the transaction ends.
pub(crate) async fn find(tx: &mut Tx, id: Uuid, rows: &CampusRule) -> DbResult<Option<Held>> {
    Ok(sqlx::query_as!(
        Held,
        "SELECT school_id, id, active
           FROM students
          WHERE id = $1 AND ($2::uuid[] IS NULL OR campus_id = ANY($2))
            FOR UPDATE",
        id,
        rows.campuses() as _
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// Reads one student with guardians, and with the stream of the year that the student's campus is in.
pub(crate) async fn details(tx: &mut Tx, id: Uuid, rows: &CampusRule) -> DbResult<Option<StudentDetails>> {
    let row = sqlx::query!(
        r#"
        SELECT p.school_id, p.id, p.admission_number, p.given_name, p.family_name, p.active, p.campus_id, c.name AS campus_name,
               p.born_on, p.notes, e.stream_id AS "stream_id?", st.name AS "stream_name?", e.enrolled_on AS "enrolled_on?",
               k.id AS "class_id?", k.name AS "class_name?", s.id AS "class_teacher_id?", u.name AS "class_teacher_name?",
               (SELECT json_agg(json_build_object('name', g.name, 'relation', g.relation, 'phone', g.phone, 'email', g.email)
                                ORDER BY g.place)
                  FROM guardians g
                 WHERE g.school_id = p.school_id AND g.student_id = p.id) AS "guardians: Json<Vec<Guardian>>"
          FROM students p
          JOIN campuses c ON c.school_id = p.school_id AND c.id = p.campus_id
          LEFT JOIN campus_academic_years y ON y.school_id = p.school_id AND y.campus_id = p.campus_id AND y.is_current
          LEFT JOIN enrolments e
                 ON e.school_id = p.school_id AND e.campus_academic_year_id = y.id AND e.student_id = p.id
          LEFT JOIN streams st ON st.school_id = e.school_id AND st.id = e.stream_id
          LEFT JOIN classes k ON k.school_id = st.school_id AND k.id = st.class_id
          LEFT JOIN class_teachers t ON t.school_id = st.school_id AND t.stream_id = st.id
          LEFT JOIN staff s ON s.school_id = t.school_id AND s.id = t.staff_id
          LEFT JOIN users u ON u.id = s.user_id
         WHERE p.id = $1 AND ($2::uuid[] IS NULL OR p.campus_id = ANY($2))
        "#,
        id,
        rows.campuses() as _
    )
    .fetch_optional(tx.connection()?)
    .await?;
    Ok(row.map(|row| StudentDetails {
        student: Student {
            school_id: row.school_id,
            id: row.id,
            admission_number: row.admission_number,
            given_name: row.given_name,
            family_name: row.family_name,
            active: row.active,
            campus_id: row.campus_id,
            campus_name: row.campus_name,
            stream_id: row.stream_id,
            stream_name: row.stream_name,
        },
        class_id: row.class_id,
        class_name: row.class_name,
        class_teacher_id: row.class_teacher_id,
        class_teacher_name: row.class_teacher_name,
        enrolled_on: row.enrolled_on,
        born_on: row.born_on,
        notes: row.notes,
        guardians: row.guardians.map(|guardians| guardians.0).unwrap_or_default(),
    }))
}

/// The school's date, where the school is.
pub(crate) async fn today(tx: &mut Tx, school: Uuid) -> DbResult<NaiveDate> {
    Ok(sqlx::query_scalar!(
        r#"SELECT (now() AT TIME ZONE time_zone)::date AS "today!" FROM schools WHERE id = $1"#,
        school
    )
    .fetch_one(tx.connection()?)
    .await?)
}

/// Admits a student to the school, on the campus of a stream.
pub(crate) async fn insert(tx: &mut Tx, stream: &CurrentStream, new: NewStudent<'_>) -> DbResult<Held> {
    Ok(sqlx::query_as!(
        Held,
        "INSERT INTO students (school_id, id, campus_id, admission_number, given_name, family_name, born_on, notes)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         RETURNING school_id, id, active",
        stream.school(),
        Uuid::now_v7(),
        stream.campus(),
        new.admission_number,
        new.given_name,
        new.family_name,
        new.born_on,
        new.notes
    )
    .fetch_one(tx.connection()?)
    .await?)
}

/// Changes a student.
pub(crate) async fn update(tx: &mut Tx, student: &Held, change: Change<'_>) -> DbResult<()> {
    let updated = sqlx::query!(
        "UPDATE students
            SET given_name = coalesce($3, given_name), family_name = coalesce($4, family_name),
                admission_number = coalesce($5, admission_number),
                born_on = CASE WHEN $7 THEN NULL ELSE coalesce($6, born_on) END,
                notes = CASE WHEN $9 THEN NULL ELSE coalesce($8, notes) END,
                active = coalesce($10, active)
          WHERE school_id = $1 AND id = $2",
        student.school_id,
        student.id,
        change.given_name,
        change.family_name,
        change.admission_number,
        change.born_on,
        change.clear_born_on,
        change.notes,
        change.clear_notes,
        change.active
    )
    .execute(tx.connection()?)
    .await?;
    one_row(updated.rows_affected())
}

/// Puts these guardians, the first to ask first, in the place of those that a student has.
pub(crate) async fn set_guardians(tx: &mut Tx, student: &Held, guardians: &[Guardian]) -> DbResult<()> {
    sqlx::query!(
        "DELETE FROM guardians WHERE school_id = $1 AND student_id = $2",
        student.school_id,
        student.id
    )
    .execute(tx.connection()?)
    .await?;
    sqlx::query!(
        "INSERT INTO guardians (school_id, student_id, place, name, relation, phone, email)
         SELECT $1, $2, g.place, g.name, g.relation, g.phone, g.email
           FROM unnest($3::text[], $4::text[], $5::text[], $6::text[]) WITH ORDINALITY AS g (name, relation, phone, email, place)",
        student.school_id,
        student.id,
        &each(guardians, |guardian| guardian.name.clone()),
        &each(guardians, |guardian| guardian.relation.clone()),
        &each(guardians, |guardian| guardian.phone.clone()) as _,
        &each(guardians, |guardian| guardian.email.clone()) as _
    )
    .execute(tx.connection()?)
    .await?;
    Ok(())
}

/// The streams of current years that a student is in: one, unless somebody else wrote more.
pub(crate) async fn current_enrolments(tx: &mut Tx, student: &Held) -> DbResult<Vec<Enrolment>> {
    Ok(sqlx::query_as!(
        Enrolment,
        "SELECT e.id, e.stream_id, st.name AS stream_name, st.campus_id
           FROM enrolments e
           JOIN campus_academic_years y ON y.school_id = e.school_id AND y.id = e.campus_academic_year_id AND y.is_current
           JOIN streams st ON st.school_id = e.school_id AND st.id = e.stream_id
          WHERE e.school_id = $1 AND e.student_id = $2
          ORDER BY e.id",
        student.school_id,
        student.id
    )
    .fetch_all(tx.connection()?)
    .await?)
}

/// Puts a student who is in no stream into one, from a day on. The student attends its campus then.
pub(crate) async fn enrol(tx: &mut Tx, student: &Held, stream: &CurrentStream, on: NaiveDate) -> DbResult<()> {
    sqlx::query!(
        "INSERT INTO enrolments (school_id, student_id, stream_id, campus_academic_year_id, enrolled_on)
         VALUES ($1, $2, $3, $4, $5)",
        student.school_id,
        student.id,
        stream.id(),
        stream.year(),
        on
    )
    .execute(tx.connection()?)
    .await?;
    attends(tx, student, stream).await
}

/// Moves a student from the stream of an enrolment to another one, from a day on. The student attends its campus then.
///
/// Who comes back to a stream is in it since the first day of which it has a score or an attendance mark of theirs: so a score that they
/// owed there when they left is owed again.
pub(crate) async fn transfer(
    tx: &mut Tx,
    student: &Held,
    from: &Enrolment,
    stream: &CurrentStream,
    on: NaiveDate,
) -> DbResult<()> {
    let moved = sqlx::query!(
        "UPDATE enrolments SET stream_id = $3, campus_academic_year_id = $4,
                enrolled_on = least($5,
                    (SELECT min(a.held_on)
                       FROM scores x
                       JOIN assessments a ON a.school_id = x.school_id AND a.id = x.assessment_id
                      WHERE x.school_id = $1 AND x.student_id = $6 AND a.stream_id = $3),
                    (SELECT min(m.on_date)
                       FROM attendance_marks m
                      WHERE m.school_id = $1 AND m.student_id = $6 AND m.stream_id = $3))
          WHERE school_id = $1 AND id = $2",
        student.school_id,
        from.id,
        stream.id(),
        stream.year(),
        on,
        student.id
    )
    .execute(tx.connection()?)
    .await?;
    one_row(moved.rows_affected())?;
    attends(tx, student, stream).await
}

async fn attends(tx: &mut Tx, student: &Held, stream: &CurrentStream) -> DbResult<()> {
    let moved = sqlx::query!(
        "UPDATE students SET campus_id = $3 WHERE school_id = $1 AND id = $2",
        student.school_id,
        student.id,
        stream.campus()
    )
    .execute(tx.connection()?)
    .await?;
    one_row(moved.rows_affected())
}

fn each<T>(guardians: &[Guardian], value: impl Fn(&Guardian) -> T) -> Vec<T> {
    guardians.iter().map(value).collect()
}

//! `streams`, and who answers for them (`class_teachers`) and teaches in them (`subject_teachers`).

use super::{
    DbResult, Tx,
    department::NameKey,
    one_row,
    relationship::{CurrentStream, DirectorOfStudiesOf, DirectsStream},
};
use crate::ability::CampusRule;
use contract::argument::RequestedYear;
use serde::Serialize;
use uuid::Uuid;

/// A stream with who answers for it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stream {
    /// For the audit row; a reply does not name the tenant.
    #[serde(skip)]
    pub(crate) school_id: Uuid,
    #[serde(rename = "streamId")]
    pub(crate) id: Uuid,
    pub(crate) name: String,
    pub(crate) class_id: Uuid,
    pub(crate) class_name: String,
    pub(crate) campus_id: Uuid,
    pub(crate) campus_name: String,
    pub(crate) class_teacher_id: Option<Uuid>,
    pub(crate) class_teacher_name: Option<String>,
    pub(crate) student_count: i64,
}

/// A stream that is to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewStream<'a> {
    pub(crate) name: &'a str,
    pub(crate) class_id: Uuid,
    pub(crate) year: Year,
}

/// A year of a campus.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Year {
    pub(crate) school_id: Uuid,
    pub(crate) id: Uuid,
    pub(crate) campus_id: Uuid,
}

/// A member of staff, by name.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Teacher {
    pub(crate) staff_id: Uuid,
    pub(crate) name: String,
}

/// A subject as the class of a stream may take it.
#[derive(Debug)]
pub(crate) struct SubjectOfStream {
    pub(crate) id: Uuid,
    pub(crate) name: String,
    pub(crate) class_name: String,
    pub(crate) is_on_curriculum: bool,
}

/// Lists streams of the current year by name.
pub(crate) async fn list(
    tx: &mut Tx,
    rows: &CampusRule,
    class: Option<Uuid>,
    after: Option<&NameKey>,
    limit: i64,
) -> DbResult<Vec<Stream>> {
    Ok(sqlx::query_as!(
        Stream,
        r#"
        SELECT st.school_id, st.id, st.name, st.class_id, k.name AS class_name, st.campus_id, c.name AS campus_name,
               s.id AS "class_teacher_id?", u.name AS "class_teacher_name?",
               (SELECT count(*)
                  FROM enrolments e
                  JOIN students p ON p.school_id = e.school_id AND p.id = e.student_id AND p.active
                 WHERE e.school_id = st.school_id AND e.stream_id = st.id) AS "student_count!"
          FROM streams st
          JOIN campus_academic_years y ON y.school_id = st.school_id AND y.id = st.campus_academic_year_id AND y.is_current
          JOIN classes k ON k.school_id = st.school_id AND k.id = st.class_id
          JOIN campuses c ON c.school_id = st.school_id AND c.id = st.campus_id
          LEFT JOIN class_teachers t ON t.school_id = st.school_id AND t.stream_id = st.id
          LEFT JOIN staff s ON s.school_id = t.school_id AND s.id = t.staff_id
          LEFT JOIN users u ON u.id = s.user_id
         WHERE ($1::uuid[] IS NULL OR st.campus_id = ANY($1))
           AND ($2::uuid IS NULL OR st.class_id = $2)
           AND (st.name, st.id) > ($3, $4)
         ORDER BY st.name, st.id
         LIMIT $5
        "#,
        rows.campuses() as _,
        class,
        after.map_or("", |key| key.0.as_str()),
        after.map_or(Uuid::nil(), |key| key.1),
        limit
    )
    .fetch_all(tx.connection()?)
    .await?)
}

/// Lists streams of the current year by name, of the campus whose studies the actor directs.
pub(crate) async fn of_campus(
    tx: &mut Tx,
    proof: &DirectorOfStudiesOf,
    after: Option<&NameKey>,
    limit: i64,
) -> DbResult<Vec<Stream>> {
    list(tx, &CampusRule::All.within(proof.campus()), None, after, limit).await
}

/// A year of a campus: the one that is named, or the one that the campus is in.
pub(crate) async fn year(tx: &mut Tx, campus: Uuid, requested: Option<RequestedYear>) -> DbResult<Option<Year>> {
    let named = requested.map(|year| year.of(campus).campus_academic_year_id);
    Ok(sqlx::query_as!(
        Year,
        "SELECT school_id, id, campus_id
           FROM campus_academic_years
          WHERE campus_id = $1 AND CASE WHEN $2::uuid IS NULL THEN is_current ELSE id = $2 END",
        campus,
        named
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// Adds a stream to a year of a campus; `None` where the school has no such class.
pub(crate) async fn insert(tx: &mut Tx, new: NewStream<'_>) -> DbResult<Option<Stream>> {
    Ok(sqlx::query_as!(
        Stream,
        r#"
        WITH added AS (
            INSERT INTO streams (school_id, id, class_id, campus_id, campus_academic_year_id, name)
            SELECT k.school_id, $1, k.id, $4, $5, $6 FROM classes k WHERE k.school_id = $2 AND k.id = $3
            RETURNING school_id, id, class_id, campus_id, name
        )
        SELECT a.school_id, a.id, a.name, a.class_id, k.name AS class_name, a.campus_id, c.name AS campus_name,
               NULL::uuid AS class_teacher_id, NULL::text AS class_teacher_name, 0::bigint AS "student_count!"
          FROM added a
          JOIN classes k ON k.school_id = a.school_id AND k.id = a.class_id
          JOIN campuses c ON c.school_id = a.school_id AND c.id = a.campus_id
        "#,
        Uuid::now_v7(),
        new.year.school_id,
        new.class_id,
        new.year.campus_id,
        new.year.id,
        new.name
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// The name of a stream.
pub(crate) async fn name(tx: &mut Tx, stream: &CurrentStream) -> DbResult<String> {
    Ok(sqlx::query_scalar!(
        "SELECT name FROM streams WHERE school_id = $1 AND id = $2",
        stream.school(),
        stream.id()
    )
    .fetch_one(tx.connection()?)
    .await?)
}

/// Whoever may come to teach a stream: an active member of staff of its campus or of the whole school, who is held as such until the
/// transaction ends.
pub(crate) async fn candidate(tx: &mut Tx, stream: &CurrentStream, staff: Uuid) -> DbResult<Option<Teacher>> {
    Ok(sqlx::query_as!(
        Teacher,
        "SELECT s.id AS staff_id, u.name
           FROM staff s
           JOIN users u ON u.id = s.user_id AND u.active
          WHERE s.school_id = $1 AND s.id = $2 AND s.active AND (s.campus_id IS NULL OR s.campus_id = $3)
            FOR SHARE OF s",
        stream.school(),
        staff,
        stream.campus()
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// Makes somebody class teacher of a stream that has none; answers whether it had none.
pub(crate) async fn add_class_teacher(tx: &mut Tx, stream: &CurrentStream, teacher: &Teacher) -> DbResult<bool> {
    let added = sqlx::query!(
        "INSERT INTO class_teachers (school_id, stream_id, staff_id) VALUES ($1, $2, $3)
         ON CONFLICT ON CONSTRAINT class_teachers_stream_key DO NOTHING",
        stream.school(),
        stream.id(),
        teacher.staff_id
    )
    .execute(tx.connection()?)
    .await?;
    Ok(added.rows_affected() == 1)
}

/// The class teacher that a stream has, who stays it until the transaction ends or changes it.
pub(crate) async fn class_teacher(tx: &mut Tx, stream: &CurrentStream) -> DbResult<Teacher> {
    Ok(sqlx::query_as!(
        Teacher,
        "SELECT s.id AS staff_id, u.name
           FROM class_teachers t
           JOIN staff s ON s.school_id = t.school_id AND s.id = t.staff_id
           JOIN users u ON u.id = s.user_id
          WHERE t.school_id = $1 AND t.stream_id = $2
            FOR UPDATE OF t",
        stream.school(),
        stream.id()
    )
    .fetch_one(tx.connection()?)
    .await?)
}

/// Puts somebody in the place of the class teacher that a stream has.
pub(crate) async fn replace_class_teacher(tx: &mut Tx, stream: &CurrentStream, teacher: &Teacher) -> DbResult<()> {
    let replaced = sqlx::query!(
        "UPDATE class_teachers SET staff_id = $3 WHERE school_id = $1 AND stream_id = $2",
        stream.school(),
        stream.id(),
        teacher.staff_id
    )
    .execute(tx.connection()?)
    .await?;
    one_row(replaced.rows_affected())
}

/// A subject of the school, and whether the class of a stream takes it.
pub(crate) async fn subject(tx: &mut Tx, proof: &DirectsStream, subject: Uuid) -> DbResult<Option<SubjectOfStream>> {
    let stream = proof.stream();
    Ok(sqlx::query_as!(
        SubjectOfStream,
        r#"
        SELECT b.id, b.name, k.name AS class_name,
               EXISTS (SELECT 1 FROM class_subjects t
                        WHERE t.school_id = k.school_id AND t.class_id = k.id AND t.subject_id = b.id) AS "is_on_curriculum!"
          FROM streams st
          JOIN classes k ON k.school_id = st.school_id AND k.id = st.class_id
          JOIN subjects b ON b.school_id = st.school_id AND b.id = $3
         WHERE st.school_id = $1 AND st.id = $2
        "#,
        stream.school(),
        stream.id(),
        subject
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// Takes a subject in a stream from who teaches it there; `None` where they do not.
pub(crate) async fn take_subject(
    tx: &mut Tx,
    proof: &DirectsStream,
    subject: &SubjectOfStream,
    staff: Uuid,
) -> DbResult<Option<Teacher>> {
    let stream = proof.stream();
    Ok(sqlx::query_as!(
        Teacher,
        "WITH gone AS (
            DELETE FROM subject_teachers
             WHERE school_id = $1 AND stream_id = $2 AND subject_id = $3 AND staff_id = $4
            RETURNING school_id, staff_id
         )
         SELECT s.id AS staff_id, u.name
           FROM gone g
           JOIN staff s ON s.school_id = g.school_id AND s.id = g.staff_id
           JOIN users u ON u.id = s.user_id",
        stream.school(),
        stream.id(),
        subject.id,
        staff
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// Gives a subject in a stream to somebody; answers whether they did not teach it already.
pub(crate) async fn give_subject(
    tx: &mut Tx,
    proof: &DirectsStream,
    subject: &SubjectOfStream,
    teacher: &Teacher,
) -> DbResult<bool> {
    let stream = proof.stream();
    let given = sqlx::query!(
        "INSERT INTO subject_teachers (school_id, stream_id, subject_id, staff_id) VALUES ($1, $2, $3, $4)
         ON CONFLICT ON CONSTRAINT subject_teachers_staff_key DO NOTHING",
        stream.school(),
        stream.id(),
        subject.id,
        teacher.staff_id
    )
    .execute(tx.connection()?)
    .await?;
    Ok(given.rows_affected() == 1)
}

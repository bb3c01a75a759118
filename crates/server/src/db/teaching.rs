//! What is taught to whom: `streams` with their teachers, directors of studies, and the students enrolled.
//!
//! The relationship rules about teaching live here, each named for what it proves. A proof is made by the statement that finds it
//! and by nothing else, always about the actor of the call, and a query over a stream's students takes one as an argument.

use super::{DbResult, Tx};
use crate::{ability::CampusRule, standing::Actor};
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

/// A stream of the year that its campus is in. That it was found says nothing about who may know it.
#[derive(Debug)]
pub(crate) struct CurrentStream {
    school_id: Uuid,
    id: Uuid,
    campus_id: Uuid,
}

impl CurrentStream {
    /// The campus that it is on.
    pub(crate) const fn campus(&self) -> Uuid {
        self.campus_id
    }
}

/// Proof that the actor is class teacher of a stream.
#[derive(Debug)]
pub(crate) struct ClassTeacherOf {
    stream_id: Uuid,
}

/// Proof that the actor is a director of studies of a campus.
#[derive(Debug)]
pub(crate) struct DirectorOfStudiesOf {
    campus_id: Uuid,
}

/// By what relationship the actor answers for a whole stream.
#[derive(Debug)]
pub(crate) enum InChargeOf {
    /// Of that stream.
    ClassTeacher(ClassTeacherOf),
    /// Of every stream on that campus.
    Director(DirectorOfStudiesOf),
}

impl InChargeOf {
    /// The one stream that this is about, if it is about one.
    const fn stream(&self) -> Option<Uuid> {
        match self {
            Self::ClassTeacher(proof) => Some(proof.stream_id),
            Self::Director(_) => None,
        }
    }

    /// The campus whose streams this is about, if it is about a campus.
    const fn campus(&self) -> Option<Uuid> {
        match self {
            Self::ClassTeacher(_) => None,
            Self::Director(proof) => Some(proof.campus_id),
        }
    }
}

/// Finds a stream of the current year, on the campuses of a rule.
pub(crate) async fn current_stream(tx: &mut Tx, id: Uuid, rows: &CampusRule) -> DbResult<Option<CurrentStream>> {
    Ok(sqlx::query_as!(
        CurrentStream,
        "SELECT st.school_id, st.id, st.campus_id
           FROM streams st
           JOIN campus_academic_years y ON y.school_id = st.school_id AND y.id = st.campus_academic_year_id AND y.is_current
          WHERE st.id = $1 AND ($2::uuid[] IS NULL OR st.campus_id = ANY($2))",
        id,
        rows.campuses() as _
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// Whether the actor is class teacher of a stream.
pub(crate) async fn class_teacher_of(
    tx: &mut Tx,
    actor: &Actor,
    stream: &CurrentStream,
) -> DbResult<Option<ClassTeacherOf>> {
    let Some(staff) = actor.staff_id else { return Ok(None) };
    Ok(sqlx::query_as!(
        ClassTeacherOf,
        "SELECT stream_id FROM class_teachers WHERE school_id = $1 AND stream_id = $2 AND staff_id = $3",
        stream.school_id,
        stream.id,
        staff
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// Whether the actor is a director of studies of a campus.
pub(crate) async fn director_of_studies_of(
    tx: &mut Tx,
    actor: &Actor,
    campus: Uuid,
) -> DbResult<Option<DirectorOfStudiesOf>> {
    let Some(staff) = actor.staff_id else { return Ok(None) };
    Ok(sqlx::query_as!(
        DirectorOfStudiesOf,
        "SELECT campus_id FROM directors_of_studies WHERE campus_id = $1 AND staff_id = $2",
        campus,
        staff
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// Lists the students enrolled in a stream by name, for whoever answers for it. What the proof is about is part of the statement,
/// so that a proof about another stream finds nobody.
pub(crate) async fn roster(
    tx: &mut Tx,
    stream: &CurrentStream,
    proof: &InChargeOf,
    after: Option<&RosterKey>,
    limit: i64,
) -> DbResult<Vec<RosterRow>> {
    Ok(sqlx::query_as!(
        RosterRow,
        "SELECT p.id AS student_id, p.admission_number, p.given_name, p.family_name
           FROM streams st
           JOIN enrolments e
             ON e.school_id = st.school_id AND e.stream_id = st.id AND e.campus_academic_year_id = st.campus_academic_year_id
           JOIN students p ON p.school_id = e.school_id AND p.id = e.student_id AND p.active
          WHERE st.school_id = $1 AND st.id = $2
            AND ($3::uuid IS NULL OR st.id = $3) AND ($4::uuid IS NULL OR st.campus_id = $4)
            AND ($5::text IS NULL OR (p.family_name, p.given_name, p.id) > ($5, $6, $7))
          ORDER BY p.family_name, p.given_name, p.id
          LIMIT $8",
        stream.school_id,
        stream.id,
        proof.stream(),
        proof.campus(),
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
          JOIN streams st ON st.school_id = taught.school_id AND st.id = taught.stream_id
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

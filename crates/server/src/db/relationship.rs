//! Relationships, each proven by the statement that finds it and by nothing else, always about the actor of the call.
//!
//! A proof carries what it is about, and a statement about a stream's students or marks takes the proof in place of ids: there is
//! no way to ask about a stream that was not proven. What a proof says holds for the transaction that it was found in.

mod plan;

pub(crate) use self::plan::{DirectorOverPlan, WriterOf, author_of, director_over_plan};

use super::{DbResult, Tx};
use crate::{ability::CampusRule, standing::Actor};
use uuid::Uuid;

/// A stream of the year that its campus is in. That it was found says nothing about who may know it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CurrentStream {
    school_id: Uuid,
    id: Uuid,
    campus_id: Uuid,
    campus_academic_year_id: Uuid,
}

impl CurrentStream {
    /// The school that it belongs to.
    pub(crate) const fn school(&self) -> Uuid {
        self.school_id
    }

    /// The stream.
    pub(crate) const fn id(&self) -> Uuid {
        self.id
    }

    /// The campus that it is on.
    pub(crate) const fn campus(&self) -> Uuid {
        self.campus_id
    }

    /// The campus's year that it is in.
    pub(crate) const fn year(&self) -> Uuid {
        self.campus_academic_year_id
    }
}

/// Proof that the actor is class teacher of a stream.
#[derive(Debug)]
pub(crate) struct ClassTeacherOf {
    stream: CurrentStream,
    staff_id: Uuid,
}

impl ClassTeacherOf {
    /// The stream that the actor is class teacher of.
    pub(crate) const fn stream(&self) -> &CurrentStream {
        &self.stream
    }

    /// The actor, as a member of staff. Another may take the stream over at any moment: a write names who it was proven of.
    pub(crate) const fn staff(&self) -> Uuid {
        self.staff_id
    }
}

/// Proof that the actor is class teacher of the stream that a student is in.
#[derive(Debug)]
pub(crate) struct ClassTeacherOfStudent {
    stream: CurrentStream,
    staff_id: Uuid,
    student_id: Uuid,
}

impl ClassTeacherOfStudent {
    /// The stream that the student is in.
    pub(crate) const fn stream(&self) -> &CurrentStream {
        &self.stream
    }

    /// The actor, as a member of staff, for the same reason as in [`ClassTeacherOf::staff`].
    pub(crate) const fn staff(&self) -> Uuid {
        self.staff_id
    }

    /// The student.
    pub(crate) const fn student(&self) -> Uuid {
        self.student_id
    }
}

/// Proof that the actor teaches a subject to a stream.
#[derive(Debug)]
pub(crate) struct Teaches {
    stream: CurrentStream,
    subject_id: Uuid,
}

impl Teaches {
    /// The stream that the actor teaches.
    pub(crate) const fn stream(&self) -> &CurrentStream {
        &self.stream
    }

    /// The subject that the actor teaches it.
    pub(crate) const fn subject(&self) -> Uuid {
        self.subject_id
    }
}

/// Proof that the actor is a director of studies of a campus.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DirectorOfStudiesOf {
    school_id: Uuid,
    campus_id: Uuid,
}

impl DirectorOfStudiesOf {
    /// The school of the campus.
    pub(crate) const fn school(&self) -> Uuid {
        self.school_id
    }

    /// The campus whose studies the actor directs.
    pub(crate) const fn campus(&self) -> Uuid {
        self.campus_id
    }

    /// The same about one stream, where it is on that campus.
    pub(crate) fn in_charge_of(self, stream: CurrentStream) -> Option<InChargeOf> {
        (self.school_id == stream.school_id && self.campus_id == stream.campus_id).then_some(InChargeOf { stream })
    }

    /// The same about one stream and for a director alone, where it is on that campus.
    pub(crate) fn directs(self, stream: CurrentStream) -> Option<DirectsStream> {
        let stream = self.in_charge_of(stream)?.stream;
        Some(DirectsStream { stream })
    }

    /// The same about one subject in one stream, where it is on that campus.
    pub(crate) fn answers_for(self, stream: CurrentStream, subject_id: Uuid) -> Option<AnswersForSubject> {
        let stream = self.in_charge_of(stream)?.stream;
        Some(AnswersForSubject { stream, subject_id })
    }
}

/// Proof that the actor is a director of studies of a stream's campus.
#[derive(Debug)]
pub(crate) struct DirectsStream {
    stream: CurrentStream,
}

impl DirectsStream {
    /// The stream whose studies the actor directs.
    pub(crate) const fn stream(&self) -> &CurrentStream {
        &self.stream
    }
}

/// Proof that the actor answers for a whole stream: as its class teacher, or as a director of studies of its campus.
#[derive(Debug)]
pub(crate) struct InChargeOf {
    stream: CurrentStream,
}

impl InChargeOf {
    /// The stream that the actor answers for.
    pub(crate) const fn stream(&self) -> &CurrentStream {
        &self.stream
    }
}

impl From<ClassTeacherOf> for InChargeOf {
    fn from(proof: ClassTeacherOf) -> Self {
        Self { stream: proof.stream }
    }
}

/// Proof that the actor answers for one subject in a stream: as who teaches it, or as a director of studies of the campus. That the
/// stream is taught the subject at all, only the first says.
#[derive(Debug)]
pub(crate) struct AnswersForSubject {
    stream: CurrentStream,
    subject_id: Uuid,
}

impl AnswersForSubject {
    /// The stream.
    pub(crate) const fn stream(&self) -> &CurrentStream {
        &self.stream
    }

    /// The subject.
    pub(crate) const fn subject(&self) -> Uuid {
        self.subject_id
    }
}

impl From<Teaches> for AnswersForSubject {
    fn from(proof: Teaches) -> Self {
        Self {
            stream: proof.stream,
            subject_id: proof.subject_id,
        }
    }
}

/// Proof that the actor has to do with how a campus grades: as class or subject teacher of a stream of its current year, or as a
/// director of its studies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TeachesOn {
    school_id: Uuid,
    campus_id: Uuid,
}

impl TeachesOn {
    /// The school of the campus.
    pub(crate) const fn school(&self) -> Uuid {
        self.school_id
    }

    /// The campus that the actor teaches on.
    pub(crate) const fn campus(&self) -> Uuid {
        self.campus_id
    }
}

/// Finds a stream of the current year, on the campuses of a rule.
pub(crate) async fn current_stream(tx: &mut Tx, id: Uuid, rows: &CampusRule) -> DbResult<Option<CurrentStream>> {
    Ok(sqlx::query_as!(
        CurrentStream,
        "SELECT st.school_id, st.id, st.campus_id, st.campus_academic_year_id
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
    stream: CurrentStream,
) -> DbResult<Option<ClassTeacherOf>> {
    let Some(staff) = actor.staff_id else { return Ok(None) };
    let found = sqlx::query_scalar!(
        "SELECT staff_id FROM class_teachers WHERE school_id = $1 AND stream_id = $2 AND staff_id = $3",
        stream.school_id,
        stream.id,
        staff
    )
    .fetch_optional(tx.connection()?)
    .await?;
    Ok(found.map(|staff_id| ClassTeacherOf { stream, staff_id }))
}

/// Whether the actor is class teacher of a stream of the current year that a student is in, on the campuses of a rule.
pub(crate) async fn class_teacher_of_student(
    tx: &mut Tx,
    actor: &Actor,
    student_id: Uuid,
    rows: &CampusRule,
) -> DbResult<Option<ClassTeacherOfStudent>> {
    let Some(staff) = actor.staff_id else { return Ok(None) };
    let stream = sqlx::query_as!(
        CurrentStream,
        "SELECT st.school_id, st.id, st.campus_id, st.campus_academic_year_id
           FROM enrolments e
           JOIN students p ON p.school_id = e.school_id AND p.id = e.student_id AND p.active
           JOIN streams st ON st.school_id = e.school_id AND st.id = e.stream_id
           JOIN campus_academic_years y ON y.school_id = st.school_id AND y.id = st.campus_academic_year_id AND y.is_current
           JOIN class_teachers t ON t.school_id = st.school_id AND t.stream_id = st.id AND t.staff_id = $2
          WHERE e.student_id = $1 AND ($3::uuid[] IS NULL OR st.campus_id = ANY($3))
          ORDER BY e.enrolled_on DESC, st.id
          LIMIT 1",
        student_id,
        staff,
        rows.campuses() as _
    )
    .fetch_optional(tx.connection()?)
    .await?;
    Ok(stream.map(|stream| ClassTeacherOfStudent {
        stream,
        staff_id: staff,
        student_id,
    }))
}

/// Whether the actor teaches a subject to a stream.
pub(crate) async fn teaches(
    tx: &mut Tx,
    actor: &Actor,
    stream: CurrentStream,
    subject_id: Uuid,
) -> DbResult<Option<Teaches>> {
    let Some(staff) = actor.staff_id else { return Ok(None) };
    let found = sqlx::query_scalar!(
        "SELECT subject_id FROM subject_teachers
          WHERE school_id = $1 AND stream_id = $2 AND subject_id = $3 AND staff_id = $4",
        stream.school_id,
        stream.id,
        subject_id,
        staff
    )
    .fetch_optional(tx.connection()?)
    .await?;
    Ok(found.map(|subject_id| Teaches { stream, subject_id }))
}

/// Whether the actor is a director of studies of a campus.
pub(crate) async fn director_of_studies_of(
    tx: &mut Tx,
    actor: &Actor,
    campus: Uuid,
) -> DbResult<Option<DirectorOfStudiesOf>> {
    let only = CampusRule::All.within(campus);
    Ok(directs(tx, actor, &only).await?.pop())
}

/// The campuses whose studies the actor directs, among those of a rule.
pub(crate) async fn directs(tx: &mut Tx, actor: &Actor, rows: &CampusRule) -> DbResult<Vec<DirectorOfStudiesOf>> {
    let Some(staff) = actor.staff_id else {
        return Ok(Vec::new());
    };
    Ok(sqlx::query_as!(
        DirectorOfStudiesOf,
        "SELECT school_id, campus_id FROM directors_of_studies
          WHERE staff_id = $1 AND ($2::uuid[] IS NULL OR campus_id = ANY($2))
          ORDER BY campus_id",
        staff,
        rows.campuses() as _
    )
    .fetch_all(tx.connection()?)
    .await?)
}

/// Proof that the actor teaches some subject to some stream of the current year.
#[derive(Debug)]
pub(crate) struct SubjectTeacherIn {
    school_id: Uuid,
}

impl SubjectTeacherIn {
    /// The school that the actor teaches in.
    pub(crate) const fn school(&self) -> Uuid {
        self.school_id
    }
}

/// Whether the actor teaches any subject to a stream of the current year, on the campuses of a rule.
pub(crate) async fn subject_teacher(
    tx: &mut Tx,
    actor: &Actor,
    rows: &CampusRule,
) -> DbResult<Option<SubjectTeacherIn>> {
    Ok(sqlx::query_as!(
        SubjectTeacherIn,
        "SELECT t.school_id
           FROM subject_teachers t
           JOIN streams st ON st.school_id = t.school_id AND st.id = t.stream_id
           JOIN campus_academic_years y ON y.school_id = st.school_id AND y.id = st.campus_academic_year_id AND y.is_current
          WHERE t.staff_id = $1 AND ($2::uuid[] IS NULL OR st.campus_id = ANY($2))
          LIMIT 1",
        actor.staff_id,
        rows.campuses() as _
    )
    .fetch_optional(tx.connection()?)
    .await?)
}

/// The campuses that the actor teaches on in their current year, or directs the studies of, among those of a rule.
pub(crate) async fn teaches_on(tx: &mut Tx, actor: &Actor, rows: &CampusRule) -> DbResult<Vec<TeachesOn>> {
    let Some(staff) = actor.staff_id else {
        return Ok(Vec::new());
    };
    Ok(sqlx::query_as!(
        TeachesOn,
        r#"
        SELECT found.school_id AS "school_id!", found.campus_id AS "campus_id!"
          FROM (SELECT st.school_id, st.campus_id
                  FROM (SELECT school_id, stream_id FROM class_teachers WHERE staff_id = $1
                        UNION
                        SELECT school_id, stream_id FROM subject_teachers WHERE staff_id = $1) taught
                  JOIN streams st ON st.school_id = taught.school_id AND st.id = taught.stream_id
                  JOIN campus_academic_years y
                    ON y.school_id = st.school_id AND y.id = st.campus_academic_year_id AND y.is_current
                UNION
                SELECT school_id, campus_id FROM directors_of_studies WHERE staff_id = $1) found
         WHERE ($2::uuid[] IS NULL OR found.campus_id = ANY($2))
         ORDER BY found.campus_id
        "#,
        staff,
        rows.campuses() as _
    )
    .fetch_all(tx.connection()?)
    .await?)
}

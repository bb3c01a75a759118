//! Streams, and who teaches them.

use super::{
    Call, ToolHandler,
    page::{self, Page, fetch, page},
    relationship::{STREAM_NOT_FOUND, director_of, director_of_stream},
};
use crate::{
    db::{
        DbError,
        department::NameKey,
        relationship::{CurrentStream, current_stream},
        stream::{self, NewStream, Stream, SubjectOfStream, Teacher},
        subject,
    },
    error::ToolError,
    posture::{AuditSubject, Posture, casl, relationship_noted},
};
use contract::{
    Action, Resource,
    tool::{Read, Write},
    tools::stream::{AssignClassTeacher, AssignSubjectTeacher, CreateStream, ListCampusStreams, ListStreams},
};
use serde::Serialize;
use uuid::Uuid;

const RESOURCE_TYPE: &str = "STREAM";
const CLASS_NOT_FOUND: ToolError = ToolError::NotFound("Class");
const STAFF_NOT_FOUND: ToolError = ToolError::NotFound("Staff member");

/// A stream with its new class teacher.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClassTeacherAssigned {
    stream_id: Uuid,
    stream_name: String,
    class_teacher: Teacher,
    /// Who was it until now; absent where nobody was.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced: Option<Teacher>,
    #[serde(skip)]
    subject: AuditSubject,
}

/// A subject in a stream with somebody who teaches it from now on.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SubjectTeacherAssigned {
    stream_id: Uuid,
    stream_name: String,
    subject_id: Uuid,
    subject_name: String,
    subject_teacher: Teacher,
    /// Who gave it up; absent where nobody was to.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced: Option<Teacher>,
    #[serde(skip)]
    subject: AuditSubject,
}

impl ToolHandler for ListStreams {
    type Output = Page<Stream>;
    const POSTURE: Posture<Read, Self::Output> = casl(Action::List, Resource::Stream);
    const ONE_PLAN: bool = true;

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let rows = call.rows(Action::List, Resource::Stream, self.campus_id)?;
        if let Some(class) = self.class_id
            && subject::schools_of_classes(call.tx(), &[class]).await?.is_empty()
        {
            return Err(CLASS_NOT_FOUND);
        }
        let after: Option<NameKey> = page::after(call, self.cursor.as_deref())?;
        let found = stream::list(call.tx(), &rows, self.class_id, after.as_ref(), fetch(self.limit)).await?;
        page(call, found, self.limit, |row| NameKey(row.name.clone(), row.id))
    }
}

impl ToolHandler for ListCampusStreams {
    type Output = Page<Stream>;
    const POSTURE: Posture<Read, Self::Output> =
        relationship_noted("These results cover the streams of one campus whose studies this person directs.");
    const ONE_PLAN: bool = true;

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let director = director_of(call, self.campus_id).await?;
        let after: Option<NameKey> = page::after(call, self.cursor.as_deref())?;
        let found = stream::of_campus(call.tx(), &director, after.as_ref(), fetch(self.limit)).await?;
        page(call, found, self.limit, |row| NameKey(row.name.clone(), row.id))
    }
}

impl ToolHandler for CreateStream {
    type Output = Stream;
    const POSTURE: Posture<Write, Self::Output> =
        casl(Action::Create, Resource::Stream).audited(Action::Create, RESOURCE_TYPE, |stream: &Stream| AuditSubject {
            school_id: stream.school_id,
            campus_id: Some(stream.campus_id),
            resource_id: stream.id,
        });

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let campus = call.one_campus(Action::Create, Resource::Stream, self.campus_id)?;
        let year = stream::year(call.tx(), campus, self.campus_academic_year_id).await?;
        let year = match (year, self.campus_academic_year_id) {
            (Some(year), _) => year,
            (None, Some(_)) => return Err(ToolError::NotFound("Academic year")),
            (None, None) => {
                return Err(ToolError::Conflict(
                    "That campus is in no academic year; name one as campusAcademicYearId.".to_owned(),
                ));
            }
        };
        let new = NewStream {
            name: &self.name,
            class_id: self.class_id,
            year,
        };
        stream::insert(call.tx(), new)
            .await
            .map_err(name_taken)?
            .ok_or(CLASS_NOT_FOUND)
    }
}

impl ToolHandler for AssignClassTeacher {
    type Output = ClassTeacherAssigned;
    const POSTURE: Posture<Write, Self::Output> = casl(Action::Update, Resource::Stream).audited(
        Action::Update,
        RESOURCE_TYPE,
        |assigned: &ClassTeacherAssigned| assigned.subject,
    );

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let rows = call.rows(Action::Update, Resource::Stream, None)?;
        let stream = current_stream(call.tx(), self.stream_id, &rows)
            .await?
            .ok_or(STREAM_NOT_FOUND)?;
        let teacher = stream::candidate(call.tx(), &stream, self.target_staff_id)
            .await?
            .ok_or(STAFF_NOT_FOUND)?;
        let replaced = if stream::add_class_teacher(call.tx(), &stream, &teacher).await? {
            None
        } else {
            let before = stream::class_teacher(call.tx(), &stream).await?;
            if before.staff_id == teacher.staff_id {
                return Err(ToolError::Conflict(
                    "That member of staff is the class teacher of this stream already.".to_owned(),
                ));
            }
            stream::replace_class_teacher(call.tx(), &stream, &teacher).await?;
            Some(before)
        };
        Ok(ClassTeacherAssigned {
            stream_id: stream.id(),
            stream_name: stream::name(call.tx(), &stream).await?,
            class_teacher: teacher,
            replaced,
            subject: subject_of(&stream),
        })
    }
}

impl ToolHandler for AssignSubjectTeacher {
    type Output = SubjectTeacherAssigned;
    const POSTURE: Posture<Write, Self::Output> = relationship_noted("This was one subject in one stream.").audited(
        Action::Update,
        RESOURCE_TYPE,
        |assigned: &SubjectTeacherAssigned| assigned.subject,
    );

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let proof = director_of_stream(call, self.stream_id).await?;
        if self.in_place_of_staff_id == Some(self.target_staff_id) {
            return Err(ToolError::Invalid(
                "inPlaceOfStaffId: nobody takes their own place".to_owned(),
            ));
        }
        let subject = stream::subject(call.tx(), &proof, self.subject_id)
            .await?
            .ok_or(ToolError::NotFound("Subject"))?;
        if !subject.is_on_curriculum {
            return Err(not_taken(&subject));
        }
        let teacher = stream::candidate(call.tx(), proof.stream(), self.target_staff_id)
            .await?
            .ok_or(STAFF_NOT_FOUND)?;
        let replaced = match self.in_place_of_staff_id {
            Some(staff) => {
                let gone = stream::take_subject(call.tx(), &proof, &subject, staff).await?;
                Some(gone.ok_or(ToolError::NotFound("Teacher of this subject in this stream"))?)
            }
            None => None,
        };
        // whoever teaches it beside the other already simply stays
        if !stream::give_subject(call.tx(), &proof, &subject, &teacher).await? && replaced.is_none() {
            return Err(ToolError::Conflict(
                "That member of staff teaches this subject to this stream already.".to_owned(),
            ));
        }
        Ok(SubjectTeacherAssigned {
            stream_id: proof.stream().id(),
            stream_name: stream::name(call.tx(), proof.stream()).await?,
            subject_id: subject.id,
            subject_name: subject.name,
            subject_teacher: teacher,
            replaced,
            subject: subject_of(proof.stream()),
        })
    }
}

fn subject_of(stream: &CurrentStream) -> AuditSubject {
    AuditSubject {
        school_id: stream.school(),
        campus_id: Some(stream.campus()),
        resource_id: stream.id(),
    }
}

fn not_taken(subject: &SubjectOfStream) -> ToolError {
    ToolError::Conflict(format!(
        "{} is not on the curriculum of {}, so it is not taught in its streams.",
        subject.name, subject.class_name
    ))
}

fn name_taken(error: DbError) -> ToolError {
    if error.is_duplicate_of("streams_name_key") {
        ToolError::Conflict("A stream of that name exists on this campus in that year.".to_owned())
    } else {
        error.into()
    }
}

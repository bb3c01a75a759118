//! What relationship tools assert first: that the actor stands to the row as the tool says. Each answers a proof, or the error that
//! the model reads; a row that is not there and one that is not the actor's give the same.

use super::{Call, NAME_A_CAMPUS};
use crate::{
    ability::CampusRule,
    db::{
        relationship::{
            self, AnswersForSubject, ClassTeacherOf, ClassTeacherOfStudent, CurrentStream, DirectorOfStudiesOf,
            DirectorOverPlan, DirectsStream, InChargeOf, SubjectTeacherIn, Teaches, TeachesOn, WriterOf,
        },
        results,
    },
    error::ToolError,
};
use contract::argument::RequestedCampus;
use uuid::Uuid;

/// The same for a stream that is not there, one of another year, and one that is not the actor's.
pub(super) const STREAM_NOT_FOUND: ToolError = ToolError::NotFound("Stream");
/// The same for a term that is not there, one of another year, and one of a campus that is not the actor's.
pub(super) const TERM_NOT_FOUND: ToolError = ToolError::NotFound("Term");
/// The same for a student who is not there, one who has left, and one of another's stream.
pub(super) const STUDENT_NOT_FOUND: ToolError = ToolError::NotFound("Student");
/// For whoever directs the studies of no campus.
pub(super) const NOT_A_DIRECTOR: ToolError = ToolError::Forbidden("this is for the director of studies of a campus");
/// For whoever teaches no subject.
const NOT_A_TEACHER: ToolError = ToolError::Forbidden("this is for whoever teaches a subject to a stream of this year");
/// The same for a plan that is not there, one of another year, and one that is neither the actor's own nor for the actor to review.
const PLAN_NOT_FOUND: ToolError = ToolError::NotFound("Lesson plan");
/// For a plan of one's own whose stream somebody else teaches now.
const TEACHES_NO_MORE: ToolError =
    ToolError::Forbidden("this plan is for a subject and a stream that this person no longer teaches");
/// For whoever teaches on no campus.
const NO_TEACHER: ToolError = ToolError::Forbidden("this is for who teaches on a campus or directs its studies");

/// The rows of the pinned campus, or of any: what a relationship is about limits them further.
pub(super) fn pinned(call: &Call<'_>) -> CampusRule {
    call.named_campus(None)
        .map_or(CampusRule::All, |campus| CampusRule::All.within(campus))
}

/// The stream, for its class teacher.
pub(super) async fn class_teacher_of(call: &mut Call<'_>, stream: Uuid) -> Result<ClassTeacherOf, ToolError> {
    let stream = current_stream(call, stream).await?;
    let actor = call.actor();
    relationship::class_teacher_of(call.tx(), actor, stream)
        .await?
        .ok_or(STREAM_NOT_FOUND)
}

/// The student, for the class teacher of the stream that they are in.
pub(super) async fn class_teacher_of_student(
    call: &mut Call<'_>,
    student: Uuid,
) -> Result<ClassTeacherOfStudent, ToolError> {
    let rows = pinned(call);
    let actor = call.actor();
    relationship::class_teacher_of_student(call.tx(), actor, student, &rows)
        .await?
        .ok_or(STUDENT_NOT_FOUND)
}

/// The stream, for its class teacher and for a director of studies of its campus.
pub(super) async fn in_charge_of(call: &mut Call<'_>, stream: Uuid) -> Result<InChargeOf, ToolError> {
    let stream = current_stream(call, stream).await?;
    let actor = call.actor();
    if let Some(proof) = relationship::class_teacher_of(call.tx(), actor, stream).await? {
        return Ok(proof.into());
    }
    let director = relationship::director_of_studies_of(call.tx(), actor, stream.campus()).await?;
    director
        .and_then(|director| director.in_charge_of(stream))
        .ok_or(STREAM_NOT_FOUND)
}

/// A subject in a stream, for who teaches it there.
pub(super) async fn teaches(call: &mut Call<'_>, stream: Uuid, subject: Uuid) -> Result<Teaches, ToolError> {
    let stream = current_stream(call, stream).await?;
    let actor = call.actor();
    relationship::teaches(call.tx(), actor, stream, subject)
        .await?
        .ok_or(STREAM_NOT_FOUND)
}

/// A subject in a stream, for who teaches it there and for a director of studies of the campus.
pub(super) async fn answers_for(
    call: &mut Call<'_>,
    stream: Uuid,
    subject: Uuid,
) -> Result<AnswersForSubject, ToolError> {
    let stream = current_stream(call, stream).await?;
    let actor = call.actor();
    if let Some(proof) = relationship::teaches(call.tx(), actor, stream, subject).await? {
        return Ok(proof.into());
    }
    let director = relationship::director_of_studies_of(call.tx(), actor, stream.campus()).await?;
    director
        .and_then(|director| director.answers_for(stream, subject))
        .ok_or(STREAM_NOT_FOUND)
}

/// The pinned or requested campus, else the only one, for a director of its studies.
pub(super) async fn director_of(
    call: &mut Call<'_>,
    requested: Option<RequestedCampus>,
) -> Result<DirectorOfStudiesOf, ToolError> {
    let directed = directed_by(call, requested).await?;
    match directed.as_slice() {
        &[only] => Ok(only),
        _ => Err(ToolError::Invalid(NAME_A_CAMPUS.to_owned())),
    }
}

/// The campuses whose studies the actor directs, of the pinned or requested one or of all; at least one.
async fn directed_by(
    call: &mut Call<'_>,
    requested: Option<RequestedCampus>,
) -> Result<Vec<DirectorOfStudiesOf>, ToolError> {
    let actor = call.actor();
    let named = call.named_campus(requested);
    let rows = named.map_or(CampusRule::All, |campus| CampusRule::All.within(campus));
    let directed = relationship::directs(call.tx(), actor, &rows).await?;
    match (directed.is_empty(), named) {
        (false, _) => Ok(directed),
        (true, None) => Err(NOT_A_DIRECTOR),
        (true, Some(_)) => Err(ToolError::NotFound("Campus")),
    }
}

/// A term's campus, for a director of its studies; the term is of the year that the campus is in.
pub(super) async fn director_of_term(
    call: &mut Call<'_>,
    term: Uuid,
    requested: Option<RequestedCampus>,
) -> Result<DirectorOfStudiesOf, ToolError> {
    let directed = directed_by(call, requested).await?;
    let campus = results::campus_of_term(call.tx(), term).await?;
    let proof = directed.into_iter().find(|proof| Some(proof.campus()) == campus);
    proof.ok_or(TERM_NOT_FOUND)
}

/// The pinned or requested campus, else the only one, for whoever teaches on it or directs its studies.
pub(super) async fn teaches_on(
    call: &mut Call<'_>,
    requested: Option<RequestedCampus>,
) -> Result<TeachesOn, ToolError> {
    let actor = call.actor();
    let named = call.named_campus(requested);
    let rows = named.map_or(CampusRule::All, |campus| CampusRule::All.within(campus));
    let taught = relationship::teaches_on(call.tx(), actor, &rows).await?;
    match (taught.as_slice(), named) {
        (&[only], _) => Ok(only),
        ([], None) => Err(NO_TEACHER),
        ([], Some(_)) => Err(ToolError::NotFound("Campus")),
        (_, _) => Err(ToolError::Invalid(NAME_A_CAMPUS.to_owned())),
    }
}

/// The stream, for a director of studies of its campus; whoever directs none is told so.
pub(super) async fn director_of_stream(call: &mut Call<'_>, stream: Uuid) -> Result<DirectsStream, ToolError> {
    let actor = call.actor();
    let directed = relationship::directs(call.tx(), actor, &CampusRule::All).await?;
    if directed.is_empty() {
        return Err(NOT_A_DIRECTOR);
    }
    let stream = current_stream(call, stream).await?;
    let mut proofs = directed.into_iter().filter_map(|director| director.directs(stream));
    proofs.next().ok_or(STREAM_NOT_FOUND)
}

/// The school, for whoever teaches a subject to a stream of the current year.
pub(super) async fn subject_teacher(call: &mut Call<'_>) -> Result<SubjectTeacherIn, ToolError> {
    let (rows, actor) = (pinned(call), call.actor());
    relationship::subject_teacher(call.tx(), actor, &rows)
        .await?
        .ok_or(NOT_A_TEACHER)
}

/// The lesson plan, for who wrote it and still teaches what it is for.
pub(super) async fn writer_of(call: &mut Call<'_>, plan: Uuid) -> Result<WriterOf, ToolError> {
    let (rows, actor) = (pinned(call), call.actor());
    let author = relationship::author_of(call.tx(), actor, plan, &rows).await?;
    let author = author.ok_or(PLAN_NOT_FOUND)?;
    author.still_teaching(call.tx(), actor).await?.ok_or(TEACHES_NO_MORE)
}

/// The lesson plan, for a director of studies of its campus.
pub(super) async fn director_over_plan(call: &mut Call<'_>, plan: Uuid) -> Result<DirectorOverPlan, ToolError> {
    let (rows, actor) = (pinned(call), call.actor());
    relationship::director_over_plan(call.tx(), actor, plan, &rows)
        .await?
        .ok_or(PLAN_NOT_FOUND)
}

async fn current_stream(call: &mut Call<'_>, stream: Uuid) -> Result<CurrentStream, ToolError> {
    let rows = pinned(call);
    relationship::current_stream(call.tx(), stream, &rows)
        .await?
        .ok_or(STREAM_NOT_FOUND)
}

//! Students: finding them, and what the school keeps of them.

use super::{
    Call, ToolHandler,
    page::{self, Page, fetch, page},
    relationship::STREAM_NOT_FOUND,
};
use crate::{
    ability::CampusRule,
    db::{
        DbError,
        relationship::{CurrentStream, current_stream},
        student::{self, Change, Enrolment, Held, NewStudent, StudentDetails},
        student_word::{self, Match, WordKey},
    },
    error::ToolError,
    posture::{AuditSubject, Posture, casl},
};
use chrono::NaiveDate;
use contract::{
    Action, Resource,
    tool::{Read, Write},
    tools::student::{EnrolStudent, GetStudent, SearchStudents, StudentField, TransferStudent, UpdateStudent},
};
use serde::Serialize;
use uuid::Uuid;

const RESOURCE_TYPE: &str = "STUDENT";
const NOT_FOUND: ToolError = ToolError::NotFound("Student");

impl ToolHandler for SearchStudents {
    type Output = Page<Match>;
    const POSTURE: Posture<Read, Self::Output> = casl(Action::List, Resource::Student);
    const ONE_PLAN: bool = true;

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let rows = call.rows(Action::List, Resource::Student, self.campus_id)?;
        let stream = match self.stream_id {
            Some(stream) => Some(stream_in(call, stream, &rows).await?),
            None => None,
        };
        let terms = student_word::terms(call.tx(), &self.query)
            .await?
            .ok_or_else(|| ToolError::Invalid("query: it has no letters and no digits".to_owned()))?;
        let after: Option<WordKey> = page::after(call, self.cursor.as_deref())?;
        let limit = fetch(self.limit);
        let found = match &stream {
            Some(stream) => student_word::search_in(call.tx(), &terms, stream, after.as_ref(), limit).await?,
            None => student_word::search(call.tx(), &terms, &rows, after.as_ref(), limit).await?,
        };
        page(call, found, self.limit, |row| WordKey(row.word.clone(), row.student_id))
    }
}

impl ToolHandler for GetStudent {
    type Output = StudentDetails;
    const POSTURE: Posture<Read, Self::Output> = casl(Action::Read, Resource::Student);

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let rows = call.rows(Action::Read, Resource::Student, None)?;
        student::details(call.tx(), self.student_id, &rows)
            .await?
            .ok_or(NOT_FOUND)
    }
}

impl ToolHandler for EnrolStudent {
    type Output = StudentDetails;
    const POSTURE: Posture<Write, Self::Output> =
        casl(Action::Create, Resource::Student).audited(Action::Create, RESOURCE_TYPE, subject);

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let who = who(&self)?;
        let rows = call.rows(Action::Create, Resource::Student, None)?;
        let stream = stream_in(call, self.stream_id, &rows).await?;
        let today = student::today(call.tx(), stream.school()).await?;
        let student = match who {
            Who::New(new) => {
                born_before(new.born_on, today)?;
                let admitted = student::insert(call.tx(), &stream, new).await.map_err(number_taken)?;
                if let Some(guardians) = &self.guardians {
                    student::set_guardians(call.tx(), &admitted, guardians).await?;
                }
                admitted
            }
            Who::Known(id) => {
                let known = held(call, id, &rows, &stream).await?;
                still_here(&known)?;
                if let Some(already) = student::current_enrolments(call.tx(), &known).await?.first() {
                    return Err(enrolled_in(already, &rows));
                }
                known
            }
        };
        student::enrol(call.tx(), &student, &stream, today).await?;
        details_of(call, &student).await
    }
}

impl ToolHandler for UpdateStudent {
    type Output = StudentDetails;
    const POSTURE: Posture<Write, Self::Output> =
        casl(Action::Update, Resource::Student).audited(Action::Update, RESOURCE_TYPE, subject);

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let clear = self.clear.as_deref().unwrap_or_default();
        let change = Change {
            given_name: self.given_name.as_deref(),
            family_name: self.family_name.as_deref(),
            admission_number: self.admission_number.as_deref(),
            born_on: self.born_on,
            clear_born_on: clear.contains(&StudentField::BornOn),
            notes: self.notes.as_deref(),
            clear_notes: clear.contains(&StudentField::Notes),
            active: self.active,
        };
        let guardians = match (self.guardians.as_deref(), clear.contains(&StudentField::Guardians)) {
            (Some(_), true) => return Err(given_and_cleared("guardians")),
            (None, true) => Some(&[][..]),
            (given, false) => given,
        };
        if change.notes.is_some() && change.clear_notes {
            return Err(given_and_cleared("notes"));
        }
        if change.born_on.is_some() && change.clear_born_on {
            return Err(given_and_cleared("bornOn"));
        }
        if change.is_none() && guardians.is_none() {
            return Err(ToolError::Invalid("arguments: name what to change".to_owned()));
        }
        let rows = call.rows(Action::Update, Resource::Student, None)?;
        let found = student::find(call.tx(), self.student_id, &rows)
            .await?
            .ok_or(NOT_FOUND)?;
        let today = student::today(call.tx(), found.school_id).await?;
        born_before(self.born_on, today)?;
        if !change.is_none() {
            student::update(call.tx(), &found, change).await.map_err(number_taken)?;
        }
        if let Some(guardians) = guardians {
            student::set_guardians(call.tx(), &found, guardians).await?;
        }
        details_of(call, &found).await
    }
}

/// A student as they are after a transfer, and where they were: whoever approves of it is to see both.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Transferred {
    #[serde(flatten)]
    details: StudentDetails,
    from_stream_id: Uuid,
    from_stream_name: String,
}

impl ToolHandler for TransferStudent {
    type Output = Transferred;
    const POSTURE: Posture<Write, Self::Output> =
        casl(Action::Update, Resource::Student).audited(Action::Update, RESOURCE_TYPE, |moved: &Transferred| {
            subject(&moved.details)
        });

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let rows = call.rows(Action::Update, Resource::Student, None)?;
        let stream = stream_in(call, self.stream_id, &rows).await?;
        let student = held(call, self.student_id, &rows, &stream).await?;
        still_here(&student)?;
        let enrolments = student::current_enrolments(call.tx(), &student).await?;
        if enrolments.iter().any(|enrolment| enrolment.stream_id == stream.id()) {
            return Err(ToolError::Conflict(
                "That student is in this stream already.".to_owned(),
            ));
        }
        // the rule reaches the stream that is left as well
        let mut left = enrolments.iter().filter(|from| rows.includes(Some(from.campus_id)));
        let from = match (left.next(), enrolments.is_empty()) {
            (Some(from), _) => from,
            (None, true) => {
                return Err(ToolError::Conflict(
                    "That student is in no stream of the current year; enrol_student puts them into one.".to_owned(),
                ));
            }
            (None, false) => return Err(NOT_FOUND),
        };
        let today = student::today(call.tx(), student.school_id).await?;
        student::transfer(call.tx(), &student, from, &stream, today)
            .await
            .map_err(year_taken)?;
        Ok(Transferred {
            details: details_of(call, &student).await?,
            from_stream_id: from.stream_id,
            from_stream_name: from.stream_name.clone(),
        })
    }
}

/// Who is to be enrolled.
#[derive(Debug, Clone, Copy)]
enum Who<'a> {
    New(NewStudent<'a>),
    Known(Uuid),
}

/// A new student or a known one: never both, never neither.
fn who(args: &EnrolStudent) -> Result<Who<'_>, ToolError> {
    let names = (
        args.given_name.as_deref(),
        args.family_name.as_deref(),
        args.admission_number.as_deref(),
    );
    let says_more = args.born_on.is_some() || args.notes.is_some() || args.guardians.is_some();
    match (args.student_id, names) {
        (Some(id), (None, None, None)) if !says_more => Ok(Who::Known(id)),
        (Some(_), _) => Err(ToolError::Invalid(
            "studentId: name a student whom the school has, or say who a new student is, not both".to_owned(),
        )),
        (None, (Some(given_name), Some(family_name), Some(admission_number))) => Ok(Who::New(NewStudent {
            given_name,
            family_name,
            admission_number,
            born_on: args.born_on,
            notes: args.notes.as_deref(),
        })),
        (None, _) => Err(ToolError::Invalid(
            "arguments: a new student needs givenName, familyName and admissionNumber; another one is named by studentId"
                .to_owned(),
        )),
    }
}

/// The stream of the current year, where the rule reaches its campus.
async fn stream_in(call: &mut Call<'_>, stream: Uuid, rows: &CampusRule) -> Result<CurrentStream, ToolError> {
    current_stream(call.tx(), stream, rows).await?.ok_or(STREAM_NOT_FOUND)
}

/// The student, held, where the rule reaches their campus and they are of the stream's school.
async fn held(call: &mut Call<'_>, id: Uuid, rows: &CampusRule, stream: &CurrentStream) -> Result<Held, ToolError> {
    let found = student::find(call.tx(), id, rows).await?;
    found
        .filter(|student| student.school_id == stream.school())
        .ok_or(NOT_FOUND)
}

/// Who has left is put into no stream.
fn still_here(student: &Held) -> Result<(), ToolError> {
    if student.active {
        return Ok(());
    }
    Err(ToolError::Conflict(
        "That student has left the school; update_student brings them back.".to_owned(),
    ))
}

/// The student as they are now. Whoever was allowed to change the row reads it back, wherever it is now.
async fn details_of(call: &mut Call<'_>, student: &Held) -> Result<StudentDetails, ToolError> {
    student::details(call.tx(), student.id, &CampusRule::All)
        .await?
        .ok_or(NOT_FOUND)
}

fn born_before(born_on: Option<NaiveDate>, today: NaiveDate) -> Result<(), ToolError> {
    match born_on {
        Some(day) if day > today => Err(ToolError::Invalid("bornOn: that day has not come yet".to_owned())),
        _ => Ok(()),
    }
}

fn given_and_cleared(field: &str) -> ToolError {
    ToolError::Invalid(format!("clear: {field} is given and cleared at once"))
}

/// Names the stream to whoever may know it.
fn enrolled_in(already: &Enrolment, rows: &CampusRule) -> ToolError {
    if rows.includes(Some(already.campus_id)) {
        ToolError::Conflict(format!(
            "That student is in {} this year already; transfer_student moves them.",
            already.stream_name
        ))
    } else {
        NOT_FOUND
    }
}

fn number_taken(error: DbError) -> ToolError {
    if error.is_duplicate_of("students_admission_number_key") {
        ToolError::Conflict("A student with that admission number exists in this school.".to_owned())
    } else {
        error.into()
    }
}

fn year_taken(error: DbError) -> ToolError {
    if error.is_duplicate_of("enrolments_student_key") {
        ToolError::Conflict("That student is in another stream of that campus this year already.".to_owned())
    } else {
        error.into()
    }
}

fn subject(details: &StudentDetails) -> AuditSubject {
    AuditSubject {
        school_id: details.student.school_id,
        campus_id: Some(details.student.campus_id),
        resource_id: details.student.id,
    }
}

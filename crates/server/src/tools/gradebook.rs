//! What scores come to: gradebooks, and the results of a term.

use super::{
    Call, ToolHandler,
    assessment::MAX_ASSESSMENTS,
    page::{self, Page, fetch, fit, page_beside},
    relationship::{NOT_A_DIRECTOR, TERM_NOT_FOUND, answers_for, director_of, director_of_term, in_charge_of},
};
use crate::{
    db::{
        assessment::{self, TermOfStream},
        gradebook::{self, ClassRow, Column, SubjectAverage, SubjectRow},
        results::{self, Missing, PublishedResults, TermOfCampus},
        teaching::RosterKey,
    },
    error::ToolError,
    posture::{AuditSubject, Posture, relationship, relationship_noted},
};
use contract::{
    Action,
    tool::{Read, Write},
    tools::gradebook::{GetClassGradebook, GetSubjectGradebook, PublishResults},
};
use serde::Serialize;
use std::collections::HashSet;
use uuid::Uuid;

/// How many bytes what a gradebook says before its students may take: less than half a reply, so that a student, who has no more in it
/// than the head, has room beside it.
const HEAD_BYTES: usize = 12 * 1024;
/// More subjects than a head of that size has room for.
const MAX_SUBJECTS: i64 = 200;
/// How many assessments with missing scores are told: enough to begin with.
const MAX_MISSING: i64 = 10;

/// What a subject gradebook says before its students.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SubjectHead {
    #[serde(flatten)]
    term: TermOfStream,
    assessments: Vec<Column>,
}

/// The gradebook of a stream in a subject.
#[derive(Debug, Serialize)]
pub struct SubjectGradebook {
    #[serde(flatten)]
    head: SubjectHead,
    #[serde(flatten)]
    page: Page<SubjectRow>,
}

/// What a class gradebook says before its students.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ClassHead {
    #[serde(flatten)]
    term: TermOfStream,
    subjects: Vec<SubjectAverage>,
}

/// The gradebook of a stream in all its subjects.
#[derive(Debug, Serialize)]
pub struct ClassGradebook {
    #[serde(flatten)]
    head: ClassHead,
    #[serde(flatten)]
    page: Page<ClassRow>,
}

/// The results of a term, and what they are of.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Publication {
    #[serde(flatten)]
    published: PublishedResults,
    term_name: String,
    campus_id: Uuid,
    /// How many assessments they come from.
    assessments: i64,
    /// How many streams those are of.
    streams: i64,
}

impl ToolHandler for GetSubjectGradebook {
    type Output = SubjectGradebook;
    const POSTURE: Posture<Read, Self::Output> = relationship();

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let proof = answers_for(call, self.stream_id, self.subject_id).await?;
        let term = assessment::term(call.tx(), proof.stream(), self.term_id)
            .await?
            .ok_or(TERM_NOT_FOUND)?;
        let after: Option<RosterKey> = page::after(call, self.cursor.as_deref())?;
        let found = gradebook::of_subject(call.tx(), &proof, &term, after.as_ref(), fetch(self.limit)).await?;
        let assessments = gradebook::columns(call.tx(), &proof, &term, MAX_ASSESSMENTS).await?;
        let assessments = fit(call, assessments, HEAD_BYTES)?;
        let head = SubjectHead { term, assessments };
        let page = page_beside(call, &head, found, self.limit, |row| {
            RosterKey(row.family_name.clone(), row.given_name.clone(), row.student_id)
        })?;
        Ok(SubjectGradebook { head, page })
    }
}

impl ToolHandler for GetClassGradebook {
    type Output = ClassGradebook;
    const POSTURE: Posture<Read, Self::Output> = relationship();

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let proof = in_charge_of(call, self.stream_id).await?;
        let term = assessment::term(call.tx(), proof.stream(), self.term_id)
            .await?
            .ok_or(TERM_NOT_FOUND)?;
        let after: Option<RosterKey> = page::after(call, self.cursor.as_deref())?;
        let mut found = gradebook::of_class(call.tx(), &proof, &term, after.as_ref(), fetch(self.limit)).await?;
        let subjects = gradebook::subjects(call.tx(), &proof, &term, MAX_SUBJECTS).await?;
        let subjects = fit(call, subjects, HEAD_BYTES)?;
        let named: HashSet<&str> = subjects.iter().map(|subject| subject.name.as_str()).collect();
        for row in &mut found {
            row.averages.retain(|name, _| named.contains(name.as_str()));
        }
        let head = ClassHead { term, subjects };
        let page = page_beside(call, &head, found, self.limit, |row| {
            RosterKey(row.family_name.clone(), row.given_name.clone(), row.student_id)
        })?;
        Ok(ClassGradebook { head, page })
    }
}

impl ToolHandler for PublishResults {
    type Output = Publication;
    const POSTURE: Posture<Write, Self::Output> = relationship_noted(
        "These were the results of one term on one campus.",
    )
    .audited(Action::Create, "GRADEBOOK", |publication: &Publication| AuditSubject {
        school_id: publication.published.school_id,
        campus_id: Some(publication.campus_id),
        resource_id: publication.published.id,
    });

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let proof = match self.term_id {
            Some(term) => director_of_term(call, term, self.campus_id).await?,
            None => director_of(call, self.campus_id).await?,
        };
        let term = results::term(call.tx(), &proof, self.term_id)
            .await?
            .ok_or(TERM_NOT_FOUND)?;
        if !results::close(call.tx(), &term).await? {
            return Err(ToolError::Conflict(format!(
                "The results of {} are published already.",
                term.name
            )));
        }
        let assessed = results::assessed(call.tx(), &term).await?;
        let missing = results::missing(call.tx(), &term, MAX_MISSING).await?;
        if let Some(text) = not_ready(&term, assessed.assessments, assessed.ahead, &missing) {
            return Err(ToolError::Conflict(text));
        }
        let staff = call.actor().staff_id.ok_or(NOT_A_DIRECTOR)?;
        let published = results::publish(call.tx(), &term, staff).await?;
        Ok(Publication {
            published,
            term_name: term.name,
            campus_id: proof.campus(),
            assessments: assessed.assessments,
            streams: assessed.streams,
        })
    }
}

/// Why the results of a term cannot be published yet.
fn not_ready(term: &TermOfCampus, assessments: i64, ahead: i64, missing: &[Missing]) -> Option<String> {
    let name = &term.name;
    if assessments == 0 {
        return Some(format!(
            "Nobody was assessed in {name}; there are no results to publish."
        ));
    }
    if let Some(first) = missing.first() {
        let rows: Vec<String> = missing.iter().map(missing_in).collect();
        let more = usize::try_from(first.of).unwrap_or_default().saturating_sub(rows.len());
        let rest = match more {
            0 => String::new(),
            1 => "; and 1 more assessment".to_owned(),
            more => format!("; and {more} more assessments"),
        };
        return Some(format!("Scores are missing in {name}: {}{rest}.", rows.join("; ")));
    }
    (ahead > 0).then(|| {
        format!(
            "{ahead} assessment{} of {name} will be held later than today.",
            plural(ahead)
        )
    })
}

fn missing_in(row: &Missing) -> String {
    let Missing {
        assessment,
        subject,
        stream,
        students,
        ..
    } = row;
    format!(
        "{assessment} in {subject}, {stream}: {students} student{}",
        plural(*students)
    )
}

const fn plural(count: i64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

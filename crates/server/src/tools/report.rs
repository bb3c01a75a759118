//! What class teachers write on reports.

use super::{
    Call, ToolHandler,
    page::{self, Page, fetch, page},
    relationship::{STUDENT_NOT_FOUND, class_teacher_of_student, in_charge_of},
};
use crate::{
    db::{
        academic_year::{self, Term},
        relationship::CurrentStream,
        report::{self, CommentRow},
        teaching::RosterKey,
    },
    error::ToolError,
    posture::{AuditSubject, Posture, relationship, relationship_noted},
};
use contract::{
    Action,
    tool::{Read, Write},
    tools::report::{ListReportComments, WriteReportComment},
};
use serde::Serialize;
use uuid::Uuid;

/// A term as a reply names it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OfTerm {
    term_id: Uuid,
    term_name: String,
}

/// A comment that was written.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Written {
    id: Uuid,
    student_id: Uuid,
    stream_id: Uuid,
    #[serde(flatten)]
    term: OfTerm,
    comment: String,
    /// Whether it took the place of an earlier one.
    replaced: bool,
    #[serde(skip)]
    subject: AuditSubject,
}

/// The comments on a stream's reports of a term.
#[derive(Debug, Serialize)]
pub struct Comments {
    #[serde(flatten)]
    term: OfTerm,
    #[serde(flatten)]
    page: Page<CommentRow>,
}

impl ToolHandler for WriteReportComment {
    type Output = Written;
    const POSTURE: Posture<Write, Self::Output> = relationship_noted("This was one student's report of one term.")
        .audited(Action::Create, "REPORT_COMMENT", |written: &Written| written.subject);

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let proof = class_teacher_of_student(call, self.student_id).await?;
        let stream = *proof.stream();
        let term = term_of(call, &stream, None).await?;
        let written = report::write(call.tx(), &proof, &term, &self.comment)
            .await?
            .ok_or(STUDENT_NOT_FOUND)?;
        Ok(Written {
            id: written.id,
            student_id: proof.student(),
            stream_id: stream.id(),
            term: named(term),
            comment: self.comment,
            replaced: written.replaced,
            subject: AuditSubject {
                school_id: stream.school(),
                campus_id: Some(stream.campus()),
                resource_id: written.id,
            },
        })
    }
}

impl ToolHandler for ListReportComments {
    type Output = Comments;
    const POSTURE: Posture<Read, Self::Output> = relationship();

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let proof = in_charge_of(call, self.stream_id).await?;
        let after: Option<RosterKey> = page::after(call, self.cursor.as_deref())?;
        let term = term_of(call, proof.stream(), self.term_id).await?;
        let found = report::list(call.tx(), &proof, &term, after.as_ref(), fetch(self.limit)).await?;
        let page = page(call, found, self.limit, |row| {
            RosterKey(row.family_name.clone(), row.given_name.clone(), row.student_id)
        })?;
        Ok(Comments {
            term: named(term),
            page,
        })
    }
}

/// A term of the stream's year: the one that is named, else the current one.
async fn term_of(call: &mut Call<'_>, stream: &CurrentStream, requested: Option<Uuid>) -> Result<Term, ToolError> {
    match requested {
        Some(term) => academic_year::term(call.tx(), stream, term)
            .await?
            .ok_or(ToolError::NotFound("Term")),
        None => academic_year::school_day(call.tx(), stream)
            .await?
            .term
            .ok_or_else(|| ToolError::Conflict("The campus's year has no terms yet.".to_owned())),
    }
}

fn named(term: Term) -> OfTerm {
    OfTerm {
        term_id: term.id,
        term_name: term.name,
    }
}

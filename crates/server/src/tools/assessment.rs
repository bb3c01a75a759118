//! Assessments and the scores in them.

use super::{
    Call, ToolHandler,
    page::{self, Page, fetch, page_beside},
    relationship::{TERM_NOT_FOUND, answers_for, teaches},
};
use crate::{
    db::{
        DbError,
        assessment::{self, Assessment, AssessmentKey, ListedAssessment, NewAssessment, TermOfStream},
        relationship::Teaches,
        results,
    },
    error::ToolError,
    posture::{AuditSubject, Posture, relationship},
};
use contract::{
    Action,
    tool::{Read, Write},
    tools::assessment::{CreateAssessment, ListAssessments, RecordScores, StudentScore},
};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use uuid::Uuid;

const RESOURCE_TYPE: &str = "ASSESSMENT";
const NOT_FOUND: ToolError = ToolError::NotFound("Assessment");
const PUBLISHED: &str = "The results of that term are published; nothing is added to them any more.";
/// How many wrong rows of a batch are told: enough to see what is wrong with them.
const MAX_WRONG_ROWS: usize = 10;
/// How many assessments a stream has in a subject and term at the most: each is a column of its gradebook.
pub(super) const MAX_ASSESSMENTS: i64 = 60;

/// The assessments of a term.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Assessments {
    #[serde(flatten)]
    term: TermOfStream,
    #[serde(flatten)]
    page: Page<ListedAssessment>,
}

/// An assessment that was made.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CreatedAssessment {
    #[serde(skip)]
    campus_id: Uuid,
    #[serde(flatten)]
    assessment: Assessment,
    term_name: String,
}

/// What came of recording scores.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedScores {
    #[serde(skip)]
    school_id: Uuid,
    #[serde(skip)]
    campus_id: Uuid,
    assessment_id: Uuid,
    assessment_name: String,
    /// How many scores are new.
    new: usize,
    /// How many stand in the place of others.
    replaced: usize,
}

impl ToolHandler for ListAssessments {
    type Output = Assessments;
    const POSTURE: Posture<Read, Self::Output> = relationship();
    const ONE_PLAN: bool = true;

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let proof = answers_for(call, self.stream_id, self.subject_id).await?;
        let term = assessment::term(call.tx(), proof.stream(), self.term_id)
            .await?
            .ok_or(TERM_NOT_FOUND)?;
        let after: Option<AssessmentKey> = page::after(call, self.cursor.as_deref())?;
        let found = assessment::list(call.tx(), &proof, &term, after.as_ref(), fetch(self.limit)).await?;
        let page = page_beside(call, &term, found, self.limit, |row| AssessmentKey(row.held_on, row.id))?;
        Ok(Assessments { term, page })
    }
}

impl ToolHandler for CreateAssessment {
    type Output = CreatedAssessment;
    const POSTURE: Posture<Write, Self::Output> =
        relationship().audited(Action::Create, RESOURCE_TYPE, |created: &CreatedAssessment| {
            AuditSubject {
                school_id: created.assessment.school_id,
                campus_id: Some(created.campus_id),
                resource_id: created.assessment.id,
            }
        });

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let proof = teaches(call, self.stream_id, self.subject_id).await?;
        let term = assessment::term(call.tx(), proof.stream(), self.term_id)
            .await?
            .ok_or(TERM_NOT_FOUND)?;
        let year = term.year_from..=term.year_to;
        if self.held_on.is_some_and(|day| !year.contains(&day)) {
            return Err(ToolError::Invalid(format!(
                "heldOn: not in the school year, which is from {} to {}",
                year.start(),
                year.end()
            )));
        }
        keep_open(call, term.school_id, term.id).await?;
        if assessment::count(call.tx(), &proof, &term).await? >= MAX_ASSESSMENTS {
            return Err(ToolError::Conflict(format!(
                "This stream has {MAX_ASSESSMENTS} assessments in the subject and term already; there can be no more."
            )));
        }
        let new = NewAssessment {
            name: &self.name,
            out_of: self.out_of,
            weight: self.weight,
            held_on: self.held_on,
        };
        let assessment = assessment::insert(call.tx(), &proof, &term, new)
            .await
            .map_err(name_taken)?;
        Ok(CreatedAssessment {
            campus_id: proof.stream().campus(),
            assessment,
            term_name: term.name,
        })
    }
}

impl ToolHandler for RecordScores {
    type Output = RecordedScores;
    const POSTURE: Posture<Write, Self::Output> =
        relationship().audited(Action::Update, RESOURCE_TYPE, |recorded: &RecordedScores| {
            AuditSubject {
                school_id: recorded.school_id,
                campus_id: Some(recorded.campus_id),
                resource_id: recorded.assessment_id,
            }
        });

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let (proof, assessment) = taught(call, self.assessment_id).await?;
        keep_open(call, assessment.school_id, assessment.term_id).await?;
        let students: Vec<Uuid> = self.scores.iter().map(|row| row.student_id).collect();
        let strangers = assessment::strangers(call.tx(), &proof, &students).await?;
        if let Some(text) = wrong_rows(&self.scores, &assessment, &strangers) {
            return Err(ToolError::Invalid(text));
        }
        let scores: Vec<f64> = self.scores.iter().map(|row| row.score).collect();
        let recorded = assessment::record(call.tx(), &assessment, &students, &scores).await?;
        Ok(RecordedScores {
            school_id: assessment.school_id,
            campus_id: proof.stream().campus(),
            assessment_id: assessment.id,
            assessment_name: assessment.name,
            new: recorded.new,
            replaced: recorded.replaced,
        })
    }
}

/// The assessment, for who teaches its subject to its stream. One that is not there and one that is not the actor's give the same.
async fn taught(call: &mut Call<'_>, id: Uuid) -> Result<(Teaches, Assessment), ToolError> {
    let place = assessment::place(call.tx(), id).await?.ok_or(NOT_FOUND)?;
    let proof = teaches(call, place.stream_id, place.subject_id)
        .await
        .map_err(as_unknown)?;
    let assessment = assessment::find(call.tx(), &proof, id).await?.ok_or(NOT_FOUND)?;
    Ok((proof, assessment))
}

fn as_unknown(error: ToolError) -> ToolError {
    if let ToolError::NotFound(_) = error {
        NOT_FOUND
    } else {
        error
    }
}

/// Holds the term as it is until the call ends, where its results are not out.
async fn keep_open(call: &mut Call<'_>, school: Uuid, term: Uuid) -> Result<(), ToolError> {
    if results::keep_open(call.tx(), school, term).await? {
        Ok(())
    } else {
        Err(ToolError::Conflict(PUBLISHED.to_owned()))
    }
}

/// What is wrong with the rows of a batch, by their places from 1; `strangers` are the places of who is not in the stream.
fn wrong_rows(rows: &[StudentScore], assessment: &Assessment, strangers: &[i64]) -> Option<String> {
    let mut wrong: BTreeMap<i64, &str> = BTreeMap::new();
    let mut first: HashMap<Uuid, i64> = HashMap::new();
    for (row, place) in rows.iter().zip(1..) {
        if first.insert(row.student_id, place).is_some() {
            wrong.insert(place, "the student is there twice");
        }
        if row.score < 0.0 || row.score > f64::from(assessment.out_of) {
            wrong.insert(place, "the score is not between 0 and the highest");
        } else if !has_two_decimals(row.score) {
            wrong.insert(place, "the score has more than two decimals");
        }
    }
    wrong.extend(strangers.iter().map(|place| (*place, "no student of this stream")));
    if wrong.is_empty() {
        return None;
    }
    let told = wrong.iter().take(MAX_WRONG_ROWS);
    let mut text: Vec<String> = told.map(|(place, what)| format!("row {place}: {what}")).collect();
    if let Some(more @ 1..) = wrong.len().checked_sub(MAX_WRONG_ROWS) {
        text.push(format!("and {more} more rows"));
    }
    let highest = assessment.out_of;
    Some(format!(
        "scores: {} (the highest score is {highest}; nothing was recorded)",
        text.join("; ")
    ))
}

/// Whether a number was written with two decimals at most: then it is the float that is nearest to its hundredths.
#[expect(clippy::float_cmp, reason = "the nearest float to a number is one float")]
fn has_two_decimals(score: f64) -> bool {
    (score * 100.0).round() / 100.0 == score
}

fn name_taken(error: DbError) -> ToolError {
    if error.is_duplicate_of("assessments_name_key") {
        ToolError::Conflict("An assessment of that name exists for this stream, subject and term.".to_owned())
    } else {
        error.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_decimals_are_enough() {
        for hundredths in 0..=100_000_u32 {
            let written: f64 = format!("{}.{:02}", hundredths / 100, hundredths % 100).parse().unwrap();
            assert!(has_two_decimals(written), "{written}");
        }
        for score in [0.0, 0.01, 0.29, 12.34, 33.33, 99.99, 1000.0] {
            assert!(has_two_decimals(score), "{score}");
        }
        for score in [0.001, 12.345, 99.999, 1.0 / 3.0, 0.000_000_001, 999.990_000_001] {
            assert!(!has_two_decimals(score), "{score}");
        }
    }
}

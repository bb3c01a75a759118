//! What is missing in the teaching of a campus.

use super::{Call, ToolHandler, relationship::director_of};
use crate::{
    db::coverage::{self, First, Overdue, Untaught, WithoutClassTeacher},
    error::ToolError,
    posture::{Posture, relationship},
};
use contract::{tool::Read, tools::coverage::GetTeachingCoverage};
use serde::Serialize;
use uuid::Uuid;

/// The most rows of each list: more than anybody mends in a day. The counts say how many there are.
const MAX_ROWS: i64 = 100;
/// What each of the three lists may take of a reply, whatever the names in it.
const MAX_LIST_BYTES: usize = 10 * 1024;

/// What is missing on a campus in its current year.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TeachingCoverage {
    campus_id: Uuid,
    counts: Counts,
    subjects_without_teacher: Vec<Untaught>,
    streams_without_class_teacher: Vec<WithoutClassTeacher>,
    overdue_plans: Vec<Overdue>,
}

/// How much there is of everything, listed or not.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    streams: i64,
    subjects_without_teacher: i64,
    streams_without_class_teacher: i64,
    overdue_plans: i64,
    teachers_with_overdue_plans: i64,
}

impl ToolHandler for GetTeachingCoverage {
    type Output = TeachingCoverage;
    const POSTURE: Posture<Read, Self::Output> = relationship();

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let proof = director_of(call, self.campus_id).await?;
        let streams = coverage::streams(call.tx(), &proof).await?;
        let untaught = coverage::untaught(call.tx(), &proof, MAX_ROWS).await?;
        let leaderless = coverage::without_class_teacher(call.tx(), &proof, MAX_ROWS).await?;
        let overdue = coverage::overdue(call.tx(), &proof, MAX_ROWS).await?;
        Ok(TeachingCoverage {
            campus_id: proof.campus(),
            counts: Counts {
                streams,
                subjects_without_teacher: untaught.total,
                streams_without_class_teacher: leaderless.total,
                overdue_plans: overdue.plans,
                teachers_with_overdue_plans: overdue.teachers.total,
            },
            subjects_without_teacher: within_bounds(call, untaught)?,
            streams_without_class_teacher: within_bounds(call, leaderless)?,
            overdue_plans: within_bounds(call, overdue.teachers)?,
        })
    }
}

/// As many rows as a list has room for; the sentence beside the result says how many more there are.
fn within_bounds<T: Serialize>(call: &mut Call<'_>, first: First<T>) -> Result<Vec<T>, ToolError> {
    let mut kept = Vec::new();
    let mut bytes = 0;
    for row in first.rows {
        bytes += serde_json::to_vec(&row)?.len() + 1;
        if bytes > MAX_LIST_BYTES {
            break;
        }
        kept.push(row);
    }
    let total = usize::try_from(first.total).unwrap_or(usize::MAX);
    call.leave_out(total.saturating_sub(kept.len()));
    Ok(kept)
}

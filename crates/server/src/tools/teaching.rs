//! What is taught to whom.

use super::{
    Call, ToolHandler,
    page::{self, Page, fetch, page},
};
use crate::{
    ability::CampusRule,
    db::teaching::{self, Classroom, CurrentStream, InChargeOf, RosterKey, RosterRow},
    error::ToolError,
    posture::{Posture, relationship},
};
use contract::{
    argument::PageLimit,
    tool::Read,
    tools::teaching::{ListMyClassrooms, ListStreamRoster},
};

/// The same for a stream that is not there and one that is not the actor's.
const NOT_FOUND: ToolError = ToolError::NotFound("Stream");

impl ToolHandler for ListMyClassrooms {
    type Output = Page<Classroom>;
    const POSTURE: Posture<Read, Self::Output> = relationship();
    const ONE_PLAN: bool = true;

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let rows = pinned(call);
        let limit = i64::from(PageLimit::MAX);
        let rows = match call.actor().staff_id {
            // a week has no room for more; what a reply has no room for is said by the scope sentence
            Some(staff) => teaching::classrooms(call.tx(), staff, &rows, limit).await?,
            None => Vec::new(),
        };
        Ok(Page {
            rows,
            more: false,
            next_cursor: None,
        })
    }
}

impl ToolHandler for ListStreamRoster {
    type Output = Page<RosterRow>;
    const POSTURE: Posture<Read, Self::Output> = relationship();

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let rows = pinned(call);
        let stream = teaching::current_stream(call.tx(), self.stream_id, &rows)
            .await?
            .ok_or(NOT_FOUND)?;
        let proof = in_charge_of(call, &stream).await?;
        let after: Option<RosterKey> = page::after(call, self.cursor.as_deref())?;
        let found = teaching::roster(call.tx(), &stream, &proof, after.as_ref(), fetch(self.limit)).await?;
        page(call, found, self.limit, |row| {
            RosterKey(row.family_name.clone(), row.given_name.clone(), row.student_id)
        })
    }
}

/// The rows of the pinned campus, or of any: what a relationship is about limits them further.
fn pinned(call: &Call<'_>) -> CampusRule {
    call.named_campus(None)
        .map_or(CampusRule::All, |campus| CampusRule::All.within(campus))
}

/// The class teacher of a stream answers for it, and so does a director of studies of its campus.
async fn in_charge_of(call: &mut Call<'_>, stream: &CurrentStream) -> Result<InChargeOf, ToolError> {
    let actor = call.actor();
    if let Some(proof) = teaching::class_teacher_of(call.tx(), actor, stream).await? {
        return Ok(InChargeOf::ClassTeacher(proof));
    }
    let proof = teaching::director_of_studies_of(call.tx(), actor, stream.campus()).await?;
    proof.map(InChargeOf::Director).ok_or(NOT_FOUND)
}

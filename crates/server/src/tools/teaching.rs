//! What is taught to whom.

use super::{
    Call, ToolHandler,
    page::{self, Page, fetch, page},
    relationship::{in_charge_of, pinned},
};
use crate::{
    db::teaching::{self, Classroom, RosterKey, RosterRow},
    error::ToolError,
    posture::{Posture, relationship},
};
use contract::{
    argument::PageLimit,
    tool::Read,
    tools::teaching::{ListMyClassrooms, ListStreamRoster},
};

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
        let proof = in_charge_of(call, self.stream_id).await?;
        let after: Option<RosterKey> = page::after(call, self.cursor.as_deref())?;
        let found = teaching::roster(call.tx(), &proof, after.as_ref(), fetch(self.limit)).await?;
        page(call, found, self.limit, |row| {
            RosterKey(row.family_name.clone(), row.given_name.clone(), row.student_id)
        })
    }
}

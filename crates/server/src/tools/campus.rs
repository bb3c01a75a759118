//! Campuses.

use super::{
    Call, ToolHandler,
    page::{self, Page, fetch, page},
};
use crate::{
    db::campus::{self, Campus},
    error::ToolError,
    posture::{Posture, casl},
};
use contract::{Action, Resource, tool::Read, tools::campus::ListCampuses};

impl ToolHandler for ListCampuses {
    type Output = Page<Campus>;
    const POSTURE: Posture<Read, Self::Output> = casl(Action::List, Resource::Campus);
    const ONE_PLAN: bool = true;

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let rows = call.rows(Action::List, Resource::Campus, None)?;
        let after = page::after(call, self.cursor.as_deref())?;
        let found = campus::list(call.tx(), &rows, after, fetch(self.limit)).await?;
        page(call, found, self.limit, |row| row.id)
    }
}

//! The audit log.

use super::{
    Call, ToolHandler,
    page::{self, Page, fetch, page},
};
use crate::{
    db::audit_log::{self, Entry, Filter},
    error::ToolError,
    posture::{Posture, casl},
};
use contract::{Action, Resource, tool::Read, tools::audit::ListAuditEntries};

impl ToolHandler for ListAuditEntries {
    type Output = Page<Entry>;
    const POSTURE: Posture<Read, Self::Output> = casl(Action::List, Resource::AuditLog);

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        if let (Some(from), Some(to)) = (self.from, self.to)
            && from >= to
        {
            return Err(ToolError::Invalid("from: must be before to".to_owned()));
        }
        let rows = call.rows(Action::List, Resource::AuditLog, None)?;
        let filter = Filter {
            campuses: rows.campuses(),
            and_none: rows.and_none(),
            actor_email: self.actor_email.as_deref(),
            resource_type: self.resource_type.as_deref(),
            resource_id: self.resource_id,
            from: self.from,
            to: self.to,
            before: page::after(call, self.cursor.as_deref())?,
            rows: fetch(self.limit),
        };
        let found = audit_log::list(call.tx(), filter).await?;
        page(call, found, self.limit, |row| row.id)
    }
}

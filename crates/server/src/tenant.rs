//! Step 5 and 6: whose rows a call may reach, and the frame in which that holds.
//!
//! The one definition of the tenant frame: platform admins run unscoped, everybody else is pinned to their school, and whoever is
//! neither gets no frame at all.

use crate::{
    ability::Topics,
    db::{Access, Database, Opening, Tenant, Tx, facts::FactsRow, tool_call::EarlierCall},
    error::ToolError,
    grant::Caller,
};
use contract::{AgentIdentity, UserType};
use std::time::Duration;

/// Whether an identity can be pinned to no tenant: no platform admin, and no school. Fail closed.
#[must_use]
pub fn has_no_tenant_scope(identity: &AgentIdentity) -> bool {
    identity.user_type != UserType::PlatformAdmin && identity.school_id.is_none()
}

/// The tenant of a caller.
pub(crate) fn tenant_of(caller: &Caller) -> Result<Tenant, ToolError> {
    let identity = caller.identity();
    match (identity.user_type, identity.school_id) {
        (UserType::PlatformAdmin, _) => Ok(Tenant::Unscoped),
        (UserType::SchoolAdmin | UserType::Staff, Some(school)) => Ok(Tenant::School(school)),
        (UserType::SchoolAdmin | UserType::Staff, None) => Err(ToolError::NoTenantScope),
    }
}

/// The frame of a call: its transaction, and what was read as it was opened.
pub(crate) struct Frame {
    pub(crate) tx: Tx,
    /// The caller's facts; none where the tenant has no such account.
    pub(crate) facts: Option<FactsRow>,
    /// What the facts hold the rules of.
    pub(crate) topics: Topics,
    /// A write's key is this call's until the frame ends; the write that was done under it before, if one was.
    pub(crate) earlier: Option<EarlierCall>,
}

/// Opens the frame of a call: one transaction, for reading only where the tool only reads.
pub(crate) async fn in_tenant_scope(
    database: &Database,
    caller: &Caller,
    access: Access<'_>,
    limit: Duration,
    topics: Topics,
) -> Result<Frame, ToolError> {
    let opening = Opening {
        tenant: tenant_of(caller)?,
        access,
        limit,
    };
    let (tx, facts, earlier) = database.begin_call(opening, caller.identity().sub, topics).await?;
    Ok(Frame {
        tx,
        facts,
        topics,
        earlier,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn absence_of_a_school_is_never_privilege() {
        let mut identity = AgentIdentity {
            sub: Uuid::nil(),
            email: String::new(),
            user_type: UserType::Staff,
            profile_id: Uuid::nil(),
            school_id: None,
            campus_id: None,
        };
        assert!(has_no_tenant_scope(&identity));
        identity.user_type = UserType::SchoolAdmin;
        assert!(has_no_tenant_scope(&identity));
        identity.school_id = Some(Uuid::nil());
        assert!(!has_no_tenant_scope(&identity));
        identity = AgentIdentity {
            user_type: UserType::PlatformAdmin,
            school_id: None,
            ..identity
        };
        assert!(!has_no_tenant_scope(&identity));
    }
}

//! The posture of a handler: by what authority it runs, and what it leaves in the audit log. Step 8.
//!
//! The types are the checklist: a `casl` posture without a gate, a write without an audit descriptor, and a read with one cannot be
//! written.

use crate::{ability::Topics, error::ToolError, standing::Standing};
use contract::{
    Action, Resource,
    tool::{Read, Write},
};
use std::marker::PhantomData;
use uuid::Uuid;

/// What a relationship tool says about its result where it says nothing of its own.
pub const DEFAULT_RELATIONSHIP_SCOPE_NOTE: &str =
    "These results cover only what this person teaches or is responsible for, not the whole school.";

/// By what authority a tool runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// A permission of the caller's roles: the same pair as the REST route of the operation.
    Casl {
        /// What is done.
        action: Action,
        /// To what.
        resource: Resource,
    },
    /// The handler's own rule about the caller and the row.
    Relationship {
        /// What the result covers.
        scope_note: &'static str,
    },
}

/// What was changed, for the audit row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditSubject {
    /// The school of the changed row: for a platform admin, who has none, the trail in which the change must show.
    pub school_id: Uuid,
    /// The campus of the changed row, if it has one.
    pub campus_id: Option<Uuid>,
    /// The changed row.
    pub resource_id: Uuid,
}

/// How a write describes itself in the audit log.
#[derive(Debug)]
pub struct AuditDescriptor<O> {
    /// What was done.
    pub action: Action,
    /// To what kind of thing.
    pub resource_type: &'static str,
    /// To which row, from the handler's output.
    pub subject: fn(&O) -> AuditSubject,
}

/// A posture that fits a tool of effect `E` with output `O`.
#[derive(Debug)]
pub struct Posture<E, O> {
    auth: Auth,
    audit: Option<AuditDescriptor<O>>,
    effect: PhantomData<E>,
}

/// A tool that needs a permission.
#[must_use]
pub const fn casl<O>(action: Action, resource: Resource) -> Posture<Read, O> {
    Posture {
        auth: Auth::Casl { action, resource },
        audit: None,
        effect: PhantomData,
    }
}

/// A tool whose handler asserts a relationship.
#[must_use]
pub const fn relationship<O>() -> Posture<Read, O> {
    relationship_noted(DEFAULT_RELATIONSHIP_SCOPE_NOTE)
}

/// The same, where the default sentence about the result would be a lie.
#[must_use]
pub const fn relationship_noted<O>(scope_note: &'static str) -> Posture<Read, O> {
    Posture {
        auth: Auth::Relationship { scope_note },
        audit: None,
        effect: PhantomData,
    }
}

impl<O> Posture<Read, O> {
    /// Makes it the posture of a write: what changes is described to the audit log.
    #[must_use]
    pub const fn audited(
        self,
        action: Action,
        resource_type: &'static str,
        subject: fn(&O) -> AuditSubject,
    ) -> Posture<Write, O> {
        Posture {
            auth: self.auth,
            audit: Some(AuditDescriptor {
                action,
                resource_type,
                subject,
            }),
            effect: PhantomData,
        }
    }
}

impl<E, O> Posture<E, O> {
    /// By what authority the tool runs.
    #[must_use]
    pub const fn auth(&self) -> Auth {
        self.auth
    }

    /// How it describes itself to the audit log; always there for a write, never for a read.
    #[must_use]
    pub const fn audit(&self) -> Option<&AuditDescriptor<O>> {
        self.audit.as_ref()
    }
}

/// Proof that a posture admitted a call; a handler's context cannot be made without it.
#[derive(Debug, Clone, Copy)]
pub struct Admitted {
    auth: Auth,
}

impl Admitted {
    /// By what authority.
    #[must_use]
    pub const fn auth(self) -> Auth {
        self.auth
    }
}

impl Auth {
    /// What the gate asks about, and what every call asks about: which campuses are open to its caller.
    pub(crate) const fn topics(self) -> Topics {
        let campuses = Topics::of(Resource::Campus);
        match self {
            Self::Casl { resource, .. } => Topics::of(resource).and(campuses),
            Self::Relationship { .. } => campuses,
        }
    }

    /// Asks the gate. A relationship posture has none: its handler asserts.
    ///
    /// # Errors
    ///
    /// [`ToolError::Denied`] where the gate says no.
    pub(crate) fn admit(self, standing: &Standing) -> Result<Admitted, ToolError> {
        match self {
            Self::Casl { action, resource } if !standing.ability.can(action, resource)? => {
                Err(ToolError::Denied { action, resource })
            }
            Self::Casl { .. } | Self::Relationship { .. } => Ok(Admitted { auth: self }),
        }
    }
}

//! What a tool is: its definition, who is offered it, and what it does to the world as a type.
//!
//! Where a tool is offered ([`ToolScope`], [`Placement`]) is not authorisation; that is the posture of its handler in the server.

use crate::{
    context::AgentRunModeName,
    digest::digest,
    envelope::default_deadline,
    event::{Event, same},
    permission::{Action, Resource},
    schema::schema_of,
};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::time::Duration;

/// A tool: the struct of its arguments, with its definition.
pub trait AgentTool: DeserializeOwned + JsonSchema + Send + 'static {
    /// What it does to the world; must agree with the event's verb.
    type Effect: Effect;

    /// How it is named, described and offered.
    const DEFINITION: ToolDefinition;

    /// Arguments that the seeded school accepts. A text `"{department}"` stands for the id of such a row.
    fn example() -> Value;

    /// What to show the person once the call has succeeded, from its arguments.
    #[must_use]
    fn stream_on_success(_args: &Value) -> Option<Value> {
        None
    }
}

/// What a tool does to the world, as a type, so that an audit can be demanded by a bound.
pub trait Effect: Send + Sync + 'static {
    /// Whether it changes anything.
    const MUTATES: bool;
}

/// Looks, changes nothing, and has no audit row.
#[derive(Debug, Clone, Copy)]
pub enum Read {}

/// Changes something, and leaves exactly one audit row.
#[derive(Debug, Clone, Copy)]
pub enum Write {}

impl Effect for Read {
    const MUTATES: bool = false;
}

impl Effect for Write {
    const MUTATES: bool = true;
}

/// In which run modes a tool is offered. Permissions flow down, never up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolScope {
    /// In both modes; about no campus.
    General,
    /// In both modes; about a campus.
    Campus,
    /// In school mode only.
    School,
}

impl ToolScope {
    /// Whether a tool of this scope is offered in a run mode.
    #[must_use]
    pub const fn is_offered_in(self, mode: AgentRunModeName) -> bool {
        match mode {
            AgentRunModeName::School => true,
            AgentRunModeName::Campus => matches!(self, Self::General | Self::Campus),
        }
    }
}

/// A specialist's role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolRole {
    /// Angie.
    ClassTeacher,
    /// Bean.
    SubjectTeacher,
    /// Sarah, the director of studies.
    Dos,
}

/// Whose belt a tool is on. Shared together with roles cannot be written.
#[derive(Debug, Clone, Copy)]
pub enum Placement {
    /// The supervisor's only.
    Supervisor,
    /// Everybody's: context that any agent may need while doing something else.
    Shared,
    /// These specialists' only.
    Roles(Roles),
}

impl Placement {
    /// On these specialists' belts; at least one.
    ///
    /// # Panics
    ///
    /// When there is none: a compile error, as definitions are constants.
    #[must_use]
    pub const fn roles(roles: &'static [ToolRole]) -> Self {
        assert!(!roles.is_empty(), "a tool with roles names at least one");
        Self::Roles(Roles(roles))
    }

    /// Whether the supervisor has the tool.
    #[must_use]
    pub const fn is_on_supervisor(self) -> bool {
        matches!(self, Self::Supervisor | Self::Shared)
    }

    /// Whether a specialist has the tool.
    #[must_use]
    pub fn is_on(self, role: ToolRole) -> bool {
        match self {
            Self::Supervisor => false,
            Self::Shared => true,
            Self::Roles(Roles(roles)) => roles.contains(&role),
        }
    }
}

/// At least one role; made by [`Placement::roles`].
#[derive(Debug, Clone, Copy)]
pub struct Roles(&'static [ToolRole]);

impl Roles {
    /// The roles.
    #[must_use]
    pub const fn as_slice(self) -> &'static [ToolRole] {
        self.0
    }
}

/// Whether a person must approve a call before it takes effect, and who.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// It takes effect as soon as every gate has admitted it.
    NotNeeded,
    /// Whoever asked for it must say yes.
    Required,
    /// Somebody else must say yes, who holds this permission where the change is made.
    RequiredOf {
        /// What the approver may do.
        action: Action,
        /// To what.
        resource: Resource,
    },
}

impl Approval {
    /// Whether anybody must approve.
    #[must_use]
    pub const fn is_needed(self) -> bool {
        !matches!(self, Self::NotNeeded)
    }

    /// The permission that the approver must hold, where it must be somebody else than who asks.
    #[must_use]
    pub const fn approver(self) -> Option<(Action, Resource)> {
        match self {
            Self::NotNeeded | Self::Required => None,
            Self::RequiredOf { action, resource } => Some((action, resource)),
        }
    }
}

/// How a tool is named, described and offered.
#[derive(Debug, Clone, Copy)]
pub struct ToolDefinition {
    /// The routing key of its calls.
    pub event: Event,
    /// In which run modes it is offered.
    pub scope: ToolScope,
    /// On whose belt it is.
    pub placement: Placement,
    /// What the model calls it.
    pub name: &'static str,
    /// What the model reads about it.
    pub description: &'static str,
    /// Whether a person must approve each call.
    pub approval: Approval,
    /// How long a caller waits, where the default for its verb will not do.
    pub deadline: Option<Duration>,
}

impl ToolDefinition {
    /// A tool of this event; its name is the event with an underscore for the dot.
    #[must_use]
    pub const fn new(
        event: Event,
        name: &'static str,
        scope: ToolScope,
        placement: Placement,
        description: &'static str,
    ) -> Self {
        Self {
            event,
            scope,
            placement,
            name,
            description,
            approval: Approval::NotNeeded,
            deadline: None,
        }
    }

    /// The same, with the approval of whoever asks before each effect.
    #[must_use]
    pub const fn approved(self) -> Self {
        Self {
            approval: Approval::Required,
            ..self
        }
    }

    /// The same, with the approval of somebody else before each effect, who holds this permission where the change is made.
    #[must_use]
    pub const fn approved_by(self, action: Action, resource: Resource) -> Self {
        Self {
            approval: Approval::RequiredOf { action, resource },
            ..self
        }
    }

    /// How long a caller waits for it.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        self.deadline.unwrap_or(default_deadline(self.event))
    }
}

/// A tool with its type erased: all that the worker, the map and the guards need.
#[derive(Debug, Clone, Copy)]
pub struct RpcTool {
    /// How it is named, described and offered.
    pub definition: ToolDefinition,
    /// The domain that the registry lists it under; empty outside of it.
    pub domain: &'static str,
    schema: fn() -> Value,
    example: fn() -> Value,
    stream_on_success: fn(&Value) -> Option<Value>,
}

impl RpcTool {
    /// The tool `T`.
    ///
    /// # Panics
    ///
    /// When its definition contradicts itself: a compile error, as the registry is a constant.
    #[must_use]
    pub const fn of<T: AgentTool>() -> Self {
        let definition = T::DEFINITION;
        assert!(
            T::Effect::MUTATES == definition.event.is_mutating(),
            "the effect contradicts the verb"
        );
        assert!(
            definition.event.is_named(definition.name),
            "a tool's name is its event, with an underscore for the dot"
        );
        assert!(!definition.description.is_empty(), "a tool needs a description");
        assert!(
            T::Effect::MUTATES || matches!(definition.approval, Approval::NotNeeded),
            "only a write can need approval"
        );
        Self {
            definition,
            domain: "",
            schema: schema_of::<T>,
            example: T::example,
            stream_on_success: T::stream_on_success,
        }
    }

    /// The same, listed under a domain.
    #[must_use]
    pub const fn in_domain(self, domain: &'static str) -> Self {
        Self { domain, ..self }
    }

    /// The JSON Schema of its arguments, made anew; whoever needs it often keeps it.
    #[must_use]
    pub fn schema(&self) -> Value {
        (self.schema)()
    }

    /// Arguments that the seeded school accepts; see [`AgentTool::example`].
    #[must_use]
    pub fn example(&self) -> Value {
        (self.example)()
    }

    /// A hash of what a caller of this tool relies on: its event, whether it changes anything, who must approve, and the schema of its
    /// arguments. Two processes with the same hash mean the same tool. Made anew; whoever needs it often keeps it.
    #[must_use]
    pub fn contract_hash(&self) -> String {
        let definition = &self.definition;
        let approver = definition.approval.approver();
        digest(&json!({
            "event": definition.event.as_str(),
            "mutating": definition.event.is_mutating(),
            "needsApproval": definition.approval.is_needed(),
            "approver": approver.map(|(action, resource)| [action.as_str(), resource.as_str()]),
            "schema": self.schema(),
        }))
    }

    /// What to show the person once a call with these arguments has succeeded.
    #[must_use]
    pub fn stream_on_success(&self, args: &Value) -> Option<Value> {
        (self.stream_on_success)(args)
    }
}

/// Fails to compile when two tools share an event or a name.
///
/// # Panics
///
/// When they do.
pub const fn assert_distinct(tools: &[RpcTool]) {
    let mut rest = tools;
    while let Some((first, others)) = rest.split_first() {
        let mut after = others;
        while let Some((second, more)) = after.split_first() {
            assert!(
                !same(first.definition.event.as_str(), second.definition.event.as_str()),
                "two tools share one event"
            );
            assert!(
                !same(first.definition.name, second.definition.name),
                "two tools share one name"
            );
            after = more;
        }
        rest = others;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::{RPC_AGENT_TOOLS, tool_for_name};
    use std::collections::HashSet;

    #[test]
    fn each_tool_has_a_hash_of_its_own() {
        let hashes: HashSet<String> = RPC_AGENT_TOOLS.iter().map(RpcTool::contract_hash).collect();
        assert_eq!(hashes.len(), RPC_AGENT_TOOLS.len());
    }

    #[test]
    fn who_must_approve_is_part_of_the_hash_and_the_words_about_it_are_not() {
        let tool = tool_for_name("delete_department").unwrap();
        let with = |definition| RpcTool { definition, ..*tool }.contract_hash();
        let definition = tool.definition;
        assert_eq!(with(definition), tool.contract_hash());
        let by_another = definition.approved_by(Action::Delete, Resource::Department);
        assert_eq!(
            by_another.approval.approver(),
            Some((Action::Delete, Resource::Department))
        );
        assert_ne!(with(by_another), tool.contract_hash());
        let reworded = ToolDefinition {
            description: "Other words.",
            ..definition
        };
        assert_eq!(with(reworded), tool.contract_hash());
    }
}

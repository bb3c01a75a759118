//! The agent map: which agents there are, what each can do, and who is offered which specialist.
//!
//! Derived from the registry, so that it cannot drift from what the belts hold.

use crate::{
    context::{AgentCapabilities, AgentRunModeName},
    tool::{RpcTool, ToolRole, ToolScope},
    tools::{tools_for_mode, tools_for_role},
};
use serde::Serialize;

/// One agent and its belt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentMapEntry {
    /// The persona's name.
    pub name: &'static str,
    /// Its role; absent for the supervisor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<ToolRole>,
    /// What it is for.
    pub description: &'static str,
    /// Its tools, in the registry's order.
    pub tools: Vec<AgentMapTool>,
}

/// One tool on an agent's belt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentMapTool {
    /// What the model calls it.
    pub name: &'static str,
    /// The routing key of its calls.
    pub event: &'static str,
    /// What the model reads about it.
    pub description: &'static str,
    /// In which run modes it is offered.
    pub scope: ToolScope,
    /// Whether it changes something.
    pub mutating: bool,
    /// Whether a person must approve each call.
    pub needs_approval: bool,
}

/// The specialists, in the order in which they are registered and shown.
pub const AGENT_ROLES: &[ToolRole] = &[ToolRole::ClassTeacher, ToolRole::SubjectTeacher, ToolRole::Dos];

impl ToolRole {
    /// The persona that plays this role.
    #[must_use]
    pub const fn persona(self) -> &'static str {
        match self {
            Self::ClassTeacher => "Angie",
            Self::SubjectTeacher => "Bean",
            Self::Dos => "Sarah",
        }
    }

    /// What that persona is for.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::ClassTeacher => {
                "Helps class teachers with their own stream: roster, attendance, gradebook and report comments."
            }
            Self::SubjectTeacher => {
                "Helps subject teachers with the classes they teach: assessments, scores, gradebooks and lesson plans."
            }
            Self::Dos => {
                "Helps directors of studies with their campus: who teaches what, reviews of lesson plans, grading and results."
            }
        }
    }
}

/// Which specialists a caller is offered this turn, in [`AGENT_ROLES`]' order. A caller can hold several hats.
#[must_use]
pub fn eligible_agent_roles(capabilities: AgentCapabilities) -> Vec<ToolRole> {
    AGENT_ROLES
        .iter()
        .copied()
        .filter(|role| match role {
            ToolRole::ClassTeacher => capabilities.is_class_teacher,
            ToolRole::SubjectTeacher => capabilities.is_subject_teacher,
            ToolRole::Dos => capabilities.is_director_of_studies,
        })
        .collect()
}

/// Every agent with its belt in a run mode: the supervisor first, then the specialists.
#[must_use]
pub fn build_agent_map(mode: AgentRunModeName) -> Vec<AgentMapEntry> {
    let rover = AgentMapEntry {
        name: "Rover",
        role: None,
        description: "Talks with the person, answers about the school, and hands work to the specialists.",
        tools: tools_for_mode(mode)
            .filter(|tool| tool.definition.placement.is_on_supervisor())
            .map(on_map)
            .collect(),
    };
    let specialists = AGENT_ROLES.iter().map(|&role| AgentMapEntry {
        name: role.persona(),
        role: Some(role),
        description: role.description(),
        tools: tools_for_role(role, mode).map(on_map).collect(),
    });
    std::iter::once(rover).chain(specialists).collect()
}

/// The agents that a caller is offered in a run mode: the supervisor, and the specialists of the caller's hats.
#[must_use]
pub fn offered_agents(mode: AgentRunModeName, capabilities: AgentCapabilities) -> Vec<AgentMapEntry> {
    let eligible = eligible_agent_roles(capabilities);
    let mut map = build_agent_map(mode);
    map.retain(|agent| agent.role.is_none_or(|role| eligible.contains(&role)));
    map
}

/// The part of a map that mentions every word of a query, in an agent's or a tool's name or description. An agent that is
/// mentioned itself keeps all of its tools.
#[must_use]
pub fn search(map: Vec<AgentMapEntry>, query: &str) -> Vec<AgentMapEntry> {
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let mentions = |texts: &[&str]| {
        let text = texts.join(" ").to_lowercase();
        words.iter().all(|word| text.contains(word))
    };
    map.into_iter()
        .filter_map(|mut agent| {
            if mentions(&[agent.name, agent.description]) {
                return Some(agent);
            }
            agent
                .tools
                .retain(|tool| mentions(&[tool.name, tool.event, tool.description]));
            (!agent.tools.is_empty()).then_some(agent)
        })
        .collect()
}

fn on_map(tool: &RpcTool) -> AgentMapTool {
    let definition = tool.definition;
    AgentMapTool {
        name: definition.name,
        event: definition.event.as_str(),
        description: definition.description,
        scope: definition.scope,
        mutating: definition.event.is_mutating(),
        needs_approval: definition.approval.is_needed(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::RPC_AGENT_TOOLS;

    #[test]
    fn every_tool_is_under_some_agent() {
        let map = build_agent_map(AgentRunModeName::School);
        for tool in RPC_AGENT_TOOLS {
            let name = tool.definition.name;
            assert!(
                map.iter().any(|agent| agent.tools.iter().any(|tool| tool.name == name)),
                "{name} is on no belt"
            );
        }
    }

    #[test]
    fn campus_mode_never_shows_school_tools() {
        for agent in build_agent_map(AgentRunModeName::Campus) {
            assert!(
                agent.tools.iter().all(|tool| tool.scope != ToolScope::School),
                "{}",
                agent.name
            );
        }
    }

    #[test]
    fn hats_are_independent() {
        let both = AgentCapabilities {
            is_class_teacher: true,
            is_director_of_studies: true,
            ..Default::default()
        };
        assert_eq!(eligible_agent_roles(both), [ToolRole::ClassTeacher, ToolRole::Dos]);
        assert!(eligible_agent_roles(AgentCapabilities::default()).is_empty());
    }

    #[test]
    fn search_keeps_what_mentions_every_word() {
        let found = search(build_agent_map(AgentRunModeName::School), "create DEPARTMENT");
        let names: Vec<_> = found
            .iter()
            .flat_map(|agent| agent.tools.iter().map(|tool| tool.name))
            .collect();
        assert_eq!(names, ["create_department"]);
        assert!(search(build_agent_map(AgentRunModeName::School), "no such thing").is_empty());
        let angie = search(build_agent_map(AgentRunModeName::School), "angie");
        assert!(angie.iter().any(|agent| agent.name == "Angie" && agent.tools.len() > 1));
    }
}

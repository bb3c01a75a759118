//! Tools that run in the worker, without a hop. Their results have the shape that every tool's have.
//!
//! They read the runtime context, to show what it says. They never decide what a caller may do.

use crate::{
    clock,
    context::{CONTEXT_MISSING_ERROR, Runtime, resolve_permissions, resolve_runtime_context},
};
use chrono_tz::Tz;
use contract::{
    AgentRunMode, AgentRuntimeContext, AgentToolResult,
    agent_map::{offered_agents, search},
    context::PermissionSnapshot,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The tools that the supervisor has beside those of the registry.
pub const LOCAL_AGENT_TOOLS: &[LocalTool] = &[LocalTool::GetCurrentTime, LocalTool::GetAgentMap];

/// A tool that runs here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalTool {
    /// The clock, in the school's time zone.
    GetCurrentTime,
    /// Which agents there are and what each can do, for this caller in this run mode.
    GetAgentMap,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoArguments {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentMapArguments {
    #[serde(default)]
    query: Option<String>,
}

impl LocalTool {
    /// What the model calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::GetCurrentTime => "get_current_time",
            Self::GetAgentMap => "get_agent_map",
        }
    }

    /// What the model reads about it.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::GetCurrentTime => "Get the date, the weekday and the time at the school.",
            Self::GetAgentMap => {
                "List the agents that can help this person and the tools each one has, or only those that a search mentions."
            }
        }
    }

    /// The JSON Schema of its arguments.
    #[must_use]
    pub fn schema(self) -> Value {
        let properties = match self {
            Self::GetCurrentTime => json!({}),
            Self::GetAgentMap => json!({
                "query": {"type": "string", "maxLength": 200, "description": "Words that must all be mentioned. Without it: everything."},
            }),
        };
        json!({"type": "object", "properties": properties, "additionalProperties": false})
    }

    /// Runs it.
    pub(crate) fn call(self, args: Map<String, Value>, runtime: &Runtime) -> AgentToolResult {
        let Some(context) = resolve_runtime_context(runtime) else {
            return AgentToolResult::error(CONTEXT_MISSING_ERROR);
        };
        let args = Value::Object(args);
        let result = match self {
            Self::GetCurrentTime => NoArguments::deserialize(args).map(|NoArguments {}| current_time(&context)),
            Self::GetAgentMap => AgentMapArguments::deserialize(args)
                .map(|args| agent_map(&context, &resolve_permissions(runtime), &args.query.unwrap_or_default())),
        };
        result.unwrap_or_else(|error| AgentToolResult::error(format!("Invalid tool arguments: arguments: {error}.")))
    }
}

fn current_time(context: &AgentRuntimeContext) -> AgentToolResult {
    let now = clock::now().with_timezone(&context.time_zone.unwrap_or(Tz::UTC));
    let data = json!({
        "currentTime": now.to_rfc3339_opts(chrono::SecondsFormat::Secs, false),
        "date": now.format("%Y-%m-%d").to_string(),
        "time": now.format("%H:%M").to_string(),
        "weekday": now.format("%A").to_string(),
        "timeZone": now.timezone().name(),
    });
    let scope_context = match context.time_zone {
        Some(zone) => format!("The time at the school, in {zone}."),
        None => "The school's time zone is not known; this is UTC.".to_owned(),
    };
    AgentToolResult::Data { data, scope_context }
}

/// What this caller is offered: the supervisor, the eligible specialists, and the tools of the run mode.
fn agent_map(context: &AgentRuntimeContext, permissions: &[PermissionSnapshot], query: &str) -> AgentToolResult {
    let offered = offered_agents(context.run_mode.name(), context.capabilities);
    let permissions: Vec<String> = permissions.iter().map(permission_text).collect();
    let data = json!({"agents": search(offered, query), "permissions": permissions});
    let place = match &context.run_mode {
        AgentRunMode::School {} => "the whole school".to_owned(),
        AgentRunMode::Campus { campus } => format!("the campus {}", campus.name),
    };
    let scope_context = format!(
        "What is offered to this person while working in {place}. The permissions are those at the start of the turn; \
         whether a call may run is decided anew for each."
    );
    AgentToolResult::Data { data, scope_context }
}

/// A permission in words, for people and models.
pub(crate) fn permission_text(permission: &PermissionSnapshot) -> String {
    let not = if permission.inverted { "not " } else { "" };
    let limited = if permission.condition.is_some() {
        " (on some rows only)"
    } else {
        ""
    };
    format!("{not}{} {}{limited}", permission.action, permission.resource)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::tests::runtime;
    use std::sync::Arc;

    fn data(result: AgentToolResult) -> (Value, String) {
        match result {
            AgentToolResult::Data { data, scope_context } => (data, scope_context),
            other @ (AgentToolResult::Error { .. } | AgentToolResult::Pending { .. }) => unreachable!("{other:?}"),
        }
    }

    fn query(text: &str) -> Map<String, Value> {
        Map::from_iter([("query".to_owned(), json!(text))])
    }

    #[test]
    fn the_clock_is_the_schools() {
        let runtime = runtime(&json!({"mode": "school"}));
        let (time, note) = data(LocalTool::GetCurrentTime.call(Map::new(), &runtime));
        assert_eq!(time["timeZone"], "Africa/Kampala");
        assert!(time["currentTime"].as_str().unwrap().ends_with("+03:00"), "{time}");
        assert!(note.contains("Africa/Kampala"));
    }

    #[test]
    fn the_map_shows_what_this_caller_is_offered() {
        let campus = json!({"mode": "campus", "campus": {"id": uuid::Uuid::nil(), "name": "Main"}});
        let mut runtime = runtime(&campus);
        let (map, _) = data(LocalTool::GetAgentMap.call(Map::new(), &runtime));
        assert_eq!(
            map["agents"].as_array().unwrap().len(),
            1,
            "no specialist without a capability"
        );
        assert_eq!(map["permissions"], json!(["LIST STAFF"]));
        assert!(
            !map.to_string().contains("\"list_staff\""),
            "a school tool in campus mode: {map}"
        );
        let mut context = runtime.context.as_ref().clone();
        context["capabilities"] = json!({"isClassTeacher": true});
        runtime.context = Arc::new(context);
        let (map, _) = data(LocalTool::GetAgentMap.call(query("students enrolled"), &runtime));
        assert_eq!(map["agents"][0]["name"], "Angie");
        assert_eq!(map["agents"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn unknown_arguments_are_refused() {
        let runtime = runtime(&json!({"mode": "school"}));
        for tool in LOCAL_AGENT_TOOLS {
            let result = tool.call(Map::from_iter([("zone".to_owned(), json!(1))]), &runtime);
            assert!(!result.is_data(), "{result:?}");
        }
    }

    #[test]
    fn nothing_is_shown_without_a_context() {
        let runtime = runtime(&json!(null));
        for tool in LOCAL_AGENT_TOOLS {
            assert_eq!(
                tool.call(Map::new(), &runtime),
                AgentToolResult::error(CONTEXT_MISSING_ERROR)
            );
        }
    }
}

//! The personas: which specialists a caller is offered this turn with which belts, and what the supervisor is told.
//!
//! Built anew for each turn; the prompts are Markdown beside this file.

use crate::{
    caller::AgentToolCaller,
    local_tools::permission_text,
    proxy::{BeltTool, build_role_tools},
};
use chrono_tz::Tz;
use contract::{AgentRunMode, AgentRuntimeContext, ToolRole, agent_map::eligible_agent_roles};
use std::sync::Arc;

/// The supervisor's system prompt, with places for what this turn knows.
const ROVER_PERSONA: &str = include_str!("agents/rover/persona.md");

/// The most permissions that the prompt names; the rest is counted. More would push the work out of the model's sight.
const MAX_PERMISSIONS_SHOWN: usize = 40;

/// A specialist with its belt.
pub struct Subagent {
    /// Which specialist.
    pub role: ToolRole,
    /// The tools that it has in this run mode.
    pub belt: Vec<BeltTool>,
}

/// The specialists that this caller is offered this turn, in the order of the agent map.
#[must_use]
pub fn select_subagents(context: &AgentRuntimeContext, caller: &Arc<dyn AgentToolCaller>) -> Vec<Subagent> {
    let mode = context.run_mode.name();
    eligible_agent_roles(context.capabilities)
        .into_iter()
        .map(|role| Subagent {
            role,
            belt: build_role_tools(role, caller, mode),
        })
        .collect()
}

/// What the supervisor is told before anything else: its persona, the person, the place, the clock.
#[must_use]
pub fn rover_prompt(context: &AgentRuntimeContext) -> String {
    let details = &context.user_details;
    let now = context
        .current_time
        .with_timezone(&context.time_zone.unwrap_or(Tz::UTC));
    let place = match &context.run_mode {
        AgentRunMode::School {} => "the whole school".to_owned(),
        AgentRunMode::Campus { campus } => format!("the campus {}", campus.name),
    };
    let year = context
        .current_academic_year
        .as_ref()
        .map_or("not set up", |year| year.name.as_str());
    // In one pass over the template, so that a name with a placeholder in it is only a name.
    fill(ROVER_PERSONA, |place_name| match place_name {
        "person" => Some(details.name.clone()),
        "school" => Some(
            details
                .school_name
                .clone()
                .unwrap_or_else(|| "no school of their own".to_owned()),
        ),
        "place" => Some(place.clone()),
        "clock" => Some(now.format("%A %-d %B %Y, %H:%M").to_string()),
        "zone" => Some(now.timezone().name().to_owned()),
        "year" => Some(year.to_owned()),
        "permissions" => Some(permissions(context)),
        _ => None,
    })
}

fn permissions(context: &AgentRuntimeContext) -> String {
    let rules = &context.user_permissions;
    if rules.is_empty() {
        return "nothing that is known".to_owned();
    }
    let shown: Vec<String> = rules.iter().take(MAX_PERMISSIONS_SHOWN).map(permission_text).collect();
    let more = rules.len().saturating_sub(MAX_PERMISSIONS_SHOWN);
    let rest = if more > 0 {
        format!(", and {more} more")
    } else {
        String::new()
    };
    format!("{}{rest}", shown.join(", "))
}

/// The template with each `{{name}}` replaced; a name that is not known stays as it is.
fn fill(template: &str, value_of: impl Fn(&str) -> Option<String>) -> String {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        filled.push_str(before);
        let Some((name, after)) = after.split_once("}}") else {
            filled.push_str("{{");
            rest = after;
            continue;
        };
        filled.push_str(&value_of(name).unwrap_or_else(|| format!("{{{{{name}}}}}")));
        rest = after;
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{caller::InProcessToolCaller, context::tests::runtime};
    use contract::AgentToolResult;
    use serde_json::json;

    fn context() -> AgentRuntimeContext {
        let mut value = runtime(&json!({"mode": "school"})).context.as_ref().clone();
        value["currentTime"] = json!("2026-02-03T21:30:00Z");
        value["userDetails"]["name"] = json!("Ada {{permissions}}");
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_prompt_has_the_person_the_place_and_the_schools_clock() {
        let prompt = rover_prompt(&context());
        for part in [
            "Rover",
            "Hilltop Academy",
            "the whole school",
            "Wednesday 4 February 2026, 00:30",
            "Africa/Kampala",
        ] {
            assert!(prompt.contains(part), "{part} in {prompt}");
        }
        assert_eq!(prompt.matches("LIST STAFF").count(), 1);
        assert_eq!(prompt.matches("{{").count(), 1, "a name is only a name: {prompt}");
    }

    #[test]
    fn specialists_are_those_of_the_callers_hats() {
        let handler = |_, _, _| async { AgentToolResult::error("unused") };
        let caller: Arc<dyn AgentToolCaller> = Arc::new(InProcessToolCaller::new(handler));
        let mut context = context();
        assert!(select_subagents(&context, &caller).is_empty());
        context.capabilities.is_class_teacher = true;
        context.capabilities.is_director_of_studies = true;
        let subagents = select_subagents(&context, &caller);
        assert_eq!(
            subagents.iter().map(|agent| agent.role).collect::<Vec<_>>(),
            [ToolRole::ClassTeacher, ToolRole::Dos]
        );
        let angie = subagents.first().unwrap();
        assert!(angie.belt.iter().any(|tool| tool.name() == "list_my_classrooms"));
    }
}

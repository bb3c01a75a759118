//! The tool by which the supervisor hands work to a specialist. It runs here, as a loop of the specialist's own.

use crate::{agents::Subagent, proxy::parse_arguments};
use contract::AgentToolResult;
use serde::Deserialize;
use serde_json::{Value, json};

/// What the supervisor calls it.
pub(crate) const TASK: &str = "task";

/// The longest task. A specialist needs a few sentences; the rest is a model that copies.
const MAX_TASK_CHARS: usize = 8_000;

/// What a specialist is asked to do.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Task {
    /// The persona's name.
    pub(super) agent: String,
    /// The work.
    pub(super) task: String,
}

/// The tool as the protocol offers it, for these specialists.
pub(super) fn offer(specialists: &[Subagent]) -> Value {
    let names: Vec<&str> = specialists.iter().map(|specialist| specialist.role.persona()).collect();
    let parameters = json!({
        "type": "object",
        "properties": {
            "agent": {"type": "string", "enum": names, "description": "Who is to do it."},
            "task": {
                "type": "string", "minLength": 1, "maxLength": MAX_TASK_CHARS,
                "description": "What is to be done and what to answer, with every name and date that it takes: \
                                the specialist sees nothing of this conversation.",
            },
        },
        "required": ["agent", "task"],
        "additionalProperties": false,
    });
    json!({
        "type": "function",
        "function": {
            "name": TASK,
            "description": "Hand work to a specialist, who has tools of their own, and get their answer.",
            "parameters": parameters,
        },
    })
}

/// Reads what a model wrote as arguments.
///
/// # Errors
///
/// With what the model reads about it.
pub(super) fn read(arguments: &str) -> Result<Task, AgentToolResult> {
    let invalid = |why: String| AgentToolResult::error(format!("Invalid tool arguments: {why}."));
    let task = Task::deserialize(Value::Object(parse_arguments(arguments)?))
        .map_err(|error| invalid(format!("arguments: {error}")))?;
    if task.task.trim().is_empty() {
        return Err(invalid("task: it says nothing".to_owned()));
    }
    if task.task.chars().count() > MAX_TASK_CHARS {
        return Err(invalid(format!("task: longer than {MAX_TASK_CHARS} characters")));
    }
    Ok(task)
}

/// A specialist's answer, as the supervisor reads it.
pub(super) fn answered(name: &str, answer: &str) -> AgentToolResult {
    AgentToolResult::Data {
        data: json!({"answer": answer}),
        scope_context: format!(
            "What {name} answered; it covers what {name}'s own tools may show this person, and the answer says how far."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_task_is_read() {
        let task = read(r#"{"agent": "Angie", "task": "Who is in my stream?"}"#).unwrap();
        assert_eq!(
            (task.agent.as_str(), task.task.as_str()),
            ("Angie", "Who is in my stream?")
        );
        let long = json!({"agent": "Angie", "task": "x".repeat(MAX_TASK_CHARS + 1)}).to_string();
        for broken in [
            "",
            "{",
            r#"{"agent": "Angie"}"#,
            r#"{"agent": "Angie", "task": " "}"#,
            r#"{"agent": "Angie", "task": "x", "userId": "y"}"#,
            &long,
        ] {
            let AgentToolResult::Error { error } = read(broken).unwrap_err() else {
                unreachable!("a refusal")
            };
            assert!(error.starts_with("Invalid tool arguments"), "{broken}: {error}");
        }
    }
}

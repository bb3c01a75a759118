//! Step 12: exactly one row for a write that succeeded, in the write's own transaction and with its reply.

use crate::{
    db::{
        Tx, approval,
        audit_log::{self, NewEntry},
    },
    error::ToolError,
    grant::Caller,
    idempotency::Claim,
    posture::AuditSubject,
    standing::Standing,
};
use contract::{Action, AgentToolResult, Event};
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// What the trail calls a decision, which is no tool's.
const DECISION_EVENT: &str = "decide.approval";

/// What stands in the trail instead of a field that must not be kept.
const REDACTED: &str = "[redacted]";

/// Members whose values never reach the trail, whatever tool they are an argument of.
const SENSITIVE: &[&str] = &[
    "password", "secret", "token", "pin", "phone", "address", "medical", "note", "guardian",
];

/// The longest text of an argument that is kept whole, in characters. The trail says what was asked, it does not store documents.
const MAX_TEXT_CHARS: usize = 2000;

/// A write that was done, as its descriptor tells it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Written {
    pub(crate) action: Action,
    pub(crate) resource_type: &'static str,
    pub(crate) subject: AuditSubject,
}

/// The call of a write: who, what, and under which key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Act<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) standing: &'a Standing,
    pub(crate) event: Event,
    pub(crate) claim: &'a Claim<'a>,
    /// Under which approval, where it needed one.
    pub(crate) approval: Option<Uuid>,
    pub(crate) arguments: &'a Value,
}

/// Writes the row of a write, and stores the reply under its key.
///
/// # Errors
///
/// [`ToolError::TurnOver`], and when the database refuses it; the write is then undone with it.
pub(crate) async fn audit_tool_write(
    tx: &mut Tx,
    act: Act<'_>,
    written: Written,
    reply: &AgentToolResult,
) -> Result<(), ToolError> {
    let Act {
        caller,
        standing,
        event,
        claim,
        approval,
        arguments,
    } = act;
    let key = claim.key();
    let actor = &standing.actor;
    let turn_id = caller.turn_id().map(|turn| turn.to_string());
    let entry = NewEntry {
        // a member of staff writes in their own school, whatever a handler says; the policy of the table holds it to that
        school_id: actor.school_id.unwrap_or(written.subject.school_id),
        campus_id: written.subject.campus_id,
        actor_sub: actor.sub,
        actor_email: &actor.email,
        actor_type: actor.user_type.as_str(),
        action: written.action.as_str(),
        resource_type: written.resource_type,
        resource_id: written.subject.resource_id,
        event: event.as_str(),
        door: caller.door().as_str(),
        turn_id: turn_id.clone(),
        tool_call_id: tool_call_id(caller, key.text),
        approval_id: approval,
        arguments: &redacted(arguments),
    };
    if !audit_log::seal(tx, entry, key, &serde_json::to_value(reply)?).await? {
        return Err(ToolError::TurnOver);
    }
    Ok(())
}

/// A decision about a call that waited, as the trail tells it.
#[derive(Debug)]
pub(crate) struct Ruled<'a> {
    /// `APPROVE`, `REJECT` or `EDIT`.
    pub(crate) action: &'static str,
    pub(crate) approval: &'a approval::Row,
    pub(crate) reason: Option<&'a str>,
    /// The arguments that were put in place of others.
    pub(crate) arguments: Option<&'a Value>,
    /// The approval that waits with those.
    pub(crate) instead: Option<Uuid>,
}

impl<'a> Ruled<'a> {
    /// A decision without more words.
    pub(crate) const fn new(action: &'static str, approval: &'a approval::Row) -> Self {
        Self {
            action,
            approval,
            reason: None,
            arguments: None,
            instead: None,
        }
    }
}

/// Writes the row of a decision, in the transaction in which it is made.
///
/// # Errors
///
/// When the database refuses it; the decision is then undone with it.
pub(crate) async fn audit_decision(
    tx: &mut Tx,
    caller: &Caller,
    standing: &Standing,
    ruled: Ruled<'_>,
) -> Result<(), ToolError> {
    let approval = ruled.approval;
    let mut said = Map::from_iter([("event".to_owned(), json!(approval.event))]);
    said.extend(ruled.reason.map(|reason| ("reason".to_owned(), json!(reason))));
    said.extend(
        ruled
            .arguments
            .map(|arguments| ("arguments".to_owned(), arguments.clone())),
    );
    said.extend(ruled.instead.map(|instead| ("replacedBy".to_owned(), json!(instead))));
    let actor = &standing.actor;
    let entry = NewEntry {
        school_id: approval.school_id,
        campus_id: approval.campus_id,
        actor_sub: actor.sub,
        actor_email: &actor.email,
        actor_type: actor.user_type.as_str(),
        action: ruled.action,
        resource_type: "APPROVAL",
        resource_id: approval.id,
        event: DECISION_EVENT,
        door: caller.door().as_str(),
        turn_id: approval.turn_id.map(|turn| turn.to_string()),
        tool_call_id: &approval.tool_call_id,
        approval_id: Some(approval.id),
        arguments: &redacted(&Value::Object(said)),
    };
    Ok(audit_log::note(tx, entry).await?)
}

/// The call within its turn, which its key ends with; of a peer without turns, the key.
pub(crate) fn tool_call_id<'k>(caller: &Caller, key: &'k str) -> &'k str {
    caller
        .turn_id()
        .and_then(|turn| key.strip_prefix(&turn.to_string())?.strip_prefix(':'))
        .unwrap_or(key)
}

/// The arguments as they may be kept.
fn redacted(arguments: &Value) -> Value {
    match arguments {
        Value::Object(members) => Value::Object(members.iter().map(redacted_member).collect::<Map<_, _>>()),
        Value::Array(items) => Value::Array(items.iter().map(redacted).collect()),
        Value::String(text) if text.chars().nth(MAX_TEXT_CHARS).is_some() => {
            let kept: String = text.chars().take(MAX_TEXT_CHARS).collect();
            json!(format!("{kept}…"))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => arguments.clone(),
    }
}

fn redacted_member((name, value): (&String, &Value)) -> (String, Value) {
    let lower = name.to_lowercase();
    let value = if SENSITIVE.iter().any(|word| lower.contains(word)) {
        json!(REDACTED)
    } else {
        redacted(value)
    };
    (name.clone(), value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sensitive_members_are_redacted_at_any_depth() {
        let arguments = json!({"name": "A", "guardians": [{"name": "B"}], "at": [{"phoneNumber": "+256", "name": "C"}], "apiToken": {"x": 1}});
        assert_eq!(
            redacted(&arguments),
            json!({"name": "A", "guardians": REDACTED, "at": [{"phoneNumber": REDACTED, "name": "C"}], "apiToken": REDACTED})
        );
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let kept = redacted(&json!("é".repeat(MAX_TEXT_CHARS + 1)));
        assert_eq!(kept.as_str().unwrap().chars().count(), MAX_TEXT_CHARS + 1);
        assert_eq!(
            redacted(&json!("é".repeat(MAX_TEXT_CHARS))),
            json!("é".repeat(MAX_TEXT_CHARS))
        );
    }
}

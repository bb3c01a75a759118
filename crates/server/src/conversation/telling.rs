//! What the server itself tells in a turn, after all that its last run told: what was answered and decided, what came of a call that
//! waited, and what is asked in the place of something else.

use super::ConversationError;
use crate::{
    db::{
        Tx,
        approval::{self, Instead},
        conversation as rows,
        turn::{self, Call, Held, Told},
    },
    dispatch::DispatchError,
};
use contract::{
    AgentToolResult,
    envelope::PendingApproval,
    tools::tool_for_name,
    turn::{Decision, MAX_SHOWN_BYTES, ToolOutcome, TurnEvent},
};
use serde_json::{Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Tells what was settled. Whoever gives the turn to a run does so before: that run has the results, and does not wait for them.
pub(super) async fn tell_settled(tx: &mut Tx, held: &Held) -> Result<(), ConversationError> {
    let events = news(tx, held).await?;
    store(tx, held, &events).await
}

/// The same in a turn that goes on waiting; where something else is asked now, that it waits for that.
pub(super) async fn tell_waiting(tx: &mut Tx, held: &Held) -> Result<(), ConversationError> {
    let mut events = news(tx, held).await?;
    if events
        .iter()
        .any(|event| matches!(event, TurnEvent::ApprovalAsked { .. }))
    {
        events.push(TurnEvent::Waiting {});
    }
    store(tx, held, &events).await
}

async fn store(tx: &mut Tx, held: &Held, events: &[TurnEvent]) -> Result<(), ConversationError> {
    let events: Result<Vec<Value>, _> = events.iter().map(serde_json::to_value).collect();
    let events = events.map_err(DispatchError::from)?;
    let at = turn::next_place(tx, held).await?;
    rows::store_events(tx, held.id, at, &events).await?;
    Ok(())
}

/// What the turn's events do not say yet; it counts as said from now on.
async fn news(tx: &mut Tx, held: &Held) -> Result<Vec<TurnEvent>, ConversationError> {
    let mut events = Vec::new();
    for instead in approval::moved(tx, held.school_id, held.id).await? {
        let call = turn::call(tx, held, &instead.tool_call_id).await?;
        events.extend(of_instead(instead, call));
    }
    for told in turn::untold(tx, held).await? {
        let call = turn::call(tx, held, &told.tool_call_id).await?;
        events.extend(of_settled(told, call)?);
    }
    Ok(events)
}

/// Of a call of which nothing was told, its run tells what is asked.
fn of_instead(instead: Instead, call: Option<Call>) -> Vec<TurnEvent> {
    let decided = TurnEvent::Decided {
        tool_call_id: instead.tool_call_id.clone(),
        approval_id: instead.replaced,
        decision: if instead.status == "asked_anew" {
            Decision::AskedAnew
        } else {
            Decision::Replaced
        },
    };
    let asked = call.map(|Call { agent, tool }| TurnEvent::ApprovalAsked {
        agent,
        tool_call_id: instead.tool_call_id,
        tool,
        pending: PendingApproval {
            approval_id: instead.id,
            preview: instead.preview,
            expires_at: instead.expires_at,
        },
        scope_context: instead.scope_context,
    });
    [decided].into_iter().chain(asked).collect()
}

fn of_settled(told: Told, call: Option<Call>) -> Result<Vec<TurnEvent>, ConversationError> {
    let tool_call_id = told.tool_call_id;
    if let Some(answer) = told.answer {
        return Ok(vec![TurnEvent::Answered { tool_call_id, answer }]);
    }
    let (Some(approval_id), Some(decision)) = (told.approval_id, told.decision) else {
        return Ok(Vec::new());
    };
    let mut events = vec![TurnEvent::Decided {
        tool_call_id: tool_call_id.clone(),
        approval_id,
        decision: serde_json::from_value(json!(decision)).map_err(DispatchError::from)?,
    }];
    if let (Some(Call { agent, tool }), Some(result)) = (call, told.result) {
        let outcome = match serde_json::from_value(result).map_err(DispatchError::from)? {
            AgentToolResult::Error { error } => ToolOutcome::Error(error),
            AgentToolResult::Data { scope_context, .. } | AgentToolResult::Pending { scope_context, .. } => {
                let shown = shown(&tool, || tool_for_name(&tool)?.stream_on_success(&told.arguments?));
                events.extend(shown.map(|event| TurnEvent::Shown {
                    agent: agent.clone(),
                    tool_call_id: tool_call_id.clone(),
                    event,
                }));
                ToolOutcome::ScopeContext(scope_context)
            }
        };
        events.push(TurnEvent::ToolEnded {
            agent,
            tool_call_id,
            tool,
            outcome,
        });
    }
    Ok(events)
}

/// What a tool shows of its success. Whatever goes wrong here, the call stays a success.
fn shown(tool: &str, show: impl FnOnce() -> Option<Value>) -> Option<Value> {
    let shown = catch_unwind(AssertUnwindSafe(show)).unwrap_or_else(|_| {
        tracing::error!(tool, "showing a success panicked");
        None
    });
    shown.filter(|event| event.to_string().len() <= MAX_SHOWN_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_success_shows_is_bounded_and_costs_it_nothing() {
        let banner = json!({"banner": 1});
        assert_eq!(shown("create_banner", || Some(banner.clone())), Some(banner));
        assert_eq!(shown("create_banner", || None), None);
        assert_eq!(
            shown("create_banner", || Some(json!("x".repeat(MAX_SHOWN_BYTES)))),
            None
        );
        assert_eq!(shown("create_banner", || panic!("as asked")), None);
    }

    fn settled(decision: &str, result: &AgentToolResult) -> Vec<Value> {
        let told = Told {
            tool_call_id: "a".into(),
            approval_id: Some(uuid::Uuid::nil()),
            answer: None,
            decision: Some(decision.into()),
            result: Some(json!(result)),
            arguments: Some(json!({})),
        };
        let call = Call {
            agent: "Rover".into(),
            tool: "delete_department".into(),
        };
        let events = of_settled(told, Some(call)).unwrap();
        events.iter().map(|event| json!(event)).collect()
    }

    #[test]
    fn a_call_ends_as_it_was_settled() {
        let done = AgentToolResult::Data {
            data: json!({}),
            scope_context: "All.".into(),
        };
        let ended = |how: &str, text: &str| json!({"type": "tool_ended", "agent": "Rover", "toolCallId": "a", "tool": "delete_department", how: text});
        let decided = |decision: &str| json!({"type": "decided", "toolCallId": "a", "approvalId": uuid::Uuid::nil(), "decision": decision});
        assert_eq!(
            settled("approved", &done),
            [decided("approved"), ended("scopeContext", "All.")]
        );
        for decision in ["approved", "rejected", "expired", "revoked"] {
            let events = settled(decision, &AgentToolResult::error("No."));
            assert_eq!(events, [decided(decision), ended("error", "No.")]);
        }
    }
}

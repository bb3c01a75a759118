//! `server call` and `server ask`: a tool call or a turn through the broker, with a real grant.

use super::Person;
use crate::{
    clock,
    config::Config,
    dispatch,
    grant::{Door, TurnGrant},
    rpc::client::{Client, ToolCall},
};
use anyhow::{Context, bail};
use contract::{
    AgentToolRequest, AgentToolResult,
    tool::Approval,
    tools::{contract_hash, tool_for_event, tool_for_name},
    turn::{ThreadHistory, ToolCallRecord, TurnMessage, TurnOutcome, idempotency_key},
};
use serde_json::Value;
use std::{io::Write, process::ExitCode, time::Duration};
use uuid::Uuid;

/// How long a turn may take.
const TURN_LIMIT: Duration = Duration::from_mins(3);
/// How much longer than the turn to wait, so that a worker's own "too late" arrives.
const GRACE: Duration = Duration::from_secs(5);
/// How long the grant of a single call lasts.
const CALL_GRANT: Duration = Duration::from_mins(1);

/// What `server call` was asked for.
pub(super) struct Asked {
    pub(super) tool: String,
    pub(super) person: Person,
    pub(super) args: Value,
    /// The turn and key of an earlier call that is repeated.
    pub(super) repeat: Option<(Uuid, String)>,
}

pub(super) async fn call(config: Config, asked: Asked) -> anyhow::Result<ExitCode> {
    let tool = tool_for_name(&asked.tool)
        .or_else(|| tool_for_event(&asked.tool))
        .with_context(|| format!("there is no tool {}; `server tools` lists them", asked.tool))?;
    let database = super::connect(&config.roles)?;
    let email = asked.person.email.clone();
    let wanted = asked.person.wants(Door::Operator, CALL_GRANT);
    let mut minted = dispatch::mint(&database, &config.grants, wanted).await?;
    database.close().await;
    let mut call_id = format!("operator-{}", Uuid::new_v4().simple());
    if let Some((turn_id, key)) = asked.repeat {
        minted.grant = config.grants.mint(&TurnGrant {
            identity: minted.identity.clone(),
            scope: minted.scope,
            turn_id,
            door: Door::Operator,
            expires_at_ms: clock::deadline_in(CALL_GRANT),
        })?;
        (minted.turn_id, call_id) = (turn_id, key);
    }
    let mut client = Client::connect(&config.broker).await?;
    let called = client
        .call(ToolCall {
            event: tool.definition.event,
            request: AgentToolRequest {
                identity: minted.identity,
                scope: minted.scope,
                args: asked.args,
            },
            grant: minted.grant,
            key: idempotency_key(minted.turn_id, &call_id),
            patience: tool.definition.deadline(),
        })
        .await;
    client.close().await;
    let result = called?;
    super::print(&serde_json::to_string_pretty(&result)?)?;
    if let AgentToolResult::Pending { pending, .. } = &result {
        // beside the reply, which is JSON
        let how = how_to_decide(tool.definition.name, pending.approval_id, &email);
        writeln!(std::io::stderr(), "{how}")?;
    }
    Ok(match result {
        AgentToolResult::Data { .. } | AgentToolResult::Pending { .. } => ExitCode::SUCCESS,
        AgentToolResult::Error { .. } => ExitCode::FAILURE,
    })
}

pub(super) async fn ask(config: Config, message: String, person: Person) -> anyhow::Result<ExitCode> {
    if message.trim().is_empty() {
        bail!("there is nothing to ask");
    }
    let database = super::connect(&config.roles)?;
    let email = person.email.clone();
    let minted = dispatch::mint(&database, &config.grants, person.wants(Door::Chat, TURN_LIMIT)).await?;
    database.close().await;
    let turn = TurnMessage {
        turn_id: minted.turn_id,
        grant: minted.grant,
        context: minted.context,
        history: ThreadHistory::default(),
        message,
        deadline_ms: clock::deadline_in(TURN_LIMIT),
        dispatch: 0,
        contract: Some(contract_hash().to_owned()),
    };
    let mut client = Client::connect(&config.broker).await?;
    let answered = client.turn(&turn, TURN_LIMIT + GRACE).await;
    client.close().await;
    let answer = answered?;
    for call in &answer.tool_calls {
        super::print(&match (call.succeeded, call.waits_for) {
            (true, _) => format!("[done] {}", call.name),
            (false, None) => format!("[failed] {}", call.name),
            (false, Some(id)) => format!("[waits] {}", how_to_decide(&call.name, id, &email)),
        })?;
    }
    match answer.outcome {
        TurnOutcome::Answer(text) => {
            super::print(&super::harmless(&text))?;
            Ok(if came_through(&answer.tool_calls) {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            })
        }
        TurnOutcome::Error(text) | TurnOutcome::Cancelled(text) => bail!("{}", super::harmless(&text)),
    }
}

/// What a call waits for that must be approved, and how to do so at a terminal.
fn how_to_decide(tool: &str, approval: Uuid, email: &str) -> String {
    let needs = tool_for_name(tool).map(|tool| tool.definition.approval);
    let (whom, email) = match needs {
        Some(Approval::RequiredOf { action, resource }) => {
            (format!("somebody else who may {action} {resource}"), "E-MAIL")
        }
        Some(Approval::Required | Approval::NotNeeded) | None => ("you".to_owned(), email),
    };
    super::harmless(&format!(
        "{tool}: nothing is done before {whom} approved it: server approvals approve {approval} --as {email}"
    ))
}

/// Whether each tool that was called was done in the end, or waits for a yes: a model may mend a call that was refused for its arguments, and then it is.
fn came_through(calls: &[ToolCallRecord]) -> bool {
    calls.iter().enumerate().all(|(at, call)| {
        let later = calls.iter().skip(at);
        call.succeeded
            || call.waits_for.is_some()
            || later
                .filter(|other| other.name == call.name)
                .any(|other| other.succeeded)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_was_mended_came_through() {
        let call = |name: &str, succeeded| ToolCallRecord {
            tool_call_id: String::new(),
            name: name.to_owned(),
            succeeded,
            waits_for: None,
        };
        let waits = ToolCallRecord {
            waits_for: Some(Uuid::nil()),
            ..call("a", false)
        };
        assert!(came_through(std::slice::from_ref(&waits)) && !came_through(&[waits, call("a", false)]));
        assert!(came_through(&[]));
        assert!(came_through(&[call("a", false), call("b", true), call("a", true)]));
        assert!(!came_through(&[call("a", true), call("a", false)]));
        assert!(!came_through(&[call("a", false), call("b", true)]));
    }
}

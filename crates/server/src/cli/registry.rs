//! `server tools`: the registry as a table or as JSON, with the posture of each handler.

use crate::{posture::Auth, tools::Handlers};
use contract::{
    Placement, RPC_AGENT_TOOLS, RpcTool, ToolDefinition,
    tool::{Approval, Roles},
};
use serde_json::{Value, json};

pub(super) fn tools(as_json: bool) -> anyhow::Result<()> {
    let handlers = Handlers::of_registry()?;
    if as_json {
        let tools: Vec<Value> = RPC_AGENT_TOOLS.iter().map(|tool| as_value(tool, &handlers)).collect();
        return super::print(&serde_json::to_string_pretty(&tools)?);
    }
    let header = ["NAME", "EVENT", "SCOPE", "PLACEMENT", "POSTURE", "EFFECT"].map(str::to_owned);
    let rows: Vec<[String; 6]> = std::iter::once(header)
        .chain(RPC_AGENT_TOOLS.iter().map(|tool| row(&tool.definition, &handlers)))
        .collect();
    let mut widths = [0; 6];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.len());
        }
    }
    for row in &rows {
        let cells: Vec<String> = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        super::print(cells.join("  ").trim_end())?;
    }
    Ok(())
}

fn row(definition: &ToolDefinition, handlers: &Handlers) -> [String; 6] {
    [
        definition.name.to_owned(),
        definition.event.to_string(),
        word(&json!(definition.scope)),
        placement(definition.placement),
        posture(definition, handlers),
        effect(definition).to_owned(),
    ]
}

pub(super) fn posture(definition: &ToolDefinition, handlers: &Handlers) -> String {
    match handlers.auth(definition.event.as_str()) {
        Some(Auth::Casl { action, resource }) => format!("casl {action} {resource}"),
        Some(Auth::Relationship { .. }) => "relationship".to_owned(),
        None => "no handler".to_owned(),
    }
}

fn placement(placement: Placement) -> String {
    match placement {
        Placement::Supervisor => "supervisor".to_owned(),
        Placement::Shared => "shared".to_owned(),
        Placement::Roles(roles) => role_words(roles).join(", "),
    }
}

fn role_words(roles: Roles) -> Vec<String> {
    roles.as_slice().iter().map(|role| word(&json!(role))).collect()
}

const fn effect(definition: &ToolDefinition) -> &'static str {
    match (definition.event.is_mutating(), definition.approval) {
        (false, _) => "read",
        (true, Approval::NotNeeded) => "write",
        (true, Approval::Required) => "write, approved",
        (true, Approval::RequiredOf { .. }) => "write, approved by another",
    }
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn as_value(tool: &RpcTool, handlers: &Handlers) -> Value {
    let definition = &tool.definition;
    json!({
        "name": definition.name,
        "event": definition.event.as_str(),
        "description": definition.description,
        "scope": definition.scope,
        "placement": match definition.placement {
            Placement::Supervisor => json!("supervisor"),
            Placement::Shared => json!("shared"),
            Placement::Roles(roles) => json!(role_words(roles)),
        },
        "posture": posture(definition, handlers),
        "mutating": definition.event.is_mutating(),
        "needsApproval": definition.approval.is_needed(),
        "contractHash": tool.contract_hash(),
        "deadlineMs": u64::try_from(definition.deadline().as_millis()).unwrap_or(u64::MAX),
        "schema": tool.schema(),
    })
}

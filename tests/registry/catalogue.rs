//! The registry as a catalogue for people: every tool, by its domain, with its arguments as a model is shown them.

use super::arguments::arguments;
use contract::{
    RPC_AGENT_TOOLS, RpcTool, ToolScope,
    tool::{Approval, Placement},
};
use server::{
    posture::{Auth, DEFAULT_RELATIONSHIP_SCOPE_NOTE},
    tools::Handlers,
};
use std::fmt::Write;

const INTRODUCTION: &str = "\
Written by the tests from the registry and the handlers' postures; do not edit it. `UPDATE_SNAPSHOTS=1 cargo test -p e2e committed`
renews it. On whose belt each tool is in which run mode stands in [offers.md](offers.md); that decides nothing about what a caller
may do, which is the posture's alone. A tool with a permission as its posture also looks at the rows that it is about. Where a
relationship is the posture, the handler proves one: the description says which. Every write leaves one row in the audit log.";

/// Every tool there is.
pub(super) fn tools() -> String {
    let handlers = Handlers::of_registry().expect("every tool has a handler");
    let mut text = format!("# The tools\n\n{INTRODUCTION}\n\n");
    let head = ["tool", "event", "scope", "belt", "posture", "effect", "approval"].map(str::to_owned);
    let rows: Vec<_> = RPC_AGENT_TOOLS.iter().map(|tool| row(tool, &handlers)).collect();
    text += &table(&head, &rows);
    for domain in domains() {
        write!(text, "\n## {domain}\n").expect("a text takes more");
        for tool in RPC_AGENT_TOOLS.iter().filter(|tool| tool.domain == domain) {
            text += &entry(tool, &handlers);
        }
    }
    text
}

/// The domains in the order of the registry.
fn domains() -> Vec<&'static str> {
    let mut domains: Vec<&str> = Vec::new();
    for tool in RPC_AGENT_TOOLS {
        if !domains.contains(&tool.domain) {
            domains.push(tool.domain);
        }
    }
    domains
}

fn row(tool: &RpcTool, handlers: &Handlers) -> Vec<String> {
    let definition = &tool.definition;
    let cells = [
        format!("[{name}](#{name})", name = definition.name),
        definition.event.to_string(),
        format!("{:?}", definition.scope).to_lowercase(),
        belt(definition.placement),
        match auth(tool, handlers) {
            Auth::Casl { action, resource } => format!("{action} {resource}"),
            Auth::Relationship { .. } => "relationship".to_owned(),
        },
        effect(tool).to_owned(),
        match definition.approval {
            Approval::NotNeeded => String::new(),
            Approval::Required => "a person's".to_owned(),
            Approval::RequiredOf { action, resource } => format!("another's who may {action} {resource}"),
        },
    ];
    cells.to_vec()
}

fn entry(tool: &RpcTool, handlers: &Handlers) -> String {
    let definition = &tool.definition;
    let modes = match definition.scope {
        ToolScope::General => "in both run modes; about no campus",
        ToolScope::Campus => "in both run modes; in one campus, about that one",
        ToolScope::School => "in the whole school only",
    };
    let posture = match auth(tool, handlers) {
        Auth::Casl { action, resource } => format!("the permission {action} {resource}"),
        Auth::Relationship { scope_note } if scope_note == DEFAULT_RELATIONSHIP_SCOPE_NOTE => {
            "a relationship".to_owned()
        }
        Auth::Relationship { scope_note } => format!("a relationship; its results say: \"{scope_note}\""),
    };
    let mut text = format!(
        "\n### {}\n\n{}\n\n- Event: `{}`, a {}\n- Offered: {}, {modes}\n- Posture: {posture}\n",
        definition.name,
        definition.description,
        definition.event,
        effect(tool),
        belt(definition.placement),
    );
    match definition.approval {
        Approval::NotNeeded => {}
        Approval::Required => text += "- Approval: whoever asks for it must say yes\n",
        Approval::RequiredOf { action, resource } => {
            let _ = writeln!(
                text,
                "- Approval: somebody else must say yes who may {action} {resource}"
            );
        }
    }
    let rows = arguments(&tool.schema());
    if rows.is_empty() {
        return text + "- Arguments: none\n";
    }
    let head = ["argument", "type", "required", "description"].map(str::to_owned);
    text.push('\n');
    text + table(&head, &rows).as_str()
}

fn auth(tool: &RpcTool, handlers: &Handlers) -> Auth {
    let event = tool.definition.event.as_str();
    handlers.auth(event).expect("it has a posture")
}

fn effect(tool: &RpcTool) -> &'static str {
    if tool.definition.event.is_mutating() {
        "write"
    } else {
        "read"
    }
}

fn belt(placement: Placement) -> String {
    match placement {
        Placement::Supervisor => "Rover".to_owned(),
        Placement::Shared => "everybody".to_owned(),
        Placement::Roles(roles) => {
            let names = roles.as_slice().iter().map(|role| role.persona());
            names.collect::<Vec<_>>().join(", ")
        }
    }
}

/// A table in Markdown.
pub(super) fn table(head: &[String], rows: &[Vec<String>]) -> String {
    let mut text = String::new();
    let mut line = |cells: &[String]| {
        let cells: Vec<_> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        writeln!(text, "| {} |", cells.join(" | ")).expect("a text takes a line");
    };
    line(head);
    line(&vec!["---".to_owned(); head.len()]);
    for row in rows {
        line(row);
    }
    text
}

#[test]
fn every_tool_is_in_the_catalogue_once() {
    let text = tools();
    for tool in RPC_AGENT_TOOLS {
        let title = format!("\n### {}\n", tool.definition.name);
        assert_eq!(text.matches(&title).count(), 1, "{title}");
        assert!(text.contains(&format!("\n## {}\n", tool.domain)), "{}", tool.domain);
    }
}

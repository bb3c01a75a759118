//! The registry as a table for people.

use contract::{
    RPC_AGENT_TOOLS,
    tool::{Approval, Placement},
};
use server::{posture::Auth, tools::Handlers};
use std::fmt::Write;

/// What each tool is.
pub(super) fn tools() -> String {
    let handlers = Handlers::of_registry().expect("every tool has a handler");
    let head = ["tool", "event", "scope", "belt", "posture", "effect", "approval"].map(str::to_owned);
    let rows = RPC_AGENT_TOOLS.iter().map(|tool| {
        let definition = &tool.definition;
        let event = definition.event;
        [
            definition.name.to_owned(),
            event.to_string(),
            format!("{:?}", definition.scope).to_lowercase(),
            belt(definition.placement),
            posture(handlers.auth(event.as_str()).expect("it has a posture")),
            if event.is_mutating() { "write, audited" } else { "read" }.to_owned(),
            match definition.approval {
                Approval::NotNeeded => String::new(),
                Approval::Required => "a person's".to_owned(),
            },
        ]
    });
    let rows: Vec<Vec<String>> = rows.map(Vec::from).collect();
    format!("# The tools\n\n{}", table(&head, &rows))
}

fn belt(placement: Placement) -> String {
    match placement {
        Placement::Supervisor => "supervisor".to_owned(),
        Placement::Shared => "everybody".to_owned(),
        Placement::Roles(roles) => {
            let names = roles.as_slice().iter().map(|role| role.persona());
            names.collect::<Vec<_>>().join(", ")
        }
    }
}

fn posture(auth: Auth) -> String {
    match auth {
        Auth::Casl { action, resource } => format!("{action} {resource}"),
        Auth::Relationship { .. } => "relationship".to_owned(),
    }
}

/// A table in Markdown.
fn table(head: &[String], rows: &[Vec<String>]) -> String {
    let mut text = String::new();
    let mut line = |cells: &[String]| writeln!(text, "| {} |", cells.join(" | ")).expect("a text takes a line");
    line(head);
    line(&vec!["---".to_owned(); head.len()]);
    for row in rows {
        line(row);
    }
    text
}

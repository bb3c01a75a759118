//! The registry as tables for people: what each tool is, and which of the seeded people it lets in.

use contract::{
    RPC_AGENT_TOOLS, RpcTool, UserType,
    tool::{Approval, Placement},
};
use e2e::{Person, Stage, fixtures::School};
use server::{posture::Auth, tools::Handlers};
use std::fmt::Write;

/// The seeded people of a school, by how their addresses begin; the second campus has a teacher of its own in each.
pub(super) const PEOPLE: &[&str] = &[
    "admin",
    "head",
    "clerk",
    "class.teacher",
    "subject.teacher",
    "dos",
    "both.hats",
    SECOND,
    "newcomer",
    "left",
];
const SECOND: &str = "(second campus).teacher";
const OPERATOR: &str = "platform@operator.example";

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

/// Whom each tool lets in, of the people of a school and its operator, when they call its example in a turn of the whole school.
pub(super) async fn people_by_tools(school: &School) -> String {
    let second = format!("{}.teacher", school.second_campus);
    let emails = PEOPLE
        .iter()
        .map(|who| school.email(if *who == SECOND { &second } else { who }));
    let mut columns = Vec::new();
    let mut stage = Stage::new().await;
    for email in emails.chain([OPERATOR.to_owned()]) {
        columns.push(column(&stage, school, &email).await);
        // whatever took effect is not for the next person to find
        if stage.audit_rows().await > 0 {
            stage.finish().await;
            stage = Stage::new().await;
        }
    }
    stage.finish().await;
    let head: Vec<String> = ["tool"]
        .iter()
        .chain(PEOPLE)
        .chain(&["operator"])
        .map(ToString::to_string)
        .collect();
    let rows: Vec<Vec<String>> = RPC_AGENT_TOOLS
        .iter()
        .enumerate()
        .map(|(at, tool)| {
            let cells = columns.iter().map(|column: &Vec<String>| column[at].clone());
            std::iter::once(tool.definition.name.to_owned()).chain(cells).collect()
        })
        .collect();
    table(&head, &rows)
}

/// What one person gets of each tool, in the registry's order.
async fn column(stage: &Stage, school: &School, email: &str) -> Vec<String> {
    match stage.try_person(email, None).await {
        Ok(person) => cells(stage, &person, school).await,
        Err(_) => vec!["no turn".to_owned(); RPC_AGENT_TOOLS.len()],
    }
}

async fn cells(stage: &Stage, person: &Person, school: &School) -> Vec<String> {
    let mut cells = vec![String::new(); RPC_AGENT_TOOLS.len()];
    let deletes = |tool: &RpcTool| tool.definition.event.verb() == "delete";
    let mut order: Vec<usize> = (0..RPC_AGENT_TOOLS.len()).collect();
    // what is deleted cannot be shown to the tools after it
    order.sort_by_key(|at| deletes(&RPC_AGENT_TOOLS[*at]));
    for at in order {
        let tool = &RPC_AGENT_TOOLS[at];
        let result = stage.call(person, tool.definition.name, school.example(tool)).await;
        cells[at] = match result {
            contract::AgentToolResult::Data { .. } => "yes".to_owned(),
            contract::AgentToolResult::Error { error } if error.starts_with("Permission denied") => "–".to_owned(),
            contract::AgentToolResult::Error { error } if error.ends_with("not found.") => "sees none".to_owned(),
            contract::AgentToolResult::Error { error } => {
                assert_eq!(
                    person.identity.user_type,
                    UserType::PlatformAdmin,
                    "{}: {error}",
                    tool.definition.name
                );
                "needs a school".to_owned()
            }
        };
    }
    cells
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

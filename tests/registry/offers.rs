//! Who is offered what: the belts as the worker builds them, a column for each persona and run mode.

use super::catalogue::table;
use contract::{AgentRuntimeContext, AgentToolResult, RPC_AGENT_TOOLS, agent_map::AGENT_ROLES};
use serde_json::{Value, json};
use std::{collections::BTreeSet, sync::Arc};
use uuid::Uuid;
use worker::{
    agents::{Persona, select_subagents},
    caller::{AgentToolCaller, InProcessToolCaller},
    local_tools::LOCAL_AGENT_TOOLS,
    proxy::{BeltTool, build_agent_tools},
};

const INTRODUCTION: &str = "\
Written by the tests from the belts that a worker builds; do not edit it. `UPDATE_SNAPSHOTS=1 cargo test -p e2e committed` renews it.
A person is offered Rover always, and each specialist whose hat they wear when the turn begins: Angie as a class teacher, Bean as a
subject teacher, Sarah as a director of studies. \"school\" is work in the whole school, \"campus\" work in one campus. Whoever is
offered a specialist has also `task`, by which Rover hands over work. An offer is no right: each call is decided by the posture of
its tool, see [tools.md](tools.md). What has no event runs in the worker.";

/// Each tool on each persona's belt, in each run mode.
pub(super) fn offers() -> String {
    let belts = belts();
    let head = ["tool".to_owned(), "event".to_owned()].into_iter();
    let head: Vec<String> = head.chain(belts.iter().map(|belt| belt.title.clone())).collect();
    let remote = RPC_AGENT_TOOLS.iter().map(|tool| {
        let definition = &tool.definition;
        (definition.name, definition.event.as_str())
    });
    let local = LOCAL_AGENT_TOOLS.iter().map(|tool| (tool.name(), ""));
    let rows: Vec<_> = remote
        .chain(local)
        .map(|(name, event)| row(name, event, &belts))
        .collect();
    format!("# Who is offered what\n\n{INTRODUCTION}\n\n{}", table(&head, &rows))
}

struct Belt {
    title: String,
    tools: BTreeSet<&'static str>,
}

fn row(name: &str, event: &str, belts: &[Belt]) -> Vec<String> {
    let has = |belt: &Belt| if belt.tools.contains(name) { "yes" } else { "" };
    let cells = [name.to_owned(), event.to_owned()].into_iter();
    cells.chain(belts.iter().map(|belt| has(belt).to_owned())).collect()
}

/// Every persona's belt in each mode, for a person who wears every hat.
fn belts() -> Vec<Belt> {
    let caller: Arc<dyn AgentToolCaller> = Arc::new(InProcessToolCaller::new(|_, _, _| async {
        AgentToolResult::error("unused")
    }));
    let school = json!({"mode": "school"});
    let campus = json!({"mode": "campus", "campus": {"id": Uuid::nil(), "name": "Main"}});
    let names = |belt: &[BeltTool]| belt.iter().map(BeltTool::name).collect();
    let mut belts = Vec::new();
    for mode in [school, campus] {
        let context = context(&mode);
        let title = |persona: Persona| format!("{}, {}", persona.name(), mode["mode"].as_str().unwrap_or_default());
        belts.push(Belt {
            title: title(Persona::Supervisor),
            tools: names(&build_agent_tools(&caller, context.run_mode.name())),
        });
        for subagent in select_subagents(&context, &caller) {
            belts.push(Belt {
                title: title(Persona::Specialist(subagent.role)),
                tools: names(&subagent.belt),
            });
        }
    }
    assert_eq!(belts.len(), 2 * (1 + AGENT_ROLES.len()), "everybody is there");
    // a persona's two columns stand side by side
    let middle = belts.len() / 2;
    let campus = belts.split_off(middle);
    belts.into_iter().zip(campus).flat_map(<[Belt; 2]>::from).collect()
}

fn context(mode: &Value) -> AgentRuntimeContext {
    let context = json!({
        "userDetails": {
            "name": "Anybody", "email": "anybody@school.example", "userId": Uuid::nil(), "profileId": Uuid::nil(), "userType": "STAFF",
        },
        "runMode": mode,
        "capabilities": {"isClassTeacher": true, "isSubjectTeacher": true, "isDirectorOfStudies": true},
    });
    serde_json::from_value(context).expect("it is a context")
}

//! Guards over the registry: what the compiler cannot see of a tool. They need no service.

mod arguments;
mod catalogue;
mod offers;
mod schema;
pub(crate) mod snapshot;

use contract::{
    RPC_AGENT_TOOLS, RpcTool, ToolScope,
    agent_map::{AGENT_ROLES, AgentMapEntry, build_agent_map},
    context::AgentRunModeName::{Campus, School},
    tool::Placement,
};
use e2e::fixtures::{HILLTOP, RIVERSIDE};
use schema::{definition_problems, problems};
use serde_json::{Map, Value, json};
use server::tools::Handlers;
use std::collections::BTreeSet;

/// Tools of specialists that nobody sees who works in one campus, and why that is right.
const SCHOOL_MODE_ONLY: &[(&str, &str)] = &[];

#[test]
fn schemas_are_portable_explained_and_free_of_callers() {
    for tool in RPC_AGENT_TOOLS {
        let name = tool.definition.name;
        assert_eq!(problems(&tool.schema()), [""; 0], "{name}");
        assert_eq!(definition_problems(&tool.definition), [""; 0], "{name}");
    }
}

/// fault 10, fault 36
#[test]
fn a_schema_that_is_none_of_that_is_found() {
    let ok = json!({"type": "string", "description": "Some text."});
    let of = |properties: Value| json!({"type": "object", "additionalProperties": false, "properties": properties});
    assert_eq!(problems(&of(json!({"name": ok, "targetStaffId": ok}))), [""; 0]);
    for caller in [
        "userId",
        "user_id",
        "StaffID",
        "profile-id",
        "schoolId",
        "sub",
        "me",
        "identity",
        "actorId",
        "callerId",
    ] {
        let flat = json!({caller: ok});
        let deep = json!({"rows": {"type": "array", "description": "Some rows.", "items": of(flat.clone())}});
        for schema in [of(flat), of(deep)] {
            let found = problems(&schema);
            assert!(
                found.iter().any(|problem| problem.ends_with("names whoever calls")),
                "{caller} in {schema}: {found:?}"
            );
        }
    }
    let bad = [
        json!({"type": "string"}),
        json!({"type": "object", "properties": {}}),
        json!({"type": "object", "additionalProperties": true, "properties": {}}),
        json!({"type": "object", "additionalProperties": false}),
        json!({"type": "object", "additionalProperties": false, "properties": {}, "required": ["name"]}),
        of(json!({"name": {"$ref": "#/$defs/Name", "description": "Some text."}})),
        of(json!({"name": {"anyOf": [ok, {"type": "null"}], "description": "Some text."}})),
        of(json!({"name": {"oneOf": [ok], "type": "string", "description": "Some text."}})),
        of(json!({"name": {"allOf": [ok], "type": "string", "description": "Some text."}})),
        of(json!({"name": {"type": ["string", "null"], "description": "Some text."}})),
        of(json!({"name": {"description": "Some text."}})),
        of(json!({"name": {"type": "string"}})),
        of(json!({"name": {"type": "string", "description": " "}})),
        of(json!({"staffName": {"type": "string", "description": "Staff name."}})),
        of(json!({"name": {"type": "string", "description": "Some text \u{2014} or none."}})),
        of(json!({"whose": {"type": "string", "enum": ["me", "all"], "description": "Some word."}})),
        of(json!({"names": {"type": "array", "items": true, "description": "Some texts."}})),
    ];
    for schema in bad {
        assert!(!problems(&schema).is_empty(), "nothing is wrong with {schema}");
    }
}

#[test]
fn a_name_or_description_that_is_none_is_found() {
    let good = RPC_AGENT_TOOLS[0].definition;
    for name in ["", "list.departments", "list departments", "élèves", &"a".repeat(65)] {
        let name = String::leak(name.to_owned());
        assert!(
            !definition_problems(&contract::ToolDefinition { name, ..good }).is_empty(),
            "{name}"
        );
    }
    for description in [
        "",
        " ",
        "Departments.",
        "List \u{2014} or do not \u{2014} the departments.",
        "List the departments of a campus",
    ] {
        assert!(
            !definition_problems(&contract::ToolDefinition { description, ..good }).is_empty(),
            "{description}"
        );
    }
}

#[test]
fn examples_fit_their_schemas() {
    for tool in RPC_AGENT_TOOLS {
        for school in [HILLTOP, RIVERSIDE] {
            assert_eq!(
                misfits(tool, &school.example(tool)),
                [""; 0],
                "{}",
                tool.definition.name
            );
        }
    }
    let create = RPC_AGENT_TOOLS
        .iter()
        .find(|tool| tool.definition.name == "create_department")
        .unwrap();
    for misfit in [
        json!({}),
        json!({"name": 7}),
        json!({"name": "A", "campusId": "{campus}"}),
        json!({"name": "A", "x": 1}),
    ] {
        assert!(!misfits(create, &misfit).is_empty(), "{misfit} fits");
    }
}

fn misfits(tool: &RpcTool, args: &Value) -> Vec<String> {
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .build(&tool.schema());
    let validator = validator.expect("the schema is one");
    validator.iter_errors(args).map(|error| error.to_string()).collect()
}

#[test]
fn every_tool_has_a_handler() {
    let handlers = Handlers::of_registry().expect("the registry is whole");
    for tool in RPC_AGENT_TOOLS {
        assert!(
            handlers.get(tool.definition.event.as_str()).is_some(),
            "{}",
            tool.definition.name
        );
    }
    assert!(handlers.get("get.nothing").is_none());
}

#[test]
fn the_agent_map_is_the_registry() {
    let registered: BTreeSet<_> = RPC_AGENT_TOOLS.iter().map(|tool| tool.definition.name).collect();
    assert_eq!(on_map(&build_agent_map(School)), registered);
    let for_a_campus = RPC_AGENT_TOOLS
        .iter()
        .filter(|tool| tool.definition.scope != ToolScope::School);
    let for_a_campus: BTreeSet<_> = for_a_campus.map(|tool| tool.definition.name).collect();
    assert_eq!(on_map(&build_agent_map(Campus)), for_a_campus);
    for agent in build_agent_map(School) {
        let belt: Vec<_> = agent.tools.iter().map(|tool| tool.name).collect();
        let placed = RPC_AGENT_TOOLS.iter().filter(|tool| match agent.role {
            None => tool.definition.placement.is_on_supervisor(),
            Some(role) => tool.definition.placement.is_on(role),
        });
        assert_eq!(
            belt,
            placed.map(|tool| tool.definition.name).collect::<Vec<_>>(),
            "{}",
            agent.name
        );
    }
}

fn on_map(map: &[AgentMapEntry]) -> BTreeSet<&'static str> {
    map.iter()
        .flat_map(|agent| agent.tools.iter().map(|tool| tool.name))
        .collect()
}

#[test]
fn a_specialist_sees_their_tools_in_campus_mode_too() {
    assert_eq!(unseen(RPC_AGENT_TOOLS, SCHOOL_MODE_ONLY), [""; 0]);
    let mut hidden = *RPC_AGENT_TOOLS
        .iter()
        .find(|tool| tool.definition.name == "list_stream_roster")
        .unwrap();
    assert_eq!(
        unseen(&[hidden], &[("list_stream_roster", "no reason")]).len(),
        1,
        "a waiver for what is seen"
    );
    hidden.definition.scope = ToolScope::School;
    assert_eq!(unseen(&[hidden], &[]).len(), 1, "nobody sees it");
    assert_eq!(unseen(&[hidden], &[("list_stream_roster", "a reason")]), [""; 0]);
    assert_eq!(
        unseen(&[hidden], &[("list_stream_roster", " ")]).len(),
        1,
        "a waiver has a reason"
    );
}

/// The specialists' tools that nobody sees in campus mode, which is where teachers work; and waivers for what is no such tool.
fn unseen(tools: &[RpcTool], waivers: &[(&str, &str)]) -> Vec<String> {
    let is_specialists = |tool: &&RpcTool| matches!(tool.definition.placement, Placement::Roles(_));
    let is_seen = |tool: &RpcTool| {
        let roles = AGENT_ROLES.iter();
        tool.definition.scope.is_offered_in(Campus) && roles.copied().any(|role| tool.definition.placement.is_on(role))
    };
    let is_waived = |name: &str| {
        waivers
            .iter()
            .any(|(tool, reason)| *tool == name && !reason.trim().is_empty())
    };
    tools
        .iter()
        .filter(is_specialists)
        .filter(|tool| is_seen(tool) == is_waived(tool.definition.name))
        .map(|tool| format!("{}: seen in campus mode: {}", tool.definition.name, is_seen(tool)))
        .collect()
}

#[test]
fn schemas_are_the_committed_ones() {
    let schemas: Map<String, Value> = RPC_AGENT_TOOLS
        .iter()
        .map(|tool| (tool.definition.name.to_owned(), tool.schema()))
        .collect();
    let text = serde_json::to_string_pretty(&schemas).expect("schemas are JSON");
    snapshot::assert_committed("tests/snapshots/schemas.json", &format!("{text}\n"));
}

#[test]
fn tools_are_the_committed_ones() {
    snapshot::assert_committed("docs/tools.md", &catalogue::tools());
}

#[test]
fn offers_are_the_committed_ones() {
    snapshot::assert_committed("docs/offers.md", &offers::offers());
}

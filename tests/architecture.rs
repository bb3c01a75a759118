//! Who may know whom, and what a folder promises: read from the source tree itself. Each rule is also shown a breach that it must find.

#[path = "architecture/source.rs"]
mod source;

use source::{Tree, code_of, is_rust, names, own_modules, words};
use std::collections::BTreeSet;

/// What a rule finds wrong, a line each.
type Findings = Vec<String>;

/// The rule holds in this repository, and finds each of these files when it is added or replaced.
fn holds(rule: fn(&Tree) -> Findings, breaches: &[(&str, &str)]) {
    let tree = Tree::read();
    let found = rule(&tree);
    assert!(found.is_empty(), "\n{}", found.join("\n"));
    for (path, text) in breaches {
        let found = rule(&tree.with(path, text));
        assert!(!found.is_empty(), "the rule does not see what is wrong with {path}: {text}");
    }
}

#[test]
fn crates_depend_on_the_contract_and_not_on_each_other() {
    holds(
        dependencies,
        &[
            ("crates/worker/Cargo.toml", "[dependencies]\nserver.workspace = true\n"),
            ("crates/server/Cargo.toml", "[dev-dependencies]\nworker = { path = \"../worker\" }\n"),
            ("crates/contract/Cargo.toml", "[dependencies]\ntokio.workspace = true\n"),
            ("crates/contract/Cargo.toml", "[dependencies.sqlx]\nworkspace = true\n"),
            ("xtask/Cargo.toml", "[dependencies]\nserver.workspace = true\n"),
        ],
    );
}

#[test]
fn the_contract_is_neither_async_nor_touches_the_world() {
    holds(
        the_contract,
        &[
            ("crates/contract/src/new.rs", "pub async fn f() {}"),
            ("crates/contract/src/new.rs", "use std::{fmt, fs};"),
            ("crates/contract/src/tools/new.rs", "fn f() { server::run() }"),
        ],
    );
}

#[test]
fn a_library_has_one_home() {
    holds(
        homes,
        &[
            ("crates/server/src/tools/staff.rs", "use sqlx::query;"),
            ("crates/server/src/execute.rs", "fn f() -> sqlx::Result<()> { Ok(()) }"),
            ("crates/server/src/dispatch.rs", "use lapin::Channel;"),
            ("crates/server/src/rpc.rs", "use axum::Router;"),
            ("crates/worker/src/turn.rs", "use lapin::Channel;"),
            ("crates/worker/src/turn.rs", "use async_openai::Client;"),
        ],
    );
}

#[test]
fn the_environment_is_read_in_one_place_of_each_crate() {
    holds(
        environment,
        &[
            ("crates/server/src/db.rs", "fn f() { std::env::var(\"X\"); }"),
            ("crates/worker/src/model.rs", "use std::env;"),
            ("xtask/src/up.rs", "fn f() { std::env::vars_os(); }"),
            ("tests/harness/stage.rs", "use std::env; fn f() { env::var_os(\"X\"); }"),
        ],
    );
}

#[test]
fn a_task_is_started_where_it_is_also_awaited() {
    holds(
        tasks,
        &[
            ("crates/server/src/tools/staff.rs", "fn f() { tokio::spawn(async {}); }"),
            ("crates/server/src/db.rs", "use tokio::task::spawn_blocking;"),
            ("crates/worker/src/turn.rs", "fn f() { std::thread::spawn(|| ()); }"),
        ],
    );
}

#[test]
fn the_server_is_layered() {
    holds(
        layers,
        &[
            ("crates/server/src/db/staff.rs", "use crate::tools::Call;"),
            ("crates/server/src/tools/staff.rs", "use crate::{error::ToolError, execute::Pipeline};"),
            ("crates/server/src/execute.rs", "use crate::rpc;"),
            ("crates/server/src/posture.rs", "fn f() { crate::dispatch::mint() }"),
            ("crates/server/src/rpc.rs", "use crate::db::Database;"),
        ],
    );
}

#[test]
fn a_handler_has_its_call_and_no_other_way() {
    holds(
        handlers_keep_to_their_call,
        &[
            ("crates/server/src/tools/staff.rs", "use crate::db::{Database, staff};"),
            ("crates/server/src/tools/staff.rs", "fn f() { contract::AgentCallScope::School {}; }"),
            ("crates/server/src/tools/staff.rs", "use crate::tenant::tenant_of;"),
        ],
    );
}

#[test]
fn a_tool_is_defined_listed_and_handled_in_files_of_one_name() {
    holds(
        tools,
        &[
            ("crates/contract/src/tools/library.rs", "//! Books."),
            ("crates/server/src/tools/library.rs", "//! Books."),
            ("crates/contract/src/tools/campus.rs", "impl AgentTool for CloseCampus {}"),
            ("crates/server/src/tools/campus.rs", "impl ToolHandler for CloseCampus {}"),
            ("crates/server/src/tools/campus.rs", "// impl ToolHandler for ListCampuses"),
            ("crates/contract/src/tools.rs", "rpc_agent_tools![\n    campus::ListCampuses,\n];"),
        ],
    );
}

#[test]
fn a_campus_argument_has_the_type_that_pins_it() {
    holds(
        campus_arguments,
        &[
            ("crates/contract/src/tools/campus.rs", "pub struct A {\n    pub campus_id: Option<Uuid>,\n}"),
            ("crates/contract/src/tools/campus.rs", "pub struct A {\n    pub to_campus: Uuid,\n}"),
            ("crates/contract/src/tools/campus.rs", "pub struct A {\n    pub academic_year_id: Uuid,\n}"),
        ],
    );
}

#[test]
fn files_are_small_and_say_what_they_are_for() {
    let long = format!("//! Long.\n{}", "\n".repeat(500));
    holds(
        files,
        &[
            ("crates/server/src/long.rs", &long),
            ("crates/server/src/mute.rs", "fn f() {}"),
            ("crates/server/src/tools/mod.rs", "//! Tools."),
            ("crates/worker/src/utils.rs", "//! This and that."),
            ("crates/worker/src/helpers/text.rs", "//! This and that."),
            ("tests/common.rs", "//! This and that."),
        ],
    );
}

/// What each member may depend on of ours, and for the contract of others' too.
const DEPENDENCIES: &[(&str, &[&str])] = &[
    ("crates/contract", &[]),
    ("crates/server", &["contract"]),
    // the demo model is what the worker's tests talk to
    ("crates/worker", &["contract", "scripted-model"]),
    ("crates/scripted-model", &[]),
    ("xtask", &[]),
];
const MEMBERS: &[&str] = &["contract", "server", "worker", "scripted-model", "xtask", "e2e"];
const OF_THE_CONTRACT: &[&str] = &["chrono", "chrono-tz", "schemars", "serde", "serde_json", "thiserror", "uuid"];

fn dependencies(tree: &Tree) -> Findings {
    let mut found = Vec::new();
    for (member, allowed) in DEPENDENCIES {
        let manifest = format!("{member}/Cargo.toml");
        for dependency in dependencies_in(tree.text(&manifest)) {
            let is_ours = MEMBERS.contains(&dependency.as_str());
            let is_known = !member.ends_with("contract") || OF_THE_CONTRACT.contains(&dependency.as_str());
            if (is_ours && !allowed.contains(&dependency.as_str())) || !is_known {
                found.push(format!("{manifest}: depends on {dependency}"));
            }
        }
    }
    found
}

/// The names under every `[…dependencies]`, and of every `[…dependencies.name]`.
fn dependencies_in(manifest: &str) -> Vec<String> {
    let mut is_within = false;
    let mut found = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            is_within = section.ends_with("dependencies");
            found.extend(section.split_once("dependencies.").map(|(_, name)| name.to_owned()));
        } else if is_within && let Some((key, _)) = line.split_once('=') {
            found.extend(key.split('.').next().map(|name| name.trim().to_owned()));
        }
    }
    found.retain(|name| !name.starts_with('#'));
    found
}

fn the_contract(tree: &Tree) -> Findings {
    const OUTSIDE: &[&str] = &[
        "async", "await", "tokio", "lapin", "sqlx", "axum", "reqwest", "server", "worker", "fs", "net", "env", "process", "thread",
    ];
    let mut found = Vec::new();
    for (path, code) in tree.code("crates/contract/src") {
        found.extend(OUTSIDE.iter().filter(|name| names(&code, name)).map(|name| format!("{path}: names {name}")));
    }
    found
}

/// Where a library may be named: in a file and the folder of its name.
const HOMES: &[(&str, &str, &str)] = &[
    ("crates/server/src", "sqlx", "db"),
    ("crates/server/src", "lapin", "rpc"),
    ("crates/server/src", "axum", "http"),
    ("crates/worker/src", "lapin", "rpc"),
    ("crates/worker/src", "async_openai", "model"),
    ("crates/worker/src", "reqwest", "model"),
    ("crates/worker/src", "sqlx", "nowhere"),
];

fn homes(tree: &Tree) -> Findings {
    let mut found = Vec::new();
    for (source, library, home) in HOMES {
        for (path, code) in tree.code(source) {
            let is_home = path == format!("{source}/{home}.rs") || path.starts_with(&format!("{source}/{home}/"));
            if !is_home && names(&code, library) {
                found.push(format!("{path}: {library} is named in {home} only"));
            }
        }
    }
    found
}

/// The crates that are configured by the environment, in a file of this name.
const CONFIGURED: &[(&str, &str)] = &[
    ("crates/contract/src", "nowhere"),
    ("crates/server/src", "crates/server/src/config.rs"),
    ("crates/worker/src", "crates/worker/src/config.rs"),
    ("crates/scripted-model/src", "crates/scripted-model/src/config.rs"),
];
/// Where else variables are read: xtask's one place, the hook of the killed server, and the wish for new snapshots.
const VARIABLES: &[&str] = &["xtask/src/environment.rs", "tests/bin/server_under_test.rs", "tests/registry/snapshot.rs"];

fn environment(tree: &Tree) -> Findings {
    let mut found = Vec::new();
    for (source, home) in CONFIGURED {
        let files = tree.code(source).filter(|(path, code)| path != home && names(code, "env"));
        found.extend(files.map(|(path, _)| format!("{path}: std::env belongs into config.rs")));
    }
    for folder in ["xtask/", "tests/"] {
        let reads = |code: &str| ["env::var", "env::set_var", "env::remove_var"].iter().any(|call| code.contains(call));
        let files = tree.code(folder).filter(|(path, code)| !VARIABLES.contains(path) && reads(code));
        found.extend(files.map(|(path, _)| format!("{path}: reads the environment")));
    }
    found
}

/// Where tasks are started; a `JoinSet` awaits its own.
const TASKS: &[&str] = &[
    "crates/server/src/execute.rs",
    "crates/worker/src/tasks.rs",
    "crates/scripted-model/src/server.rs",
];

fn tasks(tree: &Tree) -> Findings {
    const STARTS: &[&str] = &["spawn", "spawn_blocking", "spawn_local"];
    let starts = |code: &str| words(code).any(|(before, word)| STARTS.contains(&word) && before != Some('.'));
    let files = tree.code("crates/").filter(|(path, code)| !TASKS.contains(path) && starts(code));
    files.map(|(path, _)| format!("{path}: starts a task")).collect()
}

/// What a layer of the server, a file and the folder of its name, may not know: what is above it.
const ABOVE: &[(&[&str], &[&str])] = &[
    (
        &["db"],
        &["audit", "cli", "dispatch", "execute", "http", "idempotency", "posture", "rpc", "scope_context", "standing", "tenant", "tools"],
    ),
    (
        &["ability", "audit", "clock", "error", "grant", "hooks", "idempotency", "posture", "scope_context", "standing", "tenant", "tools"],
        &["cli", "dispatch", "execute", "http", "rpc"],
    ),
    (&["execute", "dispatch"], &["cli", "http", "rpc"]),
    (&["rpc", "http"], &["ability", "audit", "cli", "db", "idempotency", "posture", "standing", "tenant", "tools"]),
];

fn layers(tree: &Tree) -> Findings {
    let mut found = Vec::new();
    for (path, code) in tree.code("crates/server/src") {
        let module = path.trim_start_matches("crates/server/src/").split(['/', '.']).next();
        let above = ABOVE.iter().filter(|(modules, _)| module.is_some_and(|module| modules.contains(&module)));
        for (_, above) in above {
            let known = own_modules(&code).into_iter().filter(|known| above.contains(known));
            found.extend(known.map(|known| format!("{path}: knows {known}, which is above it")));
        }
    }
    found
}

/// What only `tools.rs` itself or a step may name: ways around the call's transaction, its scope and its actor.
const NOT_FOR_HANDLERS: &[&str] = &["AgentCallScope", "Caller", "Database", "Tenant", "in_tenant_scope", "tenant_of", "named_scope"];

fn handlers_keep_to_their_call(tree: &Tree) -> Findings {
    let mut found = Vec::new();
    for (path, code) in tree.code("crates/server/src/tools/") {
        let named = NOT_FOR_HANDLERS.iter().filter(|name| names(&code, name));
        found.extend(named.map(|name| format!("{path}: names {name}")));
    }
    found
}

/// Files of the server's `tools/` that are no domain's.
const NO_DOMAIN: &[&str] = &["page"];

fn tools(tree: &Tree) -> Findings {
    let mut found = Vec::new();
    let (defined, handled) = (domains(tree, "contract"), domains(tree, "server"));
    let only_here = defined.symmetric_difference(&handled);
    found.extend(only_here.map(|domain| format!("tools/{domain}.rs is on one side only")));
    let list = list_of_tools(&code_of(tree.text("crates/contract/src/tools.rs")));
    let mut listed_domains = list.iter().map(|(domain, _)| domain.as_str()).collect::<Vec<_>>();
    listed_domains.dedup();
    for domain in defined.union(&handled) {
        let listed: Vec<&str> = list.iter().filter(|(of, _)| of == domain).map(|(_, tool)| tool.as_str()).collect();
        for (krate, implements) in [("contract", "AgentTool"), ("server", "ToolHandler")] {
            let path = format!("crates/{krate}/src/tools/{domain}.rs");
            let there = tree.files().find(|(file, _)| **file == path).map(|(_, text)| code_of(text)).unwrap_or_default();
            let implemented = implemented(&there, implements);
            if implemented != listed {
                found.push(format!("{path}: impl {implements} for {implemented:?}, and the list says {listed:?}"));
            }
        }
    }
    let once: BTreeSet<_> = listed_domains.iter().collect();
    if once.len() != listed_domains.len() {
        found.push(format!("the list takes a domain up twice: {listed_domains:?}"));
    }
    found
}

/// The domain files of a crate's `tools/`.
fn domains(tree: &Tree, krate: &str) -> BTreeSet<String> {
    let folder = format!("crates/{krate}/src/tools/");
    let names = tree.files().filter_map(|(path, _)| path.strip_prefix(&folder)?.strip_suffix(".rs"));
    names
        .filter(|name| !name.contains('/') && !NO_DOMAIN.contains(name))
        .map(str::to_owned)
        .collect()
}

/// The registry's list, in its order.
fn list_of_tools(code: &str) -> Vec<(String, String)> {
    let list = code.split_once("rpc_agent_tools![").and_then(|(_, list)| list.split_once("];"));
    let entries = list.map(|(list, _)| list.split(',')).into_iter().flatten();
    entries
        .filter_map(|entry| entry.trim().split_once("::"))
        .map(|(domain, tool)| (domain.to_owned(), tool.to_owned()))
        .collect()
}

/// For which types a file implements a trait, in its order.
fn implemented<'a>(code: &'a str, name: &str) -> Vec<&'a str> {
    let of = format!("impl {name} for ");
    let rest = |at: usize| words(&code[at + of.len()..]).next().map(|(_, word)| word);
    code.match_indices(&of).filter_map(|(at, _)| rest(at)).collect()
}

fn campus_arguments(tree: &Tree) -> Findings {
    let mut found = Vec::new();
    for (path, code) in tree.code("crates/contract/src/tools/") {
        for line in code.lines().filter_map(|line| line.trim().strip_prefix("pub ")) {
            let Some((field, kind)) = line.split_once(": ") else { continue };
            let wanted = match field {
                field if field.contains("year") => "RequestedYear",
                field if field.contains("campus") => "RequestedCampus",
                _ => continue,
            };
            if !names(kind, wanted) {
                found.push(format!("{path}: {field} is {kind}, and should be {wanted}"));
            }
        }
    }
    found
}

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["utils", "util", "common", "helpers", "helper", "types", "manager", "misc", "mod"];
const MAX_LINES: usize = 500;

fn files(tree: &Tree) -> Findings {
    let mut found = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| is_rust(path) || path.ends_with(".sql")) {
        let lines = text.lines().count();
        if lines > MAX_LINES {
            found.push(format!("{path}: {lines} lines, more than {MAX_LINES}"));
        }
        let parts = path.trim_end_matches(".rs").split('/');
        found.extend(parts.filter(|part| EMPTY_NAMES.contains(part)).map(|part| format!("{path}: `{part}` names nothing")));
        let says = if is_rust(path) { text.starts_with("//! ") } else { text.starts_with("-- ") };
        if !says {
            found.push(format!("{path}: does not say what it is for"));
        }
    }
    found
}

//! Who may know whom, and what a folder promises: read from the source tree itself. Each rule is also shown a breach that it must find.

mod knowledge;
mod shape;
mod source;

use knowledge::{dependencies, environment, handlers_keep_to_their_call, homes, layers, tasks, the_contract};
use shape::{campus_arguments, files, tools};
use source::Tree;

/// What a rule finds wrong, a line each.
type Findings = Vec<String>;

/// The rule holds in this repository, and finds each of these files when it is added or replaced.
fn holds(rule: fn(&Tree) -> Findings, breaches: &[(&str, &str)]) {
    let tree = Tree::read();
    let found = rule(&tree);
    assert!(found.is_empty(), "\n{}", found.join("\n"));
    for (path, text) in breaches {
        let found = rule(&tree.with(path, text));
        assert!(
            !found.is_empty(),
            "the rule does not see what is wrong with {path}: {text}"
        );
    }
}

#[test]
fn crates_depend_on_the_contract_and_not_on_each_other() {
    holds(
        dependencies,
        &[
            ("crates/worker/Cargo.toml", "[dependencies]\nserver.workspace = true\n"),
            (
                "crates/server/Cargo.toml",
                "[dev-dependencies]\nworker = { path = \"../worker\" }\n",
            ),
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
            (
                "crates/worker/src/turn.rs",
                "use tokio::task; fn f() { task::spawn(async {}); }",
            ),
        ],
    );
}

#[test]
fn the_server_is_layered() {
    holds(
        layers,
        &[
            ("crates/server/src/db/staff.rs", "use crate::tools::Call;"),
            (
                "crates/server/src/tools/staff.rs",
                "use crate::{error::ToolError, execute::Pipeline};",
            ),
            ("crates/server/src/execute.rs", "use crate::rpc;"),
            ("crates/server/src/posture.rs", "fn f() { crate::dispatch::mint() }"),
            ("crates/server/src/rpc.rs", "use crate::tools::Handlers;"),
        ],
    );
}

#[test]
fn a_handler_has_its_call_and_no_other_way() {
    holds(
        handlers_keep_to_their_call,
        &[
            ("crates/server/src/tools/staff.rs", "use crate::db::{Database, staff};"),
            (
                "crates/server/src/tools/staff.rs",
                "fn f() { contract::AgentCallScope::School {}; }",
            ),
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
            (
                "crates/contract/src/tools/campus.rs",
                "impl AgentTool for CloseCampus {}",
            ),
            (
                "crates/server/src/tools/campus.rs",
                "impl ToolHandler for CloseCampus {}",
            ),
            (
                "crates/server/src/tools/campus.rs",
                "// impl ToolHandler for ListCampuses",
            ),
            (
                "crates/contract/src/tools.rs",
                "rpc_agent_tools![\n    campus::ListCampuses,\n];",
            ),
        ],
    );
}

#[test]
fn a_campus_argument_has_the_type_that_pins_it() {
    holds(
        campus_arguments,
        &[
            (
                "crates/contract/src/tools/campus.rs",
                "pub struct A {\n    pub campus_id: Option<Uuid>,\n}",
            ),
            (
                "crates/contract/src/tools/campus.rs",
                "pub struct A {\n    pub to_campus: Uuid,\n}",
            ),
            (
                "crates/contract/src/tools/campus.rs",
                "pub struct A {\n    pub academic_year_id: Uuid,\n}",
            ),
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

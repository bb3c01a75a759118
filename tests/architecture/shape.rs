//! What a folder promises: tools in files of one name on both sides, arguments with the type that pins them, small files.

use super::{
    Findings,
    source::{Tree, code_of, is_rust, names, words},
};
use std::collections::BTreeSet;

/// Files of the server's `tools/` that are no domain's.
const NO_DOMAIN: &[&str] = &["page", "relationship"];

pub(super) fn tools(tree: &Tree) -> Findings {
    let mut found = Vec::new();
    let (defined, handled) = (domains(tree, "contract"), domains(tree, "server"));
    let only_here = defined.symmetric_difference(&handled);
    found.extend(only_here.map(|domain| format!("tools/{domain}.rs is on one side only")));
    let list = list_of_tools(&code_of(tree.text("crates/contract/src/tools.rs")));
    let mut listed_domains = list.iter().map(|(domain, _)| domain.as_str()).collect::<Vec<_>>();
    listed_domains.dedup();
    for domain in defined.union(&handled) {
        let listed: Vec<&str> = list
            .iter()
            .filter(|(of, _)| of == domain)
            .map(|(_, tool)| tool.as_str())
            .collect();
        for (krate, implements) in [("contract", "AgentTool"), ("server", "ToolHandler")] {
            let path = format!("crates/{krate}/src/tools/{domain}.rs");
            let there = tree
                .files()
                .find(|(file, _)| **file == path)
                .map(|(_, text)| code_of(text))
                .unwrap_or_default();
            let implemented = implemented(&there, implements);
            if implemented != listed {
                found.push(format!(
                    "{path}: impl {implements} for {implemented:?}, and the list says {listed:?}"
                ));
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
    let names = tree
        .files()
        .filter_map(|(path, _)| path.strip_prefix(&folder)?.strip_suffix(".rs"));
    names
        .filter(|name| !name.contains('/') && !NO_DOMAIN.contains(name))
        .map(str::to_owned)
        .collect()
}

/// The registry's list, in its order.
fn list_of_tools(code: &str) -> Vec<(String, String)> {
    let list = code
        .split_once("rpc_agent_tools![")
        .and_then(|(_, list)| list.split_once("];"));
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

pub(super) fn campus_arguments(tree: &Tree) -> Findings {
    let mut found = Vec::new();
    for (path, code) in tree.code("crates/contract/src/tools/") {
        for line in code.lines().filter_map(|line| line.trim().strip_prefix("pub ")) {
            let Some((field, kind)) = line.split_once(": ") else {
                continue;
            };
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
const EMPTY_NAMES: &[&str] = &[
    "utils", "util", "common", "helpers", "helper", "types", "manager", "misc", "mod",
];
const MAX_LINES: usize = 500;

pub(super) fn files(tree: &Tree) -> Findings {
    let mut found = Vec::new();
    for (path, text) in tree
        .files()
        .filter(|(path, _)| is_rust(path) || path.starts_with("migrations/"))
    {
        let lines = text.lines().count();
        if lines > MAX_LINES {
            found.push(format!("{path}: {lines} lines, more than {MAX_LINES}"));
        }
        let parts = path.trim_end_matches(".rs").split('/');
        found.extend(
            parts
                .filter(|part| EMPTY_NAMES.contains(part))
                .map(|part| format!("{path}: `{part}` names nothing")),
        );
        let says = if is_rust(path) {
            text.starts_with("//! ")
        } else {
            text.starts_with("-- ")
        };
        if !says {
            found.push(format!("{path}: does not say what it is for"));
        }
    }
    found
}

//! Who may know whom: crates, libraries, layers of the server.

use super::{
    Findings,
    source::{Tree, names, own_modules, words},
};

/// What each member may depend on of ours, and for the contract of others' too.
const DEPENDENCIES: &[(&str, &[&str])] = &[
    ("crates/contract", &[]),
    ("crates/broker-guard", &[]),
    ("crates/server", &["broker-guard", "contract"]),
    // the demo model is what the worker's tests talk to
    ("crates/worker", &["broker-guard", "contract", "scripted-model"]),
    ("crates/scripted-model", &[]),
    ("xtask", &[]),
];
const MEMBERS: &[&str] = &[
    "broker-guard",
    "contract",
    "server",
    "worker",
    "scripted-model",
    "xtask",
    "e2e",
];
/// (sha2: both processes must come to the same hash of a tool's contract.)
const OF_THE_CONTRACT: &[&str] = &[
    "chrono",
    "chrono-tz",
    "schemars",
    "serde",
    "serde_json",
    "sha2",
    "thiserror",
    "uuid",
];

pub(super) fn dependencies(tree: &Tree) -> Findings {
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

pub(super) fn the_contract(tree: &Tree) -> Findings {
    const OUTSIDE: &[&str] = &[
        "async", "await", "tokio", "lapin", "sqlx", "axum", "reqwest", "server", "worker", "fs", "net", "env",
        "process", "thread",
    ];
    let mut found = Vec::new();
    for (path, code) in tree.code("crates/contract/src") {
        found.extend(
            OUTSIDE
                .iter()
                .filter(|name| names(&code, name))
                .map(|name| format!("{path}: names {name}")),
        );
    }
    found
}

/// Where a library may be named: in a file and the folder of its name.
const HOMES: &[(&str, &str, &str)] = &[
    ("crates/server/src", "sqlx", "db"),
    ("crates/server/src", "lapin", "rpc"),
    ("crates/server/src", "broker_guard", "rpc"),
    ("crates/server/src", "axum", "http"),
    ("crates/server/src", "hyper", "http"),
    ("crates/server/src", "hyper_util", "http"),
    ("crates/worker/src", "lapin", "rpc"),
    ("crates/worker/src", "broker_guard", "rpc"),
    ("crates/worker/src", "async_openai", "model"),
    ("crates/worker/src", "reqwest", "model"),
    ("crates/worker/src", "sqlx", "nowhere"),
    ("crates/scripted-model/src", "lapin", "nowhere"),
];

pub(super) fn homes(tree: &Tree) -> Findings {
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
/// Where else variables are read: xtask's one place, the hook of the killed server, the wish to repeat a random run, and that for new
/// snapshots.
const VARIABLES: &[&str] = &[
    "xtask/src/environment.rs",
    "tests/bin/server_under_test.rs",
    "tests/leaks.rs",
    "tests/registry/snapshot.rs",
];

pub(super) fn environment(tree: &Tree) -> Findings {
    let mut found = Vec::new();
    for (source, home) in CONFIGURED {
        let files = tree
            .code(source)
            .filter(|(path, code)| path != home && names(code, "env"));
        found.extend(files.map(|(path, _)| format!("{path}: std::env belongs into config.rs")));
    }
    for folder in ["xtask/", "tests/"] {
        let reads = |code: &str| {
            ["env::var", "env::set_var", "env::remove_var"]
                .iter()
                .any(|call| code.contains(call))
        };
        let files = tree
            .code(folder)
            .filter(|(path, code)| !VARIABLES.contains(path) && reads(code));
        found.extend(files.map(|(path, _)| format!("{path}: reads the environment")));
    }
    found
}

/// Where tasks are started; a `JoinSet` awaits its own.
const TASKS: &[&str] = &[
    "crates/server/src/execute.rs",
    "crates/server/src/http/approvals.rs",
    "crates/server/src/http/conversations.rs",
    "crates/worker/src/tasks.rs",
    "crates/scripted-model/src/server.rs",
];

/// (Clippy knows `tokio::spawn` by its path, however it is written; this is about where.)
pub(super) fn tasks(tree: &Tree) -> Findings {
    const STARTS: &[&str] = &["tokio::spawn", "task::spawn", "thread::spawn"];
    // as a path or in a `use`: a method of that name is another matter
    const ALONE: &[&str] = &["spawn_blocking", "spawn_local"];
    let starts = |code: &str| {
        STARTS.iter().any(|start| code.contains(start))
            || words(code).any(|(before, word)| ALONE.contains(&word) && matches!(before, Some(':' | '{' | ',')))
    };
    let files = tree
        .code("crates/")
        .filter(|(path, code)| !TASKS.contains(path) && starts(code));
    files.map(|(path, _)| format!("{path}: starts a task")).collect()
}

/// What a layer of the server, a file and the folder of its name, may not know: what is above it.
const ABOVE: &[(&[&str], &[&str])] = &[
    (
        &["db"],
        &[
            "approval",
            "audit",
            "cli",
            "decision",
            "dispatch",
            "execute",
            "http",
            "idempotency",
            "posture",
            "rpc",
            "scope_context",
            "standing",
            "tenant",
            "tools",
        ],
    ),
    (
        &[
            "ability",
            "approval",
            "audit",
            "clock",
            "error",
            "grant",
            "hooks",
            "idempotency",
            "posture",
            "scope_context",
            "standing",
            "tenant",
            "tools",
        ],
        &["cli", "decision", "dispatch", "execute", "http", "rpc"],
    ),
    (&["execute", "dispatch"], &["cli", "decision", "http", "rpc"]),
    (&["decision"], &["cli", "http", "rpc"]),
    (
        &["rpc", "http"],
        &[
            "ability", "approval", "audit", "cli", "posture", "standing", "tenant", "tools",
        ],
    ),
];
/// What a file may know all the same.
const NOT_ABOVE: &[(&str, &str)] = &[
    // a relationship is proven about the actor of the call, and only `standing` makes one
    ("crates/server/src/db/relationship.rs", "standing"),
    ("crates/server/src/db/relationship/plan.rs", "standing"),
];

pub(super) fn layers(tree: &Tree) -> Findings {
    let mut found = Vec::new();
    for (path, code) in tree.code("crates/server/src") {
        let module = path.trim_start_matches("crates/server/src/").split(['/', '.']).next();
        let above = ABOVE
            .iter()
            .filter(|(modules, _)| module.is_some_and(|module| modules.contains(&module)));
        for (_, above) in above {
            let is_wrong = |known: &&str| above.contains(known) && !NOT_ABOVE.contains(&(path, known));
            let known = own_modules(&code).into_iter().filter(is_wrong);
            found.extend(known.map(|known| format!("{path}: knows {known}, which is above it")));
        }
    }
    found
}

/// What only `tools.rs` itself or a step may name: ways around the call's transaction, its scope and its actor.
const NOT_FOR_HANDLERS: &[&str] = &[
    "AgentCallScope",
    "Caller",
    "Database",
    "Tenant",
    "in_tenant_scope",
    "tenant_of",
];

pub(super) fn handlers_keep_to_their_call(tree: &Tree) -> Findings {
    let mut found = Vec::new();
    for (path, code) in tree.code("crates/server/src/tools/") {
        let named = NOT_FOR_HANDLERS.iter().filter(|name| names(&code, name));
        found.extend(named.map(|name| format!("{path}: names {name}")));
    }
    found
}

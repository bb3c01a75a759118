//! What must not compile. Each file in `compile_fail/` is compiled twice: as it is, which must succeed, and with `--cfg refused`,
//! where each line that ends in `//~ text` must give an error with that text, and no other line may give one. So each thing that is
//! refused stands beside a twin that is accepted, and is refused for the reason that it names.
//!
//! The compiler is called directly, with the libraries that this very test was built from; a tool that checks all dependencies once more
//! in a folder of its own needs minutes for them.

use e2e::world::root;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::OnceLock,
};

/// The libraries that the cases may name. Some are built twice, for programs and for build scripts; the right one is that in which code
/// beside it compiles together with the contract.
const LIBRARIES: &[(&str, &str)] = &[
    ("contract", ""),
    (
        "schemars",
        "fn f<T: contract::AgentTool>() -> impl schemars::JsonSchema { Vec::<T>::new() }",
    ),
    (
        "serde",
        "fn f(it: contract::AgentToolResult) -> impl serde::Serialize { it }",
    ),
    (
        "serde_json",
        "fn f(it: contract::RpcTool) -> serde_json::Value { it.schema() }",
    ),
    ("server", ""),
    ("uuid", "fn f(it: contract::AgentIdentity) -> uuid::Uuid { it.sub }"),
];

#[test]
fn a_malformed_event() {
    check("event");
}

#[test]
fn a_tool_for_nobody_or_for_all_and_some() {
    check("placement");
}

#[test]
fn a_registry_that_contradicts_itself() {
    check("registry");
}

#[test]
fn arguments_that_are_no_object() {
    check("arguments");
}

#[test]
fn a_posture_that_does_not_fit_its_tool() {
    check("posture");
}

#[test]
fn a_registered_tool_without_a_handler() {
    check("handler");
}

#[test]
fn a_campus_that_is_read_without_its_pin() {
    check("campus");
}

#[test]
fn proof_that_nobody_gave() {
    check("proof");
}

#[test]
fn proof_that_is_written_by_hand() {
    check("by_hand");
}

#[test]
fn a_case_is_refused_for_its_reason_only() {
    let source = "fn f() {} //~ one\nfn g() {} //~ two\n";
    let errors = |all: &[(usize, &str)]| -> Vec<Refusal> {
        let refusal = |(line, text): &(usize, &str)| Refusal {
            line: *line,
            text: (*text).to_owned(),
        };
        all.iter().map(refusal).collect()
    };
    assert_eq!(mismatches(source, &errors(&[(1, "error one"), (2, "two")])), [""; 0]);
    assert_eq!(
        mismatches(source, &errors(&[(1, "error one")])).len(),
        1,
        "one is missing"
    );
    assert_eq!(
        mismatches(source, &errors(&[(1, "one"), (2, "else")])).len(),
        2,
        "one is missing, and one is another"
    );
    assert_eq!(
        mismatches(source, &errors(&[(1, "one"), (2, "two"), (3, "two")])).len(),
        1,
        "one is elsewhere"
    );
}

/// An error of the compiler.
#[derive(Debug)]
struct Refusal {
    line: usize,
    text: String,
}

fn check(case: &str) {
    let file = root().join("tests/compile_fail").join(case).with_extension("rs");
    let accepted = compile(&file, false);
    assert!(
        accepted.status.success(),
        "{case}: what should be accepted is not:\n{:#?}",
        refusals(&file, &accepted)
    );
    let source = fs::read_to_string(&file).expect("the case can be read");
    let refused = compile(&file, true);
    assert!(!refused.status.success(), "{case}: nothing is refused");
    let found = refusals(&file, &refused);
    let wrong = mismatches(&source, &found);
    assert!(wrong.is_empty(), "{case}:\n{}\n{found:#?}", wrong.join("\n"));
}

/// In what the errors of a case differ from those that it names.
fn mismatches(source: &str, found: &[Refusal]) -> Vec<String> {
    let named: BTreeMap<usize, &str> = source
        .lines()
        .zip(1..)
        .filter_map(|(line, number)| line.split_once("//~ ").map(|(_, text)| (number, text)))
        .collect();
    assert!(!named.is_empty(), "a case names what is refused");
    let fits = |refusal: &&Refusal| named.get(&refusal.line).is_some_and(|text| refusal.text.contains(text));
    let met: BTreeSet<usize> = found.iter().filter(fits).map(|refusal| refusal.line).collect();
    let missing = named
        .iter()
        .filter(|(line, _)| !met.contains(line))
        .map(|(line, text)| format!("line {line}: no error with `{text}`"));
    let others = found
        .iter()
        .filter(|refusal| !fits(refusal))
        .map(|refusal| format!("line {}: another error: {}", refusal.line, refusal.text));
    missing.chain(others).collect()
}

fn compile(file: &Path, refused: bool) -> Output {
    let libraries = libraries();
    let mut rustc = rustc("bin", &libraries.folder, &libraries.paths);
    if refused {
        rustc.args(["--cfg", "refused"]);
    }
    rustc.arg(file).output().expect("the compiler runs")
}

/// A compiler that writes only metadata, to the tests' own folder, with these libraries.
fn rustc(kind: &str, folder: &Path, paths: &BTreeMap<&str, PathBuf>) -> Command {
    let beside = Path::new(env!("CARGO")).with_file_name("rustc");
    let mut rustc = Command::new(if beside.exists() { beside } else { "rustc".into() });
    rustc
        .args([
            "--edition=2024",
            "--emit=metadata",
            "--error-format=json",
            "--out-dir",
            env!("CARGO_TARGET_TMPDIR"),
        ])
        .args(["--check-cfg=cfg(refused)", "--cap-lints=allow", "--crate-type", kind])
        .args(["-L".into(), format!("dependency={}", folder.display())]);
    for (name, path) in paths {
        rustc.args(["--extern".into(), format!("{name}={}", path.display())]);
    }
    rustc
}

/// The errors in a file, each at the line of the file that led to it.
fn refusals(file: &Path, output: &Output) -> Vec<Refusal> {
    let messages = String::from_utf8_lossy(&output.stderr);
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["level"] == "error")
        .filter_map(|message| {
            // the last line, that there were errors, has no place
            let span = message["spans"]
                .as_array()?
                .iter()
                .find(|span| span["is_primary"] == true)?;
            Some(Refusal {
                line: line_in(file, span).unwrap_or_default(),
                text: text_of(&message),
            })
        })
        .collect()
}

/// The line of a place in the file; for a place in a macro, that of its use.
fn line_in(file: &Path, span: &Value) -> Option<usize> {
    if Path::new(span["file_name"].as_str()?) == file {
        return usize::try_from(span["line_start"].as_u64()?).ok();
    }
    line_in(file, &span["expansion"]["span"])
}

/// All that an error says: its message and its labels.
fn text_of(message: &Value) -> String {
    let labels = message["spans"].as_array().into_iter().flatten();
    let texts = labels.filter_map(|span| span["label"].as_str());
    message["message"]
        .as_str()
        .into_iter()
        .chain(texts)
        .collect::<Vec<_>>()
        .join("; ")
}

/// The libraries that this test was built from.
struct Libraries {
    folder: PathBuf,
    paths: BTreeMap<&'static str, PathBuf>,
}

fn libraries() -> &'static Libraries {
    static LIBRARIES: OnceLock<Libraries> = OnceLock::new();
    LIBRARIES.get_or_init(|| Libraries::among(&built()))
}

/// What cargo says of the build that this test belongs to: nothing in it is built anew.
fn built() -> String {
    let test = std::env::current_exe().expect("this program is a file");
    let profile = test
        .parent()
        .and_then(Path::parent)
        .expect("in the folder of its profile");
    let target = profile.parent().expect("in the target folder");
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args([
            "build",
            "--package",
            "e2e",
            "--lib",
            "--offline",
            "--message-format",
            "json",
        ])
        .args(["--profile", profile_of(profile)])
        .arg("--target-dir")
        .arg(target)
        .current_dir(root())
        .stderr(Stdio::inherit());
    for variable in xtask::environment::package_variables() {
        cargo.env_remove(variable);
    }
    let output = cargo.output().expect("cargo runs");
    assert!(output.status.success(), "cargo cannot say what it built");
    String::from_utf8(output.stdout).expect("cargo writes text")
}

fn profile_of(folder: &Path) -> &str {
    match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(other) => other,
    }
}

impl Libraries {
    fn among(messages: &str) -> Self {
        let files = library_files(messages);
        let folder = files
            .first()
            .and_then(|file| file.parent())
            .expect("libraries are in a folder");
        let mut paths = BTreeMap::new();
        for (name, probe) in LIBRARIES {
            let is_named = |file: &&PathBuf| {
                let file = file.file_name().and_then(|file| file.to_str());
                file.is_some_and(|file| file.starts_with(&format!("lib{name}-")))
            };
            let fits = |file: &&PathBuf| {
                let mut with = paths.clone();
                with.insert(*name, (*file).clone());
                compiles(probe, folder, &with)
            };
            let mut candidates = files.iter().filter(is_named).filter(fits);
            let path = candidates.next().unwrap_or_else(|| panic!("{name} was not built"));
            assert_eq!(candidates.next(), None, "{name} is one library");
            paths.insert(*name, path.clone());
        }
        Self {
            folder: folder.to_owned(),
            paths,
        }
    }
}

/// The libraries that cargo names, whatever they are for.
fn library_files(messages: &str) -> Vec<PathBuf> {
    let messages = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let files = messages
        .filter_map(|message| message["filenames"].as_array().cloned())
        .flatten();
    let paths = files.filter_map(|file| file.as_str().map(PathBuf::from));
    paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "rmeta"))
        .collect()
}

fn compiles(code: &str, folder: &Path, paths: &BTreeMap<&str, PathBuf>) -> bool {
    let mut rustc = rustc("lib", folder, paths);
    let mut rustc = rustc
        .arg("-")
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the compiler runs");
    let mut input = rustc.stdin.take().expect("its input is piped");
    input.write_all(code.as_bytes()).expect("it reads the code");
    drop(input);
    rustc.wait().expect("it ends").success()
}

//! The model's side: a Python environment of its own with llama.cpp and the weights, and the server in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;

use crate::cargo::root;
use crate::programs::run;
use crate::signals::Interrupt;

/// What to do where the environment cannot be made.
const REMEDY: &str = "this needs Python 3.10 or later with venv and pip, and a package index that it can reach \
                      (Debian, Ubuntu: apt-get install python3-venv)";

/// The Python of an environment that has the model; made once, and again when what it must have has changed.
pub(super) fn with_model(folder: &Path, interrupt: &Interrupt) -> anyhow::Result<PathBuf> {
    let wanted = sources().join("requirements.txt");
    let wanted = fs::read_to_string(&wanted).with_context(|| format!("reading {}", wanted.display()))?;
    let environment = folder.join("venv");
    let python = environment.join("bin/python");
    // Written last, so that one that was interrupted is made anew.
    let made = environment.join("made-for.txt");
    if fs::read_to_string(&made).is_ok_and(|had| had == wanted) && python.is_file() {
        return Ok(python);
    }
    eprintln!(
        "install    llama.cpp and a model of 135 million parameters, in {}",
        environment.display()
    );
    let mut create = Command::new("python3");
    create.args(["-m", "venv", "--clear"]).arg(&environment);
    run(quiet(create), interrupt).context(REMEDY)?;
    let mut install = Command::new(&python);
    install
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--only-binary=:all:",
        ])
        .arg("--requirement")
        .arg(sources().join("requirements.txt"));
    run(quiet(install), interrupt).context(REMEDY)?;
    fs::write(&made, wanted).with_context(|| format!("writing {}", made.display()))?;
    Ok(python)
}

/// The server. It says where it listens when the model is loaded.
pub(super) fn serve(python: &Path, name: &str) -> Command {
    let mut command = Command::new(python);
    command
        .arg(sources().join("serve.py"))
        .arg("--template")
        .arg(sources().join("chat.jinja"))
        .args(["--name", name]);
    command
}

fn sources() -> PathBuf {
    root().join("xtask/real-model")
}

fn quiet(mut command: Command) -> Command {
    command.stdin(Stdio::null());
    command
}

//! The peers that ours is measured against and must interoperate with: outside the repository, and built from a copy in
//! `target/bench`. Nothing of them is needed to build or to test this project.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::cargo::{cargo, root, run};

/// The Nest peer's folder, in the folder of peers and in that of their copies.
pub(crate) const NEST: &str = "nestjs-hop";
const FLOOR: &str = "amqp-floor";

/// What others may have built in a peer's folder, and what is built in its copy.
const BUILT: [&str; 3] = ["node_modules", "dist", "target"];

/// Where the copies are.
pub(crate) fn folder() -> PathBuf {
    root().join("target/bench")
}

/// Builds the Nest peer of `peers`, where its copy is not built and up to date.
pub(crate) fn build_nest(peers: &Path) -> anyhow::Result<PathBuf> {
    let copy = folder().join(NEST);
    let changed = renew(&peers.join(NEST), &copy)?;
    let has_changed = |name: &str| {
        changed
            .iter()
            .any(|file| file.file_name().is_some_and(|file| file == name))
    };
    if has_changed("package.json") || !copy.join("node_modules").is_dir() {
        eprintln!("peer       npm install");
        run_in(
            &copy,
            "npm",
            &["install", "--no-package-lock", "--no-audit", "--no-fund"],
        )?;
    }
    if !changed.is_empty() || !copy.join("dist/main.js").is_file() {
        eprintln!("peer       tsc");
        run_in(&copy, "npx", &["tsc", "-p", "tsconfig.json"])?;
    }
    Ok(copy)
}

/// Builds the floor of `peers`, where its copy is not built and up to date.
pub(crate) fn build_floor(peers: &Path) -> anyhow::Result<()> {
    let copy = folder().join(FLOOR);
    renew(&peers.join(FLOOR), &copy)?;
    let mut build = cargo(&["build", "--release"]);
    build.current_dir(&copy).env("CARGO_TARGET_DIR", copy.join("target"));
    run(build)
}

fn run_in(folder: &Path, program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    run(command)
}

/// Makes the copy's sources equal to the peer's, and answers which files that changed.
fn renew(source: &Path, copy: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !source.is_dir() {
        bail!(
            "there is no {}: --peers is the folder that holds {NEST} and {FLOOR}",
            source.display()
        );
    }
    let mut changed = Vec::new();
    fs::create_dir_all(copy).with_context(|| format!("creating {}", copy.display()))?;
    for entry in fs::read_dir(source).with_context(|| format!("reading {}", source.display()))? {
        let entry = entry?;
        let name = entry.file_name();
        let target = copy.join(&name);
        if entry.file_type()?.is_dir() {
            if !BUILT.iter().any(|built| name == *built) {
                changed.extend(renew(&entry.path(), &target)?);
            }
        } else if renew_file(&entry.path(), &target)? {
            changed.push(target);
        }
    }
    Ok(changed)
}

/// Contents only: a source that is read-only must not make a copy that cannot be renewed.
fn renew_file(source: &Path, copy: &Path) -> anyhow::Result<bool> {
    let content = fs::read(source).with_context(|| format!("reading {}", source.display()))?;
    if fs::read(copy).ok().as_ref() == Some(&content) {
        return Ok(false);
    }
    fs::write(copy, content).with_context(|| format!("writing {}", copy.display()))?;
    Ok(true)
}

//! `cargo xtask prepare`: the offline data of `sqlx`'s checked queries, without `sqlx-cli`.
//!
//! The macros write what they learn of a query into the folder that `SQLX_OFFLINE_DIR` names whenever they ask a
//! database. So: a scratch database with the migrations applied, a fresh folder, and one check of the server's crate.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, bail};
use xtask::services::{Install, Services};

use crate::cargo::{cargo, root, run};
use crate::scratch::Scratch;

/// File names and contents.
type QueryData = BTreeMap<String, Vec<u8>>;

/// Replaces `.sqlx`.
pub(crate) fn write(install: Install) -> anyhow::Result<()> {
    let services = Services::find_or_start(root(), install)?;
    let fresh = describe_queries(&services)?;
    let folder = committed_folder();
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    for (name, content) in &fresh {
        fs::write(folder.join(name), content).with_context(|| format!("writing {name}"))?;
    }
    println!("{} queries in .sqlx", fresh.len());
    Ok(())
}

/// Fails where `.sqlx` is not what [`write`] would make of it.
pub(crate) fn check(install: Install) -> anyhow::Result<()> {
    check_with(&Services::find_or_start(root(), install)?)
}

/// The same, with services that run already.
pub(crate) fn check_with(services: &Services) -> anyhow::Result<()> {
    let fresh = describe_queries(services)?;
    let committed = read_folder(&committed_folder())?;
    let differences = compare(&committed, &fresh);
    if !differences.is_empty() {
        bail!(
            ".sqlx is out of date; run `cargo xtask prepare` and commit it:\n  {}",
            differences.join("\n  ")
        );
    }
    println!("{} queries, as in .sqlx", fresh.len());
    Ok(())
}

fn committed_folder() -> PathBuf {
    root().join(".sqlx")
}

/// What the macros say of each query, asked anew.
fn describe_queries(services: &Services) -> anyhow::Result<QueryData> {
    let scratch = Scratch::create(services, "sqlx_prepare")?;
    migrate(&scratch)?;

    let folder = root().join("target/sqlx");
    if folder.exists() {
        fs::remove_dir_all(&folder).context("removing target/sqlx")?;
    }
    fs::create_dir_all(&folder).context("creating target/sqlx")?;

    // All targets, since tests may hold queries too; all features, since those of a test hook count as well.
    let mut check = cargo(&["check", "--package", "server", "--all-targets", "--all-features"]);
    check
        .env("SQLX_OFFLINE", "false")
        .env("SQLX_OFFLINE_DIR", &folder)
        .env("DATABASE_URL", scratch.url());
    let _touched = Touched::new(root().join("crates/server/src/lib.rs"))?;
    run(check)?;
    read_folder(&folder)
}

/// Makes cargo check a crate again although nothing has changed: its root file looks new until this is dropped, and
/// then as before, so that what others have built stays good.
struct Touched {
    file: PathBuf,
    modified: SystemTime,
}

impl Touched {
    fn new(file: PathBuf) -> anyhow::Result<Self> {
        let modified = fs::metadata(&file).and_then(|found| found.modified());
        let modified = modified.with_context(|| format!("looking at {}", file.display()))?;
        set_modified(&file, now()).with_context(|| format!("touching {}", file.display()))?;
        Ok(Self { file, modified })
    }
}

impl Drop for Touched {
    fn drop(&mut self) {
        // The worst that a failure can cost is one more build of the crate.
        let _ = set_modified(&self.file, self.modified);
    }
}

fn set_modified(file: &Path, time: SystemTime) -> std::io::Result<()> {
    File::options().append(true).open(file)?.set_modified(time)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a file's time of change is compared with the clock's by cargo"
)]
fn now() -> SystemTime {
    SystemTime::now()
}

/// Applies the migrations. By psql, and not by the server: that one may only build once the data made here is there.
fn migrate(scratch: &Scratch<'_>) -> anyhow::Result<()> {
    let folder = root().join("migrations");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .with_context(|| format!("reading {}", folder.display()))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "sql"));
    files.sort();
    for file in files {
        let sql = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        let applied = scratch.psql(&["--single-transaction"], &sql);
        applied.with_context(|| format!("applying {}", file.display()))?;
    }
    Ok(())
}

fn read_folder(folder: &Path) -> anyhow::Result<QueryData> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(QueryData::new());
    };
    let mut data = QueryData::new();
    for entry in entries {
        let entry = entry.with_context(|| format!("reading {}", folder.display()))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("query-") {
            data.insert(
                name,
                fs::read(entry.path()).with_context(|| format!("reading {}", entry.path().display()))?,
            );
        }
    }
    Ok(data)
}

/// One line for each query that differs.
fn compare(committed: &QueryData, fresh: &QueryData) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, content) in fresh {
        match committed.get(name) {
            None => lines.push(format!("missing: {}", query_of(name, content))),
            Some(old) if old != content => lines.push(format!("changed: {}", query_of(name, content))),
            Some(_) => {}
        }
    }
    let unused = committed.iter().filter(|(name, _)| !fresh.contains_key(*name));
    lines.extend(unused.map(|(name, content)| format!("unused: {}", query_of(name, content))));
    lines
}

/// The file's name and the beginning of its query.
fn query_of(name: &str, content: &[u8]) -> String {
    let text = String::from_utf8_lossy(content);
    let query = text.lines().find_map(|line| line.trim().strip_prefix("\"query\":"));
    let short: String = query.unwrap_or_default().trim().chars().take(80).collect();
    format!("{name} {short}")
}

#[cfg(test)]
mod tests {
    use super::{QueryData, compare};

    fn data(files: &[(&str, &str)]) -> QueryData {
        files
            .iter()
            .map(|(name, content)| ((*name).to_owned(), content.as_bytes().to_vec()))
            .collect()
    }

    #[test]
    fn same_data_has_no_differences() {
        let one = data(&[("query-a.json", "{}")]);
        assert!(compare(&one, &one).is_empty());
    }

    #[test]
    fn each_difference_is_one_line() {
        let committed = data(&[
            ("query-a.json", "old"),
            ("query-b.json", "{\n  \"query\": \"select 1\"\n}"),
        ]);
        let fresh = data(&[("query-a.json", "new"), ("query-c.json", "{}")]);
        let lines = compare(&committed, &fresh);
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(
            lines.contains(&"unused: query-b.json \"select 1\"".to_owned()),
            "{lines:?}"
        );
    }
}

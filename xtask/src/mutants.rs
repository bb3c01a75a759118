//! `cargo xtask mutants`: shows that each gate is held by a test. Each patch in `xtask/mutants` removes one step; in a
//! copy of the work tree with the patch applied, the test that the patch names must fail, and must pass without it.
//!
//! A patch is what `git diff` writes, after a head of lines such as:
//!
//! ```text
//! # removes: the posture's gate
//! # test: call_denied::leaves_no_row
//! # package: e2e
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use xtask::services::{Install, Services};

use crate::cargo::{cargo, root, run};

/// One line around a change is enough to find it by: with more, an edit beside it would spoil the patch.
const CONTEXT: &str = "-C1";

/// Where the test is when the patch doesn't say.
const DEFAULT_PACKAGE: &str = "e2e";

/// One step removed, and the test that must notice.
#[derive(Debug, PartialEq, Eq)]
struct Mutation {
    name: String,
    removes: String,
    package: String,
    test: String,
}

/// How the named test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Passed,
    Failed,
    /// No test of that name.
    NotFound,
    DoesNotCompile,
}

/// Runs all whose name contains `filter`, and fails where one was not noticed.
pub(crate) fn run_all(install: Install, filter: Option<&str>) -> anyhow::Result<()> {
    let patches = root().join("xtask/mutants");
    let mutations = read_all(&patches, filter)?;
    let services = Services::find_or_start(root(), install)?;
    let copy = Copy {
        tree: root().join("target/mutants/tree"),
    };

    copy.renew()?;
    let mut failures = Vec::new();
    for mutation in &mutations {
        eprintln!("\n==> {} (unchanged)", mutation.test);
        let verdict = copy.test(mutation, &services)?;
        if verdict != Verdict::Passed {
            failures.push(format!(
                "{}: without the patch, {}: {verdict:?}",
                mutation.name, mutation.test
            ));
        }
    }
    if !failures.is_empty() {
        bail!(
            "a test that does not pass shows nothing when it fails:\n  {}",
            failures.join("\n  ")
        );
    }

    let mut rows = Vec::new();
    for mutation in &mutations {
        eprintln!("\n==> {} (without {})", mutation.test, mutation.removes);
        copy.renew()?;
        copy.apply(&patches.join(format!("{}.patch", mutation.name)))?;
        rows.push((mutation, copy.test(mutation, &services)?));
    }
    println!("\n{}", table(&rows));
    let unnoticed = rows.iter().filter(|(_, verdict)| *verdict != Verdict::Failed).count();
    if unnoticed > 0 {
        bail!("{unnoticed} of {} mutations were not noticed by their test", rows.len());
    }
    Ok(())
}

fn read_all(folder: &Path, filter: Option<&str>) -> anyhow::Result<Vec<Mutation>> {
    let mut mutations = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let file = entry.with_context(|| format!("reading {}", folder.display()))?.path();
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let is_patch = file.extension().is_some_and(|extension| extension == "patch");
        if is_patch && filter.is_none_or(|filter| name.contains(filter)) {
            let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
            mutations.push(parse(&name, &text).with_context(|| format!("in {}", file.display()))?);
        }
    }
    if mutations.is_empty() {
        bail!("no mutation in {} that fits", folder.display());
    }
    mutations.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(mutations)
}

/// Reads the head of a patch.
fn parse(name: &str, patch: &str) -> anyhow::Result<Mutation> {
    let (mut removes, mut package, mut test) = (None, None, None);
    for line in patch.lines().map_while(|line| line.strip_prefix('#')) {
        let (key, value) = line
            .split_once(':')
            .context("a line of the head is not `# key: value`")?;
        let field = match key.trim() {
            "removes" => &mut removes,
            "package" => &mut package,
            "test" => &mut test,
            other => bail!("the head knows removes, test and package, not `{other}`"),
        };
        if field.replace(value.trim().to_owned()).is_some() {
            bail!("`{}` is there twice", key.trim());
        }
    }
    if !patch.lines().any(|line| line.starts_with("+++ ")) {
        bail!("there is no diff");
    }
    Ok(Mutation {
        name: name.to_owned(),
        removes: removes.context("the head has no `removes`")?,
        package: package.unwrap_or_else(|| DEFAULT_PACKAGE.to_owned()),
        test: test.context("the head has no `test`")?,
    })
}

/// The copy of the work tree in which mutations are tried. Its build folder is kept beside it.
struct Copy {
    tree: PathBuf,
}

impl Copy {
    /// Makes the copy equal to the work tree. A file that is equal already keeps its time of change, so that cargo
    /// builds no more than it must.
    fn renew(&self) -> anyhow::Result<()> {
        let files = listed_files(root())?;
        for name in &files {
            let target = self.tree.join(name);
            let content = fs::read(root().join(name)).with_context(|| format!("reading {}", name.display()))?;
            if fs::read(&target).ok().as_ref() == Some(&content) {
                continue;
            }
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent).with_context(|| format!("creating {}", parent.display()))?;
            }
            fs::write(&target, content).with_context(|| format!("writing {}", target.display()))?;
        }
        remove_others(&self.tree, &self.tree, &files)
    }

    fn apply(&self, patch: &Path) -> anyhow::Result<()> {
        let mut command = Command::new("git");
        command
            .args(["apply", "--whitespace=nowarn", CONTEXT])
            .arg(patch)
            .current_dir(&self.tree);
        // Else git sees that the copy lies in an ignored folder of the project's own repository, and skips every file.
        command.env("GIT_CEILING_DIRECTORIES", self.tree.parent().unwrap_or(&self.tree));
        run(command)
    }

    fn test(&self, mutation: &Mutation, services: &Services) -> anyhow::Result<Verdict> {
        let command = |last: &[&str]| {
            let mut command = cargo(&["test", "--package", &mutation.package]);
            command.args(last).current_dir(&self.tree);
            command.env("CARGO_TARGET_DIR", self.tree.with_file_name("target"));
            command
                .env("DATABASE_URL", services.database_url())
                .env("AMQP_URL", services.amqp_url());
            command
        };
        let built = command(&["--no-run"]).status().context("starting cargo")?;
        if !built.success() {
            return Ok(Verdict::DoesNotCompile);
        }
        let output = command(&["--no-fail-fast", "--", "--exact", &mutation.test])
            .output()
            .context("starting cargo")?;
        Ok(verdict_of(&String::from_utf8_lossy(&output.stdout), &mutation.test))
    }
}

/// What the test runner's lines say of the one test.
fn verdict_of(output: &str, test: &str) -> Verdict {
    let line = output
        .lines()
        .find_map(|line| line.strip_prefix("test ")?.strip_prefix(test)?.strip_prefix(" ..."));
    // Between the name and its result may be what the test printed: then the runner's totals tell.
    match line.map(str::trim) {
        None => Verdict::NotFound,
        Some("ok") => Verdict::Passed,
        Some("FAILED") => Verdict::Failed,
        Some(_) if output.lines().any(|line| line.starts_with("test result: FAILED")) => Verdict::Failed,
        Some(_) => Verdict::Passed,
    }
}

/// What git knows of and what it would take in, but not what it ignores.
fn listed_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut command = Command::new("git");
    command
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(folder);
    let output = command.output().context("starting git")?;
    if !output.status.success() {
        bail!("git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let names = String::from_utf8(output.stdout).context("a file's name is not UTF-8")?;
    // One that is deleted and not yet committed is still listed.
    let files = names.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from);
    Ok(files.filter(|name| folder.join(name).is_file()).collect())
}

/// Removes what the work tree does not have (any more).
fn remove_others(tree: &Path, folder: &Path, files: &[PathBuf]) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry.with_context(|| format!("reading {}", folder.display()))?.path();
        if path.is_dir() {
            remove_others(tree, &path, files)?;
        } else if let Ok(name) = path.strip_prefix(tree)
            && !files.iter().any(|file| file == name)
        {
            fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
        }
    }
    Ok(())
}

fn table(rows: &[(&Mutation, Verdict)]) -> String {
    let width = |of: fn(&Mutation) -> &str| rows.iter().map(|(mutation, _)| of(mutation).len()).max().unwrap_or(0);
    let (removes, test) = (width(|mutation| &mutation.removes), width(|mutation| &mutation.test));
    let line = |(mutation, verdict): &(&Mutation, Verdict)| {
        let says = match verdict {
            Verdict::Failed => "noticed",
            Verdict::Passed => "NOT NOTICED",
            Verdict::NotFound => "NO SUCH TEST",
            Verdict::DoesNotCompile => "DOES NOT COMPILE",
        };
        format!("{:removes$}  {:test$}  {says}", mutation.removes, mutation.test)
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::{CONTEXT, Mutation, Verdict, parse, read_all, root, table, verdict_of};
    use std::process::Command;

    const DIFF: &str = "diff --git a/a.rs b/a.rs\n--- a/a.rs\n+++ b/a.rs\n@@ -1 +1 @@\n-a\n+b\n";

    fn mutation() -> Mutation {
        let text = format!("# removes: the gate\n# test: call_denied::leaves_no_row\n{DIFF}");
        parse("08-gate", &text).unwrap()
    }

    /// A patch that no longer fits would be noticed only when somebody next runs them all.
    #[test]
    fn every_patch_fits_the_tree() {
        let patches = root().join("xtask/mutants");
        let mutations = read_all(&patches, None).unwrap();
        assert!(mutations.len() > 20, "{}", mutations.len());
        for mutation in mutations {
            let mut git = Command::new("git");
            git.args(["apply", "--check", CONTEXT]).current_dir(root());
            let output = git
                .arg(patches.join(format!("{}.patch", mutation.name)))
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: {said}", mutation.name);
        }
    }

    #[test]
    fn head_names_step_and_test() {
        let Mutation {
            name,
            removes,
            package,
            test,
        } = mutation();
        assert_eq!((name.as_str(), removes.as_str()), ("08-gate", "the gate"));
        assert_eq!((package.as_str(), test.as_str()), ("e2e", "call_denied::leaves_no_row"));
    }

    #[test]
    fn incomplete_patches_are_refused() {
        for (text, reason) in [
            (format!("# removes: x\n{DIFF}"), "no `test`"),
            (format!("# test: x\n{DIFF}"), "no `removes`"),
            (format!("# test: x\n# test: y\n# removes: x\n{DIFF}"), "twice"),
            (format!("# tset: x\n{DIFF}"), "not `tset`"),
            (format!("# words\n{DIFF}"), "key: value"),
            ("# test: x\n# removes: x\n".to_owned(), "no diff"),
        ] {
            let error = parse("x", &text).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn only_the_named_test_counts() {
        let output = "running 1 test\ntest a::b ... FAILED\n\nfailures:\n";
        assert_eq!(verdict_of(output, "a::b"), Verdict::Failed);
        assert_eq!(verdict_of(output, "a"), Verdict::NotFound);
        assert_eq!(verdict_of("running 0 tests\n", "a::b"), Verdict::NotFound);
        assert_eq!(verdict_of("test a::b ... ok\n", "a::b"), Verdict::Passed);
        assert_eq!(
            verdict_of("test a::b ... words\nFAILED\ntest result: FAILED. 0 passed\n", "a::b"),
            Verdict::Failed
        );
    }

    #[test]
    fn table_says_what_was_not_noticed() {
        let mutation = mutation();
        let text = table(&[(&mutation, Verdict::Failed), (&mutation, Verdict::Passed)]);
        assert_eq!(
            text.lines().next(),
            Some("the gate  call_denied::leaves_no_row  noticed")
        );
        assert!(text.ends_with("NOT NOTICED"), "{text}");
    }
}

//! The steps of a long command: a line when one begins, and a table at the end.

use std::time::{Duration, Instant};

use anyhow::Context as _;

/// What was done so far, and how long it took.
#[derive(Default)]
pub(crate) struct Steps(Vec<(&'static str, Duration)>);

impl Steps {
    /// Runs one step. The first that fails ends the command.
    pub(crate) fn run<T>(&mut self, name: &'static str, step: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
        eprintln!("\n==> {name}");
        let start = Instant::now();
        let outcome = step();
        if outcome.is_err() {
            self.print();
            eprintln!("  FAILED  {name} ({} s)", start.elapsed().as_secs());
        }
        let value = outcome.with_context(|| format!("step `{name}`"))?;
        self.0.push((name, start.elapsed()));
        Ok(value)
    }

    /// What passed.
    pub(crate) fn print(&self) {
        eprintln!();
        for (name, took) in &self.0 {
            eprintln!("  passed  {name} ({} s)", took.as_secs());
        }
    }
}

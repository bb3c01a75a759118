//! `cargo xtask test`: what CI runs, in the order in which a failure is cheapest.

use xtask::services::{Install, Services};

use crate::cargo::{cargo, root, run};
use crate::prepare;
use crate::steps::Steps;

/// Runs it all; the first step that fails ends it.
pub(crate) fn test(install: Install, arguments: &[String]) -> anyhow::Result<()> {
    let mut steps = Steps::default();
    steps.run("format", || run(cargo(&["fmt", "--all", "--check"])))?;
    steps.run("lints", || {
        run(cargo(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "--deny",
            "warnings",
        ]))
    })?;
    steps.run("documentation", || {
        let mut doc = cargo(&["doc", "--workspace", "--no-deps", "--quiet"]);
        doc.env("RUSTDOCFLAGS", "--deny warnings");
        run(doc)
    })?;
    let services = steps.run("services", || Ok(Services::find_or_start(root(), install)?))?;
    steps.run("offline query data", || prepare::check_with(&services))?;
    steps.run("tests", || {
        let mut test = cargo(&["test", "--workspace"]);
        test.args(arguments)
            .env("DATABASE_URL", services.database_url())
            .env("AMQP_URL", services.amqp_url());
        run(test)
    })?;
    steps.print();
    eprintln!("\nall passed");
    Ok(())
}

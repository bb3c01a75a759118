//! `cargo xtask interop`: a real Nest client against our server, and our worker against a real Nest server.

use std::path::Path;

use xtask::services::{Install, Services};

use crate::cargo::{cargo, root, run};
use crate::peers;

/// Runs it. Not a part of `cargo test`, as it needs Node and the peer.
pub(crate) fn interop(install: Install, peers: &Path) -> anyhow::Result<()> {
    let nest = peers::build_nest(peers)?;
    let services = Services::find_or_start(root(), install)?;
    let mut test = cargo(&["test", "--quiet", "--package", "e2e", "--test", "interop", "--"]);
    test.arg(nest)
        .env("DATABASE_URL", services.database_url())
        .env("AMQP_URL", services.amqp_url());
    run(test)
}

//! The only place of this crate that reads environment variables.

use std::ffi::OsString;
use std::path::PathBuf;

/// The value of a variable; one that is empty counts as not set.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "the one place of this crate that reads the environment"
)]
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The folders of `PATH`.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "the one place of this crate that reads the environment"
)]
pub fn search_path() -> Vec<PathBuf> {
    std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).collect())
        .unwrap_or_default()
}

/// The variables by which cargo describes *this* package to the running program. A cargo started from here must not
/// see them: some build scripts depend on them, and would build again each time that the way of starting changes.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "the one place of this crate that reads the environment"
)]
pub fn package_variables() -> Vec<OsString> {
    let of_package = |name: &OsString| {
        name.to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
    };
    std::env::vars_os().map(|(name, _)| name).filter(of_package).collect()
}

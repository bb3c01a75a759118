//! Why a service could not be had; each message says what to do where something can be done.

use std::io;
use std::path::PathBuf;

/// Why a service could not be found or started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// No way to at least one of the services.
    #[error(
        "no {services} to be had: {variables} not set, no server installed, and no Docker that answers. \
         Run `cargo xtask up --install` or `cargo xtask test --install` once (Debian, Ubuntu), \
         or install the servers by hand, or set {variables}"
    )]
    Missing {
        /// The services, in words.
        services: String,
        /// The variables that would name them.
        variables: String,
    },
    /// A private instance was asked for, and the server is not installed.
    #[error("{service} is not installed: run `cargo xtask up --install` once (Debian, Ubuntu), or install it by hand")]
    NotInstalled {
        /// Which service.
        service: &'static str,
    },
    /// A variable names a server, and nothing answers there.
    #[error("{variable} is set, but nothing answers at {address} ({source}): start it, or unset {variable}")]
    NoAnswer {
        /// The variable.
        variable: &'static str,
        /// Host and port of its URL.
        address: String,
        /// What the connection attempt said.
        source: io::Error,
    },
    /// The packages could not be installed.
    #[error("could not install {packages} with apt-get ({reason}): install them by hand and run this again")]
    NotInstallable {
        /// The packages.
        packages: String,
        /// How apt-get ended.
        reason: String,
    },
    /// The server ended before it was ready.
    #[error("{service} ended while it was starting ({status}); the end of its log:\n{log}")]
    Died {
        /// Which service.
        service: &'static str,
        /// Its exit status.
        status: String,
        /// The last lines of its log.
        log: String,
    },
    /// The server did not become ready in time.
    #[error("{service} was not ready within {limit_s} s; the end of its log:\n{log}")]
    NotReady {
        /// Which service.
        service: &'static str,
        /// The limit.
        limit_s: u64,
        /// The last lines of its log.
        log: String,
    },
    /// A program that prepares a service failed.
    #[error("`{program}` failed: {output}")]
    Program {
        /// The program.
        program: String,
        /// What it wrote, or its exit status.
        output: String,
    },
    /// A program could not be run, or a file not be read or written.
    #[error("{action} {}: {source}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// With which file or program.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another running process uses the data folder.
    #[error("the database in {} is in use by process {pid}: is `cargo xtask up` running in another shell?", folder.display())]
    InUse {
        /// The data folder.
        folder: PathBuf,
        /// The process.
        pid: u32,
    },
    /// A folder that others can write to is not what it was left as.
    #[error("{} exists and belongs to someone else: remove it", folder.display())]
    ForeignFolder {
        /// The folder.
        folder: PathBuf,
    },
    /// The system has no account that a server could run as.
    #[error("as root, {service} must run as another user, and there is neither a user {user} nor nobody")]
    NoAccount {
        /// Which service.
        service: &'static str,
        /// The account that the packages make.
        user: &'static str,
    },
    /// The starting thread panicked: a bug of this crate.
    #[error("the thread that starts {service} panicked")]
    Panicked {
        /// Which service.
        service: &'static str,
    },
}

impl ServiceError {
    /// For `map_err`: what was tried, with which file.
    pub(crate) fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }
}

//! The process's log: where it goes and what never enters it.

use crate::config::{LogConfig, LogFormat};
use std::io::{self, IsTerminal};
use tracing_subscriber::EnvFilter;

/// lapin writes returned messages, body and all, to its warnings; async-openai writes bodies that it cannot read to its errors.
/// They stay silent unless the filter names them.
const QUIET: &str = "lapin=error,async_openai=off";

/// Starts the log, on standard error. A second call in one process changes nothing.
pub(crate) fn start(config: &LogConfig) {
    let filter = EnvFilter::builder().parse_lossy(format!("{QUIET},{}", config.filter));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr);
    let started = match config.format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    if let Err(error) = started {
        tracing::debug!(%error, "the log was started before");
    }
}

//! The whole of the worker's binary: configuration, log, runtime, signals.

use crate::{Config, logs, run};
use anyhow::Context as _;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

/// Runs the worker until SIGTERM or Ctrl-C. Exit status 0 when it was told to stop.
#[must_use]
pub fn main() -> ExitCode {
    match start() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("worker: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn start() -> anyhow::Result<()> {
    let config = Config::from_env()?;
    logs::start(&config.log);
    tracing::info!(?config, "starting");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("no runtime")?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).context("no handler for SIGTERM")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("no handler for SIGINT")?;
        let told = async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        run(config, told).await.context("could not start")
    })
}

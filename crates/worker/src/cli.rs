//! The whole of the worker's binary: configuration, log, runtime, signals.

use crate::{Config, logs, run};
use anyhow::Context as _;
use clap::Parser;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

/// The worker of a school's agents: takes turns off the broker, and runs them with a language model.
///
/// It works until SIGTERM or Ctrl-C.
#[derive(Debug, Parser)]
#[command(name = "worker", version, about, long_about, after_help = VARIABLES)]
struct Cli {}

/// What it is told, all of it by its environment.
const VARIABLES: &str = "Environment:
  AMQP_URL          the broker, amqp://
  QUEUE_PREFIX      what the names of this stack begin with, on a broker that it shares
  OPENAI_BASE_URL   the model's endpoint; the public one without it
  OPENAI_API_KEY    its key; needed for the public one
  MODEL             which model
  TURN_CONCURRENCY  turns at once; 8 without it
  LOG               a filter of what is logged, such as info,worker=debug
  LOG_FORMAT        text or json; text without it";

/// Runs the worker until SIGTERM or Ctrl-C. Exit status 0 when it was told to stop.
#[must_use]
pub fn main() -> ExitCode {
    let Cli {} = Cli::parse();
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

//! The whole of the demo model's binary.

use crate::{Script, ScriptedModel, config::Config};
use anyhow::Context as _;
use clap::Parser;
use std::{
    io::{self, IsTerminal},
    process::ExitCode,
};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// A demo model: speaks the chat-completions protocol, and answers by a few rules. It is no language model.
///
/// It prints where it listens, and serves until SIGTERM or Ctrl-C.
#[derive(Debug, Parser)]
#[command(name = "scripted-model", version, about, long_about, after_help = VARIABLES)]
struct Cli {}

/// What it is told, all of it by its environment.
const VARIABLES: &str = "Environment:
  SCRIPTED_MODEL_ADDR  where it listens, such as 127.0.0.1:8077; a free port of this machine without it
  LOG                  a filter of what is logged, such as debug; info without it
  LOG_FORMAT           json or text; text without it";

/// Serves the rules until SIGTERM or Ctrl-C. Prints where it listens.
#[must_use]
pub fn main() -> ExitCode {
    let Cli {} = Cli::parse();
    match start() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("scripted-model: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn start() -> anyhow::Result<()> {
    let config = Config::from_env()?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::builder().parse_lossy(&config.log))
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr);
    if config.log_json {
        builder.json().init();
    } else {
        builder.init();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("no runtime")?;
    runtime.block_on(serve(&config))
}

async fn serve(config: &Config) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("no handler for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("no handler for SIGINT")?;
    let server = ScriptedModel::start_at(config.address, Script::rules())
        .await
        .with_context(|| format!("cannot listen on {}", config.address))?;
    tracing::warn!(address = %server.addr(), "this is a demo model: it knows a few sentences, and is no language model");
    println!("listening on {}", server.base_url());
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

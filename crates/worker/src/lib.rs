//! The worker: turns the contract's tools into function calls for a model, and runs turns.
//!
//! It has no database and no door of its own. One turn, file by file: a message is taken from the broker ([`rpc`]), the loop
//! ([`turn`]) asks the model ([`model`]) with the belt of tools ([`proxy`], [`local_tools`], [`agents`]), and each call that the model
//! makes is bound to the caller that the server minted ([`context`]) and sent through an [`caller::AgentToolCaller`]. Nothing here
//! decides what a caller may do.

pub mod agents;
pub mod caller;
pub mod cli;
mod clock;
pub mod config;
pub mod context;
pub mod local_tools;
mod logs;
pub mod model;
pub mod proxy;
pub mod rpc;
mod tasks;
pub mod turn;

pub use config::Config;

use crate::{
    model::{Model, ModelError},
    rpc::{AgentToolService, BrokerError},
    turn::TurnRunner,
};
use std::{future::Future, sync::Arc};

/// Why a worker could not start. Once started, it waits for what is missing.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The broker's address is of no use.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// The model's client could not be built.
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// Takes turns until `shutdown` resolves, then ends within [`rpc::DRAIN_LIMIT`]. Prints `worker ready` once it consumes.
///
/// # Errors
///
/// When the configuration is of no use. A broker or a model that is away is waited for.
pub async fn run(config: Config, shutdown: impl Future<Output = ()>) -> Result<(), WorkerError> {
    run_with(config, shutdown, || println!("worker ready")).await
}

/// The same, with something else to do when it consumes for the first time.
///
/// # Errors
///
/// As [`run`].
pub async fn run_with(
    config: Config,
    shutdown: impl Future<Output = ()>,
    ready: impl FnOnce(),
) -> Result<(), WorkerError> {
    let service = Arc::new(AgentToolService::start(&config.amqp_url, config.topology)?);
    let runner = TurnRunner::new(Model::new(&config.model)?, service.clone());
    service
        .take_turns(Arc::new(runner), config.turn_concurrency, shutdown, ready)
        .await;
    service.close().await;
    Ok(())
}

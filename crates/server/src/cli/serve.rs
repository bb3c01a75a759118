//! `server serve`.

use crate::{config::Config, execute::Pipeline, grant::Ungranted, rpc};
use anyhow::Context;
use std::{future::Future, sync::Arc};
use tokio::{
    signal::unix::{SignalKind, signal},
    task::JoinSet,
};

pub(super) async fn serve(config: Config) -> anyhow::Result<()> {
    if config.ungranted == Ungranted::Admit {
        tracing::warn!("REQUIRE_GRANT=false: whoever reaches the broker can act for anybody");
    }
    let database = super::connect(&config.roles)?;
    database
        .check()
        .await
        .context("the database does not answer; is it migrated?")?;
    let pipeline = Arc::new(Pipeline::new(database, config.grants)?);
    let shutdown = shutdown()?;
    let (serving, broker) = (Arc::clone(&pipeline), config.broker);
    let mut tasks = JoinSet::new();
    // among the worker threads: to this one each delivery would have to cross, and wake it
    tasks.spawn(async move {
        rpc::serve(serving, &broker, shutdown, || {
            tracing::info!("taking tool calls");
            // the line that whoever started this process waits for; a closed stdout is no reason to stop serving
            let _ = super::print("server ready");
        })
        .await;
    });
    let served = tasks.join_next().await.transpose();
    pipeline.database().close().await;
    served.context("serving ended")?;
    Ok(())
}

fn shutdown() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping: calls in flight are answered first");
    })
}

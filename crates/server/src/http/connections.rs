//! The door's connections: so many at once, and none that only waits.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use std::{future::Future, pin::pin, sync::Arc, time::Duration};
use tokio::{
    net::TcpListener,
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, timeout},
};

/// How many connections there may be; most of them read events, and [`super::streams`] bounds those. More would take file handles from the
/// database and the broker.
pub(super) const MAX_CONNECTIONS: usize = 800;
/// How long a client may take to send the head of a request. Nobody needs to have signed in to make one wait.
const HEAD_LIMIT: Duration = Duration::from_secs(10);
/// How long requests under way are given once the process was asked to stop.
const DRAIN_LIMIT: Duration = Duration::from_secs(5);
/// The wait after a connection that could not be accepted: what is lacking then is lacking for a while.
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// Serves until `shutdown` resolves.
pub(super) async fn serve(listener: TcpListener, router: Router, shutdown: impl Future<Output = ()>) {
    let mut shutdown = pin!(shutdown);
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    loop {
        let accepted = async {
            // never closed, so that there is always one to wait for
            let slot = Arc::clone(&slots).acquire_owned().await.ok()?;
            Some((listener.accept().await, slot))
        };
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            Some(_) = connections.join_next() => continue,
            accepted = accepted => accepted,
        };
        let Some((accepted, slot)) = accepted else { break };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(TRY_AGAIN).await;
                continue;
            }
        };
        // small events are to arrive when they happen
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection gathers what it sends");
        }
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(HEAD_LIMIT);
        let service = TowerToHyperService::new(router.clone());
        let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), service));
        connections.spawn(async move {
            let _slot = slot;
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended");
            }
        });
    }
    drop(listener);
    if timeout(DRAIN_LIMIT, graceful.shutdown()).await.is_err() {
        tracing::warn!("requests did not end in time");
    }
}

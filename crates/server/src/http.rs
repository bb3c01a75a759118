//! The HTTP door: conversations, their events as they happen, the agent map, health. The only module that knows axum.
//!
//! Who comes in is read from a bearer token; what they may do is asked of the rows on each request, and never of the token.

pub(crate) mod approvals;
pub(crate) mod auth;
pub(crate) mod client;
mod connections;
mod conversations;
mod events;
mod input;
mod problem;
mod streams;

use self::{auth::Authenticator, problem::Problem, streams::Streams};
use crate::{conversation::hub::Hub, decision::Decisions, rpc::reports::Books};
use axum::{
    Router,
    extract::{DefaultBodyLimit, State},
    http::StatusCode,
    routing::{get, post},
};
use std::{future::Future, sync::Arc, time::Duration};
use tokio::{net::TcpListener, sync::watch, time::timeout};
use tower_http::timeout::TimeoutLayer;

/// How long the answer about readiness may take.
const READY_LIMIT: Duration = Duration::from_secs(3);
/// How long a request may take to be read and to be answered; events come after the answer has begun.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// What every request needs.
pub(crate) struct Door {
    pub(crate) books: Books,
    pub(crate) decisions: Arc<Decisions>,
    pub(crate) auth: Authenticator,
    pub(crate) hub: Arc<Hub>,
    pub(crate) streams: Arc<Streams>,
    /// True once the process was asked to stop; streams end then, and their readers go on elsewhere.
    pub(crate) stopping: watch::Receiver<bool>,
}

/// Serves until `shutdown` resolves.
pub(crate) async fn serve(listener: TcpListener, door: Arc<Door>, shutdown: impl Future<Output = ()>) {
    connections::serve(listener, router(door), shutdown).await;
}

fn router(door: Arc<Door>) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "alive" }))
        .route("/readyz", get(ready))
        .route(
            "/v1/threads",
            get(conversations::threads).post(conversations::open_thread),
        )
        .route("/v1/threads/{thread}", get(conversations::thread))
        .route("/v1/threads/{thread}/turns", post(conversations::begin_turn))
        .route("/v1/turns/{turn}", get(conversations::turn))
        .route("/v1/turns/{turn}/events", get(events::follow))
        .route("/v1/turns/{turn}/cancel", post(conversations::cancel))
        .route("/v1/turns/{turn}/answers", post(conversations::answer))
        .route("/v1/approvals", get(approvals::waiting))
        .route("/v1/approvals/{approval}", get(approvals::one))
        .route("/v1/approvals/{approval}/decision", post(approvals::decide))
        .route("/v1/agent-map", get(conversations::agent_map))
        .fallback(|| async { Problem::new(StatusCode::NOT_FOUND, "There is nothing here.") })
        .method_not_allowed_fallback(|| async {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "This cannot be done here.")
        })
        .layer(DefaultBodyLimit::max(input::MAX_BODY_BYTES))
        .layer(TimeoutLayer::with_status_code(
            StatusCode::REQUEST_TIMEOUT,
            ANSWER_LIMIT,
        ))
        .with_state(door)
}

/// Whether turns can be taken: the database answers, and the broker too.
async fn ready(State(door): State<Arc<Door>>) -> Result<&'static str, Problem> {
    let not_ready = |what: &str| Problem::new(StatusCode::SERVICE_UNAVAILABLE, what);
    let database = timeout(READY_LIMIT, door.books.conversations.check()).await;
    if !matches!(database, Ok(Ok(()))) {
        return Err(not_ready("The database does not answer."));
    }
    let broker = timeout(READY_LIMIT, door.books.turns.check()).await;
    if !matches!(broker, Ok(Ok(()))) {
        return Err(not_ready("The broker does not answer."));
    }
    Ok("ready")
}

//! The HTTP server.

use crate::{
    protocol::{self, Answer, ChatRequest},
    rules,
    script::{Body, Fault, Reply, Script},
};
use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, State},
    http::{HeaderName, HeaderValue, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use futures_util::{StreamExt as _, stream};
use serde::Deserialize as _;
use serde_json::Value;
use std::{
    collections::VecDeque,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{net::TcpListener, task::JoinHandle};

/// The largest request that is read: a long conversation with a long list of tools.
const MAX_REQUEST_BYTES: usize = 8 * 1024 * 1024;
/// How many requests are kept to be read back; the oldest go first.
const MAX_REQUESTS_KEPT: usize = 256;

/// How long after its last chunk a torn stream breaks.
const TEAR_DELAY: Duration = Duration::from_millis(20);

/// A running server; it stops when this is dropped.
#[derive(Debug)]
pub struct ScriptedModel {
    address: SocketAddr,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    script: Script,
    requests: Mutex<VecDeque<Value>>,
}

impl ScriptedModel {
    /// Serves a script on a free port of this machine.
    ///
    /// # Errors
    ///
    /// When there is no port to be had.
    pub async fn start(script: Script) -> io::Result<Self> {
        Self::start_at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), script).await
    }

    /// Serves a script at an address.
    ///
    /// # Errors
    ///
    /// When the address is not to be had.
    pub async fn start_at(address: SocketAddr, script: Script) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            script,
            requests: Mutex::default(),
        });
        let app = Router::new()
            .route("/v1/chat/completions", post(complete))
            .route("/v1/models", get(async || Json(protocol::models())))
            .layer(DefaultBodyLimit::max(MAX_REQUEST_BYTES))
            .with_state(shared.clone());
        Ok(Self {
            address,
            shared,
            serving: serve(listener, app),
        })
    }

    /// Where it listens.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.address
    }

    /// What a client takes as its base address.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The requests so far, in the order in which they came.
    #[must_use]
    pub fn requests(&self) -> Vec<Value> {
        self.shared.requests().iter().cloned().collect()
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Shared {
    fn requests(&self) -> MutexGuard<'_, VecDeque<Value>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, request: Value) {
        let mut requests = self.requests();
        if requests.len() == MAX_REQUESTS_KEPT {
            requests.pop_front();
        }
        requests.push_back(request);
    }
}

#[expect(clippy::disallowed_methods, reason = "the one task of the demo model: its server")]
fn serve(listener: TcpListener, app: Router) -> JoinHandle<()> {
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, app).await {
            tracing::error!(%error, "the server ended");
        }
    })
}

async fn complete(State(shared): State<Arc<Shared>>, Json(request): Json<Value>) -> Response {
    shared.keep(request.clone());
    let reply = match shared.script.0.scripted(&request) {
        Some(reply) => reply,
        None => match by_rules(&request) {
            Ok(reply) => reply,
            Err(refusal) => return (StatusCode::BAD_REQUEST, Json(refusal)).into_response(),
        },
    };
    tokio::time::sleep(reply.delay).await;
    answer(&request, &reply)
}

fn by_rules(request: &Value) -> Result<Reply, Value> {
    let parsed = ChatRequest::deserialize(request).map_err(|error| {
        protocol::error(
            &format!("This is no chat-completions request: {error}."),
            "invalid_request_error",
            None,
            None,
        )
    })?;
    if parsed.messages.is_empty() {
        let message = "There are no messages.";
        return Err(protocol::error(
            message,
            "invalid_request_error",
            Some("messages"),
            Some("empty_array"),
        ));
    }
    Ok(rules::reply(&parsed))
}

fn answer(request: &Value, reply: &Reply) -> Response {
    let mut response = match &reply.body {
        Body::Completion { text, calls } => {
            let answer = Answer {
                request,
                text: text.as_deref(),
                calls,
                seed: seed(request),
            };
            if request.get("stream") == Some(&Value::Bool(true)) {
                stream(answer.chunks(), reply.fault)
            } else {
                typed("application/json", axum::body::Body::from(answer.whole().to_string()))
            }
        }
        Body::Raw { status, body } => {
            let mut response = typed("application/json", axum::body::Body::from(body.clone()));
            *response.status_mut() = StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            response
        }
    };
    for (name, value) in &reply.headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// Chunks as server-sent events, to their end or as far as the fault lets them come.
fn stream(chunks: Vec<Value>, fault: Option<Fault>) -> Response {
    let count = match fault {
        None => chunks.len(),
        Some(Fault::Torn(count) | Fault::Silent(count)) => count,
    };
    let events = chunks
        .into_iter()
        .take(count)
        .map(|chunk| Ok(format!("data: {chunk}\n\n")));
    let events = stream::iter(events);
    let body = match fault {
        None => axum::body::Body::from_stream(
            events.chain(stream::iter([Ok::<_, io::Error>("data: [DONE]\n\n".to_owned())])),
        ),
        // What was sent must leave before the connection breaks, or the client would not see it.
        Some(Fault::Torn(_)) => axum::body::Body::from_stream(events.chain(stream::once(async {
            tokio::time::sleep(TEAR_DELAY).await;
            Err(io::Error::from(io::ErrorKind::ConnectionReset))
        }))),
        Some(Fault::Silent(_)) => axum::body::Body::from_stream(events.chain(stream::pending())),
    };
    typed("text/event-stream", body)
}

fn typed(content_type: &'static str, body: axum::body::Body) -> Response {
    let mut response = body.into_response();
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// The same for the same conversation: a repeated request asks for the same calls under the same ids.
fn seed(request: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    request.get("messages").map(Value::to_string).hash(&mut hasher);
    hasher.finish()
}

//! Carries one request to the endpoint and its answer back: time limits, and the status of every refusal.
//!
//! It stands below async-openai, which would lose the status of a refusal whose body it can't read, and would log
//! bodies.

use super::{ModelError, refusal};
use async_openai::middleware::HttpRequestFactory;
use futures_util::{Stream, stream};
use reqwest::{Client, Response, header::RETRY_AFTER};
use std::time::Duration;
use tokio::sync::mpsc;

/// How long the endpoint may take to accept a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// How long the endpoint may be silent, before its answer and in the middle of it: a slow model thinks, or answers all
/// at once.
pub(super) const SILENCE_LIMIT: Duration = Duration::from_mins(2);
/// The most of a refusal's body that is read; only its code is used.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;

/// The client with its time limits. To an endpoint without TLS it works on a system that has no certificates, as small
/// containers do.
pub(super) fn http_client(base_url: &str, silence_limit: Duration) -> Result<Client, ModelError> {
    let builder = Client::builder()
        .connect_timeout(CONNECT_LIMIT)
        .read_timeout(silence_limit);
    let builder = if base_url.starts_with("https:") {
        builder
    } else {
        builder.tls_certs_only([])
    };
    builder.build().map_err(|error| ModelError::Client(cause(error)))
}

/// Sends a request, and puts the answer aside unread. What async-openai is given in its place means nothing.
pub(super) async fn send(
    client: Client,
    request: HttpRequestFactory,
    aside: mpsc::Sender<Response>,
) -> Result<Response, ModelError> {
    let request = request
        .build()
        .await
        .map_err(|_| ModelError::Client("the request cannot be built".to_owned()))?;
    let response = client.execute(request).await.map_err(lost)?;
    if !response.status().is_success() {
        return Err(refused(response).await);
    }
    aside
        .try_send(response)
        .map_err(|_| ModelError::Client("a request was sent twice".to_owned()))?;
    Ok(http::Response::new("null").into())
}

/// An answer's bytes as they come.
pub(super) fn chunks(response: Response) -> impl Stream<Item = Result<impl AsRef<[u8]> + Send, ModelError>> + Send {
    stream::try_unfold(response, async |mut response| {
        let chunk = response.chunk().await.map_err(lost)?;
        Ok(chunk.map(|chunk| (chunk, response)))
    })
}

async fn refused(response: Response) -> ModelError {
    let status = response.status().as_u16();
    let header = response.headers().get(RETRY_AFTER);
    let retry_after = header.and_then(|value| value.to_str().ok()?.trim().parse().ok());
    ModelError::Refused {
        status,
        code: refusal::code(&serde_json::from_slice(&beginning(response).await).unwrap_or_default()),
        retry_after: retry_after.map(Duration::from_secs),
    }
}

/// What can be had of a body: the status counts, however it ends.
async fn beginning(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_REFUSAL_BYTES {
            break;
        }
    }
    body
}

fn lost(error: reqwest::Error) -> ModelError {
    if error.is_timeout() && !error.is_connect() {
        ModelError::TimedOut
    } else {
        ModelError::Unreachable(cause(error))
    }
}

/// The innermost cause; the outer ones repeat the address.
fn cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut innermost: &dyn std::error::Error = &error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

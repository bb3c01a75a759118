//! Carries one request to the endpoint and its answer back: time limits, a bound on the body, and the status of every refusal.
//!
//! It stands below async-openai, which would lose the status of a refusal whose body it can't read, and would log bodies.

use super::ModelError;
use async_openai::middleware::HttpRequestFactory;
use reqwest::{Client, Response, header::RETRY_AFTER};
use serde_json::Value;
use std::time::Duration;

/// How long the endpoint may take to accept a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// How long the endpoint may be silent: a long answer of a slow model comes all at once.
const SILENCE_LIMIT: Duration = Duration::from_mins(2);
/// The largest answer that is read; completions are a few kilobytes.
const MAX_ANSWER_BYTES: usize = 8 * 1024 * 1024;
/// The longest code of a refusal that is kept; longer ones are sentences, and may quote the request.
const MAX_CODE_BYTES: usize = 64;

/// The client with its time limits. To an endpoint without TLS it works on a system that has no certificates, as small containers do.
pub(super) fn http_client(base_url: &str) -> Result<Client, ModelError> {
    let builder = Client::builder()
        .connect_timeout(CONNECT_LIMIT)
        .read_timeout(SILENCE_LIMIT);
    let builder = if base_url.starts_with("https:") {
        builder
    } else {
        builder.tls_certs_only([])
    };
    builder.build().map_err(|error| ModelError::Client(cause(error)))
}

/// Sends a request; the answer is complete, within bounds, and JSON.
pub(super) async fn send(client: Client, request: HttpRequestFactory) -> Result<Response, ModelError> {
    let request = request
        .build()
        .await
        .map_err(|_| ModelError::Client("the request cannot be built".to_owned()))?;
    let response = client.execute(request).await.map_err(lost)?;
    let status = response.status();
    let retry_after = response
        .headers()
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let body = read(response).await?;
    if !status.is_success() {
        let retry_after = retry_after.map(Duration::from_secs);
        return Err(ModelError::Refused {
            status: status.as_u16(),
            code: code(&body),
            retry_after,
        });
    }
    if serde_json::from_slice::<serde::de::IgnoredAny>(&body).is_err() {
        return Err(ModelError::Unreadable("it is not JSON"));
    }
    Ok(http::Response::new(body).into())
}

async fn read(mut response: Response) -> Result<Vec<u8>, ModelError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(lost)? {
        if body.len() + chunk.len() > MAX_ANSWER_BYTES {
            return Err(ModelError::Unreadable("it is too large"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
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

/// The code or type of a refusal, if it is one word.
pub(super) fn code(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let word = |key| body.pointer(key).and_then(Value::as_str).filter(|text| is_word(text));
    ["/error/code", "/error/type", "/code", "/type"]
        .into_iter()
        .find_map(word)
        .unwrap_or_default()
        .to_owned()
}

fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= MAX_CODE_BYTES
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

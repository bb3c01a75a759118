//! The HTTP door as a chat comes in by it: with a token, like anybody.

use super::text;
use crate::{cli::harmless, http::client::client};
use anyhow::Context;
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::Value;

/// The door said no.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(super) struct Refused {
    status: StatusCode,
    text: String,
}

impl Refused {
    /// Whether something else that is said may be taken.
    pub(super) fn may_be_mended(&self) -> bool {
        ![StatusCode::CONFLICT, StatusCode::NOT_FOUND, StatusCode::FORBIDDEN].contains(&self.status)
    }
}

/// The door, with a token.
pub(super) struct Door {
    client: Client,
    pub(super) url: String,
    token: String,
}

impl Door {
    pub(super) fn new(url: &str, token: String) -> anyhow::Result<Self> {
        Ok(Self {
            client: client(url).context("the HTTP client cannot be made")?,
            url: url.trim_end_matches('/').to_owned(),
            token,
        })
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let request = self.client.post(format!("{}{path}", self.url));
        let request = request
            .header("content-type", "application/json")
            .body(body.to_string());
        read(self.send(request).await?).await
    }

    pub(super) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        read(self.send(self.client.get(format!("{}{path}", self.url))).await?).await
    }

    pub(super) async fn events(&self, path: &str, after: Option<&str>) -> anyhow::Result<Response> {
        let mut request = self.client.get(format!("{}{path}", self.url));
        if let Some(id) = after {
            request = request.header("last-event-id", id);
        }
        self.send(request).await
    }

    async fn send(&self, request: RequestBuilder) -> anyhow::Result<Response> {
        let sent = request.bearer_auth(&self.token).send().await;
        let response = sent.with_context(|| format!("no HTTP door at {}; is a server running?", self.url))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let problem: Value = serde_json::from_str(&response.text().await.unwrap_or_default()).unwrap_or_default();
        let text = match text(&problem, "detail") {
            "" => format!("the door answered {status}"),
            detail => harmless(detail),
        };
        Err(Refused { status, text }.into())
    }
}

async fn read(response: Response) -> anyhow::Result<Value> {
    let answer = response.text().await.context("reading the answer")?;
    if answer.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_str(&answer).context("the answer cannot be read")
}

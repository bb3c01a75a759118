//! The model: any endpoint that speaks the chat-completions protocol.
//!
//! async-openai carries the request; what comes back is read by [`mod@completion`], tolerantly, since servers differ in everything
//! that is not the text. Retries, their waits and the limits are ours (`transport`). No key and no body enters a log.

pub mod completion;
mod transport;

pub use completion::{Completion, ToolCall};

use crate::{clock, config::ModelConfig, tasks::backoff};
use async_openai::{Client, config::OpenAIConfig, error::OpenAIError};
use serde_json::{Value, json};
use std::{sync::Once, time::Duration};

/// How often a request is sent before its failure is final.
const MAX_TRIES: u32 = 4;
/// The wait before the second try, doubled before each further one.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The longest wait between tries that we choose ourselves.
const LONGEST_WAIT: Duration = Duration::from_secs(8);
/// The longest wait that an endpoint may ask for; a person is waiting.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(20);

/// Why the model gave no completion.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// It answered with a status that is no success.
    #[error("the model's endpoint refused the request: status {status} {code}")]
    Refused {
        /// The status.
        status: u16,
        /// The endpoint's own code for it, where it is one word.
        code: String,
        /// When it asks to be tried again.
        retry_after: Option<Duration>,
    },
    /// It could not be reached, or the connection broke.
    #[error("the model's endpoint cannot be reached: {0}")]
    Unreachable(String),
    /// It did not answer in time.
    #[error("the model's endpoint did not answer in time")]
    TimedOut,
    /// It answered with something that is no completion.
    #[error("the model's endpoint answered with something that is no completion: {0}")]
    Unreadable(&'static str),
    /// The client could not be built or the request not be written.
    #[error("the model's client cannot be used: {0}")]
    Client(String),
}

impl ModelError {
    /// Whether the same request may succeed a little later. A used-up quota will not come back in seconds.
    fn may_pass(&self) -> bool {
        match self {
            Self::Refused { status: 429, code, .. } => code != "insufficient_quota",
            Self::Refused { status, .. } => matches!(status, 408 | 409 | 500..=599),
            Self::Unreachable(_) => true,
            Self::TimedOut | Self::Unreadable(_) | Self::Client(_) => false,
        }
    }

    fn wait(&self, attempt: u32) -> Duration {
        let ours = backoff(attempt, FIRST_WAIT, LONGEST_WAIT);
        let Self::Refused {
            retry_after: Some(asked),
            ..
        } = self
        else {
            return ours;
        };
        ours.max(*asked).min(LONGEST_RETRY_AFTER)
    }

    /// What the person is told: what it means for them, nothing of the provider's.
    #[must_use]
    pub const fn text(&self) -> &'static str {
        match self {
            Self::Refused { status: 429, .. } => {
                "The language model is overloaded at the moment. Please try again in a few minutes."
            }
            Self::Refused { status: 401 | 403, .. } => {
                "The language model does not accept this system's credentials. Please tell whoever runs the system."
            }
            Self::Refused { status: 500..=599, .. } | Self::Unreachable(_) | Self::TimedOut => {
                "The language model cannot be reached at the moment. Please try again later."
            }
            Self::Refused { .. } | Self::Unreadable(_) | Self::Client(_) => {
                "The language model could not process this request. Please tell whoever runs the system."
            }
        }
    }
}

impl From<ModelError> for OpenAIError {
    fn from(error: ModelError) -> Self {
        Self::Boxed(Box::new(error))
    }
}

/// A model behind an endpoint.
pub struct Model {
    client: Client<OpenAIConfig>,
    name: String,
}

impl Model {
    /// The model that the configuration names. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// When the system has no usable TLS set-up.
    pub fn new(config: &ModelConfig) -> Result<Self, ModelError> {
        install_tls();
        let http = transport::http_client(&config.base_url)?;
        // The library reads organisation and project from the environment by itself; configuration is ours alone.
        let settings = OpenAIConfig::new()
            .with_api_base(config.base_url.as_str())
            .with_api_key(config.api_key.reveal())
            .with_org_id("")
            .with_project_id("");
        let client = Client::build(http.clone(), settings)
            .with_http_service(tower::service_fn(move |request| transport::send(http.clone(), request)));
        Ok(Self {
            client,
            name: config.name.clone(),
        })
    }

    /// The next message of a conversation: text, tool calls, or both.
    ///
    /// # Errors
    ///
    /// The last failure, when it is final or there is no time for another try.
    pub async fn complete(
        &self,
        messages: &[Value],
        tools: &[Value],
        deadline_ms: i64,
    ) -> Result<Completion, ModelError> {
        let request = self.request(messages, tools);
        let mut attempt = 0;
        loop {
            let error = match self.complete_once(&request).await {
                Ok(completion) => return Ok(completion),
                Err(error) => error,
            };
            let wait = error.wait(attempt);
            attempt += 1;
            if !error.may_pass() || attempt >= MAX_TRIES || wait >= clock::left_until(deadline_ms) {
                tracing::warn!(%error, attempt, "the model gave no completion");
                return Err(error);
            }
            tracing::info!(%error, attempt, ?wait, "asking the model again");
            tokio::time::sleep(wait).await;
        }
    }

    fn request(&self, messages: &[Value], tools: &[Value]) -> Value {
        let mut request = json!({"model": self.name, "messages": messages, "stream": false});
        // An empty list is refused by the protocol.
        if !tools.is_empty()
            && let Some(members) = request.as_object_mut()
        {
            members.insert("tools".to_owned(), tools.into());
        }
        request
    }

    async fn complete_once(&self, request: &Value) -> Result<Completion, ModelError> {
        let answer: Result<Value, OpenAIError> = self.client.chat().create_byot(request).await;
        match answer {
            Ok(answer) => completion::read(&answer),
            Err(OpenAIError::Boxed(error)) => Err(match error.downcast::<ModelError>() {
                Ok(error) => *error,
                Err(_) => ModelError::Client("a failure of its own".to_owned()),
            }),
            // Only what happens before the request is sent comes here, the transport being ours; its text may hold the request.
            Err(_) => Err(ModelError::Client("the request cannot be written".to_owned())),
        }
    }
}

/// Chooses the TLS implementation of the process, once.
fn install_tls() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        if rustls::crypto::ring::default_provider().install_default().is_err() {
            tracing::debug!("another TLS provider was installed before");
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;
    use scripted_model::{Reply, Script, ScriptedModel};
    use std::time::Instant;

    fn soon() -> i64 {
        clock::deadline_in(Duration::from_secs(20))
    }

    async fn model(replies: Vec<Reply>) -> (Model, ScriptedModel) {
        let server = ScriptedModel::start(Script::queue(replies)).await.unwrap();
        let config = ModelConfig {
            base_url: server.base_url(),
            api_key: Secret::new("sk-hidden"),
            name: "m".into(),
        };
        (Model::new(&config).unwrap(), server)
    }

    async fn complete(replies: Vec<Reply>) -> (Result<Completion, ModelError>, usize) {
        let (model, server) = model(replies).await;
        let messages = [json!({"role": "user", "content": "Hello"})];
        (model.complete(&messages, &[], soon()).await, server.requests().len())
    }

    #[tokio::test]
    async fn what_may_pass_is_tried_again() {
        let replies = vec![
            Reply::status(503, "<html>busy</html>"),
            Reply::status(429, r#"{"detail": 7}"#),
            Reply::text("Hi"),
        ];
        let (result, sent) = complete(replies).await;
        assert_eq!(result.unwrap().text.as_deref(), Some("Hi"));
        assert_eq!(sent, 3);
    }

    #[tokio::test]
    async fn a_refusal_keeps_its_status_whatever_its_body() {
        for body in [
            "",
            "no",
            "[]",
            r#"{"error": "text"}"#,
            r#"{"error": {"message": "m", "code": 7}}"#,
            r#"{"detail": []}"#,
        ] {
            let (result, sent) = complete(vec![Reply::status(401, body)]).await;
            assert!(
                matches!(result, Err(ModelError::Refused { status: 401, .. })),
                "{body}: {result:?}"
            );
            assert_eq!(sent, 1, "{body}");
        }
    }

    #[tokio::test]
    async fn a_used_up_quota_is_final() {
        let body = r#"{"error": {"message": "m", "type": "insufficient_quota", "code": "insufficient_quota"}}"#;
        let (result, sent) = complete(vec![Reply::status(429, body)]).await;
        assert!(result.is_err() && sent == 1);
    }

    #[tokio::test]
    async fn a_wait_that_outlasts_the_turn_is_not_begun() {
        let (model, _server) = model(vec![Reply::status(429, "{}").header("retry-after", "3600")]).await;
        let begun = Instant::now();
        let result = model
            .complete(&[], &[], clock::deadline_in(Duration::from_secs(5)))
            .await;
        assert!(
            matches!(result, Err(ModelError::Refused { status: 429, .. })),
            "{result:?}"
        );
        assert!(begun.elapsed() < Duration::from_secs(3));
    }

    #[tokio::test]
    async fn what_is_no_completion_is_an_error() {
        for body in [
            "",
            "null",
            "[]",
            "{}",
            r#"{"choices": []}"#,
            r#"{"choices": null, "error": {"message": "m"}}"#,
            "<html>",
        ] {
            let (result, _) = complete(vec![Reply::raw(body)]).await;
            assert!(result.is_err(), "{body}");
        }
    }

    #[tokio::test]
    async fn an_endpoint_that_is_away_is_unreachable() {
        let config = ModelConfig {
            base_url: "http://127.0.0.1:1/v1".into(),
            api_key: Secret::new("sk-hidden"),
            name: "m".into(),
        };
        let error = Model::new(&config)
            .unwrap()
            .complete(&[], &[], soon())
            .await
            .unwrap_err();
        assert!(matches!(error, ModelError::Unreachable(_)), "{error}");
        assert!(!error.to_string().contains("sk-hidden"));
        assert!(error.text().contains("cannot be reached"));
    }
}

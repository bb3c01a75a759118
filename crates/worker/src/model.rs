//! The model: any endpoint that speaks the chat-completions protocol, asked to stream.
//!
//! async-openai writes the request and signs it. The answer is read by `stream` as it comes and put together by
//! `assembly`, tolerantly, since servers differ in everything that is not the text. (async-openai's own reading of
//! streams hides `[DONE]`, so that a torn answer looks like a whole one; it loses answers that are no stream, and why a
//! connection broke.) Retries, their waits and the limits are ours. No key and no body enters a log.

mod assembly;
mod completion;
mod refusal;
mod stream;
mod transport;

pub use completion::{Completion, Finish, ToolCall, Usage};

use crate::{clock, config::ModelConfig, tasks::backoff};
use async_openai::{Client, config::OpenAIConfig, error::OpenAIError};
use serde_json::{Value, json};
use std::{sync::Once, time::Duration};
use stream::Failure;
use tokio::{sync::mpsc, time::timeout};

/// How often a request is sent before its failure is final.
const MAX_TRIES: u32 = 4;
/// The wait before the second try, doubled before each further one.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The longest wait between tries that we choose ourselves.
const LONGEST_WAIT: Duration = Duration::from_secs(8);
/// The longest wait that an endpoint may ask for; a person is waiting.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(20);

/// How long after the deadline a try is given up.
const DEADLINE_MARGIN: Duration = Duration::from_millis(10);

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
    /// Its answer broke off before the end.
    #[error("the model's answer broke off")]
    Torn,
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
            Self::Unreachable(_) | Self::Torn => true,
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
            Self::Torn => "The language model broke off in the middle of its answer. Please try again.",
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
    http: reqwest::Client,
    settings: OpenAIConfig,
    name: String,
}

impl Model {
    /// The model that the configuration names. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// When the system has no usable TLS set-up.
    pub fn new(config: &ModelConfig) -> Result<Self, ModelError> {
        Self::with_silence_limit(config, transport::SILENCE_LIMIT)
    }

    fn with_silence_limit(config: &ModelConfig, silence_limit: Duration) -> Result<Self, ModelError> {
        install_tls();
        // The library reads organisation and project from the environment by itself; configuration is ours alone.
        let settings = OpenAIConfig::new()
            .with_api_base(config.base_url.as_str())
            .with_api_key(config.api_key.reveal())
            .with_org_id("")
            .with_project_id("");
        Ok(Self {
            http: transport::http_client(&config.base_url, silence_limit)?,
            settings,
            name: config.name.clone(),
        })
    }

    /// The next message of a conversation: text, tool calls, or both. Each part of the text goes to `on_text` as it
    /// comes; what the model only thinks does not. Once a part of the answer has come, its failure is final.
    ///
    /// # Errors
    ///
    /// The last failure, when it is final or there is no time for another try.
    pub async fn stream(
        &self,
        messages: &[Value],
        tools: &[Value],
        deadline_ms: i64,
        on_text: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Completion, ModelError> {
        let request = self.request(messages, tools);
        let mut attempt = 0;
        loop {
            // Whoever waits for the same moment gives up first, and knows better what that means.
            let time = clock::left_until(deadline_ms) + DEADLINE_MARGIN;
            let asked = timeout(time, self.ask(&request, on_text)).await;
            let Failure { error, has_begun } = match asked.unwrap_or_else(|_| Err(ModelError::TimedOut.into())) {
                Ok(completion) => return Ok(completion.with_cost(&request)),
                Err(failure) => failure,
            };
            let wait = error.wait(attempt);
            attempt += 1;
            let is_final = has_begun || !error.may_pass();
            if is_final || attempt >= MAX_TRIES || wait >= clock::left_until(deadline_ms) {
                tracing::warn!(%error, attempt, "the model gave no completion");
                return Err(error);
            }
            tracing::info!(%error, attempt, ?wait, "asking the model again");
            tokio::time::sleep(wait).await;
        }
    }

    fn request(&self, messages: &[Value], tools: &[Value]) -> Value {
        let mut request = json!({
            "model": self.name,
            "messages": messages,
            "stream": true,
            "stream_options": {"include_usage": true},
        });
        // An empty list is refused by the protocol.
        if !tools.is_empty()
            && let Some(members) = request.as_object_mut()
        {
            members.insert("tools".to_owned(), tools.into());
        }
        request
    }

    async fn ask(&self, request: &Value, on_text: stream::OnText<'_>) -> Result<Completion, Failure> {
        let (aside, mut answers) = mpsc::channel(1);
        let http = self.http.clone();
        let service = tower::service_fn(move |request| transport::send(http.clone(), request, aside.clone()));
        let client = Client::build(self.http.clone(), self.settings.clone()).with_http_service(service);
        let sent: Result<Value, OpenAIError> = client.chat().create_byot(request).await;
        if let Err(error) = sent {
            return Err(unsent(error).into());
        }
        match answers.try_recv() {
            Ok(answer) => stream::read(answer, on_text).await,
            Err(_) => Err(ModelError::Client("the answer was lost".to_owned()).into()),
        }
    }
}

/// Why a request brought no answer. What is not of our transport happened before it; its text may hold the request.
fn unsent(error: OpenAIError) -> ModelError {
    let OpenAIError::Boxed(error) = error else {
        return ModelError::Client("the request cannot be written".to_owned());
    };
    match error.downcast::<ModelError>() {
        Ok(error) => *error,
        Err(_) => ModelError::Client("a failure of its own".to_owned()),
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
mod tests;

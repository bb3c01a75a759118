//! What a turn needs of a model: the one place where the loop and [`Model`] meet.

use crate::model::{Completion, Model, ModelError};
use futures_util::future::BoxFuture;
use serde_json::Value;

/// Takes a text, part by part, while the model writes it.
pub type OnText<'a> = &'a mut (dyn FnMut(&str) + Send);

/// A model that a conversation can be held with.
pub trait ChatModel: Send + Sync {
    /// The next message of a conversation. What it says goes to `on_text` as it comes, and is in the answer as well.
    fn ask<'a>(
        &'a self,
        messages: &'a [Value],
        tools: &'a [Value],
        deadline_ms: i64,
        on_text: OnText<'a>,
    ) -> BoxFuture<'a, Result<Answered, ModelError>>;
}

/// One answer of a model.
#[derive(Debug, Clone, Default)]
pub struct Answered {
    /// What it said and wants called.
    pub completion: Completion,
    /// What it cost, where the endpoint says so.
    pub usage: Option<Usage>,
}

/// What one answer cost, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Read by the model.
    pub input_tokens: u64,
    /// Written by it.
    pub output_tokens: u64,
}

impl ChatModel for Model {
    fn ask<'a>(
        &'a self,
        messages: &'a [Value],
        tools: &'a [Value],
        deadline_ms: i64,
        on_text: OnText<'a>,
    ) -> BoxFuture<'a, Result<Answered, ModelError>> {
        Box::pin(async move {
            let completion = self.complete(messages, tools, deadline_ms).await?;
            if let Some(text) = &completion.text {
                on_text(text);
            }
            Ok(Answered {
                completion,
                usage: None,
            })
        })
    }
}

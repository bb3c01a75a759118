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
    ) -> BoxFuture<'a, Result<Completion, ModelError>>;
}

impl ChatModel for Model {
    fn ask<'a>(
        &'a self,
        messages: &'a [Value],
        tools: &'a [Value],
        deadline_ms: i64,
        on_text: OnText<'a>,
    ) -> BoxFuture<'a, Result<Completion, ModelError>> {
        Box::pin(self.stream(messages, tools, deadline_ms, on_text))
    }
}

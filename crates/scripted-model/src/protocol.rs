//! The public chat-completions protocol, as far as it is spoken here.

use crate::script::Call;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// What the model calls itself.
pub const MODEL_NAME: &str = "scripted-demo";

/// A request, as far as it is read.
#[derive(Debug, Deserialize)]
pub(crate) struct ChatRequest {
    #[serde(default)]
    pub(crate) messages: Vec<Message>,
    #[serde(default)]
    tools: Vec<Offered>,
    #[serde(default)]
    pub(crate) stream: bool,
}

/// One message of the conversation.
#[derive(Debug, Deserialize)]
pub(crate) struct Message {
    pub(crate) role: String,
    #[serde(default)]
    content: Option<Value>,
    #[serde(default)]
    tool_calls: Vec<Called>,
    #[serde(default)]
    tool_call_id: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Offered {
    function: Named,
}

#[derive(Debug, Deserialize)]
struct Called {
    id: String,
    function: Named,
}

#[derive(Debug, Deserialize)]
struct Named {
    name: String,
}

/// What came of a call, by the tool's name.
#[derive(Debug)]
pub(crate) struct ToolResult {
    pub(crate) tool: String,
    pub(crate) content: Value,
}

impl ChatRequest {
    /// Whether a tool is offered.
    pub(crate) fn offers(&self, tool: &str) -> bool {
        self.tools.iter().any(|offered| offered.function.name == tool)
    }

    /// What the person said last.
    pub(crate) fn sentence(&self) -> String {
        self.messages
            .iter()
            .rfind(|message| message.role == "user")
            .map(Message::text)
            .unwrap_or_default()
    }

    /// What has come of calls since then, in order.
    pub(crate) fn results(&self) -> Vec<ToolResult> {
        let since = self
            .messages
            .iter()
            .rposition(|message| message.role == "user")
            .unwrap_or_default();
        let recent = || self.messages.iter().skip(since);
        let called: Vec<&Called> = recent().flat_map(|message| &message.tool_calls).collect();
        recent()
            .filter_map(|message| {
                let id = message.tool_call_id.as_ref()?;
                let tool = called.iter().rfind(|call| call.id == *id)?.function.name.clone();
                let text = message.text();
                Some(ToolResult {
                    tool,
                    content: serde_json::from_str(&text).unwrap_or(Value::String(text)),
                })
            })
            .collect()
    }
}

impl Message {
    /// A text, or the texts among its parts.
    fn text(&self) -> String {
        match &self.content {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(parts)) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
            _ => String::new(),
        }
    }
}

/// A completion with a text, calls, or both. Ids that the script left out are made of `seed`, so that the same conversation gets
/// the same ids again.
pub(crate) fn completion(request: &Value, text: Option<&str>, calls: &[Call], seed: u64) -> Value {
    let id = Uuid::now_v7();
    let created = id.get_timestamp().map_or(0, |moment| moment.to_unix().0);
    let model = request.get("model").and_then(Value::as_str).unwrap_or(MODEL_NAME);
    let mut message = Map::from_iter([
        ("role".to_owned(), json!("assistant")),
        ("content".to_owned(), json!(text)),
    ]);
    if !calls.is_empty() {
        let calls = calls.iter().enumerate().map(|(index, call)| {
            let id = call.id.clone().unwrap_or_else(|| format!("call_{seed:016x}{index}"));
            json!({"id": id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
        });
        message.insert("tool_calls".to_owned(), calls.collect());
    }
    let finish_reason = if calls.is_empty() { "stop" } else { "tool_calls" };
    let message = Value::Object(message);
    let (asked, answered) = (tokens(request), tokens(&message));
    json!({
        "id": format!("chatcmpl-{}", id.simple()),
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": asked, "completion_tokens": answered, "total_tokens": asked + answered},
    })
}

/// About as many tokens as a text of this length has.
fn tokens(value: &Value) -> usize {
    value.to_string().len() / 4 + 1
}

/// An error as the protocol shapes it.
pub(crate) fn error(message: &str, kind: &str, param: Option<&str>, code: Option<&str>) -> Value {
    json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
}

/// The list of models: this one.
pub(crate) fn models() -> Value {
    json!({"object": "list", "data": [{"id": MODEL_NAME, "object": "model", "created": 0, "owned_by": MODEL_NAME}]})
}

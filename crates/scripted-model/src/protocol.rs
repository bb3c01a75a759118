//! The public chat-completions protocol, as far as it is spoken here.

use crate::script::Call;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// What the model calls itself.
pub const MODEL_NAME: &str = "scripted-demo";
/// How long the parts of a streamed text are.
const TEXT_PART_CHARS: usize = 16;
/// In about how many pieces the arguments of a streamed call come.
const ARGUMENT_PIECES: usize = 3;

/// A request, as far as it is read.
#[derive(Debug, Deserialize)]
pub(crate) struct ChatRequest {
    #[serde(default)]
    pub(crate) messages: Vec<Message>,
    #[serde(default)]
    tools: Vec<Offered>,
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
    function: Function,
}

#[derive(Debug, Deserialize)]
struct Function {
    name: String,
    #[serde(default)]
    parameters: Value,
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

    /// The words that an argument of a tool may be, as the offer lists them.
    pub(crate) fn words(&self, tool: &str, argument: &str) -> Vec<&str> {
        let place = format!("/properties/{argument}/enum");
        let offered = self.tools.iter().filter(|offered| offered.function.name == tool);
        let words = offered.filter_map(|offered| offered.function.parameters.pointer(&place)?.as_array());
        words.flatten().filter_map(Value::as_str).collect()
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

/// What one answer says, in either form.
pub(crate) struct Answer<'a> {
    pub(crate) request: &'a Value,
    pub(crate) text: Option<&'a str>,
    pub(crate) calls: &'a [Call],
    /// What ids that the script left out are made of, so that the same conversation gets the same ids again.
    pub(crate) seed: u64,
}

impl Answer<'_> {
    /// As one completion.
    pub(crate) fn whole(&self) -> Value {
        let mut message = Map::from_iter([
            ("role".to_owned(), json!("assistant")),
            ("content".to_owned(), json!(self.text)),
        ]);
        if !self.calls.is_empty() {
            let calls = self.calls.iter().enumerate().map(|(index, call)| {
                let function = json!({"name": call.name, "arguments": call.arguments});
                json!({"id": self.id(index, call), "type": "function", "function": function})
            });
            message.insert("tool_calls".to_owned(), calls.collect());
        }
        let mut completion = self.frame("chat.completion");
        completion.insert(
            "choices".to_owned(),
            json!([{"index": 0, "message": message, "logprobs": null, "finish_reason": self.finish_reason()}]),
        );
        completion.insert("usage".to_owned(), self.usage());
        Value::Object(completion)
    }

    /// As the chunks of a stream: the text in parts, each call in pieces, the end, and the usage where it is asked for.
    pub(crate) fn chunks(&self) -> Vec<Value> {
        let mut choices = vec![json!({"delta": {"role": "assistant", "content": ""}})];
        let parts = parts(self.text.unwrap_or_default(), TEXT_PART_CHARS);
        choices.extend(parts.map(|part| json!({"delta": {"content": part}})));
        for (index, call) in self.calls.iter().enumerate() {
            let function = json!({"name": call.name, "arguments": ""});
            let first = json!({"index": index, "id": self.id(index, call), "type": "function", "function": function});
            choices.push(json!({"delta": {"tool_calls": [first]}}));
            let pieces = parts_of(&call.arguments);
            choices.extend(
                pieces.map(
                    |piece| json!({"delta": {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}}),
                ),
            );
        }
        choices.push(json!({"delta": {}, "finish_reason": self.finish_reason()}));
        let frame = self.frame("chat.completion.chunk");
        let chunk = |choices: Value, usage: Value| {
            let mut chunk = frame.clone();
            chunk.insert("choices".to_owned(), choices);
            chunk.insert("usage".to_owned(), usage);
            Value::Object(chunk)
        };
        let mut chunks: Vec<Value> = choices
            .into_iter()
            .map(|mut choice| {
                if let Some(members) = choice.as_object_mut() {
                    members.insert("index".to_owned(), json!(0));
                    members.entry("finish_reason").or_insert(Value::Null);
                }
                chunk(json!([choice]), Value::Null)
            })
            .collect();
        if self.request.pointer("/stream_options/include_usage") == Some(&Value::Bool(true)) {
            chunks.push(chunk(json!([]), self.usage()));
        }
        chunks
    }

    fn frame(&self, object: &str) -> Map<String, Value> {
        let id = Uuid::now_v7();
        let created = id.get_timestamp().map_or(0, |moment| moment.to_unix().0);
        let model = self.request.get("model").and_then(Value::as_str).unwrap_or(MODEL_NAME);
        Map::from_iter([
            ("id".to_owned(), json!(format!("chatcmpl-{}", id.simple()))),
            ("object".to_owned(), json!(object)),
            ("created".to_owned(), json!(created)),
            ("model".to_owned(), json!(model)),
        ])
    }

    fn id(&self, index: usize, call: &Call) -> String {
        call.id
            .clone()
            .unwrap_or_else(|| format!("call_{:016x}{index}", self.seed))
    }

    fn finish_reason(&self) -> &'static str {
        if self.calls.is_empty() { "stop" } else { "tool_calls" }
    }

    fn usage(&self) -> Value {
        let of_calls = |call: &Call| call.name.len() + call.arguments.len();
        let asked = tokens(self.request.to_string().len());
        let answered = tokens(self.text.map_or(0, str::len) + self.calls.iter().map(of_calls).sum::<usize>());
        json!({"prompt_tokens": asked, "completion_tokens": answered, "total_tokens": asked + answered})
    }
}

/// A text in parts of some characters.
fn parts(text: &str, chars: usize) -> impl Iterator<Item = String> {
    let mut rest = text.chars();
    std::iter::from_fn(move || Some(rest.by_ref().take(chars).collect::<String>()).filter(|part| !part.is_empty()))
}

/// Arguments in a few pieces, however long they are.
fn parts_of(arguments: &str) -> impl Iterator<Item = String> {
    parts(arguments, (arguments.chars().count() / ARGUMENT_PIECES).max(1))
}

/// About as many tokens as a text of this length has.
const fn tokens(bytes: usize) -> usize {
    bytes / 4 + 1
}

/// An error as the protocol shapes it.
pub(crate) fn error(message: &str, kind: &str, param: Option<&str>, code: Option<&str>) -> Value {
    json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
}

/// The list of models: this one.
pub(crate) fn models() -> Value {
    json!({"object": "list", "data": [{"id": MODEL_NAME, "object": "model", "created": 0, "owned_by": MODEL_NAME}]})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(chunks: &[Value], place: &str) -> String {
        let parts = chunks.iter().filter_map(|chunk| chunk.pointer(place)?.as_str());
        parts.collect()
    }

    #[test]
    fn a_stream_says_the_same_as_a_completion() {
        let calls = [Call {
            id: None,
            name: "create_department".into(),
            arguments: r#"{"name":"Théâtre"}"#.into(),
        }];
        let request = json!({"model": "m", "stream_options": {"include_usage": true}});
        let answer = Answer {
            request: &request,
            text: Some("One moment, please, while I look."),
            calls: &calls,
            seed: 7,
        };
        let (whole, chunks) = (answer.whole(), answer.chunks());
        let text = joined(&chunks, "/choices/0/delta/content");
        assert_eq!(json!(text), whole["choices"][0]["message"]["content"]);
        let call = &whole["choices"][0]["message"]["tool_calls"][0];
        for (place, expected) in [
            ("id", &call["id"]),
            ("function/name", &call["function"]["name"]),
            ("function/arguments", &call["function"]["arguments"]),
        ] {
            let place = format!("/choices/0/delta/tool_calls/0/{place}");
            assert_eq!(json!(joined(&chunks, &place)), *expected, "{place}");
        }
        assert_eq!(joined(&chunks, "/choices/0/finish_reason"), "tool_calls");
        assert_eq!(chunks.last().unwrap()["usage"], whole["usage"]);
        assert!(chunks.len() > 6, "in several parts: {chunks:?}");
    }

    #[test]
    fn usage_is_sent_where_it_is_asked_for() {
        let answer = Answer {
            request: &json!({}),
            text: Some("Hi"),
            calls: &[],
            seed: 7,
        };
        assert!(answer.chunks().iter().all(|chunk| chunk["usage"].is_null()));
    }
}

//! Reads one answer of a chat-completions endpoint, whatever it leaves out, adds or spells in its own way.

use super::ModelError;
use serde_json::Value;

/// The most calls in one answer. A model makes a handful; thousands would outgrow the worker with their copies and results.
const MAX_CALLS: usize = 64;

/// What a model answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completion {
    /// What it says, if anything.
    pub text: Option<String>,
    /// What it wants called, in its order.
    pub calls: Vec<ToolCall>,
}

/// A call that a model wants made, as it wrote it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// Its id; may be empty or repeated.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments, unparsed.
    pub arguments: String,
}

/// Reads an answer. Only the first choice counts.
///
/// # Errors
///
/// When there is no message in it, or more calls than [`MAX_CALLS`].
pub(super) fn read(answer: &Value) -> Result<Completion, ModelError> {
    let Some(message) = answer
        .pointer("/choices/0/message")
        .filter(|message| message.is_object())
    else {
        return Err(no_message(answer));
    };
    let calls = message.get("tool_calls").and_then(Value::as_array);
    if calls.is_some_and(|calls| calls.len() > MAX_CALLS) {
        return Err(ModelError::Unreadable("it has too many calls"));
    }
    let calls = calls.into_iter().flatten().map(tool_call).collect();
    let text = message
        .get("content")
        .and_then(text)
        .or_else(|| message.get("refusal").and_then(text));
    Ok(Completion { text, calls })
}

/// Some gateways answer a refusal with status 200 and the status inside.
fn no_message(answer: &Value) -> ModelError {
    let status = answer
        .pointer("/error/code")
        .or_else(|| answer.pointer("/error/status"))
        .and_then(Value::as_u64);
    match status.and_then(|status| u16::try_from(status).ok()) {
        Some(status @ 400..=599) => ModelError::Refused {
            status,
            code: String::new(),
            retry_after: None,
        },
        _ => ModelError::Unreadable("it has no message"),
    }
}

/// A text, or a list of parts of which some are text; none where there is nothing but space.
fn text(content: &Value) -> Option<String> {
    let text = match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part.as_str().or_else(|| part.get("text")?.as_str()))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
    };
    (!text.trim().is_empty()).then_some(text)
}

fn tool_call(call: &Value) -> ToolCall {
    let function = call.get("function").unwrap_or(call);
    let word = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().trim().to_owned();
    let arguments = match function.get("arguments") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        // Some servers parse the arguments for us.
        Some(parsed) => parsed.to_string(),
    };
    ToolCall {
        id: word(call.get("id")),
        name: word(function.get("name")),
        arguments,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn message(message: &Value) -> Completion {
        read(&json!({"choices": [{"message": message}]})).unwrap()
    }

    #[test]
    fn text_is_a_text_or_parts() {
        assert_eq!(message(&json!({"content": "Hi"})).text.as_deref(), Some("Hi"));
        let parts = json!({"content": [{"type": "text", "text": "a"}, {"type": "image"}, "b"]});
        assert_eq!(message(&parts).text.as_deref(), Some("ab"));
        for nothing in [
            json!({}),
            json!({"content": null}),
            json!({"content": " \n"}),
            json!({"content": 7}),
        ] {
            assert_eq!(message(&nothing), Completion::default(), "{nothing}");
        }
        assert_eq!(
            message(&json!({"content": null, "refusal": "No."})).text.as_deref(),
            Some("No.")
        );
    }

    /// fault 32, fault 33
    #[test]
    fn calls_are_read_whatever_is_left_out() {
        let calls = message(&json!({"tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"function": {"name": "g", "arguments": {"x": 1}}},
            {"id": null, "index": 7, "function": {"name": " h ", "arguments": null}},
            {"id": "d"},
        ]}))
        .calls;
        let call = |id: &str, name: &str, arguments: &str| ToolCall {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
        };
        assert_eq!(
            calls,
            [
                call("a", "f", "{}"),
                call("", "g", r#"{"x":1}"#),
                call("", "h", ""),
                call("d", "", "")
            ]
        );
        assert!(message(&json!({"tool_calls": null, "content": "x"})).calls.is_empty());
    }

    #[test]
    fn more_calls_than_a_model_makes_are_refused() {
        let answer =
            |calls| json!({"choices": [{"message": {"content": "x", "tool_calls": vec![json!({"id": "a"}); calls]}}]});
        assert_eq!(read(&answer(MAX_CALLS)).unwrap().calls.len(), MAX_CALLS);
        for calls in [MAX_CALLS + 1, 20_000] {
            let error = read(&answer(calls)).unwrap_err();
            assert!(matches!(error, ModelError::Unreadable(_)), "{calls}: {error}");
        }
    }

    #[test]
    fn a_refusal_inside_a_success_keeps_its_status() {
        let error = read(&json!({"error": {"code": 429, "message": "m"}})).unwrap_err();
        assert!(matches!(error, ModelError::Refused { status: 429, .. }), "{error}");
    }
}

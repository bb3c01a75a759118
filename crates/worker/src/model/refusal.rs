//! What an endpoint says when it refuses, as a body of its own or in the middle of an answer. Its words stay with us:
//! they may quote the request.

use super::ModelError;
use serde_json::Value;

/// The longest code that is kept; longer ones are sentences.
const MAX_CODE_BYTES: usize = 64;

/// The refusal inside an answer that began as a success; none if it holds none. One without a status is an answer that
/// broke off.
pub(super) fn inside(answer: &Value) -> Option<ModelError> {
    let says_something = |error: &Value| match error {
        Value::Null | Value::Bool(_) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(parts) => !parts.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Number(_) => true,
    };
    let has_error = ["/error", "/choices/0/error"]
        .into_iter()
        .any(|place| answer.pointer(place).is_some_and(says_something));
    let is_error = ["object", "type"]
        .into_iter()
        .any(|key| answer.get(key).and_then(Value::as_str) == Some("error"));
    (has_error || is_error).then(|| of(answer))
}

/// The refusal that a whole text is.
pub(super) fn of(answer: &Value) -> ModelError {
    let code = code(answer);
    match status(answer).or_else(|| status_of(&code)) {
        Some(status) => ModelError::Refused {
            status,
            code,
            retry_after: None,
        },
        None => ModelError::Torn,
    }
}

/// The code or type of a refusal, if it is one word.
pub(super) fn code(answer: &Value) -> String {
    let word = |place| {
        answer
            .pointer(place)
            .and_then(Value::as_str)
            .filter(|text| is_word(text))
    };
    ["/error/code", "/error/type", "/error_type", "/code", "/type"]
        .into_iter()
        .find_map(word)
        .unwrap_or_default()
        .to_owned()
}

fn is_word(text: &str) -> bool {
    let is_of_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    !text.is_empty() && text.len() <= MAX_CODE_BYTES && text.bytes().all(is_of_word)
}

/// A status inside: a number, or its digits.
fn status(answer: &Value) -> Option<u16> {
    let places = [
        "/error/code",
        "/error/status",
        "/error/status_code",
        "/choices/0/error/code",
        "/code",
        "/status",
        "/status_code",
        "/statusCode",
    ];
    let number = |place| {
        let value = answer.pointer(place)?;
        let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
        u16::try_from(number).ok().filter(|status| (400..=599).contains(status))
    };
    places.into_iter().find_map(number)
}

/// The status that the common words stand for.
fn status_of(code: &str) -> Option<u16> {
    match code {
        "invalid_request_error" | "context_length_exceeded" | "validation" => Some(400),
        "authentication_error" | "invalid_api_key" => Some(401),
        "permission_error" => Some(403),
        "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" => Some(429),
        "server_error" | "api_error" | "internal_server_error" => Some(500),
        "overloaded_error" | "overloaded" => Some(503),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_refusal_inside_a_success_keeps_its_status() {
        let inside_429 = [
            json!({"error": {"code": 429, "message": "m"}}),
            json!({"error": {"code": "429"}}),
            json!({"error": "slow down", "status": 429}),
            json!({"error": {"type": "rate_limit_error", "message": "m"}}),
            json!({"object": "error", "code": 429, "message": "m"}),
            json!({"choices": [{"error": {"code": 429}}]}),
        ];
        for answer in inside_429 {
            let error = inside(&answer).unwrap();
            assert!(
                matches!(error, ModelError::Refused { status: 429, .. }),
                "{answer}: {error}"
            );
        }
    }

    #[test]
    fn an_error_without_a_status_is_an_answer_that_broke_off() {
        for answer in [
            json!({"error": "m"}),
            json!({"error": {"message": "a secret", "code": 7}}),
        ] {
            let error = inside(&answer).unwrap();
            assert!(
                matches!(error, ModelError::Torn) && !error.to_string().contains("secret"),
                "{answer}: {error}"
            );
        }
    }

    #[test]
    fn an_empty_error_is_none() {
        for answer in [
            json!({}),
            json!({"error": null}),
            json!({"error": {}}),
            json!({"error": ""}),
            json!({"error": false}),
            json!([]),
            json!(null),
        ] {
            assert!(inside(&answer).is_none(), "{answer}");
        }
    }
}

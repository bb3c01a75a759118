//! The tool by which an agent asks the person something. Only a turn that is kept can wait for the answer: the call has
//! its result when the person has given one, in a later run of the turn.

use crate::proxy::parse_arguments;
use contract::AgentToolResult;
use serde::Deserialize;
use serde_json::{Value, json};

/// What an agent calls it.
pub(crate) const ASK_USER: &str = "ask_user";

/// The longest question, in characters. A person reads a few sentences.
const MAX_QUESTION_CHARS: usize = 2_000;
/// The most answers to choose from.
const MAX_CHOICES: usize = 8;
/// The longest of them, in characters.
const MAX_CHOICE_CHARS: usize = 200;

/// What a person is asked.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Question {
    pub(super) question: String,
    /// Answers to choose from; empty where any will do.
    #[serde(default)]
    pub(super) choices: Vec<String>,
}

/// The tool as the protocol offers it.
pub(super) fn offer() -> Value {
    let parameters = json!({
        "type": "object",
        "properties": {
            "question": {
                "type": "string", "minLength": 1, "maxLength": MAX_QUESTION_CHARS,
                "description": "One question, in the person's language, with all that they need to know to answer it.",
            },
            "choices": {
                "type": "array", "maxItems": MAX_CHOICES,
                "items": {"type": "string", "minLength": 1, "maxLength": MAX_CHOICE_CHARS},
                "description": "Answers to choose from, where there are few. Leave it out where any answer will do.",
            },
        },
        "required": ["question"],
        "additionalProperties": false,
    });
    json!({
        "type": "function",
        "function": {
            "name": ASK_USER,
            "description": "Ask the person something that only they can say, and get their answer.",
            "parameters": parameters,
        },
    })
}

/// Reads what a model wrote as arguments.
///
/// # Errors
///
/// With what the model reads about it.
pub(super) fn read(arguments: &str) -> Result<Question, AgentToolResult> {
    let invalid = |why: String| AgentToolResult::error(format!("Invalid tool arguments: {why}."));
    let mut args = parse_arguments(arguments)?;
    // What is null is left out.
    args.retain(|_, value| !value.is_null());
    let mut question =
        Question::deserialize(Value::Object(args)).map_err(|error| invalid(format!("arguments: {error}")))?;
    // No column can store a NUL, and no person read one.
    for text in question.choices.iter_mut().chain([&mut question.question]) {
        text.retain(|character| character != '\0');
    }
    if question.question.trim().is_empty() {
        return Err(invalid("question: it says nothing".to_owned()));
    }
    if question.question.chars().count() > MAX_QUESTION_CHARS {
        return Err(invalid(format!(
            "question: longer than {MAX_QUESTION_CHARS} characters"
        )));
    }
    if question.choices.len() > MAX_CHOICES {
        return Err(invalid(format!("choices: more than {MAX_CHOICES}")));
    }
    let is_choice = |choice: &String| !choice.trim().is_empty() && choice.chars().count() <= MAX_CHOICE_CHARS;
    if !question.choices.iter().all(is_choice) {
        return Err(invalid(format!("choices: each has 1 to {MAX_CHOICE_CHARS} characters")));
    }
    Ok(question)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_question_is_read() {
        let question = read(r#"{"question": "Which one?", "choices": ["Main", "Lakeside"]}"#).unwrap();
        assert_eq!(question.choices, ["Main", "Lakeside"]);
        assert!(
            read(r#"{"question": "Which one?", "choices": null}"#)
                .unwrap()
                .choices
                .is_empty()
        );
        let long = |chars: usize| "x".repeat(chars);
        for broken in [
            json!({}),
            json!({"question": " "}),
            json!({"question": "\0"}),
            json!({"question": "Who?", "to": "somebody else"}),
            json!({"question": long(MAX_QUESTION_CHARS + 1)}),
            json!({"question": "Who?", "choices": [" "]}),
            json!({"question": "Who?", "choices": [long(MAX_CHOICE_CHARS + 1)]}),
            json!({"question": "Who?", "choices": vec!["x"; MAX_CHOICES + 1]}),
        ] {
            let refusal = read(&broken.to_string()).unwrap_err();
            assert!(!refusal.is_data(), "{broken}: {refusal:?}");
        }
    }
}

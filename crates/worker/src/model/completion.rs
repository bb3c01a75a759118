//! What a model answered, and the readers of its parts, whatever a server leaves out, adds or spells in its own way.

use contract::turn::MAX_COUNTED_TOKENS;
use serde_json::Value;

/// The bytes that count as a token where an endpoint does not say how many tokens there were: about as many as a token of
/// English text or of JSON has. Other scripts have more tokens to a character, and more bytes as well.
const BYTES_PER_TOKEN: usize = 4;

/// What a model answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completion {
    /// What it says, if anything.
    pub text: Option<String>,
    /// What it wants called, in its order.
    pub calls: Vec<ToolCall>,
    /// Why it ended there.
    pub finish: Finish,
    /// What it cost; of an answer of [`super::Model`] always, by an estimate where the endpoint does not say.
    pub usage: Option<Usage>,
}

impl Completion {
    /// The same with what it cost. What the endpoint did not say of that, or says was nothing, is estimated from the bytes of
    /// the request and of the answer: a school's budget holds whatever its endpoint counts.
    pub(super) fn with_cost(mut self, request: &Value) -> Self {
        let mut usage = self.usage.unwrap_or_default();
        if usage.input_tokens == 0 {
            usage.input_tokens = estimated(request.to_string().len());
        }
        if usage.output_tokens == 0 {
            usage.output_tokens = estimated(self.bytes());
        }
        self.usage = Some(usage);
        self
    }

    fn bytes(&self) -> usize {
        let of_calls = self.calls.iter().map(|call| call.name.len() + call.arguments.len());
        self.text.as_ref().map_or(0, String::len) + of_calls.sum::<usize>()
    }
}

/// About as many tokens as a text of this length has; a begun one counts.
fn estimated(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX)
}

/// A call that a model wants made, as it wrote it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// Its id; may be empty or repeated.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments, unparsed; empty where there are none. The model has ended them itself, but they may be no JSON.
    pub arguments: String,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Finish {
    /// It is complete, and asks for nothing.
    #[default]
    Stop,
    /// It asks for its calls.
    ToolCalls,
    /// It reached the longest that the endpoint gives; the text is cut.
    Length,
    /// The endpoint withheld the rest.
    ContentFilter,
}

/// The tokens of one answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Read by the model.
    pub input_tokens: u64,
    /// Written by it.
    pub output_tokens: u64,
}

/// What a `finish_reason` means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Complete,
    Length,
    ContentFilter,
    /// The endpoint gave up in the middle.
    Broken,
}

impl Ending {
    /// None for what does not say that anything ended.
    pub(super) fn of(reason: &Value) -> Option<Self> {
        let reason = reason.as_str()?.trim().to_ascii_lowercase();
        match reason.as_str() {
            "" | "null" | "none" => None,
            "length" | "max_tokens" | "model_length" => Some(Self::Length),
            "content_filter" | "safety" | "recitation" | "prohibited_content" | "refusal" => Some(Self::ContentFilter),
            "error" | "abort" | "cancelled" | "insufficient_system_resource" => Some(Self::Broken),
            _ => Some(Self::Complete),
        }
    }
}

impl Usage {
    /// The numbers of a chunk, wherever it has them.
    pub(super) fn of(chunk: &Value) -> Option<Self> {
        ["/usage", "/x_groq/usage"].into_iter().find_map(|place| {
            let usage = chunk.pointer(place)?;
            let number = |names: [&str; 2]| names.into_iter().find_map(|name| counted(usage.get(name)?));
            let input = number(["prompt_tokens", "input_tokens"]);
            let output = number(["completion_tokens", "output_tokens"]);
            (input.is_some() || output.is_some()).then(|| Self {
                input_tokens: input.unwrap_or_default(),
                output_tokens: output.unwrap_or_default(),
            })
        })
    }

    /// Some servers count on in each chunk, some send one number first and the other last: the larger ones are the
    /// final ones.
    pub(super) fn or_more(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.max(other.input_tokens),
            output_tokens: self.output_tokens.max(other.output_tokens),
        }
    }
}

/// A number of tokens. One that no answer has is a wrong count, and no more than the most that one can have.
fn counted(number: &Value) -> Option<u64> {
    Some(number.as_u64()?.min(MAX_COUNTED_TOKENS))
}

/// A text, or the texts among its parts; those that the model only thought are no text.
pub(super) fn text(content: &Value) -> String {
    let of_part = |part: &Value| Some(part.as_str().or_else(|| part.get("text")?.as_str())?.to_owned());
    match content {
        Value::Array(parts) => parts.iter().filter_map(of_part).collect(),
        Value::String(_) | Value::Object(_) => of_part(content).unwrap_or_default(),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

/// A text without the spaces around it; nothing if it is none.
pub(super) fn word(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_is_a_text_or_parts() {
        let parts = json!([{"type": "text", "text": "a"}, {"type": "image"}, "b"]);
        assert_eq!(text(&parts), "ab");
        assert_eq!(text(&json!({"type": "text", "text": "a"})), "a");
        assert_eq!(text(&json!(" a")), " a");
        let thought = json!([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]);
        for nothing in [json!(null), json!(7), json!([]), json!({}), thought] {
            assert_eq!(text(&nothing), "", "{nothing}");
        }
    }

    #[test]
    fn an_ending_is_a_word_that_says_so() {
        for nothing in [json!(null), json!(""), json!(" "), json!("null"), json!(1), json!({})] {
            assert_eq!(Ending::of(&nothing), None, "{nothing}");
        }
        assert_eq!(Ending::of(&json!("STOP")), Some(Ending::Complete));
        assert_eq!(Ending::of(&json!("a new word")), Some(Ending::Complete));
        assert_eq!(Ending::of(&json!("MAX_TOKENS")), Some(Ending::Length));
    }

    #[test]
    fn what_an_endpoint_does_not_count_is_estimated() {
        let request = json!("x".repeat(398));
        let call = ToolCall {
            id: "not counted".into(),
            name: "abcd".into(),
            arguments: "{}".into(),
        };
        let cost = |usage: Option<(u64, u64)>, text: Option<&str>, calls: &[ToolCall]| {
            let completion = Completion {
                text: text.map(str::to_owned),
                calls: calls.to_vec(),
                usage: usage.map(|(input_tokens, output_tokens)| Usage {
                    input_tokens,
                    output_tokens,
                }),
                ..Completion::default()
            };
            let usage = completion.with_cost(&request).usage.unwrap();
            (usage.input_tokens, usage.output_tokens)
        };
        let calls = [call.clone(), call];
        assert_eq!(cost(None, None, &[]), (100, 0));
        assert_eq!(cost(None, Some("12345"), &[]), (100, 2));
        assert_eq!(cost(None, Some("12345"), &calls), (100, 5));
        assert_eq!(
            cost(Some((0, 0)), Some("12345"), &[]),
            (100, 2),
            "nothing was never read"
        );
        assert_eq!(cost(Some((0, 7)), Some("12345"), &[]), (100, 7));
        assert_eq!(cost(Some((9, 0)), Some("12345"), &[]), (9, 2));
        assert_eq!(cost(Some((9, 7)), Some("12345"), &calls), (9, 7), "what it says holds");
    }

    #[test]
    fn usage_is_wherever_it_has_numbers() {
        let usage = |input_tokens, output_tokens| {
            Some(Usage {
                input_tokens,
                output_tokens,
            })
        };
        assert_eq!(
            Usage::of(&json!({"usage": {"prompt_tokens": 5, "completion_tokens": 2}})),
            usage(5, 2)
        );
        assert_eq!(Usage::of(&json!({"usage": {"output_tokens": 2}})), usage(0, 2));
        assert_eq!(
            Usage::of(&json!({"usage": {"prompt_tokens": u64::MAX, "completion_tokens": MAX_COUNTED_TOKENS + 1}})),
            usage(MAX_COUNTED_TOKENS, MAX_COUNTED_TOKENS),
            "nobody reads or writes as much"
        );
        assert_eq!(
            Usage::of(&json!({"usage": null, "x_groq": {"usage": {"prompt_tokens": 5}}})),
            usage(5, 0)
        );
        for nothing in [
            json!({}),
            json!({"usage": null}),
            json!({"usage": {}}),
            json!({"usage": {"prompt_tokens": "5"}}),
        ] {
            assert_eq!(Usage::of(&nothing), None, "{nothing}");
        }
        assert_eq!(
            usage(5, 0).map(|first| first.or_more(Usage {
                input_tokens: 0,
                output_tokens: 3
            })),
            usage(5, 3)
        );
    }
}

//! Puts an answer together from its chunks. Which call a piece belongs to is decided here, since servers differ in what
//! they say about it; so is whether the answer came to its end.

mod call;

use super::{
    ModelError,
    completion::{Completion, Ending, Finish, Usage, text},
    refusal,
};
use call::{Building, Piece};
use serde_json::Value;

/// The most calls in one answer. A model makes a handful; thousands would outgrow the worker with their copies and
/// results.
const MAX_CALLS: usize = 64;
/// The most of texts and arguments that is kept of one answer.
const MAX_KEPT_BYTES: usize = 4 * 1024 * 1024;

/// An answer in the making.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    text: String,
    calls: Vec<Building>,
    usage: Option<Usage>,
    ending: Option<Ending>,
    has_message: bool,
}

impl Assembly {
    /// What was said so far.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether there is anything that a second answer would repeat.
    pub(super) const fn has_begun(&self) -> bool {
        !self.text.is_empty() || !self.calls.is_empty()
    }

    /// Whether the endpoint has said that it is at its end. Usage may still follow.
    pub(super) const fn has_ended(&self) -> bool {
        self.ending.is_some()
    }

    /// The endpoint has sent all, with or without a reason.
    pub(super) fn end(&mut self) {
        self.ending.get_or_insert(Ending::Complete);
    }

    /// Takes a chunk, or a whole answer. Only the first choice counts.
    ///
    /// # Errors
    ///
    /// When it is a refusal, or the answer becomes too large.
    pub(super) fn take(&mut self, chunk: &Value) -> Result<(), ModelError> {
        if let Some(refusal) = refusal::inside(chunk) {
            return Err(refusal);
        }
        if let Some(usage) = Usage::of(chunk) {
            self.usage = Some(usage.or_more(self.usage.unwrap_or_default()));
        }
        let Some(choice) = chunk.pointer("/choices/0") else {
            return Ok(());
        };
        let is_filled = |part: &&Value| part.as_object().is_some_and(|members| !members.is_empty());
        if let Some(delta) = choice.get("delta").filter(is_filled) {
            self.take_part(delta, false)?;
        } else if let Some(message) = choice.get("message").filter(|message| message.is_object())
            // At the end of a stream it repeats what the chunks said.
            && !self.has_begun()
        {
            self.take_part(message, true)?;
        }
        if let Some(ending) = choice.get("finish_reason").and_then(Ending::of) {
            self.ending = Some(ending);
        }
        Ok(())
    }

    /// The answer, if it is one.
    ///
    /// # Errors
    ///
    /// [`ModelError::Torn`] when it did not come to its end, or was cut in the middle of a call.
    pub(super) fn finish(self) -> Result<Completion, ModelError> {
        let is_cut_in_call = self.calls.last().is_some_and(|call| !call.is_complete());
        let finish = match self.ending {
            None | Some(Ending::Broken) => return Err(ModelError::Torn),
            // A call without arguments yet would be run without them.
            Some(Ending::Length | Ending::ContentFilter) if is_cut_in_call => return Err(ModelError::Torn),
            Some(Ending::Length) => Finish::Length,
            Some(Ending::ContentFilter) => Finish::ContentFilter,
            // Some say "stop" and call, or the other way round.
            Some(Ending::Complete) if self.calls.is_empty() => Finish::Stop,
            Some(Ending::Complete) => Finish::ToolCalls,
        };
        Ok(Completion {
            text: Some(self.text).filter(|text| !text.trim().is_empty()),
            calls: self.calls.into_iter().map(Building::finish).collect(),
            finish,
            usage: self.usage,
        })
    }

    /// The answer that one whole text is, instead of a stream.
    ///
    /// # Errors
    ///
    /// As [`Self::finish`], and when there is no message in it.
    pub(super) fn finish_whole(mut self) -> Result<Completion, ModelError> {
        if !self.has_message {
            return Err(ModelError::Unreadable("it has no message"));
        }
        self.end();
        self.finish()
    }

    fn take_part(&mut self, part: &Value, is_whole: bool) -> Result<(), ModelError> {
        self.has_message = true;
        let said = |key| part.get(key).map(text).filter(|text| !text.is_empty());
        if let Some(said) = said("content").or_else(|| said("refusal")) {
            self.text.push_str(&said);
        }
        for piece in Piece::all(part) {
            let continued = if is_whole { None } else { self.continued_by(&piece) };
            if let Some(call) = continued.and_then(|at| self.calls.get_mut(at)) {
                call.add(piece)?;
            } else {
                if self.calls.len() == MAX_CALLS {
                    return Err(ModelError::Unreadable("it has too many calls"));
                }
                let mut call = Building::default();
                call.add(piece)?;
                self.calls.push(call);
            }
        }
        if self.text.len() + self.calls.iter().map(Building::bytes).sum::<usize>() > MAX_KEPT_BYTES {
            return Err(ModelError::Unreadable("it is too large"));
        }
        Ok(())
    }

    /// The call that a piece belongs to; none if it begins one.
    fn continued_by(&self, piece: &Piece) -> Option<usize> {
        let by_id = || self.calls.iter().rposition(|call| call.has_id_of(piece));
        let by_place = || self.calls.iter().rposition(|call| call.may_be_at(piece));
        let at = by_id().or_else(by_place)?;
        self.calls.get(at)?.is_continued_by(piece).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ToolCall;
    use serde_json::json;

    fn whole(message: &Value) -> Completion {
        let mut assembly = Assembly::default();
        assembly.take(&json!({"choices": [{"message": message}]})).unwrap();
        assembly.finish_whole().unwrap()
    }

    fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
        ToolCall {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
        }
    }

    #[test]
    fn a_text_of_nothing_is_none() {
        assert_eq!(whole(&json!({"content": "Hi"})).text.as_deref(), Some("Hi"));
        for nothing in [
            json!({}),
            json!({"content": null}),
            json!({"content": " \n"}),
            json!({"content": 7}),
        ] {
            assert_eq!(whole(&nothing), Completion::default(), "{nothing}");
        }
        let refused = json!({"content": null, "refusal": "No."});
        assert_eq!(whole(&refused).text.as_deref(), Some("No."));
    }

    /// fault 32, fault 33
    #[test]
    fn calls_of_a_whole_answer_are_read_whatever_is_left_out() {
        let completion = whole(&json!({"tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"function": {"name": "g", "arguments": {"x": 1}}},
            {"id": null, "index": 7, "function": {"name": " h ", "arguments": null}},
            {"id": "d"},
        ]}));
        let expected = [
            call("a", "f", "{}"),
            call("", "g", r#"{"x":1}"#),
            call("", "h", ""),
            call("d", "", ""),
        ];
        assert_eq!(completion.calls, expected);
        assert_eq!(completion.finish, Finish::ToolCalls);
        assert!(whole(&json!({"tool_calls": null, "content": "x"})).calls.is_empty());
    }

    #[test]
    fn more_calls_than_a_model_makes_are_refused() {
        let take = |calls| {
            let calls = vec![json!({"id": "a"}); calls];
            Assembly::default().take(&json!({"choices": [{"message": {"content": "x", "tool_calls": calls}}]}))
        };
        take(MAX_CALLS).unwrap();
        for calls in [MAX_CALLS + 1, 20_000] {
            let error = take(calls).unwrap_err();
            assert!(matches!(error, ModelError::Unreadable(_)), "{calls}: {error}");
        }
    }

    #[test]
    fn what_is_longer_than_any_answer_is_refused() {
        let long = |name: usize, id: usize, arguments: usize| {
            let function = json!({"name": "n".repeat(name), "arguments": "a".repeat(arguments)});
            let call = json!({"index": 0, "id": "i".repeat(id), "function": function});
            let mut assembly = Assembly::default();
            let chunk = json!({"choices": [{"delta": {"tool_calls": [call]}}]});
            assembly.take(&chunk).is_err()
        };
        assert!(!long(100, 100, 1024 * 1024));
        assert!(long(10_000, 1, 1) && long(1, 10_000, 1) && long(1, 1, MAX_KEPT_BYTES + 1));
    }

    #[test]
    fn a_call_that_was_cut_is_not_made() {
        let cut = |arguments: &str, reason: &str| {
            let call = json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": arguments}});
            let mut assembly = Assembly::default();
            let choice = json!({"delta": {"tool_calls": [call]}, "finish_reason": reason});
            assembly.take(&json!({"choices": [choice]})).unwrap();
            matches!(assembly.finish(), Err(ModelError::Torn))
        };
        for reason in ["length", "content_filter"] {
            assert!(
                cut("", reason) && cut("{\"a\": ", reason) && !cut("{}", reason),
                "{reason}"
            );
        }
        assert!(cut("{}", "error") && cut("{}", "") && !cut("", "tool_calls"));
    }
}

//! Where a turn tells what happens in it, as it happens.

use contract::turn::TurnEvent;
use serde_json::Value;

/// The most of what is kept of one step for the thread, an event: a report must stay far below what a server reads at
/// once.
const MAX_KEPT_BYTES: usize = 192 * 1024;
/// What is kept of a tool's result that is longer than that.
const TOO_LONG_TO_KEEP: &str = "This was too long to be kept.";

/// Whoever wants to know what happens in a turn.
pub trait Reporter: Send + Sync {
    /// Takes the next event. Never waits: a turn does not stand still because nobody listens.
    fn event(&self, event: TurnEvent);
}

/// For a turn of which only the answer is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Unreported;

impl Reporter for Unreported {
    fn event(&self, _event: TurnEvent) {}
}

/// The events that keep these messages, in order: one, or several where they are long together.
pub(super) fn keeping(messages: &[Value]) -> Vec<TurnEvent> {
    let mut events = Vec::new();
    let (mut group, mut bytes) = (Vec::new(), 0);
    for message in messages {
        let message = fitting(message);
        let size = message.to_string().len();
        if bytes + size > MAX_KEPT_BYTES && !group.is_empty() {
            let messages = std::mem::take(&mut group);
            events.push(TurnEvent::Messages { messages });
            bytes = 0;
        }
        bytes += size;
        group.push(message);
    }
    events.push(TurnEvent::Messages { messages: group });
    events
}

/// A message, without what is too long of it: the arguments of calls, or a result.
fn fitting(message: &Value) -> Value {
    let mut message = message.clone();
    if message.to_string().len() <= MAX_KEPT_BYTES {
        return message;
    }
    if let Some(calls) = message.get_mut("tool_calls").and_then(Value::as_array_mut) {
        for arguments in calls
            .iter_mut()
            .filter_map(|call| call.pointer_mut("/function/arguments"))
        {
            *arguments = Value::from("{}");
        }
    } else if let Some(content) = message.get_mut("content") {
        *content = Value::from(TOO_LONG_TO_KEEP);
    }
    message
}

/// Remembers what it is told.
#[cfg(test)]
#[derive(Default)]
pub(crate) struct Collected(std::sync::Mutex<Vec<TurnEvent>>);

#[cfg(test)]
impl Collected {
    pub(crate) fn events(&self) -> Vec<TurnEvent> {
        self.0.lock().unwrap().clone()
    }
}

#[cfg(test)]
impl Reporter for Collected {
    fn event(&self, event: TurnEvent) {
        self.0.lock().unwrap().push(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kept(messages: &[Value]) -> Vec<Vec<Value>> {
        let of = |event: TurnEvent| {
            let TurnEvent::Messages { messages } = event else {
                unreachable!("only messages: {event:?}")
            };
            messages
        };
        keeping(messages).into_iter().map(of).collect()
    }

    fn result(bytes: usize) -> Value {
        json!({"role": "tool", "tool_call_id": "a", "content": "x".repeat(bytes)})
    }

    #[test]
    fn messages_that_are_long_together_are_told_in_turn() {
        let messages = [result(10), result(100 * 1024), result(100 * 1024), result(10)];
        assert_eq!(kept(&messages[..2]).len(), 1);
        let groups = kept(&messages);
        assert_eq!(groups.len(), 2);
        assert_eq!(groups.concat(), messages);
    }

    #[test]
    fn of_a_message_that_is_too_long_alone_its_place_stays() {
        let call = |arguments: String| json!({"id": "a", "function": {"name": "f", "arguments": arguments}});
        let calls = json!({"role": "assistant", "content": "So", "tool_calls": [call("x".repeat(MAX_KEPT_BYTES))]});
        let expected = json!({"role": "assistant", "content": "So", "tool_calls": [call("{}".into())]});
        assert_eq!(kept(&[calls]).concat(), [expected]);
        let cut = kept(&[result(MAX_KEPT_BYTES)]).concat();
        assert_eq!(
            (&cut[0]["tool_call_id"], &cut[0]["content"]),
            (&json!("a"), &json!(TOO_LONG_TO_KEEP))
        );
    }
}

//! Reads an answer as it comes: server-sent events, or one JSON text from an endpoint that does not stream. Which of
//! them it is, its first character says; what servers say about it is of no use.

use super::{ModelError, assembly::Assembly, completion::Completion, refusal, transport};
use eventsource_stream::{Event, EventStream, EventStreamError};
use futures_util::{Stream, StreamExt as _, TryStreamExt as _, stream};
use reqwest::Response;
use serde_json::Value;
use std::{future::ready, pin::pin, time::Duration};
use tokio::time::timeout;

/// How long the rest is waited for once the answer has its end: usage, and the mark that closes the stream.
const LAST_WORDS_LIMIT: Duration = Duration::from_secs(2);
/// The most bytes of one stream: each token comes in a frame of some hundred bytes, and there are as many again of
/// reasoning.
const MAX_STREAM_BYTES: usize = 64 * 1024 * 1024;
/// The longest line of a stream. It is read again with each chunk until it is whole.
const MAX_LINE_BYTES: usize = 4 * 1024 * 1024;
/// The mark that some servers put before a text.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Where the parts of a text go as they come.
pub(super) type OnText<'a> = &'a mut (dyn FnMut(&str) + Send);

/// Why there is no answer, and whether any of it had come: then a second one would begin anew what a person has already
/// read.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: ModelError,
    pub(super) has_begun: bool,
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Self {
            error,
            has_begun: false,
        }
    }
}

/// Reads the answer of an endpoint that accepted the request.
pub(super) async fn read(response: Response, on_text: OnText<'_>) -> Result<Completion, Failure> {
    decode(transport::chunks(response), on_text).await
}

async fn decode<B>(
    chunks: impl Stream<Item = Result<B, ModelError>> + Send,
    on_text: OnText<'_>,
) -> Result<Completion, Failure>
where
    B: AsRef<[u8]> + Send,
{
    let mut chunks = pin!(bounded(chunks));
    let mut head = Vec::new();
    let first = loop {
        if let Some(first) = first_byte(&mut head) {
            break first;
        }
        // Nothing at all is a connection that was lost.
        let chunk = chunks.try_next().await?.ok_or(ModelError::Torn)?;
        head.extend_from_slice(&chunk);
    };
    match first {
        b'{' | b'[' => {
            while let Some(chunk) = chunks.try_next().await? {
                head.extend_from_slice(&chunk);
            }
            whole(&head, on_text)
        }
        b'<' => Err(ModelError::Unreadable("it is a page").into()),
        _ => {
            // The last event counts even if its empty line is missing.
            let begin = stream::once(ready(Ok(head)));
            let end = stream::once(ready(Ok(b"\n\n".to_vec())));
            events(EventStream::new(begin.chain(chunks).chain(end)), on_text).await
        }
    }
}

/// The chunks within what is read of an answer.
fn bounded<B: AsRef<[u8]>>(
    chunks: impl Stream<Item = Result<B, ModelError>>,
) -> impl Stream<Item = Result<Vec<u8>, ModelError>> {
    let (mut total, mut line) = (0_usize, 0_usize);
    chunks.map(move |chunk| {
        let chunk = chunk?.as_ref().to_vec();
        total += chunk.len();
        match chunk.iter().rposition(|byte| matches!(byte, b'\n' | b'\r')) {
            Some(end) => line = chunk.len() - end,
            None => line += chunk.len(),
        }
        if total > MAX_STREAM_BYTES || line > MAX_LINE_BYTES {
            return Err(ModelError::Unreadable("it is too large"));
        }
        Ok(chunk)
    })
}

/// The first byte that says something; what stands before it is taken away. (The library would panic at a mark.)
fn first_byte(head: &mut Vec<u8>) -> Option<u8> {
    let mut rest = head.trim_ascii_start();
    while let Some(after) = rest.strip_prefix(BYTE_ORDER_MARK) {
        rest = after.trim_ascii_start();
    }
    let first = *rest.first()?;
    if BYTE_ORDER_MARK.starts_with(rest) {
        return None;
    }
    head.drain(..head.len() - rest.len());
    Some(first)
}

/// The answer of an endpoint that does not stream.
fn whole(body: &[u8], on_text: OnText<'_>) -> Result<Completion, Failure> {
    let answer: Value = serde_json::from_slice(body).map_err(|_| ModelError::Unreadable("it is not JSON"))?;
    let mut assembly = Assembly::default();
    assembly.take(&answer)?;
    let completion = assembly.finish_whole()?;
    if let Some(text) = &completion.text {
        on_text(text);
    }
    Ok(completion)
}

async fn events<S>(events: EventStream<S>, on_text: OnText<'_>) -> Result<Completion, Failure>
where
    S: Stream<Item = Result<Vec<u8>, ModelError>> + Send,
{
    let mut events = pin!(events);
    let mut assembly = Assembly::default();
    loop {
        let next = if assembly.has_ended() {
            timeout(LAST_WORDS_LIMIT, events.next()).await.unwrap_or(None)
        } else {
            events.next().await
        };
        let Some(event) = next else { break };
        let said = assembly.text().len();
        let taken = match event {
            Ok(event) if event.data.trim() == "[DONE]" => {
                assembly.end();
                break;
            }
            Ok(event) => take(&mut assembly, &event),
            Err(error) => Err(broken(error, assembly.has_begun())),
        };
        if let Some(delta) = assembly.text().get(said..).filter(|delta| !delta.is_empty()) {
            on_text(delta);
        }
        match taken {
            Ok(()) => {}
            // What goes wrong after the end does not matter any more.
            Err(_) if assembly.has_ended() => break,
            Err(error) => {
                return Err(Failure {
                    error,
                    has_begun: assembly.has_begun(),
                });
            }
        }
    }
    let has_begun = assembly.has_begun();
    assembly.finish().map_err(|error| Failure { error, has_begun })
}

fn take(assembly: &mut Assembly, event: &Event) -> Result<(), ModelError> {
    let data = event.data.trim();
    match serde_json::from_str::<Value>(data) {
        Ok(chunk) if event.event == "error" => Err(refusal::of(&chunk)),
        Ok(chunk) => assembly.take(&chunk),
        // A sign of life, such as `data: ping`.
        Err(_) if event.event != "error" && !data.starts_with('{') => Ok(()),
        Err(_) => Err(ModelError::Torn),
    }
}

/// A connection that is lost in the middle is a torn answer; before it, the endpoint is away.
fn broken(error: EventStreamError<ModelError>, has_begun: bool) -> ModelError {
    match error {
        EventStreamError::Transport(ModelError::Unreachable(_)) if has_begun => ModelError::Torn,
        EventStreamError::Transport(error) => error,
        EventStreamError::Utf8(_) | EventStreamError::Parser(_) => ModelError::Torn,
    }
}

#[cfg(test)]
mod tests;

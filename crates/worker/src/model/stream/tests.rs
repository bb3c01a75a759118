//! The recorded quirks of `tests/data/streams`, through the decoder, however they are cut.

use super::*;
use crate::model::completion::Finish;
use serde_json::json;
use std::{fs, path::PathBuf};

/// What came of a stream, in the form of the expectations.
async fn outcome(chunks: Vec<&[u8]>) -> Value {
    let mut shown = String::new();
    let chunks = stream::iter(chunks.into_iter().map(Ok));
    let result = decode(chunks, &mut |text| shown.push_str(text)).await;
    match result {
        Ok(completion) => {
            assert_eq!(completion.text.clone().unwrap_or_default().trim(), shown.trim());
            let calls = completion.calls.iter();
            let calls: Vec<Value> = calls.map(|call| json!([call.id, call.name, call.arguments])).collect();
            let finish = match completion.finish {
                Finish::Stop => "stop",
                Finish::ToolCalls => "tool_calls",
                Finish::Length => "length",
                Finish::ContentFilter => "content_filter",
            };
            let usage = completion
                .usage
                .map(|usage| json!([usage.input_tokens, usage.output_tokens]));
            json!({"text": completion.text, "calls": calls, "finish": finish, "usage": usage})
        }
        Err(Failure { error, has_begun }) => {
            let error = match error {
                ModelError::Torn => "torn".to_owned(),
                ModelError::Refused { status, .. } => format!("refused {status}"),
                ModelError::Unreachable(_) => "unreachable".to_owned(),
                ModelError::TimedOut => "timed out".to_owned(),
                ModelError::Unreadable(_) | ModelError::Client(_) => "unreadable".to_owned(),
            };
            json!({"error": error, "begun": has_begun, "shown": shown})
        }
    }
}

fn streams() -> Vec<(String, Vec<u8>, Value)> {
    // tests run in the folder of their package
    let folder = "../../tests/data/streams";
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let paths = paths.filter(|path| path.extension().is_some_and(|extension| extension == "sse"));
    let stream = |path: PathBuf| {
        let expected = fs::read(path.with_extension("json")).expect("each has its expectation");
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (
            name,
            fs::read(path).unwrap(),
            serde_json::from_slice(&expected).unwrap(),
        )
    };
    paths.map(stream).collect()
}

/// fault 32, fault 33
#[tokio::test]
async fn every_quirk_is_read_as_it_is_meant() {
    let streams = streams();
    assert!(streams.len() >= 25, "{}", streams.len());
    for (name, bytes, expected) in streams {
        assert_eq!(outcome(vec![&bytes]).await, expected, "{name}, whole");
        assert_eq!(
            outcome(bytes.chunks(1).collect()).await,
            expected,
            "{name}, byte by byte"
        );
        for at in 0..bytes.len() {
            let (head, tail) = bytes.split_at(at);
            assert_eq!(outcome(vec![head, tail]).await, expected, "{name}, cut at {at}");
        }
    }
}

/// fault 32
#[tokio::test]
async fn a_stream_that_ends_at_any_byte_before_its_end_gives_no_call() {
    for (name, bytes, expected) in streams() {
        let calls = expected["calls"].as_array().cloned().unwrap_or_default();
        if calls.is_empty() {
            continue;
        }
        for at in 0..bytes.len() {
            let (head, _) = bytes.split_at(at);
            let cut = outcome(vec![head]).await;
            let is_whole = cut["calls"] == expected["calls"];
            assert!(is_whole || cut.get("error").is_some(), "{name}, until {at}: {cut}");
        }
    }
}

#[tokio::test]
async fn a_line_without_end_is_given_up() {
    let chunk = vec![b'a'; MAX_LINE_BYTES / 2];
    let chunks = stream::iter(std::iter::repeat_with(|| Ok(chunk.clone())).take(4));
    let failure = decode(chunks, &mut |_| {}).await.unwrap_err();
    assert!(matches!(failure.error, ModelError::Unreadable(_)), "{failure:?}");
}

/// A server may keep the connection open after its last chunk.
#[tokio::test]
async fn an_answer_that_has_ended_is_not_waited_for() {
    let event = "data: {\"choices\": [{\"delta\": {\"content\": \"Hi\"}, \"finish_reason\": \"stop\"}]}\n\n";
    let chunks = stream::iter([Ok(event)]).chain(stream::pending());
    let completion = decode(chunks, &mut |_| {}).await.unwrap();
    assert_eq!(completion.text.as_deref(), Some("Hi"));
}

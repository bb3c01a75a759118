//! The client against a scripted endpoint.

use super::*;
use crate::config::Secret;
use scripted_model::{Reply, Script, ScriptedModel};
use std::time::Instant;

fn soon() -> i64 {
    clock::deadline_in(Duration::from_secs(20))
}

async fn model(replies: Vec<Reply>) -> (Model, ScriptedModel) {
    let server = ScriptedModel::start(Script::queue(replies)).await.unwrap();
    let config = ModelConfig {
        base_url: server.base_url(),
        api_key: Secret::new("sk-hidden"),
        name: "m".into(),
    };
    (Model::new(&config).unwrap(), server)
}

async fn complete(replies: Vec<Reply>) -> (Result<Completion, ModelError>, usize) {
    let (model, server) = model(replies).await;
    let messages = [json!({"role": "user", "content": "Hello"})];
    (
        model.stream(&messages, &[], soon(), &mut |_| {}).await,
        server.requests().len(),
    )
}

#[tokio::test]
async fn what_may_pass_is_tried_again() {
    let replies = vec![
        Reply::status(503, "<html>busy</html>"),
        Reply::status(429, r#"{"detail": 7}"#),
        Reply::text("Hi"),
    ];
    let (result, sent) = complete(replies).await;
    assert_eq!(result.unwrap().text.as_deref(), Some("Hi"));
    assert_eq!(sent, 3);
}

#[tokio::test]
async fn a_refusal_keeps_its_status_whatever_its_body() {
    for body in [
        "",
        "no",
        "[]",
        r#"{"error": "text"}"#,
        r#"{"error": {"message": "m", "code": 7}}"#,
        r#"{"detail": []}"#,
    ] {
        let (result, sent) = complete(vec![Reply::status(401, body)]).await;
        assert!(
            matches!(result, Err(ModelError::Refused { status: 401, .. })),
            "{body}: {result:?}"
        );
        assert_eq!(sent, 1, "{body}");
    }
}

#[tokio::test]
async fn a_used_up_quota_is_final() {
    let body = r#"{"error": {"message": "m", "type": "insufficient_quota", "code": "insufficient_quota"}}"#;
    let (result, sent) = complete(vec![Reply::status(429, body)]).await;
    assert!(result.is_err() && sent == 1);
}

#[tokio::test]
async fn a_wait_that_outlasts_the_turn_is_not_begun() {
    let (model, _server) = model(vec![Reply::status(429, "{}").header("retry-after", "3600")]).await;
    let begun = Instant::now();
    let result = model
        .stream(&[], &[], clock::deadline_in(Duration::from_secs(5)), &mut |_| {})
        .await;
    assert!(
        matches!(result, Err(ModelError::Refused { status: 429, .. })),
        "{result:?}"
    );
    assert!(begun.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn what_is_no_completion_is_an_error() {
    for body in [
        "",
        "null",
        "[]",
        "{}",
        r#"{"choices": []}"#,
        r#"{"choices": null, "error": {"message": "m"}}"#,
        "<html>",
    ] {
        let (result, _) = complete(vec![Reply::raw(body)]).await;
        assert!(result.is_err(), "{body}");
    }
}

#[tokio::test]
async fn an_endpoint_that_is_away_is_unreachable() {
    let config = ModelConfig {
        base_url: "http://127.0.0.1:1/v1".into(),
        api_key: Secret::new("sk-hidden"),
        name: "m".into(),
    };
    let error = Model::new(&config)
        .unwrap()
        .stream(&[], &[], soon(), &mut |_| {})
        .await
        .unwrap_err();
    assert!(matches!(error, ModelError::Unreachable(_)), "{error}");
    assert!(!error.to_string().contains("sk-hidden"));
    assert!(error.text().contains("cannot be reached"));
}

/// What came of one request, the texts as they came, and how often it was sent.
async fn streamed(replies: Vec<Reply>) -> (Result<Completion, ModelError>, Vec<String>, usize) {
    let server = ScriptedModel::start(Script::queue(replies)).await.unwrap();
    let config = ModelConfig {
        base_url: server.base_url(),
        api_key: Secret::new("sk-hidden"),
        name: "m".into(),
    };
    let model = Model::with_silence_limit(&config, Duration::from_millis(300)).unwrap();
    let mut texts = Vec::new();
    let result = model
        .stream(&[], &[], soon(), &mut |text| texts.push(text.to_owned()))
        .await;
    (result, texts, server.requests().len())
}

const LONG: &str = "The departments are Drama, Music and Science.";

#[tokio::test]
async fn a_text_comes_in_parts_with_its_usage() {
    let (result, texts, _) = streamed(vec![Reply::text(LONG)]).await;
    let completion = result.unwrap();
    assert!(texts.len() > 1 && texts.concat() == LONG, "{texts:?}");
    assert_eq!(completion.text.as_deref(), Some(LONG));
    assert_eq!(completion.finish, Finish::Stop);
    assert!(
        completion
            .usage
            .is_some_and(|usage| usage.input_tokens > 0 && usage.output_tokens > 0)
    );
}

/// What a model answers costs tokens, whether or not its endpoint counts them.
#[tokio::test]
async fn an_endpoint_that_counts_nothing_costs_as_well() {
    let choice = json!({"message": {"content": LONG}, "finish_reason": "stop"});
    let mut estimates = Vec::new();
    for usage in [
        json!(null),
        json!({}),
        json!({"prompt_tokens": 0, "completion_tokens": 0}),
    ] {
        let body = json!({"choices": [choice], "usage": usage});
        let (result, ..) = streamed(vec![Reply::raw(body.to_string())]).await;
        estimates.push(result.unwrap().usage.unwrap());
    }
    assert!(estimates[0].input_tokens > 0 && estimates.iter().all(|usage| *usage == estimates[0]));
    assert_eq!(estimates[0].output_tokens, 12, "of {} bytes", LONG.len());
    let body = json!({"choices": [choice], "usage": {"prompt_tokens": 5, "completion_tokens": 2}});
    let (result, ..) = streamed(vec![Reply::raw(body.to_string())]).await;
    let usage = result.unwrap().usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (5, 2));
}

#[tokio::test]
async fn an_endpoint_that_does_not_stream_is_read_as_well() {
    let body = r#"{"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}"#;
    let (result, texts, _) = streamed(vec![Reply::raw(body)]).await;
    assert_eq!(result.unwrap().text.as_deref(), Some("Hi"));
    assert_eq!(texts, ["Hi"]);
}

/// fault 32
#[tokio::test]
async fn a_stream_that_is_torn_before_it_began_is_asked_for_again() {
    let (result, texts, sent) = streamed(vec![Reply::text(LONG).torn_after(1), Reply::text("Hi")]).await;
    assert_eq!(result.unwrap().text.as_deref(), Some("Hi"));
    assert_eq!((texts.concat().as_str(), sent), ("Hi", 2));
}

/// fault 32
#[tokio::test]
async fn a_stream_that_is_torn_later_is_final() {
    let call = || Reply::call("create_department", r#"{"name": "Drama"}"#);
    for torn in [
        Reply::text(LONG).torn_after(2),
        call().torn_after(2),
        call().torn_after(3),
    ] {
        let (result, _, sent) = streamed(vec![torn, Reply::text("again")]).await;
        let error = result.unwrap_err();
        assert!(matches!(error, ModelError::Torn), "{error}");
        assert!(error.text().contains("broke off"));
        assert_eq!(sent, 1);
    }
}

#[tokio::test]
async fn silence_before_and_in_the_middle_of_an_answer_is_bounded() {
    for silent in [
        Reply::hanging(),
        Reply::text(LONG).silent_after(0),
        Reply::text(LONG).silent_after(2),
    ] {
        let begun = Instant::now();
        let (result, _, sent) = streamed(vec![silent]).await;
        assert!(matches!(result, Err(ModelError::TimedOut)), "{result:?}");
        assert!(begun.elapsed() < Duration::from_secs(5) && sent == 1);
    }
}

#[tokio::test]
async fn no_answer_lasts_longer_than_the_deadline() {
    let (model, _server) = model(vec![Reply::hanging()]).await;
    let begun = Instant::now();
    let soon = clock::deadline_in(Duration::from_millis(200));
    let result = model.stream(&[], &[], soon, &mut |_| {}).await;
    assert!(matches!(result, Err(ModelError::TimedOut)), "{result:?}");
    assert!(begun.elapsed() < Duration::from_secs(5));
}

/// fault 40
#[tokio::test]
async fn a_refusal_inside_a_stream_is_final_once_text_was_shown() {
    let text = "data: {\"choices\": [{\"delta\": {\"content\": \"Half\"}}]}\n\n";
    let refusal = "data: {\"error\": {\"code\": 429, \"message\": \"org-1 is over its limit\"}}\n\n";
    let (result, texts, sent) = streamed(vec![Reply::raw(refusal), Reply::text("Hi")]).await;
    assert_eq!(
        (result.unwrap().text.as_deref(), texts.concat().as_str()),
        (Some("Hi"), "Hi")
    );
    assert_eq!(sent, 2);

    let (result, texts, sent) = streamed(vec![Reply::raw(format!("{text}{refusal}")), Reply::text("Hi")]).await;
    let error = result.unwrap_err();
    assert!(
        matches!(error, ModelError::Refused { status: 429, .. }) && error.text().contains("overloaded"),
        "{error}"
    );
    assert!(!error.to_string().contains("org-1"));
    assert_eq!((texts.concat().as_str(), sent), ("Half", 1));
}

#[tokio::test]
async fn an_endpoint_that_always_fails_is_asked_a_few_times() {
    let replies = vec![Reply::status(500, "no"); 10];
    let (result, _, sent) = streamed(replies).await;
    assert!(
        matches!(result, Err(ModelError::Refused { status: 500, .. })),
        "{result:?}"
    );
    assert_eq!(sent, usize::try_from(MAX_TRIES).unwrap());
}

//! Turns against a scripted model, with calls that stay in the process.

mod bounds;
mod delegation;
mod resuming;
mod stopping;
mod telling;

use super::*;
use crate::{
    caller::{CallTicket, InProcessToolCaller},
    config::{ModelConfig, Secret},
    context::tests::runtime,
    model::Model,
};
use contract::{AgentToolRequest, AgentToolResult, Event, turn::ThreadHistory};
use scripted_model::{Reply, Script, ScriptedModel};
use serde_json::{Value, json};
use uuid::Uuid;

type Calls = Arc<Mutex<Vec<(String, String, AgentToolRequest)>>>;

struct Stage {
    runner: TurnRunner,
    server: ScriptedModel,
    calls: Calls,
}

/// A runner whose model follows a script and whose tools all succeed, a `slow` one after a while.
async fn stage(script: Script) -> Stage {
    let server = ScriptedModel::start(script).await.unwrap();
    let config = ModelConfig {
        base_url: server.base_url(),
        api_key: Secret::new("k"),
        name: "scripted-demo".into(),
    };
    let calls = Calls::default();
    let log = calls.clone();
    let handler = move |event: Event, request: AgentToolRequest, ticket: CallTicket| {
        let slow = request.args.get("limit").and_then(Value::as_u64).unwrap_or(0);
        let data = json!({"name": request.args["name"], "slow": slow});
        log.lock()
            .unwrap()
            .push((event.to_string(), ticket.idempotency_key, request));
        async move {
            tokio::time::sleep(Duration::from_millis(slow)).await;
            AgentToolResult::Data {
                data,
                scope_context: "All.".into(),
            }
        }
    };
    let runner = TurnRunner::new(
        Model::new(&config).unwrap(),
        Arc::new(InProcessToolCaller::new(handler)),
    );
    Stage { runner, server, calls }
}

fn message(text: &str, time: Duration) -> TurnMessage {
    let context = runtime(&json!({"mode": "school"})).context;
    TurnMessage {
        turn_id: Uuid::from_u128(9),
        grant: "grant".into(),
        context: serde_json::from_value(context.as_ref().clone()).unwrap(),
        history: ThreadHistory::default(),
        message: text.into(),
        deadline_ms: clock::deadline_in(time),
        dispatch: 0,
        contract: None,
    }
}

impl Stage {
    async fn run(&self, text: &str) -> TurnAnswer {
        self.run_message(&message(text, Duration::from_secs(20))).await
    }

    async fn run_message(&self, message: &TurnMessage) -> TurnAnswer {
        let ended = self
            .runner
            .run(message, Journal::default(), Arc::new(Unreported), Cancellation::never())
            .await;
        ended.expect("a turn that is not kept waits for nobody")
    }

    /// Runs a turn that is kept; with what it told and had kept.
    async fn told(&self, message: &TurnMessage) -> (TurnAnswer, Arc<Collected>) {
        let message = TurnMessage {
            dispatch: 1,
            ..message.clone()
        };
        let collected = Arc::new(Collected::default());
        let (journal, never) = (Journal::default(), Cancellation::never());
        let ended = self.runner.run(&message, journal, collected.clone(), never).await;
        (ended.expect("it asks nobody"), collected)
    }

    /// What the model read as results of its calls, in the last request.
    fn results(&self) -> Vec<String> {
        let request = self.server.requests().pop().unwrap();
        let messages = request["messages"].as_array().unwrap().clone();
        let results = messages.iter().filter(|message| message["role"] == "tool");
        results
            .map(|message| message["content"].as_str().unwrap().to_owned())
            .collect()
    }
}

fn error(answer: &TurnAnswer) -> &str {
    match &answer.outcome {
        TurnOutcome::Error(text) => text,
        TurnOutcome::Answer(text) | TurnOutcome::Cancelled(text) => unreachable!("no error: {text}"),
    }
}

#[tokio::test]
async fn a_sentence_becomes_a_call_and_an_answer() {
    let stage = stage(Script::rules()).await;
    let answer = stage.run("Create a department called Drama").await;
    let TurnOutcome::Answer(text) = &answer.outcome else {
        unreachable!("{answer:?}")
    };
    assert!(text.contains("Drama"), "{text}");
    let calls = stage.calls.lock().unwrap();
    let [(event, key, request)] = calls.as_slice() else {
        unreachable!("one call: {calls:?}")
    };
    assert_eq!(
        (event.as_str(), &request.args),
        ("create.department", &json!({"name": "Drama"}))
    );
    let [record] = answer.tool_calls.as_slice() else {
        unreachable!("one record")
    };
    assert_eq!((record.name.as_str(), record.succeeded), ("create_department", true));
    assert_eq!(*key, format!("{}:{}", answer.turn_id, record.tool_call_id));
}

#[tokio::test]
async fn the_model_is_offered_the_supervisors_belt() {
    let stage = stage(Script::queue([Reply::text("Hi")])).await;
    stage.run("Hello").await;
    let request = stage.server.requests().pop().unwrap();
    let tools = request["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["function"]["name"] == "create_department"));
    assert!(
        tools
            .iter()
            .all(|tool| tool["function"]["parameters"]["type"] == "object")
    );
    assert!(
        tools
            .iter()
            .all(|tool| tool["function"]["name"] != "list_stream_roster")
    );
    assert!(
        request["messages"][0]["content"]
            .as_str()
            .unwrap()
            .contains("Hilltop Academy")
    );
}

/// fault 30, fault 49
#[tokio::test]
async fn calls_of_one_step_run_at_once_and_answer_in_their_order() {
    let calls = Reply::nothing()
        .and_call(Some("same"), "list_departments", r#"{"limit": 200}"#)
        .and_call(Some("same"), "list_departments", r#"{"limit": 1}"#)
        .and_call(Some(""), "list_departments", r#"{"limit": 100}"#);
    let stage = stage(Script::queue([calls, Reply::text("Done")])).await;
    let answer = stage.run("List").await;
    let slow: Vec<u64> = stage
        .results()
        .iter()
        .map(|text| {
            serde_json::from_str::<Value>(text).unwrap()["data"]["slow"]
                .as_u64()
                .unwrap()
        })
        .collect();
    assert_eq!(slow, [200, 1, 100]);
    let ids: std::collections::HashSet<_> = answer.tool_calls.iter().map(|call| &call.tool_call_id).collect();
    assert_eq!(ids.len(), 3, "{:?}", answer.tool_calls);
}

/// fault 38
#[tokio::test]
async fn an_unknown_tool_is_an_error_that_lists_no_others() {
    let replies = [
        Reply::call("list_stream_roster", "{}"),
        Reply::call("drop_table", "{}"),
        Reply::text("Sorry"),
    ];
    let stage = stage(Script::queue(replies)).await;
    let answer = stage.run("Do it").await;
    let results = stage.results();
    assert_eq!(results.len(), 2);
    for (result, name) in results.iter().zip(["list_stream_roster", "drop_table"]) {
        assert!(
            result.contains(name) && !result.contains("create_department"),
            "{result}"
        );
    }
    assert!(answer.tool_calls.iter().all(|call| !call.succeeded));
    assert!(stage.calls.lock().unwrap().is_empty());
}

#[tokio::test]
async fn arguments_that_cannot_be_read_are_for_the_model_to_mend() {
    let replies = [Reply::call("create_department", "{\"name\": "), Reply::text("Sorry")];
    let stage = stage(Script::queue(replies)).await;
    stage.run("Create").await;
    assert!(stage.results()[0].contains("Invalid tool arguments"));
    let request = stage.server.requests().pop().unwrap();
    assert_eq!(request["messages"][2]["tool_calls"][0]["function"]["arguments"], "{}");
    assert!(stage.calls.lock().unwrap().is_empty());
}

/// fault 40
#[tokio::test]
async fn what_the_provider_says_stays_with_us() {
    let body = r#"{"error": {"message": "org-123 is over its secret limit", "code": "billing"}}"#;
    let stage = stage(Script::queue([Reply::status(402, body)])).await;
    let answer = stage.run("Hello").await;
    assert!(
        !error(&answer).contains("org-123") && error(&answer).contains("language model"),
        "{answer:?}"
    );
}

#[tokio::test]
async fn an_empty_answer_is_an_error() {
    let stage = stage(Script::queue([Reply::nothing()])).await;
    assert!(error(&stage.run("Hello").await).contains("no answer"));
}

//! The supervisor and the specialists.

use super::*;

/// A message of somebody with these hats.
fn message_of(hats: &Value) -> TurnMessage {
    let mut message = message("Who is in my stream?", Duration::from_secs(20));
    message.context.capabilities = serde_json::from_value(hats.clone()).unwrap();
    message
}

fn class_teacher() -> TurnMessage {
    message_of(&json!({"isClassTeacher": true, "isDirectorOfStudies": true}))
}

fn is_of(request: &Value, agent: &str) -> bool {
    let system = request["messages"][0]["content"].as_str().unwrap();
    system.starts_with(&format!("You are {agent}"))
}

fn has_results(request: &Value) -> bool {
    request["messages"]
        .as_array()
        .unwrap()
        .iter()
        .any(|message| message["role"] == "tool")
}

fn names_of(request: &Value) -> Vec<String> {
    let tools = request["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Hands the same work to Angie twice at once, and repeats what came of it.
fn delegating(request: &Value) -> Reply {
    match (is_of(request, "Rover"), has_results(request)) {
        (true, false) => Reply::nothing()
            .and_call(
                Some("x"),
                TASK,
                r#"{"agent": "Angie", "task": "Who is in the stream?"}"#,
            )
            .and_call(
                Some("y"),
                TASK,
                r#"{"agent": "Angie", "task": "How many are in the stream?"}"#,
            ),
        (true, true) => Reply::text("Forty students."),
        (false, false) => Reply::nothing()
            .and_call(Some("x"), "list_my_classrooms", "{}")
            .and_call(Some("x"), "list_stream_roster", r#"{"limit": 7}"#),
        (false, true) => Reply::text("I found forty."),
    }
}

#[tokio::test]
async fn work_is_offered_to_whoever_is_eligible_and_by_nobody_else() {
    let stage = stage(Script::function(|_| Reply::text("Hi"))).await;
    stage.run_message(&class_teacher()).await;
    stage.run_message(&message_of(&json!({}))).await;
    let [with, without] = stage.server.requests().try_into().unwrap();
    let task = with["tools"]
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["function"]["name"] == TASK);
    let agents = &task.unwrap()["function"]["parameters"]["properties"]["agent"]["enum"];
    assert_eq!(*agents, json!(["Angie", "Sarah"]));
    assert!(!names_of(&without).contains(&TASK.to_owned()));
}

#[tokio::test]
async fn a_specialist_works_with_its_own_belt_and_answers_the_supervisor() {
    let stage = stage(Script::function(delegating)).await;
    let answer = stage.run_message(&class_teacher()).await;
    assert_eq!(answer.outcome, TurnOutcome::Answer("Forty students.".into()));
    let requests = stage.server.requests();
    let of_angie: Vec<&Value> = requests.iter().filter(|request| is_of(request, "Angie")).collect();
    assert_eq!(of_angie.len(), 4);
    for request in &of_angie {
        let names = names_of(request);
        assert!(names.contains(&"list_stream_roster".to_owned()) && names.contains(&"get_current_time".to_owned()));
        assert!(!names.contains(&TASK.to_owned()) && !names.contains(&"create_department".to_owned()));
        assert_eq!(request["messages"][1]["role"], "user");
        assert!(
            request["messages"][1]["content"]
                .as_str()
                .unwrap()
                .ends_with("in the stream?")
        );
    }
    for result in stage.results() {
        let result: Value = serde_json::from_str(&result).unwrap();
        assert_eq!(result["data"], json!({"answer": "I found forty."}));
        assert!(
            result["scopeContext"]
                .as_str()
                .unwrap()
                .starts_with("What Angie answered")
        );
    }
}

/// fault 30
#[tokio::test]
async fn ids_are_unique_in_the_whole_turn_and_the_same_again() {
    let stage = stage(Script::function(delegating)).await;
    let sorted = |answer: TurnAnswer| {
        let mut ids: Vec<String> = answer.tool_calls.into_iter().map(|call| call.tool_call_id).collect();
        ids.sort();
        ids
    };
    let once = sorted(stage.run_message(&class_teacher()).await);
    assert_eq!(once, ["x", "x/x", "x/x_1_1_0", "y", "y/x", "y/x_1_1_0"]);
    assert_eq!(sorted(stage.run_message(&class_teacher()).await), once);
    let mut keys: Vec<String> = stage
        .calls
        .lock()
        .unwrap()
        .iter()
        .map(|(_, key, _)| key.clone())
        .collect();
    assert_eq!(keys.len(), 8);
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 4, "the same calls have the same keys");
}

#[tokio::test]
async fn whoever_is_not_eligible_is_given_nothing() {
    for (hats, agent) in [
        (json!({"isClassTeacher": true}), "Sarah"),
        (json!({"isClassTeacher": true}), "Rover"),
        (json!({}), "Angie"),
    ] {
        let arguments = json!({"agent": agent, "task": "Do it"}).to_string();
        let stage = stage(Script::queue([Reply::call(TASK, arguments), Reply::text("Sorry")])).await;
        let answer = stage.run_message(&message_of(&hats)).await;
        assert!(answer.tool_calls.iter().all(|call| !call.succeeded), "{agent}");
        assert!(stage.results()[0].contains("error"));
        assert_eq!(stage.server.requests().len(), 2, "{agent} was never asked");
    }
}

#[tokio::test]
async fn a_specialist_cannot_delegate() {
    let stage = stage(Script::function(|request| {
        match (is_of(request, "Rover"), has_results(request)) {
            (_, false) => Reply::call(TASK, r#"{"agent": "Sarah", "task": "Do it"}"#),
            (_, true) => Reply::text("Sorry"),
        }
    }))
    .await;
    let answer = stage.run_message(&class_teacher()).await;
    let done: Vec<bool> = answer.tool_calls.iter().map(|call| call.succeeded).collect();
    assert_eq!(done, [true, false], "{answer:?}");
}

#[tokio::test]
async fn a_specialist_in_circles_is_an_error_for_the_supervisor() {
    let stage = stage(Script::function(|request| {
        match (is_of(request, "Rover"), has_results(request)) {
            (true, false) => Reply::call(TASK, r#"{"agent": "Angie", "task": "Do it"}"#),
            (true, true) => Reply::text("That did not work."),
            (false, _) => Reply::call("list_my_classrooms", "{}"),
        }
    }))
    .await;
    let answer = stage.run_message(&class_teacher()).await;
    assert_eq!(answer.outcome, TurnOutcome::Answer("That did not work.".into()));
    let results = stage.results();
    assert!(
        results[0].contains("Angie gave no answer") && results[0].contains("8 steps"),
        "{results:?}"
    );
    assert!(
        !results[0].contains("may have been done"),
        "nothing of hers changes anything"
    );
    assert_eq!(stage.calls.lock().unwrap().len(), 2, "the third time is refused");
}

#[tokio::test]
async fn agents_that_hand_on_without_end_are_stopped() {
    let stage = stage(Script::function(|request| {
        let steps = request["messages"].as_array().unwrap().len();
        if is_of(request, "Rover") {
            let task = |index: usize| json!({"agent": "Angie", "task": format!("Part {steps} {index}")}).to_string();
            return (0..8).fold(Reply::nothing(), |reply, index| reply.and_call(None, TASK, task(index)));
        }
        Reply::call("list_my_classrooms", json!({"limit": steps}).to_string())
    }))
    .await;
    let answer = stage.run_message(&class_teacher()).await;
    assert!(error(&answer).contains("too much"), "{answer:?}");
    assert_eq!(stage.server.requests().len(), crate::turn::ledger::MAX_ASKED);
}

#[tokio::test]
async fn each_specialist_reads_for_itself() {
    let stage = stage(Script::function(|request| {
        match (is_of(request, "Rover"), has_results(request)) {
            (true, false) => (0..4).fold(Reply::nothing(), |reply, part| {
                let task = json!({"agent": "Angie", "task": format!("Part {part}")});
                reply.and_call(None, TASK, task.to_string())
            }),
            (false, false) => Reply::call("list_my_classrooms", "{}"),
            (_, true) => Reply::text("Done."),
        }
    }))
    .await;
    let answer = stage.run_message(&class_teacher()).await;
    assert!(answer.tool_calls.iter().all(|call| call.succeeded), "{answer:?}");
    assert_eq!(stage.calls.lock().unwrap().len(), 4);
}

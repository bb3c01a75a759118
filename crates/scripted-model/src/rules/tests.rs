//! Conversations with the rules.

use super::*;
use crate::script::Body;
use serde::Deserialize as _;

/// A conversation: a sentence, the tools that are offered, and the results of calls so far.
fn ask(sentence: &str, tools: &[&str], results: &[(&str, Value)]) -> Reply {
    let mut messages = vec![
        json!({"role": "user", "content": "Create a department called Earlier"}),
        json!({"role": "assistant", "content": "Done"}),
        json!({"role": "user", "content": sentence}),
    ];
    for (index, (tool, content)) in results.iter().enumerate() {
        let call =
            json!({"id": format!("c{index}"), "type": "function", "function": {"name": tool, "arguments": "{}"}});
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        messages.push(json!({"role": "tool", "tool_call_id": format!("c{index}"), "content": content.to_string()}));
    }
    let tools: Vec<Value> = tools
        .iter()
        .map(|name| json!({"type": "function", "function": {"name": name}}))
        .collect();
    let request = json!({"model": "scripted-demo", "messages": messages, "tools": tools});
    reply(&ChatRequest::deserialize(&request).unwrap())
}

fn text(reply: Reply) -> String {
    let Body::Completion {
        text: Some(text),
        calls,
    } = reply.body
    else {
        unreachable!("no text: {reply:?}")
    };
    assert!(calls.is_empty(), "{calls:?}");
    text
}

fn call(reply: Reply) -> (String, Value) {
    let Body::Completion { calls, .. } = reply.body else {
        unreachable!("no completion: {reply:?}")
    };
    let call = calls.into_iter().next().expect("a call");
    (call.name, serde_json::from_str(&call.arguments).unwrap())
}

const SENTENCE: &str = "Create a department called Drama on campus Main";

#[test]
fn a_department_is_created_on_the_campus_that_was_named() {
    let tools = ["create_department", "list_campuses"];
    assert_eq!(call(ask(SENTENCE, &tools, &[])).0, "list_campuses");
    let campuses = json!({"data": {"campuses": [{"id": "m", "name": "Main"}, {"id": "l", "name": "Lakeside"}]}});
    let results = [("list_campuses", campuses)];
    let expected = (
        "create_department".to_owned(),
        json!({"name": "Drama", "campusId": "m"}),
    );
    assert_eq!(call(ask(SENTENCE, &tools, &results)), expected);
}

#[test]
fn in_campus_mode_the_campus_is_left_out() {
    let expected = ("create_department".to_owned(), json!({"name": "Drama"}));
    assert_eq!(call(ask(SENTENCE, &["create_department"], &[])), expected);
}

#[test]
fn answers_come_from_the_results_and_say_that_this_is_a_demo() {
    let created = json!({"data": {"id": 1, "name": "Drama"}, "scopeContext": "The campus Main."});
    let said = text(ask(
        "Create a department called drama",
        &["create_department"],
        &[("create_department", created)],
    ));
    assert!(
        said.starts_with(MARK) && said.contains("\"Drama\"") && said.contains("The campus Main."),
        "{said}"
    );
    let denied = json!({"error": "Permission denied: CREATE DEPARTMENT."});
    let said = text(ask(
        "Create a department called Drama",
        &["create_department"],
        &[("create_department", denied)],
    ));
    assert!(said.contains("not created: Permission denied"), "{said}");
}

#[test]
fn a_department_is_deleted_by_the_id_that_was_found() {
    let tools = ["list_departments", "delete_department"];
    let sentence = "Delete the department Drama";
    assert_eq!(call(ask(sentence, &tools, &[])).0, "list_departments");
    let found = |rows: Value| [("list_departments", json!({"data": rows, "scopeContext": ""}))];
    let one = found(json!([{"id": "d", "name": "DRAMA"}, {"id": "e", "name": "Music"}]));
    assert_eq!(call(ask(sentence, &tools, &one)).1, json!({"departmentId": "d"}));
    let two = found(json!([{"id": "d", "name": "Drama"}, {"id": "e", "name": "Drama"}]));
    assert!(text(ask(sentence, &tools, &two)).contains("more than one"));
    assert!(text(ask(sentence, &tools, &found(json!([])))).contains("no department called Drama"));
}

#[test]
fn what_is_not_offered_is_not_called() {
    assert!(text(ask("List the departments", &[], &[])).contains("not offered"));
    assert_eq!(
        call(ask("List the staff", &["list_campus_staff"], &[])).0,
        "list_campus_staff"
    );
    assert!(text(ask("Tell me a joke", &["list_staff"], &[])).contains("I am a demo"));
}

#[test]
fn a_roster_is_that_of_the_persons_own_stream() {
    let tools = ["list_my_classrooms", "list_stream_roster"];
    let mine = (
        "list_my_classrooms",
        json!({"data": [{"streamId": "s", "streamName": "S2 East"}], "scopeContext": ""}),
    );
    assert_eq!(
        call(ask("Who is in my stream?", &tools, std::slice::from_ref(&mine))).1,
        json!({"streamId": "s"})
    );
    let students = (
        "list_stream_roster",
        json!({"data": {"students": [{"givenName": "Ann", "familyName": "Oak"}]}}),
    );
    assert!(text(ask("Who is in my stream?", &tools, &[mine, students])).contains("Ann Oak"));
}

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
    let agents = json!({"properties": {"agent": {"enum": ["Bean", "Sarah"]}}});
    let tools: Vec<Value> = tools
        .iter()
        .map(|name| json!({"type": "function", "function": {"name": name, "parameters": agents}}))
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
fn a_name_that_is_not_said_is_asked_for() {
    let (sentence, tools) = ("Create a department", ["ask_user", "create_department"]);
    let question = json!({"question": "What shall the department be called?"});
    assert_eq!(call(ask(sentence, &tools, &[])), ("ask_user".to_owned(), question));
    let answered = ("ask_user", json!({"data": {"answer": "Dance"}}));
    let expected = ("create_department".to_owned(), json!({"name": "Dance"}));
    assert_eq!(call(ask(sentence, &tools, std::slice::from_ref(&answered))), expected);
    let created = ("create_department", json!({"data": {"name": "Dance"}}));
    assert!(text(ask(sentence, &tools, &[answered, created])).contains("\"Dance\" has been created"));
    assert!(text(ask(sentence, &["create_department"], &[])).contains("Say how it is to be called"));
}

#[test]
fn what_the_person_changed_is_told_as_it_was_done() {
    let published = json!({"data": {"title": "Games day", "audience": "campus"}, "scopeContext": "Main."});
    let sentence = "Announce to the school Sports day: It begins at nine.";
    let said = text(ask(
        sentence,
        &["publish_announcement"],
        &[("publish_announcement", published)],
    ));
    assert_eq!(
        said,
        "[demo model] Done: \"Games day\" has been announced to the campus."
    );
    let deleted = [("delete_department", json!({"data": {"id": "e", "name": "Music"}}))];
    let said = text(ask("Delete the department Drama", &["delete_department"], &deleted));
    assert_eq!(said, "[demo model] Done: the department \"Music\" has been deleted.");
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

#[test]
fn everybody_of_the_persons_own_stream_is_marked() {
    let sentence = "Mark everybody in my stream present";
    let to_angie = json!({"agent": "Angie", "task": sentence});
    assert_eq!(call(ask(sentence, &["task"], &[])), ("task".to_owned(), to_angie));
    let tools = ["list_my_classrooms", "record_attendance"];
    let mine = json!({"data": {"rows": [
        {"streamId": "a", "streamName": "S1 East", "isClassTeacher": false},
        {"streamId": "b", "streamName": "S2 East", "isClassTeacher": true},
    ]}});
    let mine = ("list_my_classrooms", mine);
    let expected = json!({"streamId": "b", "marks": [], "everyoneElse": "present"});
    assert_eq!(call(ask(sentence, &tools, std::slice::from_ref(&mine))).1, expected);
    let marked = |content: Value| text(ask(sentence, &tools, &[mine.clone(), ("record_attendance", content)]));
    assert!(marked(json!({"data": {"marked": 36}})).contains("is marked present"));
    assert!(marked(json!({"error": "Stream not found."})).contains("Nothing was recorded: Stream not found."));
}

#[test]
fn students_are_searched_and_news_announced() {
    let sentence = "Find the student Amina";
    assert_eq!(
        call(ask(sentence, &["search_students"], &[])).1,
        json!({"query": "Amina"})
    );
    let found = |rows: Value| {
        let results = [(
            "search_students",
            json!({"data": {"rows": rows}, "scopeContext": "The campus Main."}),
        )];
        text(ask(sentence, &["search_students"], &results))
    };
    assert!(found(json!([{"givenName": "Amina", "familyName": "Okot"}])).contains("Amina Okot. The campus Main."));
    assert!(found(json!([])).contains("No student"));

    let sentence = "Announce to the school Sports day: It begins at nine.";
    let expected = json!({"title": "Sports day", "body": "It begins at nine.", "audience": "school"});
    assert_eq!(call(ask(sentence, &["publish_announcement"], &[])).1, expected);
    let refused = [("publish_announcement", json!({"error": "Permission denied."}))];
    assert!(text(ask(sentence, &["publish_announcement"], &refused)).contains("was not announced: Permission denied."));
}

#[test]
fn several_departments_are_created_at_once() {
    let sentence = "Create departments Art and Music";
    let Body::Completion { calls, .. } = ask(sentence, &["create_department"], &[]).body else {
        unreachable!("no completion")
    };
    let arguments: Vec<&str> = calls.iter().map(|call| call.arguments.as_str()).collect();
    assert_eq!(arguments, [r#"{"name":"Art"}"#, r#"{"name":"Music"}"#]);
    let results = [
        ("create_department", json!({"data": {"name": "Art"}})),
        ("create_department", json!({"error": "Permission denied."})),
    ];
    let said = text(ask(sentence, &["create_department"], &results));
    assert!(
        said.contains("\"Art\" has been created") && said.contains("\"Music\" was not created"),
        "{said}"
    );
}

#[test]
fn what_is_a_specialists_is_handed_to_it() {
    let delegated = |sentence: &str| call(ask(sentence, &["task", "list_departments"], &[]));
    let to_angie = |task: &str| ("task".to_owned(), json!({"agent": "Angie", "task": task}));
    assert_eq!(delegated("Who is in my stream?"), to_angie("Who is in my stream?"));
    assert_eq!(delegated("Show my class roster"), to_angie("Show my class roster"));
    let to_bean = (
        "task".to_owned(),
        json!({"agent": "Bean", "task": "Show my classrooms"}),
    );
    assert_eq!(delegated("Show my classrooms"), to_bean, "by whoever is there");
    assert_eq!(delegated("Ask Angie to show the terms"), to_angie("show the terms"));
    assert_eq!(delegated("List the departments").0, "list_departments");

    let specialist = ["list_my_classrooms", "list_stream_roster"];
    assert_eq!(
        call(ask("Show my class roster", &specialist, &[])).0,
        "list_my_classrooms"
    );
}

#[test]
fn what_a_specialist_says_is_told_as_its_own() {
    let told = |content: Value| text(ask("Ask Angie who is in my stream", &["task"], &[("task", content)]));
    let answer = "[demo model] In your stream are: Ann Oak.";
    for content in [
        json!(answer),
        json!({"data": answer}),
        json!({"data": {"text": answer}}),
    ] {
        assert_eq!(told(content), "[demo model] Angie says: In your stream are: Ann Oak.");
    }
    assert!(told(json!({"error": "She is away."})).contains("could not do it: She is away."));
}

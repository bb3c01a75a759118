//! What is sent to the HTTP door by whoever is new to it: what does not fit is told, and nothing comes of it.

use crate::{
    http::{self, Server, Visitor},
    working::Working,
};
use e2e::{Stage, fixtures::HILLTOP};
use reqwest::StatusCode;
use scripted_model::{Reply, Script};
use serde_json::{Value, json};
use uuid::Uuid;

const AUTH: &[(&str, &str)] = &[("AUTH_SECRET", "signs the tokens of these tests only!")];

async fn opened() -> (Stage, Server, Visitor) {
    let stage = Stage::with(AUTH).await;
    let server = Server::on(&stage).await;
    let head = server.person(&stage, &HILLTOP.email("head")).await;
    (stage, server, head)
}

/// The routes that read a body, for things that are not there: what is wrong with the body is told first.
fn with_bodies() -> [String; 4] {
    let id = Uuid::now_v7();
    [
        "/v1/threads".to_owned(),
        format!("/v1/threads/{id}/turns"),
        format!("/v1/turns/{id}/answers"),
        format!("/v1/approvals/{id}/decision"),
    ]
}

#[tokio::test]
async fn take_objects_only() {
    let (stage, server, head) = opened().await;
    for path in with_bodies() {
        for body in [
            json!([]),
            json!(["List the departments"]),
            json!(["reject"]),
            json!(["a", "b"]),
            json!("x"),
            json!(null),
        ] {
            let (status, problem) = head.post(&path, &body).await;
            assert_eq!(
                (status, &problem["detail"]),
                (
                    StatusCode::UNPROCESSABLE_ENTITY,
                    &json!("The body must be a JSON object.")
                ),
                "{path} {body}"
            );
        }
        let (status, problem) = head.post(&path, &json!({"bogus": 1})).await;
        let detail = problem["detail"].as_str().unwrap();
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{path} {problem}");
        assert!(
            detail.starts_with("The body does not fit: ") && detail.contains("unknown field `bogus`"),
            "{detail}"
        );
        assert!(
            !detail.contains("struct") && !detail.contains("deserialize"),
            "{detail}"
        );
    }
    assert_eq!(stage.count("SELECT count(*) FROM threads").await, 0);
    head.thread(&json!({})).await;
    server.process.kill().await;
    stage.finish().await;
}

#[tokio::test]
async fn take_json_that_says_that_it_is() {
    let (stage, server, head) = opened().await;
    let send = async |kind: Option<&str>, body: &str| {
        let mut request = http::client()
            .post(format!("{}/v1/threads", server.url))
            .bearer_auth(head.token())
            .body(body.to_owned());
        if let Some(kind) = kind {
            request = request.header("content-type", kind);
        }
        http::read(request.send().await.unwrap()).await
    };
    let json = Some("application/json; charset=utf-8");
    assert_eq!(send(json, "{}").await.0, StatusCode::CREATED);
    for (kind, body, expected) in [
        (None, "{}", StatusCode::UNSUPPORTED_MEDIA_TYPE),
        (Some("text/plain"), "{}", StatusCode::UNSUPPORTED_MEDIA_TYPE),
        (json, "message=x", StatusCode::BAD_REQUEST),
        (json, "", StatusCode::BAD_REQUEST),
        (json, &"x".repeat(300_000), StatusCode::PAYLOAD_TOO_LARGE),
    ] {
        let (status, problem) = send(kind, body).await;
        assert_eq!(
            (status, &problem["status"]),
            (expected, &json!(expected.as_u16())),
            "{problem}"
        );
    }
    assert_eq!(stage.count("SELECT count(*) FROM threads").await, 1);
    server.process.kill().await;
    stage.finish().await;
}

#[tokio::test]
async fn know_their_parameters_and_no_others() {
    let (stage, server, head) = opened().await;
    let thread = head.thread(&json!({})).await;
    let unfit = |(status, problem): (StatusCode, Value), path: &str| {
        assert_eq!(status, StatusCode::BAD_REQUEST, "{path} {problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            detail.starts_with("The query does not fit: ") && detail.contains("`limit`"),
            "{path} {detail}"
        );
    };
    let id = Uuid::now_v7();
    for path in [
        "/v1/threads".to_owned(),
        format!("/v1/threads/{thread}"),
        format!("/v1/turns/{id}"),
        format!("/v1/turns/{id}/events"),
        "/v1/approvals".to_owned(),
        format!("/v1/approvals/{id}"),
        "/v1/agent-map".to_owned(),
    ] {
        unfit(head.get(&format!("{path}?limit=1")).await, &path);
    }
    for path in with_bodies().into_iter().chain([format!("/v1/turns/{id}/cancel")]) {
        unfit(head.post(&format!("{path}?limit=1"), &json!({})).await, &path);
    }
    for path in [
        "/v1/threads?school=hilltop",
        "/v1/agent-map?q=staff&school=hilltop",
        "/v1/approvals",
    ] {
        assert_eq!(head.get(path).await.0, StatusCode::OK, "{path}");
    }
    server.process.kill().await;
    stage.finish().await;
}

#[tokio::test]
async fn let_nobody_in_who_has_left() {
    let (stage, server, head) = opened().await;
    let left = server.person(&stage, &HILLTOP.email("left")).await;
    for path in ["/v1/threads", "/v1/approvals", "/v1/agent-map"] {
        assert_eq!(left.get(path).await.0, StatusCode::FORBIDDEN, "{path}");
        assert_eq!(head.get(path).await.0, StatusCode::OK, "{path}");
    }
    server.process.kill().await;
    stage.finish().await;
}

#[tokio::test]
async fn tell_threads_and_turns_apart() {
    let (stage, server, head) = opened().await;
    let thread = head.thread(&json!({})).await;
    let listed = async || head.get("/v1/threads").await.1;
    assert_eq!(listed().await[0]["firstMessage"], Value::Null);
    let long = "Ü".repeat(100);
    let streamed = head
        .stream(&format!("/v1/threads/{thread}/turns"), &json!({"message": long}))
        .await;
    let turn = streamed.header("x-turn-id");
    assert_eq!(streamed.header("x-thread-id"), thread);
    assert_eq!(streamed.header("location"), format!("/v1/turns/{turn}/events"));
    let (status, found) = head.get(&format!("/v1/turns/{turn}")).await;
    assert_eq!((status, &found["threadId"]), (StatusCode::OK, &json!(thread)));
    assert!(found.get("waitsFor").is_none(), "{found}");
    assert_eq!(listed().await[0]["firstMessage"], json!("Ü".repeat(80)));
    let (_, found) = head.get(&format!("/v1/threads/{thread}")).await;
    assert_eq!(found["firstMessage"], json!("Ü".repeat(80)));
    server.process.kill().await;
    stage.finish().await;
}

#[tokio::test]
async fn say_what_a_turn_waits_for() {
    let (stage, server, _) = opened().await;
    let department = json!({"departmentId": HILLTOP.department_id()}).to_string();
    let where_to = json!({"question": "Where?", "choices": ["Main", "Lakeside"]}).to_string();
    let calls = Reply::call("delete_department", department).and_call(Some("where"), "ask_user", where_to);
    let worker = Working::with(&stage, Script::queue([calls, Reply::text("That was all.")])).await;
    let admin = server.person(&stage, &HILLTOP.email("admin")).await;
    let thread = admin.thread(&json!({})).await;
    let turn = admin.turn(&thread, "Please do it.").await;
    let mut events = admin.follow(&turn, None).await;
    let mut approval = Value::Null;
    while let Some(event) = events.next().await.filter(|event| event.kind != "waiting") {
        if event.kind == "approval_asked" {
            approval = event.data["approvalId"].clone();
        }
    }
    let path = format!("/v1/turns/{turn}");
    let question = json!({"toolCallId": "where", "question": "Where?", "choices": ["Main", "Lakeside"]});
    let (_, waits) = admin.get(&path).await;
    assert_eq!(waits["status"], "waiting");
    assert_eq!(
        waits["waitsFor"],
        json!({"questions": [question], "approvals": [approval]})
    );
    let answer = json!({"toolCallId": "where", "answer": "Main"});
    assert_eq!(
        admin.post(&format!("{path}/answers"), &answer).await.0,
        StatusCode::ACCEPTED
    );
    let (_, waits) = admin.get(&path).await;
    assert_eq!(waits["waitsFor"], json!({"questions": [], "approvals": [approval]}));
    let decision = format!("/v1/approvals/{}/decision", approval.as_str().expect("a call waits"));
    assert_eq!(
        admin.post(&decision, &json!({"decision": "reject"})).await.0,
        StatusCode::OK
    );
    while events.next().await.is_some() {}
    let (_, ended) = admin.get(&path).await;
    assert!(
        ended["status"] == "answered" && ended.get("waitsFor").is_none(),
        "{ended}"
    );
    worker.stop().await;
    server.process.kill().await;
    stage.finish().await;
}

/// The demo model, as somebody meets it who tries the stack: a question, a call that is done otherwise, and one that is not done.
#[tokio::test]
async fn hear_of_the_demo_model_what_was_done() {
    let (stage, server, _) = opened().await;
    let worker = Working::on(&stage).await;
    let admin = server.person(&stage, &HILLTOP.email("admin")).await;
    let campus = HILLTOP.campus(HILLTOP.first_campus);
    let thread = admin.thread(&json!({"campus": campus})).await;
    let decide = async |id: &Value, decision: Value| {
        let path = format!("/v1/approvals/{}/decision", id.as_str().expect("an approval has an id"));
        let (status, settled) = admin.post(&path, &decision).await;
        assert_eq!(status, StatusCode::OK, "{settled}");
        settled["approval"]["id"].clone()
    };
    let until = async |events: &mut http::Events, kind: &str| loop {
        let event = events.next().await.expect("there is one");
        if event.kind == kind {
            break event.data;
        }
    };

    let turn = admin.turn(&thread, "Create a department").await;
    let mut events = admin.follow(&turn, None).await;
    let call = until(&mut events, "asked").await["toolCallId"].clone();
    until(&mut events, "waiting").await;
    let answer = json!({"toolCallId": call, "answer": "Dance"});
    let (status, _) = admin.post(&format!("/v1/turns/{turn}/answers"), &answer).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let said = until(&mut events, "ended").await["outcome"]["answer"].clone();
    assert!(said.as_str().unwrap().contains("\"Dance\" has been created"), "{said}");

    let turn = admin
        .turn(&thread, "Announce to the campus Sports day: It begins at nine.")
        .await;
    let mut events = admin.follow(&turn, None).await;
    let asked = until(&mut events, "approval_asked").await;
    until(&mut events, "waiting").await;
    let arguments = json!({"title": "Games day", "body": "It begins at ten.", "audience": "campus"});
    let instead = decide(
        &asked["approvalId"],
        json!({"decision": "edit", "arguments": arguments}),
    )
    .await;
    decide(&instead, json!({"decision": "approve"})).await;
    let said = until(&mut events, "ended").await["outcome"]["answer"].clone();
    assert!(
        said.as_str().unwrap().contains("\"Games day\" has been announced"),
        "{said}"
    );

    let turn = admin.turn(&thread, "Delete the department Dance").await;
    let mut events = admin.follow(&turn, None).await;
    let asked = until(&mut events, "approval_asked").await;
    until(&mut events, "waiting").await;
    decide(
        &asked["approvalId"],
        json!({"decision": "reject", "reason": "We like it."}),
    )
    .await;
    let said = until(&mut events, "ended").await["outcome"]["answer"].clone();
    assert_eq!(
        said,
        "[demo model] The department \"Dance\" was not deleted: it was not approved. The reason: We like it."
    );
    worker.stop().await;
    server.process.kill().await;
    stage.finish().await;
}

//! A first turn, whole: a sentence by the operator's command, a worker with a model, tool calls through the broker, and the answer.

use crate::{
    http::Server,
    working::{Working, talk},
};
use e2e::{
    Stage,
    fixtures::HILLTOP,
    raw::{self, RawProperties},
};
use scripted_model::{Reply, Script};
use serde_json::{Value, json};
use std::{process::Output, time::Duration};
use tokio::{process::Command, time::sleep};
use uuid::Uuid;

async fn ask(stage: &Stage, sentence: &str, who: &str) -> (bool, String) {
    run(stage, &["ask", sentence, "--as", &HILLTOP.email(who)]).await
}

async fn run(stage: &Stage, arguments: &[&str]) -> (bool, String) {
    let output: Output = Command::new(env!("CARGO_BIN_EXE_server-under-test"))
        .args(arguments)
        .env_clear()
        .envs(stage.variables())
        .output()
        .await
        .expect("the command runs");
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    (output.status.success(), text)
}

#[tokio::test]
async fn of_a_sentence_makes_a_department_and_its_audit_row() {
    let stage = Stage::new().await;
    let (server, worker) = (stage.serve().await, Working::on(&stage).await);
    let before = stage.count("SELECT count(*) FROM departments").await;

    let (done, refused) = ask(&stage, "Create a department called Dance", "class.teacher").await;
    assert!(!done && refused.contains("may not CREATE DEPARTMENT"), "{refused}");
    assert_eq!(stage.count("SELECT count(*) FROM departments").await, before);
    assert_eq!(stage.audit_rows().await, 0);

    let (answered, answer) = ask(&stage, "Create a department called Drama", "head").await;
    assert!(
        answered && answer.contains("[done] create_department") && answer.contains("Drama"),
        "{answer}"
    );
    assert_eq!(stage.count("SELECT count(*) FROM departments").await, before + 1);
    let row: (String, String, bool, bool) =
        sqlx::query_as("SELECT actor_email, door, turn_id IS NOT NULL, tool_call_id LIKE 'call_%' FROM audit_log")
            .fetch_one(&mut stage.owner().await)
            .await
            .expect("there is one row");
    assert_eq!(row, (HILLTOP.email("head"), "chat".into(), true, true));

    worker.stop().await;
    server.stop().await;
    stage.finish().await;
}

/// What waits for a yes has not failed, and the terminal says how to decide about it.
#[tokio::test]
async fn that_waits_for_a_yes_says_how_to_say_it() {
    let stage = Stage::new().await;
    let (server, worker) = (stage.serve().await, Working::on(&stage).await);
    let sentence = format!("Delete the department {}", HILLTOP.department);
    let (admin, campus) = (HILLTOP.email("admin"), HILLTOP.campus(HILLTOP.first_campus).to_string());
    let (waits, answer) = run(&stage, &["ask", &sentence, "--as", &admin, "--campus", &campus]).await;
    let approval: Uuid = sqlx::query_scalar("SELECT id FROM approvals WHERE status = 'pending'")
        .fetch_one(&mut stage.owner().await)
        .await
        .expect("a call waits");
    let how = format!("server approvals approve {approval} --as {admin}");
    assert!(
        waits && answer.contains("[waits] delete_department") && answer.contains(&how),
        "{answer}"
    );
    assert!(!answer.contains("/v1/") && !answer.contains("[failed]"), "{answer}");

    let department = json!({"departmentId": HILLTOP.department_id()}).to_string();
    let called = run(
        &stage,
        &["call", "delete_department", "--as", &admin, "--args", &department],
    )
    .await;
    assert!(
        called.0 && called.1.contains("server approvals approve "),
        "{}",
        called.1
    );
    let (done, decided) = run(&stage, &["approvals", "approve", &approval.to_string(), "--as", &admin]).await;
    assert!(done && decided.contains("executed"), "{decided}");
    worker.stop().await;
    server.stop().await;
    stage.finish().await;
}

#[tokio::test]
async fn that_no_library_can_read_end_no_worker() {
    let stage = Stage::new().await;
    let (server, worker) = (stage.serve().await, Working::on(&stage).await);
    let (broker, peer) = (&stage.config().broker, stage.peer().await);
    let (url, queue) = (broker.amqp.reveal().to_owned(), broker.topology.turns_queue.clone());
    let any = RawProperties::default;
    for properties in [
        any().headers(&raw::nested_tables(20_000)),
        any().correlation_id(b"\xff\xfe"),
    ] {
        raw::publish(&url, ("", queue.as_bytes()), &properties, b"{}").await;
    }
    let (answered, answer) = ask(&stage, "List departments", "head").await;
    assert!(answered && answer.contains("Sciences"), "{answer}");
    assert_eq!(peer.dead_turns().await, 2);
    worker.stop().await;
    server.stop().await;
    stage.finish().await;
}

#[tokio::test]
async fn at_the_door_streams_its_answer_and_leaves_one_row() {
    let stage = Stage::with(&[("AUTH_SECRET", "signs the tokens of these tests only!")]).await;
    let (server, worker) = (Server::on(&stage).await, Working::on(&stage).await);
    let head = server.person(&stage, &HILLTOP.email("head")).await;
    let thread = head.thread(&json!({})).await;
    let before = stage.count("SELECT count(*) FROM departments").await;
    let at_once = head
        .stream("/v1/threads", &json!({"message": "List the departments"}))
        .await
        .all()
        .await;
    assert!(at_once.last().is_some_and(|event| event.kind == "ended"), "{at_once:?}");

    let (events, outcome) = talk(&head, &thread, "Create a department called Drama").await;
    assert!(
        outcome["answer"]
            .as_str()
            .is_some_and(|answer| answer.contains("Drama")),
        "{outcome}"
    );
    let kinds: Vec<_> = events.iter().map(|event| event.kind.as_str()).collect();
    for kind in ["started", "tool_started", "tool_ended", "text", "ended"] {
        assert!(kinds.contains(&kind), "{kind} in {kinds:?}");
    }
    let said: String = events.iter().filter_map(|event| event.data["delta"].as_str()).collect();
    assert_eq!(
        Value::String(said),
        outcome["answer"],
        "what was streamed is what was answered"
    );
    assert_eq!(stage.count("SELECT count(*) FROM departments").await, before + 1);
    let of_the_turn: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM audit_log a JOIN turns t ON t.id::text = a.turn_id
          WHERE a.event = 'create.department' AND a.tool_call_id <> ''",
    )
    .fetch_one(&mut stage.owner().await)
    .await
    .expect("there is a number");
    assert_eq!((of_the_turn, stage.audit_rows().await), (1, 1));

    let (_, second) = talk(&head, &thread, "List the departments").await;
    assert!(
        second["answer"].as_str().is_some_and(|answer| answer.contains("Drama")),
        "{second}"
    );
    let answers = stage
        .count("SELECT count(*) FROM turn_messages WHERE name LIKE '#%'")
        .await;
    assert!(answers >= 2, "what the thread goes on from: {answers}");

    let teacher = server.person(&stage, &HILLTOP.email("class.teacher")).await;
    let thread = teacher.thread(&json!({})).await;
    let (events, _) = talk(&teacher, &thread, "Create a department called Dance").await;
    let refused = events
        .iter()
        .find(|event| event.kind == "tool_ended")
        .expect("it was tried");
    assert!(
        refused.data["error"]
            .as_str()
            .is_some_and(|text| text.contains("may not CREATE DEPARTMENT")),
        "{refused:?}"
    );
    assert_eq!(
        (
            stage.count("SELECT count(*) FROM departments").await,
            stage.audit_rows().await
        ),
        (before + 1, 1)
    );

    worker.stop().await;
    server.process.kill().await;
    stage.finish().await;
}

/// The sentences that the README gives a newcomer, with the replies that the tools really make.
#[tokio::test]
async fn of_the_demo_models_sentences_do_what_they_say() {
    let stage = Stage::new().await;
    let (server, worker) = (stage.serve().await, Working::on(&stage).await);
    for (who, sentence, answered) in [
        (
            "class.teacher",
            "Mark everybody in my stream present",
            "marked present today",
        ),
        ("clerk", "Find the student HA-0040", "By HA-0040 I find: "),
        ("dos", "List the streams", "S2 East"),
        ("clerk", "List the subjects", "Chemistry"),
        (
            "subject.teacher",
            "Show my lesson plans",
            "Bean says: Here is the list of your lesson plans: ",
        ),
        (
            "dos",
            "Show the teaching coverage",
            "Sarah says: Here is what the teaching",
        ),
        (
            "admin",
            "Announce to the school Open day: The gates open at ten.",
            "waits for approval",
        ),
        ("newcomer", "Show the announcements", "Here is what was announced: "),
        ("newcomer", "Find the student HA-0040", "Permission denied"),
        ("newcomer", "Sing me a song", "I am a demo"),
    ] {
        let (_, answer) = ask(&stage, sentence, who).await;
        assert!(
            answer.contains("[demo model]") && answer.contains(answered),
            "{who}, {sentence}: {answer}"
        );
    }
    let present = "SELECT count(*) FROM audit_log WHERE event IN ('record.attendance', 'publish.announcement')";
    assert_eq!((stage.count(present).await, stage.audit_rows().await), (1, 1));
    worker.stop().await;
    server.stop().await;
    stage.finish().await;
}

/// The broker ends the connection of whoever answers to an address that it cannot read; the turns are on another one.
#[tokio::test]
async fn under_way_are_not_interrupted_by_a_forged_one() {
    let stage = Stage::new().await;
    let script = Script::function(|_| Reply::text("All is well.").after(Duration::from_secs(2)));
    let (server, worker) = (stage.serve().await, Working::with(&stage, script).await);
    let (broker, peer) = (&stage.config().broker, stage.peer().await);
    let (url, queue) = (broker.amqp.reveal().to_owned(), broker.topology.turns_queue.clone());
    let forge = async {
        for _ in 0..4 {
            sleep(Duration::from_millis(300)).await;
            let properties = RawProperties::default().reply_to(b"amq.rabbitmq.reply-to.!!!!.x");
            raw::publish(&url, ("", queue.as_bytes()), &properties, b"{}").await;
        }
    };
    let ((answered, answer), ()) = tokio::join!(ask(&stage, "Is all well?", "head"), forge);
    assert!(answered && answer.contains("All is well."), "{answer}");
    assert_eq!(peer.dead_turns().await, 4);
    worker.stop().await;
    server.stop().await;
    stage.finish().await;
}

/// What a specialist was not given, it cannot call; and past the worker, the server refuses it to the person.
#[tokio::test]
async fn of_a_specialist_reach_no_further_than_its_belt() {
    let stage = Stage::with(&[("AUTH_SECRET", "signs the tokens of these tests only!")]).await;
    let script = Script::function(|request| {
        let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let tools = request["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
        let offers = |name: &str| tools.iter().any(|tool| tool["function"]["name"] == name);
        let has_result = messages.iter().any(|message| message["role"] == "tool");
        match (offers("task"), has_result) {
            (true, false) => Reply::call("task", json!({"agent": "Bean", "task": "Create Dance"}).to_string()),
            (false, false) => {
                assert!(
                    offers("list_my_classrooms") && !offers("create_department"),
                    "{tools:?}"
                );
                Reply::call("create_department", json!({"name": "Dance"}).to_string())
            }
            (_, true) => Reply::text("That cannot be done."),
        }
    });
    let (server, worker) = (Server::on(&stage).await, Working::with(&stage, script).await);
    let email = HILLTOP.email("subject.teacher");
    let teacher = server.person(&stage, &email).await;
    let thread = teacher.thread(&json!({})).await;
    let (events, outcome) = talk(&teacher, &thread, "Create Dance").await;
    assert_eq!(outcome["answer"], "That cannot be done.");
    let refused = events
        .iter()
        .find(|event| event.kind == "tool_ended" && event.data["tool"] == "create_department");
    let refused = refused.expect("the call is told of").data.clone();
    assert_eq!(refused["agent"], "Bean");
    assert!(
        refused["error"]
            .as_str()
            .is_some_and(|text| text.contains("no tool called")),
        "{refused}"
    );

    let person = stage.person(&email).await;
    let past_the_worker = stage.call(&person, "create_department", json!({"name": "Dance"})).await;
    assert!(e2e::stage::error(past_the_worker).contains("may not CREATE DEPARTMENT"));
    assert_eq!(stage.audit_rows().await, 0);

    worker.stop().await;
    server.process.kill().await;
    stage.finish().await;
}

//! Which tools are approved, and that no door leads past it. Everywhere else in these tests a call that needs a yes gets one by itself.

use super::{SECRET, TOOL, args};
use crate::{http::Server, working::Working};
use contract::{RpcTool, tools::RPC_AGENT_TOOLS};
use e2e::{
    Stage,
    arrange::Snapshot,
    broker::Packet,
    fixtures::HILLTOP,
    stage::{incoming, pending},
};
use scripted_model::{Reply, Script};
use serde_json::{Value, json};
use server::execute::Incoming;
use tokio::process::Command;

/// What a person must approve, by its names and in their order: what cannot be taken back, goes out to people, or decides what others may.
const MARKED: [&str; 8] = [
    "assign_staff_role",
    "delete_department",
    "invite_staff_member",
    "publish_announcement",
    "publish_results",
    "revoke_staff_role",
    "transfer_student",
    "update_grading_config",
];

fn marked() -> impl Iterator<Item = &'static RpcTool> {
    RPC_AGENT_TOOLS
        .iter()
        .filter(|tool| tool.definition.approval.is_needed())
}

/// The example of a marked tool, as whoever may use it calls it.
async fn example(stage: &Stage, tool: &RpcTool, call_id: &str) -> Incoming {
    let user = stage.person(&HILLTOP.user_of(tool)).await;
    incoming(&user, tool.definition.name, HILLTOP.example(tool), call_id)
}

/// What is changed between two snapshots, but for what is asked and for the books of turns.
fn changed(before: &Snapshot, after: &Snapshot) -> Vec<String> {
    let is_told = |table: &str| table == "approvals" || table == "threads" || table.starts_with("turn");
    let tables = after.keys().filter(|table| before.get(*table) != after.get(*table));
    tables.filter(|table| !is_told(table)).cloned().collect()
}

#[test]
fn are_these_tools_and_no_others() {
    let mut names: Vec<_> = marked().map(|tool| tool.definition.name).collect();
    names.sort_unstable();
    assert_eq!(names, MARKED);
}

/// fault 21
#[tokio::test]
async fn every_marked_tool_waits_whether_it_is_called_here_or_over_the_broker() {
    let stage = Stage::new().await;
    let serving = stage.serve().await;
    let mut peer = stage.peer().await;
    let mut before = stage.snapshot().await;
    for (count, tool) in (1..).zip(marked()) {
        let name = tool.definition.name;
        let here = stage.pipeline().execute(example(&stage, tool, "1").await).await;
        let over = peer.ask(&Packet::of(&example(&stage, tool, "1").await)).await;
        let (here, over) = (pending(here), pending(over.expect("it is answered")));
        assert_ne!(here.approval_id, over.approval_id, "{name}: two turns, two questions");
        assert_eq!(stage.count("SELECT count(*) FROM approvals").await, 2 * count, "{name}");
    }
    let mut after = stage.snapshot().await;
    assert_ne!(before.remove("approvals"), after.remove("approvals"));
    assert_eq!(after, before, "nothing is done");
    peer.leave().await;
    serving.stop().await;
    stage.finish().await;
}

/// What the operator's command prints.
async fn run(stage: &Stage, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_server-under-test"))
        .args(arguments)
        .env_clear()
        .envs(stage.variables())
        .output()
        .await
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// A model that calls the tool, and then says what it read.
fn deleting() -> Script {
    Script::function(|request| {
        let messages = request["messages"].as_array().expect("a conversation");
        match messages.iter().find(|message| message["role"] == "tool") {
            None => Reply::call(TOOL, args().to_string()),
            Some(result) => Reply::text(result["content"].as_str().unwrap()),
        }
    })
}

/// fault 21
#[tokio::test]
async fn wait_at_the_operators_command_and_in_a_turn_that_is_not_kept() {
    let stage = Stage::new().await;
    let (serving, worker) = (stage.serve().await, Working::with(&stage, deleting()).await);
    let before = stage.snapshot().await;
    let admin = HILLTOP.email("admin");
    let called = run(&stage, &["call", TOOL, "--as", &admin, "--args", &args().to_string()]).await;
    let called: Value = serde_json::from_str(&called).expect("a result is JSON");
    assert_eq!(called["pending"]["preview"]["name"], HILLTOP.department, "{called}");
    let answer = run(&stage, &["ask", "Delete it", "--as", &admin]).await;
    assert!(
        !answer.contains("[done]") && answer.contains("Nothing is done yet"),
        "{answer}"
    );
    assert_eq!(super::waiting(&stage).await, 2);
    assert_eq!(changed(&before, &stage.snapshot().await), [""; 0]);
    worker.stop().await;
    serving.stop().await;
    stage.finish().await;
}

/// fault 21
#[tokio::test]
async fn wait_in_a_turn_at_the_door() {
    let stage = Stage::with(&[SECRET]).await;
    let (server, worker) = (Server::on(&stage).await, Working::with(&stage, deleting()).await);
    let before = stage.snapshot().await;
    let admin = server.person(&stage, &HILLTOP.email("admin")).await;
    let mut follow = admin.stream("/v1/threads", &json!({"message": "Delete it"})).await;
    let mut asked = 0;
    while let Some(event) = follow.next().await {
        asked += usize::from(event.kind == "approval_asked");
        if event.kind == "waiting" {
            break;
        }
        assert_ne!(event.kind, "ended", "{event:?}");
    }
    assert_eq!((asked, super::waiting(&stage).await), (1, 1));
    assert_eq!(changed(&before, &stage.snapshot().await), [""; 0]);
    worker.stop().await;
    server.process.kill().await;
    stage.finish().await;
}

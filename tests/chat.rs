//! `server chat` with a turn that waits for several things at once.

use crate::{
    http::{Server, Visitor},
    working::Working,
};
use e2e::{Stage, fixtures::HILLTOP};
use reqwest::StatusCode;
use scripted_model::{Reply, Script};
use serde_json::{Value, json};
use std::{process::Stdio, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};
use uuid::Uuid;

const AUTH: &[(&str, &str)] = &[("AUTH_SECRET", "signs the tokens of these tests only!")];
/// How long the next text may take on a busy machine.
const LIMIT: Duration = Duration::from_mins(1);

const PENDING: &str = "SELECT count(*) FROM approvals WHERE status = 'pending'";

/// Two questions, which are asked at once, and a call that is tried out before anybody is asked about it.
fn three_things() -> Reply {
    let department = json!({"departmentId": HILLTOP.department_id()}).to_string();
    let where_to = r#"{"question": "Where?", "choices": ["Main", "Lakeside"]}"#;
    Reply::nothing()
        .and_call(Some("one"), "ask_user", r#"{"question": "Why?"}"#)
        .and_call(Some("two"), "delete_department", department)
        .and_call(Some("three"), "ask_user", where_to)
}

/// A chat, of the administrator mostly, with a model that makes some calls at once and then ends.
struct Talk {
    stage: Stage,
    server: Server,
    worker: Working,
    admin: Visitor,
    chat: Child,
    said: ChildStdin,
    shown: ChildStdout,
    /// What was shown so far.
    text: String,
}

impl Talk {
    async fn new(calls: Reply) -> Self {
        Self::of("admin", [calls, Reply::text("That was all.")]).await
    }

    async fn of<const N: usize>(who: &str, replies: [Reply; N]) -> Self {
        let stage = Stage::with(AUTH).await;
        let server = Server::on(&stage).await;
        let worker = Working::with(&stage, Script::queue(replies)).await;
        let admin = server.person(&stage, &HILLTOP.email("admin")).await;
        let mut chat = Command::new(env!("CARGO_BIN_EXE_server-under-test"))
            .args(["chat", "--as", &HILLTOP.email(who), "--url", &server.url])
            .env_clear()
            .envs(stage.variables())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the command runs");
        let (said, shown) = (chat.stdin.take().unwrap(), chat.stdout.take().unwrap());
        Self {
            stage,
            server,
            worker,
            admin,
            chat,
            said,
            shown,
            text: String::new(),
        }
    }

    async fn say(&mut self, line: &str) {
        self.said.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// Waits for a text, after all that was waited for before; answers what stood between.
    async fn shows(&mut self, wanted: &str) -> String {
        let reading = async {
            loop {
                if let Some(at) = self.text.find(wanted) {
                    let before = self.text.drain(..at + wanted.len());
                    return before.collect();
                }
                let mut chunk = [0; 4096];
                let read = self.shown.read(&mut chunk).await.unwrap();
                assert_ne!(read, 0, "{wanted} in {}", self.text);
                self.text.push_str(std::str::from_utf8(&chunk[..read]).unwrap());
            }
        };
        timeout(LIMIT, reading).await.expect(wanted)
    }

    /// The same person decides somewhere else.
    async fn approve_elsewhere(&self, approval: &Value) {
        let path = format!(
            "/v1/approvals/{}/decision",
            approval["id"].as_str().expect("it has an id")
        );
        let (status, settled) = self.admin.post(&path, &json!({"decision": "approve"})).await;
        assert_eq!(status, StatusCode::OK, "{settled}");
    }

    async fn finish(mut self) {
        drop(self.said);
        assert!(self.chat.wait().await.unwrap().success());
        self.worker.stop().await;
        self.server.process.kill().await;
        self.stage.finish().await;
    }
}

#[tokio::test]
async fn asks_for_one_thing_after_the_other_and_says_for_which() {
    let mut talk = Talk::new(three_things()).await;
    talk.say("Please do it.").await;
    talk.shows("It waits for 3 answers, one after the other.").await;
    talk.shows("Ctrl-C stops the turn").await;
    talk.shows("Why?: ").await;
    talk.say("").await;
    talk.shows("Why?: ").await;
    talk.say("approve").await;
    talk.shows("Where? (Main / Lakeside): ").await;
    talk.say("nowhere").await;
    talk.shows("Answer with one of the choices.\n").await;
    talk.shows("Where? (Main / Lakeside): ").await;
    talk.say("LAKESIDE").await;
    let prompt = format!("delete_department \"{}\": approve or reject? ", HILLTOP.department);
    talk.shows(&prompt).await;
    for neither in ["Main", "yes but only the first", "approve it"] {
        talk.say(neither).await;
        talk.shows("Answer approve or reject (a reason may follow).\n").await;
        talk.shows(&prompt).await;
    }
    assert_eq!(talk.stage.count(PENDING).await, 1, "nothing was decided yet");
    talk.say("Reject It is still used.").await;
    talk.shows("That was all.").await;
    let rejected = "SELECT count(*) FROM approvals WHERE status = 'rejected' AND reason = 'It is still used.'";
    assert_eq!(talk.stage.count(rejected).await, 1);
    let answers =
        "SELECT count(*) FROM turn_waits WHERE (tool_call_id, answer) IN (('one', 'approve'), ('three', 'Lakeside'))";
    assert_eq!(talk.stage.count(answers).await, 2);
    talk.finish().await;
}

#[tokio::test]
async fn goes_on_when_somebody_decides_elsewhere() {
    let mut talk = Talk::new(three_things()).await;
    talk.say("Please do it.").await;
    talk.shows("Why?: ").await;
    talk.say("Because.").await;
    talk.shows("Where? (Main / Lakeside): ").await;
    talk.say("main").await;
    talk.shows(": approve or reject? ").await;
    let (_, waiting) = talk.admin.get("/v1/approvals").await;
    talk.approve_elsewhere(&waiting[0]).await;
    talk.shows("That was all.").await;
    talk.finish().await;
}

#[tokio::test]
async fn says_what_can_no_longer_be_decided() {
    let delete = |id: Uuid| json!({"departmentId": id}).to_string();
    let (one, other) = (HILLTOP.department_id(), Uuid::now_v7());
    let both = Reply::call("delete_department", delete(one)).and_call(None, "delete_department", delete(other));
    let mut talk = Talk::new(both).await;
    talk.stage
        .arrange(&format!(
            "INSERT INTO departments (school_id, id, campus_id, name)
             SELECT school_id, '{other}', campus_id, 'Drama' FROM departments WHERE id = '{one}'"
        ))
        .await;
    talk.say("Please do it.").await;
    talk.shows(" answers, one after the other.").await;
    talk.shows("delete_department \"").await;
    let asked = talk.shows(": approve or reject? ").await;
    let (_, waiting) = talk.admin.get("/v1/approvals").await;
    let is_asked = |approval: &&Value| asked.contains(approval["preview"]["name"].as_str().expect("a department"));
    let other = waiting.as_array().unwrap().iter().find(|approval| !is_asked(approval));
    talk.approve_elsewhere(other.expect("two wait")).await;
    talk.shows("delete_department: done.").await;
    talk.say("no").await;
    talk.shows("That was all.").await;
    let decided = "SELECT count(*) FROM approvals WHERE status IN ('rejected', 'executed')";
    assert_eq!(talk.stage.count(decided).await, 2);
    talk.finish().await;
}

/// What is typed meanwhile is no answer, and not the next message either.
#[tokio::test]
async fn sends_nothing_while_somebody_else_must_decide() {
    let bands = json!({"bands": [{"label": "Below", "from": 0}, {"label": "Above", "from": 60}]}).to_string();
    let replies = [
        Reply::call(
            "task",
            json!({"agent": "Sarah", "task": "Change the bands."}).to_string(),
        ),
        Reply::call("update_grading_config", bands),
        Reply::text("Changed."),
        Reply::text("That was all."),
    ];
    let mut talk = Talk::of("dos", replies).await;
    talk.say("Change the bands.").await;
    talk.shows("somebody else must decide this, who may UPDATE GRADING_CONFIG")
        .await;
    talk.say("approve").await;
    talk.shows("That was not sent: somebody else must decide.").await;
    let (_, waiting) = talk.admin.get("/v1/approvals").await;
    talk.approve_elsewhere(&waiting[0]).await;
    talk.shows("That was all.").await;
    assert_eq!(talk.stage.count("SELECT count(*) FROM turns").await, 1);
    talk.finish().await;
}

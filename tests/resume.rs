//! A worker that ends in the middle of a turn, at whatever step: another goes on where it stopped, and the turn comes to the same end.
//!
//! The turn asks a model five times, makes a department, hands work to a specialist, and asks its person twice.

mod attribution;

use crate::http::{Event, Server, Visitor};
use e2e::{Stage, fixtures::HILLTOP, process::Process};
use reqwest::StatusCode;
use scripted_model::{Reply, Script, ScriptedModel};
use serde_json::{Value, json};
use sqlx::Connection;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::{sleep, timeout};

const AUTH: (&str, &str) = ("AUTH_SECRET", "signs the tokens of these tests only!");
/// How long the next step may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);
/// What a turn of this play keeps: answers by conversation and step, results by call.
const KEPT: &str = "#1 #2 #3 =again =list =make =t =t/mine =t/which =where t#1 t#2";

/// What the turn asks its person, by call: what is answered, and to whose question.
const QUESTIONS: [(&str, &str, &str); 2] = [("t/which", "S2 East", "Angie"), ("where", "There", "Rover")];

/// The script: which step of which turn was asked for how often, what it was told of its questions, and where the model falls silent once.
#[derive(Default)]
struct Play {
    asked: Mutex<BTreeMap<(String, String), usize>>,
    /// What was answered, by turn and question.
    answered: Mutex<BTreeMap<(String, String), String>>,
    silent_at: Mutex<Option<&'static str>>,
}

impl Play {
    fn reply(&self, request: &Value) -> Reply {
        let messages = request["messages"].as_array().expect("a conversation");
        let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
        let of = |role: &str| {
            messages
                .iter()
                .filter(|message| message["role"] == role)
                .collect::<Vec<_>>()
        };
        let name = text(of("user").last().expect("somebody asked"));
        let is_rover = text(&messages[0]).starts_with("You are Rover");
        let step = format!("{}#{}", if is_rover { "" } else { "t" }, of("assistant").len() + 1);
        *self
            .asked
            .lock()
            .unwrap()
            .entry((name.clone(), step.clone()))
            .or_default() += 1;
        for result in of("tool") {
            let call = format!(
                "{}{}",
                if is_rover { "" } else { "t/" },
                result["tool_call_id"].as_str().unwrap()
            );
            if QUESTIONS.iter().any(|(question, ..)| *question == call) {
                self.answered.lock().unwrap().insert((name.clone(), call), text(result));
            }
        }
        if self.silent_at.lock().unwrap().take_if(|at| *at == step).is_some() {
            return Reply::hanging();
        }
        if name.starts_with("Delete") {
            return match step.as_str() {
                "#1" => {
                    let department = json!({"departmentId": HILLTOP.department_id()}).to_string();
                    Reply::nothing().and_call(Some("delete"), "delete_department", department)
                }
                _ => Reply::text("All done."),
            };
        }
        let make = json!({"name": name, "campusId": HILLTOP.campus("main")}).to_string();
        match step.as_str() {
            "#1" => Reply::nothing()
                .and_call(Some("list"), "list_departments", "{}")
                .and_call(Some("make"), "create_department", make)
                .and_call(Some("t"), "task", json!({"agent": "Angie", "task": name}).to_string())
                .and_call(
                    Some("where"),
                    "ask_user",
                    r#"{"question": "Where?", "choices": ["Here", "There"]}"#,
                ),
            "t#1" => Reply::nothing()
                .and_call(Some("mine"), "list_my_classrooms", "{}")
                .and_call(Some("which"), "ask_user", r#"{"question": "Which stream?"}"#),
            "t#2" => Reply::text("One stream."),
            "#2" => Reply::nothing().and_call(Some("again"), "create_department", make),
            _ => Reply::text("All done."),
        }
    }

    /// Waits until a step of a turn was asked for.
    async fn until_asked(&self, name: &str, step: &str) {
        let key = (name.to_owned(), step.to_owned());
        until(async || self.asked.lock().unwrap().contains_key(&key)).await;
    }

    fn times(&self, name: &str) -> BTreeMap<String, usize> {
        let asked = self.asked.lock().unwrap();
        let of_turn = asked.iter().filter(|((turn, _), _)| turn == name);
        of_turn.map(|((_, step), times)| (step.clone(), *times)).collect()
    }
}

async fn until(condition: impl AsyncFn() -> bool) {
    let waiting = async {
        while !condition().await {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, waiting).await.expect("it comes in time");
}

struct Scene {
    stage: Stage,
    server: Server,
    teacher: Visitor,
    play: Arc<Play>,
    model: ScriptedModel,
}

impl Scene {
    async fn new() -> Self {
        let stage = Stage::with(&[AUTH]).await;
        stage
            .give_rules(
                &HILLTOP,
                "class.teacher",
                1,
                &[
                    ("CREATE", "DEPARTMENT", "allow", None),
                    ("LIST", "DEPARTMENT", "allow", None),
                    ("DELETE", "DEPARTMENT", "allow", None),
                ],
            )
            .await;
        let server = Server::on(&stage).await;
        let teacher = server.person(&stage, &HILLTOP.email("class.teacher")).await;
        let play = Arc::new(Play::default());
        let script = play.clone();
        let model = ScriptedModel::start(Script::function(move |request| script.reply(request))).await;
        Self {
            stage,
            server,
            teacher,
            play,
            model: model.expect("the model listens"),
        }
    }

    async fn worker(&self) -> Process {
        let url = self.model.base_url();
        let more = [("OPENAI_BASE_URL", url.as_str()), ("MODEL", "scripted-demo")];
        Process::start(env!("CARGO_BIN_EXE_worker-under-test"), &[], &self.stage, &more).await
    }

    /// Begins the turn that makes a department of this name, and answers its id.
    async fn begin(&self, name: &str) -> String {
        let thread = self.teacher.thread(&json!({})).await;
        self.teacher.turn(&thread, name).await
    }

    async fn status(&self, turn: &str) -> String {
        let (_, turn) = self.teacher.get(&format!("/v1/turns/{turn}")).await;
        turn["status"].as_str().expect("a turn has a status").to_owned()
    }

    async fn until_waiting(&self, turn: &str) {
        until(async || self.status(turn).await == "waiting").await;
    }

    async fn answer(&self, turn: &str, call: &str, answer: &str) {
        let path = format!("/v1/turns/{turn}/answers");
        let body = json!({"toolCallId": call, "answer": answer});
        let (status, problem) = self.teacher.post(&path, &body).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{problem}");
    }

    async fn answer_both(&self, turn: &str) {
        self.until_waiting(turn).await;
        for (call, answer, _) in QUESTIONS {
            self.answer(turn, call, answer).await;
        }
    }

    async fn count(&self, query: &str) -> i64 {
        let counting = sqlx::query_scalar(sqlx::AssertSqlSafe(query.to_owned()));
        counting
            .fetch_one(&mut self.stage.owner().await)
            .await
            .expect("they can be counted")
    }

    async fn kept(&self, turn: &str) -> BTreeSet<String> {
        let names = sqlx::query_scalar("SELECT name FROM turn_messages WHERE turn_id::text = $1").bind(turn);
        let names: Vec<String> = names
            .fetch_all(&mut self.stage.owner().await)
            .await
            .expect("they can be read");
        names.into_iter().collect()
    }

    /// Reads the turn to its end, and asserts that it is the one that it always has.
    async fn assert_whole(&self, turn: &str, name: &str) -> Vec<Event> {
        let events = self.teacher.follow(turn, None).await.all().await;
        let outcome = &events.last().expect("it has events").data["outcome"];
        assert_eq!(outcome["answer"], "All done.", "{name}: {events:?}");
        assert_eq!(
            self.kept(turn).await,
            KEPT.split(' ').map(str::to_owned).collect(),
            "{name}"
        );
        let made: (i64, i64) = sqlx::query_as(
            "SELECT (SELECT count(*) FROM departments WHERE name = $1), (SELECT count(*) FROM audit_log WHERE turn_id = $2)",
        )
        .bind(name)
        .bind(turn)
        .fetch_one(&mut self.stage.owner().await)
        .await
        .expect("they can be counted");
        assert_eq!(made, (1, 1), "{name}: made and written down once");
        self.assert_answers(turn, name).await;
        events
    }

    /// fault 29: each question has its own answer, as it is kept and as its agent was told
    async fn assert_answers(&self, turn: &str, name: &str) {
        for (call, answer, _) in QUESTIONS {
            let kept = sqlx::query_scalar(
                "SELECT entry ->> 'content' FROM turn_messages WHERE turn_id::text = $1 AND name = $2",
            );
            let kept: String = kept
                .bind(turn)
                .bind(format!("={call}"))
                .fetch_one(&mut self.stage.owner().await)
                .await
                .expect("its answer is kept");
            let envelope: Value = serde_json::from_str(&kept).expect("a result is an envelope");
            assert_eq!(envelope["data"]["answer"], answer, "{name} {call}");
            let told = self.play.answered.lock().unwrap();
            assert_eq!(told[&(name.to_owned(), call.to_owned())], kept, "{name} {call}");
        }
    }

    /// Asserts that each step was asked for once, but for the one in which a worker was lost.
    fn assert_asked_once(&self, name: &str, lost_at: Option<&str>) {
        let times = |step: &str| (step.to_owned(), if lost_at == Some(step) { 2 } else { 1 });
        let expected: BTreeMap<String, usize> = ["#1", "#2", "#3", "t#1", "t#2"].map(times).into();
        assert_eq!(self.play.times(name), expected, "{name}");
    }

    async fn finish(self) {
        self.server.process.kill().await;
        self.stage.finish().await;
    }
}

#[tokio::test]
async fn a_turn_waits_for_its_person_and_tells_everything_once() {
    let scene = Scene::new().await;
    let worker = scene.worker().await;
    let turn = scene.begin("Whole").await;
    scene.until_waiting(&turn).await;
    // the other way round than in the other tests
    for (call, answer, _) in QUESTIONS.into_iter().rev() {
        scene.answer(&turn, call, answer).await;
    }
    let events = scene.assert_whole(&turn, "Whole").await;
    scene.assert_asked_once("Whole", None);
    let about = |event: &Event| {
        let call = event.data["toolCallId"].as_str().unwrap_or_default();
        (event.kind.clone(), call.to_owned())
    };
    let told: Vec<_> = events.iter().map(about).filter(|(_, call)| !call.is_empty()).collect();
    let once: BTreeSet<_> = told.iter().cloned().collect();
    assert_eq!(once.len(), told.len(), "{told:?}");
    for (kind, call) in [
        ("asked", "t/which"),
        ("answered", "where"),
        ("tool_ended", "t"),
        ("delegated", "t"),
    ] {
        assert!(
            once.contains(&(kind.to_owned(), call.to_owned())),
            "{kind} {call} in {told:?}"
        );
    }
    worker.kill().await;
    scene.finish().await;
}

#[tokio::test]
async fn a_worker_that_is_killed_while_it_asks_a_model_loses_only_that_answer() {
    let scene = Scene::new().await;
    let mut worker = scene.worker().await;
    let steps = [
        ("#1", None),
        ("t#1", Some("#1")),
        ("t#2", Some("t#1")),
        ("#2", Some("t#2")),
        ("#3", Some("#2")),
    ];
    for (index, (step, before)) in steps.into_iter().enumerate() {
        let name = format!("Killed{index}");
        *scene.play.silent_at.lock().unwrap() = Some(step);
        let turn = scene.begin(&name).await;
        if !["#1", "t#1"].contains(&step) {
            scene.answer_both(&turn).await;
        }
        scene.play.until_asked(&name, step).await;
        if let Some(before) = before {
            // the next question does not wait for it to be kept
            until(async || scene.kept(&turn).await.contains(before)).await;
        }
        worker.kill().await;
        worker = scene.worker().await;
        if ["#1", "t#1"].contains(&step) {
            scene.answer_both(&turn).await;
        }
        scene.assert_whole(&turn, &name).await;
        scene.assert_asked_once(&name, Some(step));
    }
    worker.kill().await;
    scene.finish().await;
}

#[tokio::test]
async fn a_worker_that_is_killed_under_a_write_makes_it_once() {
    let scene = Scene::new().await;
    let worker = scene.worker().await;
    let mut owner = scene.stage.owner().await;
    let mut lock = owner.begin().await.expect("a transaction begins");
    sqlx::query("LOCK TABLE departments IN SHARE MODE")
        .execute(&mut *lock)
        .await
        .expect("the table is locked");
    let turn = scene.begin("Locked").await;
    let blocked = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'departments'::regclass";
    scene.stage.until(blocked, 1).await;
    // No model is being asked meanwhile.
    until(async || scene.kept(&turn).await.contains("=t/mine")).await;
    worker.kill().await;
    let worker = scene.worker().await;
    lock.rollback().await.expect("the lock is given back");
    scene.answer_both(&turn).await;
    scene.assert_whole(&turn, "Locked").await;
    scene.assert_asked_once("Locked", None);
    worker.kill().await;
    scene.finish().await;
}

#[tokio::test]
async fn no_worker_is_needed_while_a_turn_waits() {
    let scene = Scene::new().await;
    let worker = scene.worker().await;
    let turn = scene.begin("Waited").await;
    scene.until_waiting(&turn).await;
    assert!(
        worker.terminate(Duration::from_secs(20)).await,
        "it ends in order: it holds nothing"
    );
    scene.answer_both(&turn).await;
    let worker = scene.worker().await;
    scene.assert_whole(&turn, "Waited").await;
    scene.assert_asked_once("Waited", None);
    worker.kill().await;
    scene.finish().await;
}

#[tokio::test]
async fn a_worker_that_is_told_to_stop_leaves_its_turn_to_another() {
    let scene = Scene::new().await;
    let (first, second) = (scene.worker().await, scene.worker().await);
    *scene.play.silent_at.lock().unwrap() = Some("#1");
    let turn = scene.begin("Drained").await;
    scene.play.until_asked("Drained", "#1").await;
    // Whichever has it: both are told, one after the other, and a third is there for what the second may leave.
    assert!(first.terminate(Duration::from_secs(30)).await);
    let third = scene.worker().await;
    assert!(second.terminate(Duration::from_secs(30)).await);
    scene.answer_both(&turn).await;
    scene.assert_whole(&turn, "Drained").await;
    scene.assert_asked_once("Drained", Some("#1"));
    third.kill().await;
    scene.finish().await;
}

#[tokio::test]
async fn a_call_that_waits_for_approval_outlives_its_worker() {
    let scene = Scene::new().await;
    let departments = format!(
        "SELECT count(*) FROM departments WHERE id = '{}'",
        HILLTOP.department_id()
    );
    for (decision, left) in [("reject", 1), ("approve", 0)] {
        let worker = scene.worker().await;
        let name = format!("Delete and {decision}");
        let turn = scene.begin(&name).await;
        scene.until_waiting(&turn).await;
        worker.kill().await;
        assert_eq!(scene.count(&departments).await, 1, "nothing is done yet");
        let (_, waiting) = scene.teacher.get("/v1/approvals").await;
        let approval = waiting.pointer("/0/id").or_else(|| waiting.pointer("/approvals/0/id"));
        let approval = approval
            .and_then(Value::as_str)
            .unwrap_or_else(|| panic!("none waits: {waiting}"));
        let path = format!("/v1/approvals/{approval}/decision");
        let (status, decided) = scene.teacher.post(&path, &json!({"decision": decision})).await;
        assert_eq!(status, StatusCode::OK, "{decided}");
        let worker = scene.worker().await;
        let events = scene.teacher.follow(&turn, None).await.all().await;
        let kinds: Vec<_> = events.iter().map(|event| event.kind.as_str()).collect();
        assert_eq!(
            events.last().map(|event| &event.data["outcome"]["answer"]),
            Some(&json!("All done.")),
            "{kinds:?}"
        );
        for kind in ["approval_asked", "waiting", "decided"] {
            assert_eq!(
                kinds.iter().filter(|told| **told == kind).count(),
                1,
                "{kind} in {kinds:?}"
            );
        }
        assert_eq!(
            scene.play.times(&name),
            [("#1", 1), ("#2", 1)]
                .map(|(step, times)| (step.to_owned(), times))
                .into()
        );
        assert_eq!(scene.count(&departments).await, left, "{decision}");
        worker.kill().await;
    }
    scene.finish().await;
}

/// fault 12: a worker that lives for one entry of the journal only, again and again
#[tokio::test]
async fn workers_that_are_killed_again_and_again_come_to_the_same_end() {
    let scene = Scene::new().await;
    // Between one entry and the next there is time to be killed in.
    scene
        .stage
        .arrange(
            "CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN PERFORM pg_sleep(0.2); RETURN NULL; END $$;
             CREATE TRIGGER linger AFTER INSERT ON turn_messages FOR EACH STATEMENT EXECUTE FUNCTION linger()",
        )
        .await;
    let turn = scene.begin("Again").await;
    let mut kills = 0;
    loop {
        let before = scene.kept(&turn).await.len();
        let worker = scene.worker().await;
        until(async || scene.status(&turn).await != "running" || scene.kept(&turn).await.len() > before).await;
        worker.kill().await;
        kills += 1;
        match scene.status(&turn).await.as_str() {
            "running" => {}
            "waiting" => scene.answer_both(&turn).await,
            _ => break,
        }
    }
    assert!(kills >= 5, "{kills} workers were killed");
    scene.assert_whole(&turn, "Again").await;
    scene.finish().await;
}

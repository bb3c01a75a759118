//! The worker's side of claims and reports; the server's books are this test.

mod forged;

use contract::{
    tools::contract_hash,
    turn::{
        CancelTurn, JournalEntry, ReportTaken, ToTheBooks, TurnClaim, TurnClaimed, TurnEvent, TurnMessage, TurnReport,
    },
};
use e2e::{Stage, broker::Peer, fixtures::HILLTOP, process::Process, stage::now_ms};
use lapin::{
    BasicProperties,
    options::{BasicGetOptions, BasicPublishOptions, QueueBindOptions, QueueDeclareOptions},
    types::FieldTable,
};
use scripted_model::{Reply, Script, ScriptedModel};
use serde::Serialize;
use serde_json::json;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

/// How long the next message may take: a worker sends one again after three seconds.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long nothing comes where nothing is to come.
const SILENCE: Duration = Duration::from_millis(500);

/// A message as it came to the books.
struct Came {
    body: Vec<u8>,
    properties: BasicProperties,
}

impl Came {
    fn claim(&self) -> TurnClaim {
        match serde_json::from_slice(&self.body).expect("it can be read") {
            ToTheBooks::Claim(claim) => claim,
            ToTheBooks::Report(report) => panic!("no claim: {report:?}"),
        }
    }

    fn report(&self) -> TurnReport {
        match serde_json::from_slice(&self.body).expect("it can be read") {
            ToTheBooks::Report(report) => report,
            ToTheBooks::Claim(claim) => panic!("no report: {claim:?}"),
        }
    }
}

struct Scene {
    stage: Stage,
    peer: Peer,
    worker: Process,
    model: ScriptedModel,
}

impl Scene {
    async fn new(script: Script) -> Self {
        let stage = Stage::new().await;
        let model = ScriptedModel::start(script).await.expect("the model listens");
        let url = model.base_url();
        let more = [("OPENAI_BASE_URL", url.as_str()), ("MODEL", "scripted-demo")];
        let worker = Process::start(env!("CARGO_BIN_EXE_worker-under-test"), &[], &stage, &more).await;
        let peer = stage.peer().await;
        Self {
            stage,
            peer,
            worker,
            model,
        }
    }

    /// Hands a turn to the worker, as a server does.
    async fn dispatch(&self) -> TurnMessage {
        let message = self.message().await;
        let queue = self.peer.names().turns_queue.clone();
        self.publish(&queue, &message, BasicProperties::default()).await;
        message
    }

    async fn message(&self) -> TurnMessage {
        let head = self.stage.person(&HILLTOP.email("head")).await;
        TurnMessage {
            turn_id: head.turn_id,
            grant: head.grant,
            context: head.context,
            history: contract::turn::ThreadHistory::default(),
            message: "Create a department called Drama".to_owned(),
            deadline_ms: now_ms() + 60_000,
            dispatch: 1,
            contract: Some(contract_hash().to_owned()),
        }
    }

    async fn publish(&self, queue: &str, body: &impl Serialize, properties: BasicProperties) {
        let body = serde_json::to_vec(body).expect("it can be written");
        let options = BasicPublishOptions::default();
        let sent = self
            .peer
            .channel()
            .basic_publish("".into(), queue.into(), options, &body, properties);
        sent.await.expect("it is sent").await.expect("it is confirmed");
    }

    async fn next(&self) -> Came {
        let queue = self.peer.names().reports_queue.clone();
        timeout(PATIENCE, self.take(&queue))
            .await
            .expect("something comes in time")
    }

    async fn take(&self, queue: &str) -> Came {
        loop {
            let got = self
                .peer
                .channel()
                .basic_get(queue.into(), BasicGetOptions { no_ack: true });
            if let Some(message) = got.await.expect("the queue is there") {
                return Came {
                    body: message.delivery.data,
                    properties: message.delivery.properties,
                };
            }
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// A queue of the calls that the worker makes from now on.
    async fn calls(&self) -> String {
        let (channel, none) = (self.peer.channel(), FieldTable::default());
        let options = QueueDeclareOptions {
            exclusive: true,
            ..QueueDeclareOptions::default()
        };
        let queue = channel.queue_declare("".into(), options, none.clone()).await;
        let queue = queue.expect("a queue is made").name().to_string();
        let exchange = self.peer.names().tools_exchange.as_str().into();
        let bound = channel.queue_bind(
            queue.as_str().into(),
            exchange,
            "#".into(),
            QueueBindOptions::default(),
            none,
        );
        bound.await.expect("it is bound");
        queue
    }

    async fn nothing_comes(&self) {
        assert!(timeout(SILENCE, self.next()).await.is_err(), "nothing is to come");
    }

    async fn reply(&self, to: &Came, reply: &impl Serialize) {
        let address = to.properties.reply_to().clone().expect("it has an address");
        let correlation = to.properties.correlation_id().clone().expect("it has an id");
        let properties = BasicProperties::default().with_correlation_id(correlation);
        self.publish(address.as_str(), reply, properties).await;
    }

    async fn grant(&self, journal: Vec<JournalEntry>) {
        let claim = self.next().await;
        self.reply(&claim, &TurnClaimed::Granted { attempt: 3, journal }).await;
    }

    /// Takes reports, and says the same to each; to the last one at the latest when it holds the end. Answers the events.
    async fn take_to_the_end(&self) -> Vec<TurnEvent> {
        let mut events = Vec::new();
        while !matches!(events.last(), Some(TurnEvent::Ended { .. })) {
            let came = self.next().await;
            self.reply(&came, &ReportTaken::GoOn).await;
            events.extend(came.report().events);
        }
        events
    }

    /// The first report with something to keep, which is an answer with calls.
    async fn first_kept(&self) -> Came {
        loop {
            let came = self.next().await;
            if !came.report().journal.is_empty() {
                return came;
            }
            self.reply(&came, &ReportTaken::GoOn).await;
        }
    }

    /// Says to every worker that a turn is to be stopped, as anybody can who reaches the broker.
    async fn hint(&self, turn: Uuid) {
        let exchange = self.peer.names().cancel_exchange.as_str();
        let body = serde_json::to_vec(&CancelTurn { turn_id: turn }).expect("it can be written");
        let sent = self.peer.channel().basic_publish(
            exchange.into(),
            "".into(),
            BasicPublishOptions::default(),
            &body,
            BasicProperties::default(),
        );
        sent.await.expect("it is sent").await.expect("it is confirmed");
    }

    /// Asserts that the worker is done with the message: nobody gets it again.
    async fn finish(self) {
        assert!(self.worker.terminate(Duration::from_secs(20)).await);
        let queue = self.peer.names().turns_queue.clone();
        let got = self
            .peer
            .channel()
            .basic_get(queue.as_str().into(), BasicGetOptions { no_ack: true });
        assert!(
            got.await.expect("the queue is there").is_none(),
            "the turn is done with"
        );
        self.peer.leave().await;
        self.stage.finish().await;
    }
}

fn making() -> Script {
    let make = || Reply::call("create_department", json!({"name": "Drama"}).to_string());
    Script::function(move |request| {
        let messages = request["messages"].as_array().expect("a conversation");
        if messages.iter().any(|message| message["role"] == "tool") {
            Reply::text("Done.")
        } else {
            make()
        }
    })
}

#[tokio::test]
async fn a_turn_is_claimed_until_there_is_a_word_and_left_when_it_is_refused() {
    let scene = Scene::new(making()).await;
    let turn = scene.dispatch().await;
    let (first, again) = (scene.next().await, scene.next().await);
    let claim = first.claim();
    assert_eq!(
        (claim.turn_id, claim.dispatch, claim.redelivered),
        (turn.turn_id, 1, false)
    );
    assert_eq!(claim.grant, turn.grant);
    assert_eq!(first.body, again.body, "it is the same claim");
    scene.reply(&first, &TurnClaimed::Refused {}).await;
    scene.nothing_comes().await;
    assert!(scene.model.requests().is_empty());
    scene.finish().await;
}

/// As while a server is replaced that knows more than this worker, or less.
#[tokio::test]
async fn a_turn_of_another_version_of_the_server_is_run_all_the_same() {
    let scene = Scene::new(making()).await;
    for contract in [json!("another"), json!(null)] {
        let mut turn = json!(scene.message().await);
        turn["contract"] = contract;
        turn["unheardOf"] = json!({"a": [1]});
        turn["context"]["unheardOf"] = json!(1);
        let queue = scene.peer.names().turns_queue.clone();
        scene.publish(&queue, &turn, BasicProperties::default()).await;
        let claim = scene.next().await;
        assert_eq!(json!(claim.claim().turn_id), turn["turnId"]);
        let granted = TurnClaimed::Granted {
            attempt: 1,
            journal: Vec::new(),
        };
        scene.reply(&claim, &granted).await;
        let kept = scene.first_kept().await;
        assert_eq!(kept.report().journal.len(), 1, "it asks the model");
        scene.reply(&kept, &ReportTaken::Superseded).await;
    }
    scene.finish().await;
}

#[tokio::test]
async fn reports_are_sent_one_after_the_other_and_again_until_they_are_taken() {
    let scene = Scene::new(making()).await;
    scene.dispatch().await;
    scene.grant(Vec::new()).await;
    let first = scene.next().await;
    scene.nothing_comes().await;
    let again = scene.next().await;
    assert_eq!(first.body, again.body, "it is the same report");
    let report = first.report();
    assert_eq!((report.attempt, report.first), (3, 1));
    assert_eq!(report.events.first(), Some(&TurnEvent::Started {}));
    // a reply to any copy will do
    scene.reply(&first, &ReportTaken::GoOn).await;
    let next = scene.next().await;
    assert_eq!(next.report().first as usize, report.events.len() + 1);
    scene.reply(&next, &ReportTaken::GoOn).await;
    let events = scene.take_to_the_end().await;
    assert!(matches!(events.last(), Some(TurnEvent::Ended { .. })));
    scene.nothing_comes().await;
    scene.finish().await;
}

#[tokio::test]
async fn no_call_is_made_before_the_answer_with_it_is_kept() {
    let scene = Scene::new(making()).await;
    let calls = scene.calls().await;
    scene.dispatch().await;
    scene.grant(Vec::new()).await;
    let kept = scene.first_kept().await;
    assert!(
        timeout(SILENCE, scene.take(&calls)).await.is_err(),
        "no call is made yet"
    );
    scene.reply(&kept, &ReportTaken::GoOn).await;
    let call = timeout(PATIENCE, scene.take(&calls)).await.expect("then it is made");
    assert!(String::from_utf8_lossy(&call.body).contains("Drama"));
    let started = scene.next().await;
    assert!(matches!(
        started.report().events.as_slice(),
        [TurnEvent::ToolStarted { .. }]
    ));
    scene.reply(&started, &ReportTaken::Superseded).await;
    scene.nothing_comes().await;
    scene.finish().await;
}

#[tokio::test]
async fn a_run_that_is_superseded_stops_at_once_and_in_silence() {
    let scene = Scene::new(making()).await;
    scene.dispatch().await;
    scene.grant(Vec::new()).await;
    let kept = scene.first_kept().await;
    scene.reply(&kept, &ReportTaken::Superseded).await;
    scene.nothing_comes().await;
    assert_eq!(scene.model.requests().len(), 1);
    scene.finish().await;
}

#[tokio::test]
async fn a_run_that_is_to_stop_makes_no_call_and_says_why() {
    let scene = Scene::new(making()).await;
    for (word, member, text) in [
        (ReportTaken::Cancelled, "cancelled", "before anything was changed"),
        (ReportTaken::OverBudget, "error", "used up"),
    ] {
        scene.dispatch().await;
        scene.grant(Vec::new()).await;
        let kept = scene.first_kept().await;
        scene.reply(&kept, &word).await;
        let events = scene.take_to_the_end().await;
        let [TurnEvent::Ended { outcome }] = events.as_slice() else {
            panic!("only the end: {events:?}")
        };
        let outcome = json!(outcome);
        assert!(
            outcome[member].as_str().is_some_and(|said| said.contains(text)),
            "{outcome}"
        );
    }
    scene.finish().await;
}

#[tokio::test]
async fn a_turn_that_is_delivered_again_goes_on_under_a_new_claim() {
    let scene = Scene::new(making()).await;
    scene.dispatch().await;
    let first = scene.next().await.claim();
    let Scene {
        stage,
        peer,
        worker,
        model,
    } = scene;
    worker.kill().await;
    let url = model.base_url();
    let more = [("OPENAI_BASE_URL", url.as_str()), ("MODEL", "scripted-demo")];
    let worker = Process::start(env!("CARGO_BIN_EXE_worker-under-test"), &[], &stage, &more).await;
    let scene = Scene {
        stage,
        peer,
        worker,
        model,
    };
    let again = scene.next().await;
    let claim = again.claim();
    assert!(claim.redelivered && claim.run != first.run && claim.run != Uuid::nil());
    let answer = JournalEntry::Answer {
        within: String::new(),
        step: 1,
        message: json!({"role": "assistant", "content": "Kept."}),
        tokens: 1,
    };
    let granted = TurnClaimed::Granted {
        attempt: 2,
        journal: vec![answer],
    };
    scene.reply(&again, &granted).await;
    let events = scene.take_to_the_end().await;
    let ended = json!(events.last());
    assert_eq!(ended["outcome"]["answer"], "Kept.");
    assert!(scene.model.requests().is_empty(), "no model is asked for what was kept");
    scene.finish().await;
}

/// Whoever reaches the broker can say that a turn is to be stopped; only the books can stop it.
#[tokio::test]
async fn a_word_to_stop_is_no_more_than_a_reason_to_ask() {
    let scene = Scene::new(Script::function(|_| Reply::hanging())).await;
    let turn = scene.dispatch().await;
    let claim = scene.next().await;
    let granted = TurnClaimed::Granted {
        attempt: 1,
        journal: Vec::new(),
    };
    scene.reply(&claim, &granted).await;
    let run = Some(claim.claim().run);
    let started = scene.next().await;
    assert_eq!(started.report().run, run);
    scene.reply(&started, &ReportTaken::GoOn).await;
    scene.hint(Uuid::new_v4()).await;
    scene.nothing_comes().await;
    for word in [ReportTaken::GoOn, ReportTaken::Cancelled] {
        scene.hint(turn.turn_id).await;
        let asks = scene.next().await;
        let report = asks.report();
        assert!(report.events.is_empty() && report.journal.is_empty(), "{report:?}");
        assert_eq!((report.turn_id, report.run, report.first), (turn.turn_id, run, 2));
        scene.reply(&asks, &word).await;
        if word == ReportTaken::GoOn {
            scene.nothing_comes().await;
        }
    }
    let events = scene.take_to_the_end().await;
    let [TurnEvent::Ended { outcome }] = events.as_slice() else {
        panic!("only the end: {events:?}")
    };
    assert!(json!(outcome)["cancelled"].is_string(), "{outcome:?}");
    scene.finish().await;
}

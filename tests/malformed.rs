//! Packets that nobody should send: each is settled at its first delivery, with its error to the caller, its dead letter, or both;
//! and the same server process answers the next good call (`fault 18`, `fault 41`).

mod bodies;
mod envelopes;
mod headers;
mod unreadable;

use contract::{AgentToolResult, envelope::DIRECT_REPLY_TO};
use e2e::{Person, Stage, broker::Packet, broker::Peer, fixtures::HILLTOP, process::Process, stage::incoming};
use lapin::{BasicProperties, types::FieldTable};
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

/// How long a reply may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// What must become of a packet.
enum Expected {
    /// An error to its caller, and a dead letter with this reason.
    Rejected(&'static str),
    /// No address to answer to: just the dead letter with this reason.
    Dead(&'static str),
    /// An error to its caller that begins like this.
    Refused(&'static str),
}

/// One packet that nobody should send.
struct Case {
    name: String,
    body: Vec<u8>,
    properties: BasicProperties,
    expected: Expected,
}

impl Case {
    fn new(name: impl Into<String>, body: impl Into<Vec<u8>>, properties: BasicProperties, expected: Expected) -> Self {
        Self {
            name: name.into(),
            body: body.into(),
            properties,
            expected,
        }
    }
}

/// A server process, a peer, and somebody whose good calls are answered.
struct Ground {
    stage: Stage,
    server: Process,
    peer: Peer,
    head: Person,
}

impl Ground {
    async fn new() -> Self {
        let stage = Stage::new().await;
        // what it says of each packet is of no interest here
        let server = Process::start(
            env!("CARGO_BIN_EXE_server-under-test"),
            &["serve"],
            &stage,
            &[("LOG", "off")],
        )
        .await;
        Self {
            peer: stage.peer().await,
            head: stage.person(&HILLTOP.email("head")).await,
            server,
            stage,
        }
    }

    /// A reply address, an id, and the grant and key of a good call.
    fn properties(&self) -> BasicProperties {
        properties(self.headers())
    }

    fn headers(&self) -> FieldTable {
        headers(&self.head.grant)
    }

    /// A good call's packet; `change` makes it a bad one.
    fn packet(&self, change: impl FnOnce(&mut Value)) -> Vec<u8> {
        let call = incoming(&self.head, "create_department", json!({"name": "Never"}), "1");
        let mut packet = json!({"pattern": call.event, "data": call.request, "id": "1"});
        change(&mut packet);
        serde_json::to_vec(&packet).unwrap()
    }

    /// A message id that belongs to the turn.
    fn key(&self) -> String {
        format!("{}:{}", self.head.turn_id, Uuid::new_v4())
    }

    /// Sends each packet and sees it settled, then a good call answered.
    async fn settle(&mut self, cases: Vec<Case>) {
        for case in cases {
            self.settle_one(case).await;
        }
        let good = Packet::of(&incoming(
            &self.head,
            "list_departments",
            json!({}),
            &Uuid::new_v4().to_string(),
        ));
        let answer = self.peer.ask(&good).await;
        assert!(
            answer.is_some_and(|answer| answer.is_data()),
            "the next good call is answered"
        );
        assert_eq!(
            (self.peer.waiting().await, self.peer.dead().await),
            (0, 0),
            "nothing more is waiting or dead"
        );
        assert!(self.server.runs());
    }

    async fn settle_one(&mut self, case: Case) {
        let Case {
            name,
            body,
            properties,
            expected,
        } = case;
        let sent_id = properties.correlation_id().as_ref().map(ToString::to_string);
        assert!(self.peer.publish(&body, properties).await, "{name}: somebody takes it");
        if let Expected::Rejected(_) | Expected::Refused(_) = expected {
            let Some((id, reply)) = self.peer.next_reply(PATIENCE).await else {
                panic!("{name}: no reply");
            };
            if sent_id.is_some() {
                assert_eq!(id, sent_id, "{name}: the reply is for this packet");
            }
            let AgentToolResult::Error { error } = reply.response else {
                panic!("{name}: was answered with data");
            };
            assert!(error.len() < 2000, "{name}: large values are not echoed: {error}");
            let begins = match expected {
                Expected::Refused(begins) => begins,
                Expected::Rejected(_) | Expected::Dead(_) => "Malformed tool call: ",
            };
            assert!(error.starts_with(begins), "{name}: {error}");
        }
        if let Expected::Rejected(why) | Expected::Dead(why) = expected {
            let reason = self.dead_letter(&name).await;
            assert!(reason.contains(why), "{name}: {reason}");
        }
    }

    async fn dead_letter(&self, name: &str) -> String {
        let begun = std::time::Instant::now();
        loop {
            if let Some((_, reason)) = self.peer.dead_letter().await {
                return reason;
            }
            assert!(begun.elapsed() < PATIENCE, "{name}: no dead letter");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Nothing was done, and nothing was left unacked: a server that ends gives back what it holds.
    async fn finish(self) {
        assert_eq!(self.stage.audit_rows().await, 0, "nothing was carried out");
        let never = "SELECT count(*) FROM departments WHERE name = 'Never'";
        assert_eq!(self.stage.count(never).await, 0);
        assert!(self.server.terminate(PATIENCE).await, "the server ends well");
        assert_eq!(self.peer.waiting().await, 0, "nothing was left unacked");
        self.peer.leave().await;
        self.stage.finish().await;
    }
}

fn properties(headers: FieldTable) -> BasicProperties {
    BasicProperties::default()
        .with_reply_to(DIRECT_REPLY_TO.into())
        .with_correlation_id(Uuid::new_v4().to_string().into())
        .with_headers(headers)
}

fn headers(grant: &str) -> FieldTable {
    let mut headers = FieldTable::default();
    let grant = lapin::types::AMQPValue::LongString(grant.into());
    headers.insert(contract::envelope::GRANT_HEADER.into(), grant);
    headers
}

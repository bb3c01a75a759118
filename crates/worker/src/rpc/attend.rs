//! One delivery of a turn, from its body to its acknowledgement.
//!
//! A turn that is kept is claimed first, and goes on from what was kept of it. Its end, or that it waits, is in the books
//! before the turn is acknowledged: a turn of which neither is known is delivered again, and goes on.

use super::{
    answers::Answers,
    books::Books,
    cancels::Cancels,
    link::within,
    outbox::Outbox,
    outgoing::Outgoing,
    properties,
    redaction::without_grant,
    reports::{Claimed, Reported, Reports},
};
use crate::{
    clock,
    turn::{Cancellation, Journal, Reporter, TurnRunner, Unreported},
};
use broker_guard::UNREADABLE_HEADER;
use contract::{
    envelope::MAX_PACKET_BYTES,
    tools::contract_hash,
    topology::Topology,
    turn::{INTERRUPTED_TEXT, TurnAnswer, TurnClaim, TurnClaimed, TurnEvent, TurnMessage, TurnOutcome},
};
use futures_util::FutureExt as _;
use lapin::{BasicProperties, message::Delivery, options::BasicAckOptions};
use serde_json::Value;
use std::{future::pending, panic::AssertUnwindSafe, sync::Arc, time::Duration};
use uuid::Uuid;

/// What a person reads when their message could not be read here.
const UNREADABLE_TEXT: &str = "Your message could not be processed. Please tell whoever runs the system.";
/// What a person reads after a fault of ours.
const FAULT_TEXT: &str = "Something went wrong while working on your message. Some of what you asked for may have been done; \
                          please check before you repeat it.";

/// How long a turn is claimed whose time is already over: whoever waits for it is told so.
const LATE_CLAIM_LIMIT: Duration = Duration::from_secs(10);

/// What became of one delivery.
pub(super) enum Attended {
    /// It is answered and acknowledged.
    Done,
    /// The broker could not be told; it will deliver it again.
    Undelivered,
}

/// The broker did not take something, and may take it later.
struct NotTaken;

/// What deliveries are attended to with.
#[derive(Clone)]
pub(super) struct Attendant {
    pub(super) runner: Arc<TurnRunner>,
    pub(super) cancels: Arc<Cancels>,
    pub(super) outgoing: Outgoing,
    pub(super) books: Books,
    pub(super) answers: Arc<Answers>,
    pub(super) topology: Arc<Topology>,
}

impl Attendant {
    /// Attends to one delivery.
    pub(super) async fn attend(self, delivery: Delivery) -> Attended {
        let Ok(answer) = self.answer(&delivery).await else {
            return Attended::Undelivered;
        };
        if let Some(answer) = answer {
            self.reply(&delivery.properties, &answer).await;
        }
        let acknowledged = delivery.acker.ack(BasicAckOptions::default());
        match within("take the acknowledgement", acknowledged).await {
            Ok(true) => Attended::Done,
            Ok(false) => Attended::Undelivered,
            Err(error) => {
                tracing::warn!(%error, "a turn was not acknowledged");
                Attended::Undelivered
            }
        }
    }

    /// What whoever waits directly is answered, if anything.
    async fn answer(&self, delivery: &Delivery) -> Result<Option<TurnAnswer>, NotTaken> {
        match plan(delivery) {
            Plan::Claim(message) => {
                compare(&message);
                self.claim(&message, delivery.redelivered).await;
                Ok(None)
            }
            Plan::Run(message) => {
                compare(&message);
                tracing::info!(turn = %message.turn_id, "a turn begins");
                let journal = Journal::default();
                // what is not kept cannot be asked about, and so not be stopped
                let unstopped = Cancellation::never();
                Ok(self.finish(&message, journal, Arc::new(Unreported), unstopped).await)
            }
            Plan::Interrupted(message) => {
                tracing::warn!(turn = %message.turn_id, "a turn was interrupted, and is not run again");
                Ok(Some(failed(message.turn_id, INTERRUPTED_TEXT)))
            }
            Plan::Bury(malformed) => {
                tracing::error!(reason = malformed.reason, "a turn that cannot be read");
                let properties = properties::of_dead_letter(&delivery.properties, &malformed.reason);
                let (queue, body) = (&self.topology.turns_dead_queue, without_grant(&delivery.data));
                if !self.outgoing.publish(queue, &body, properties).await {
                    return Err(NotTaken);
                }
                Ok(Some(failed(malformed.turn_id, UNREADABLE_TEXT)))
            }
        }
    }

    /// Claims a turn that is kept, and runs it on if it is granted. Whatever comes of it, this delivery is done with then:
    /// a turn whose end cannot be told in its time is ended by the server.
    async fn claim(&self, message: &TurnMessage, redelivered: bool) {
        let turn = message.turn_id;
        let (place, cancellation) = self.cancels.begin(turn);
        let run = Uuid::new_v4();
        let claim = TurnClaim {
            turn_id: turn,
            grant: message.grant.clone(),
            dispatch: message.dispatch,
            run,
            redelivered,
        };
        let until_ms = message.deadline_ms.max(clock::deadline_in(LATE_CLAIM_LIMIT));
        let (attempt, journal) = match self.books.claim(claim, until_ms).await {
            Some(TurnClaimed::Granted { attempt, journal }) => (attempt, journal),
            Some(TurnClaimed::Refused {}) => return tracing::info!(%turn, "a turn that is not to be run here"),
            None => return tracing::warn!(%turn, "a turn could not be claimed in its time"),
        };
        tracing::info!(%turn, attempt, kept = journal.len(), "a turn begins or goes on");
        let outbox = Arc::new(Outbox::default());
        let running = async {
            let journal = Journal::of(journal);
            self.finish(message, journal, outbox.clone(), cancellation).await;
            // The reports go on to the last one.
            pending().await
        };
        let reports = Reports::of(message, Claimed { run, attempt }, self.books.clone());
        let reported = tokio::select! {
            reported = reports.send_all(&outbox, &place) => reported,
            never = running => never,
        };
        match reported {
            Reported::Taken => {}
            Reported::Superseded => tracing::info!(%turn, attempt, "a turn is no longer this run's"),
            Reported::NotTaken => tracing::warn!(%turn, attempt, "a turn's reports were not taken in their time"),
        }
    }

    /// Runs a turn to its end, even if that is a panic.
    async fn finish(
        &self,
        message: &TurnMessage,
        journal: Journal,
        reporter: Arc<dyn Reporter>,
        cancellation: Cancellation,
    ) -> Option<TurnAnswer> {
        let run = self.runner.run(message, journal, reporter.clone(), cancellation);
        AssertUnwindSafe(run).catch_unwind().await.unwrap_or_else(|_| {
            tracing::error!(turn = %message.turn_id, "a turn panicked");
            let answer = failed(message.turn_id, FAULT_TEXT);
            let outcome = answer.outcome.clone();
            reporter.event(TurnEvent::Ended { outcome });
            Some(answer)
        })
    }

    /// Sends the answer to whoever asked for one.
    async fn reply(&self, asked: &BasicProperties, answer: &TurnAnswer) {
        let Some(address) = asked.reply_to() else { return };
        let body = serde_json::to_vec(answer).expect("an answer is made of texts and ids");
        let properties = properties::of_answer(asked.correlation_id().clone());
        self.answers.send(address.as_str(), &body, properties).await;
    }
}

/// What is to be done about a delivery.
enum Plan {
    /// It is kept.
    Claim(Box<TurnMessage>),
    Run(Box<TurnMessage>),
    /// It was begun before; only answered.
    Interrupted(Box<TurnMessage>),
    Bury(Malformed),
}

/// A message that is no turn.
struct Malformed {
    turn_id: Uuid,
    reason: String,
}

fn plan(delivery: &Delivery) -> Plan {
    let headers = delivery.properties.headers().as_ref();
    if headers.is_some_and(|headers| headers.contains_key(UNREADABLE_HEADER)) {
        return Plan::Bury(Malformed {
            turn_id: Uuid::nil(),
            reason: "its properties cannot be read".to_owned(),
        });
    }
    match read(&delivery.data) {
        Ok(message) if message.is_kept() => Plan::Claim(Box::new(message)),
        Ok(message) if delivery.redelivered => Plan::Interrupted(Box::new(message)),
        Ok(message) => Plan::Run(Box::new(message)),
        Err(malformed) => Plan::Bury(malformed),
    }
}

/// Says so when the server that dispatched a turn knows other tools, as it may while one of the two is being replaced. The turn is run all
/// the same: the server refuses a call of a tool that changed, and of that alone.
fn compare(message: &TurnMessage) {
    if let Some(there) = message.contract.as_deref()
        && there != contract_hash()
    {
        tracing::warn!(turn = %message.turn_id, here = contract_hash(), there, "a turn comes from a server of another contract");
    }
}

fn read(body: &[u8]) -> Result<TurnMessage, Malformed> {
    if body.len() > MAX_PACKET_BYTES {
        return Err(Malformed {
            turn_id: Uuid::nil(),
            reason: format!("larger than {MAX_PACKET_BYTES} bytes"),
        });
    }
    serde_json::from_slice(body).map_err(|error| {
        let packet: Value = serde_json::from_slice(body).unwrap_or_default();
        let turn_id = packet
            .get("turnId")
            .and_then(Value::as_str)
            .and_then(|id| id.parse().ok())
            .unwrap_or_default();
        // Its kind and place only: the text of the error may quote what the person wrote.
        let reason = format!("not a turn: {:?} error at column {}", error.classify(), error.column());
        Malformed { turn_id, reason }
    })
}

fn failed(turn_id: Uuid, text: &str) -> TurnAnswer {
    TurnAnswer {
        turn_id,
        outcome: TurnOutcome::Error(text.to_owned()),
        tool_calls: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::tests::runtime;
    use lapin::types::{AMQPValue, FieldTable};
    use serde_json::json;

    fn delivery(redelivered: bool, body: &Value) -> Delivery {
        Delivery::mock(1, "".into(), "agent.turns".into(), redelivered, body.to_string().into())
    }

    fn turn(id: Uuid) -> Value {
        let context = runtime(&json!({"mode": "school"})).context;
        json!({"turnId": id, "grant": "live", "context": context.as_ref(), "message": "Hi", "deadlineMs": 1})
    }

    #[test]
    fn a_turn_that_is_kept_goes_on() {
        let mut kept = turn(Uuid::from_u128(7));
        kept["dispatch"] = json!(2);
        for redelivered in [false, true] {
            let plan = plan(&delivery(redelivered, &kept));
            assert!(matches!(plan, Plan::Claim(message) if message.dispatch == 2));
        }
    }

    #[test]
    fn a_turn_that_was_delivered_before_is_not_run_again() {
        let id = Uuid::from_u128(7);
        assert!(matches!(plan(&delivery(false, &turn(id))), Plan::Run(message) if message.turn_id == id));
        assert!(matches!(plan(&delivery(true, &turn(id))), Plan::Interrupted(message) if message.turn_id == id));
        assert!(matches!(plan(&delivery(true, &json!({}))), Plan::Bury(_)));
    }

    #[test]
    fn a_turn_whose_properties_cannot_be_read_is_buried() {
        let mut unreadable = delivery(false, &turn(Uuid::from_u128(7)));
        let mut headers = FieldTable::default();
        headers.insert(UNREADABLE_HEADER.into(), AMQPValue::Boolean(true));
        unreadable.properties = BasicProperties::default().with_headers(headers);
        assert!(matches!(plan(&unreadable), Plan::Bury(malformed) if malformed.reason.contains("properties")));
    }

    #[test]
    fn what_is_no_turn_says_why_without_quoting_it() {
        let id = Uuid::from_u128(7);
        let body = json!({"turnId": id, "grant": 7, "message": "a secret"}).to_string();
        let malformed = read(body.as_bytes()).unwrap_err();
        assert_eq!(malformed.turn_id, id);
        assert!(malformed.reason.starts_with("not a turn: Data error") && !malformed.reason.contains("secret"));
        assert_eq!(read(b"{").err().unwrap().turn_id, Uuid::nil());
        assert!(
            read(&vec![b' '; MAX_PACKET_BYTES + 1])
                .err()
                .unwrap()
                .reason
                .contains("larger")
        );
    }
}

//! Takes turns from their queue, has them run, answers and acknowledges them.
//!
//! A turn is acknowledged after its answer was handed to the broker. If the connection goes first, the turns under way are dropped here
//! and delivered again, to this worker or another; the broker counts how often. Such a turn is not run again but answered: nothing is
//! kept of how far it came, the model would make its calls under new ids, and what was written could be written twice. What cannot be
//! read is answered with an error where there is a reply address, and is always copied to the dead turns with the reason, without
//! its grant.

use super::{
    declare,
    link::{Link, LinkError, Session, limited, within},
    properties,
    redaction::without_grant,
};
use crate::{
    tasks::backoff,
    turn::{Cancellation, TurnRunner, Unreported},
};
use broker_guard::UNREADABLE_HEADER;
use contract::{
    envelope::{DIRECT_REPLY_TO, MAX_PACKET_BYTES},
    topology::Topology,
    turn::{TurnAnswer, TurnMessage, TurnOutcome},
};
use futures_util::{FutureExt as _, StreamExt as _};
use lapin::{
    BasicProperties, Channel, Confirmation, Consumer,
    message::Delivery,
    options::{
        BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions,
        ConfirmSelectOptions,
    },
    types::FieldTable,
};
use serde_json::Value;
use std::{future::Future, panic::AssertUnwindSafe, pin::pin, sync::Arc, time::Duration};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};
use uuid::Uuid;

/// How long turns under way may take to end after the worker was told to stop. Those that do not are delivered again elsewhere,
/// and answered as interrupted.
pub const DRAIN_LIMIT: Duration = Duration::from_secs(5);
/// The wait before turns are taken again on a connection that could not be used, doubled for each further time.
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// The longest such wait.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// How long the broker may take to confirm an answer. A blocked one may be free again before the turn would be given up.
const PUBLISH_LIMIT: Duration = Duration::from_secs(30);

/// What a person reads when their message could not be read here.
const UNREADABLE_TEXT: &str = "Your message could not be processed. Please tell whoever runs the system.";
/// What a person reads whose turn was begun before, by a worker that did not come to its end.
const INTERRUPTED_TEXT: &str = "Working on your message was interrupted. Some of what you asked for may have been done; \
                                please check before you ask for it again.";
/// What a person reads after a fault of ours.
const FAULT_TEXT: &str = "Something went wrong while working on your message. Some of what you asked for may have been done; \
                          please check before you repeat it.";

/// Where turns are taken and answered, on one connection.
struct Desk {
    turns: Channel,
    consumer: Consumer,
    /// In confirm mode. Apart from `turns`, so that a fault over an answer takes no acknowledgement with it.
    answers: Answers,
}

impl Desk {
    /// Closes in order: lapin takes a channel that is dropped while its connection closes for a fault of the connection.
    async fn close(self) {
        for channel in [self.turns, self.answers.channel] {
            if let Err(error) = within("close a channel", channel.close(200, "done".into())).await {
                tracing::debug!(%error, "a channel was gone already");
            }
        }
    }
}

/// Where answers and dead turns go.
#[derive(Clone)]
struct Answers {
    channel: Channel,
    dead_queue: Arc<str>,
}

/// What became of one delivery.
enum Attended {
    /// It is answered and acknowledged.
    Done,
    /// The broker could not be told; it will deliver it again.
    Undelivered,
}

/// Where turns are taken, and how many at once.
#[derive(Clone, Copy)]
pub(super) struct Post<'a> {
    pub(super) link: &'a Link,
    pub(super) topology: &'a Topology,
    pub(super) concurrency: u16,
}

/// Takes turns until `shutdown` resolves.
pub(super) async fn take_turns(
    post: Post<'_>,
    runner: Arc<TurnRunner>,
    shutdown: impl Future<Output = ()>,
    ready: impl FnOnce(),
) {
    let mut shutdown = pin!(shutdown.fuse());
    let mut ready = Some(ready);
    let mut failures = 0;
    loop {
        let opened = tokio::select! {
            opened = async { open(&*post.link.session_after(None).await, post).await } => opened,
            () = &mut shutdown => return,
        };
        match opened {
            Ok(desk) => {
                failures = 0;
                tracing::info!(concurrency = post.concurrency, "taking turns");
                if let Some(ready) = ready.take() {
                    ready();
                }
                if let Ended::ToldToStop = attend_all(desk, &runner, &mut shutdown).await {
                    return;
                }
            }
            Err(error) => tracing::warn!(%error, "no turns can be taken"),
        }
        tokio::select! {
            () = sleep(backoff(failures, FIRST_WAIT, LONGEST_WAIT)) => failures += 1,
            () = &mut shutdown => return,
        }
    }
}

async fn open(session: &Session, post: Post<'_>) -> Result<Desk, LinkError> {
    let connection = session.connection();
    declare::turn_queues(connection, post.topology).await?;
    within("open the channels for turns", async {
        let channel = connection.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        let answers = Answers {
            channel,
            dead_queue: post.topology.turns_dead_queue.as_str().into(),
        };
        let turns = connection.create_channel().await?;
        turns.basic_qos(post.concurrency, BasicQosOptions::default()).await?;
        let options = BasicConsumeOptions::default();
        let consumer = turns
            .basic_consume(
                post.topology.turns_queue.as_str().into(),
                "".into(),
                options,
                FieldTable::default(),
            )
            .await?;
        Ok(Desk {
            turns,
            consumer,
            answers,
        })
    })
    .await
}

/// Why a desk was left.
enum Ended {
    ToldToStop,
    Broken,
}

/// Attends to what is delivered to one desk. The broker's prefetch bounds how much that is at once.
async fn attend_all(mut desk: Desk, runner: &Arc<TurnRunner>, mut shutdown: impl Future<Output = ()> + Unpin) -> Ended {
    let mut at_work = JoinSet::new();
    loop {
        tokio::select! {
            () = &mut shutdown => {
                drain(&desk, at_work).await;
                desk.close().await;
                return Ended::ToldToStop;
            }
            delivery = desk.consumer.next() => match delivery {
                Some(Ok(delivery)) => {
                    at_work.spawn(attend(delivery, desk.answers.clone(), runner.clone()));
                }
                // With the set, the turns under way are dropped: nobody could be told of their end.
                Some(Err(error)) => {
                    tracing::warn!(%error, at_work = at_work.len(), "turns are no longer delivered");
                    return Ended::Broken;
                }
                None => {
                    tracing::warn!(at_work = at_work.len(), "the broker ended the consumer of turns");
                    return Ended::Broken;
                }
            },
            Some(attended) = at_work.join_next() => if !matches!(attended, Ok(Attended::Done)) {
                tracing::warn!("a turn could not be answered or acknowledged");
                return Ended::Broken;
            },
        }
    }
}

/// Takes no more turns, and waits for those under way.
async fn drain(desk: &Desk, mut at_work: JoinSet<Attended>) {
    let all_done = async {
        let tag = desk.consumer.tag();
        if let Err(error) = desk.turns.basic_cancel(tag, BasicCancelOptions::default()).await {
            tracing::debug!(%error, "the consumer of turns was gone already");
        }
        while at_work.join_next().await.is_some() {}
    };
    if timeout(DRAIN_LIMIT, all_done).await.is_err() {
        tracing::warn!(
            left = at_work.len(),
            "stopping with turns under way; they are answered as interrupted"
        );
    }
}

/// One delivery, from its body to its acknowledgement.
async fn attend(delivery: Delivery, answers: Answers, runner: Arc<TurnRunner>) -> Attended {
    let answer = match plan(&delivery) {
        Plan::Run(message) => {
            let turn_id = message.turn_id;
            tracing::info!(turn = %turn_id, "a turn begins");
            let run = runner.run(&message, Arc::new(Unreported), Cancellation::never());
            let run = AssertUnwindSafe(run).catch_unwind().await;
            run.unwrap_or_else(|_| {
                tracing::error!(turn = %turn_id, "a turn panicked");
                failed(turn_id, FAULT_TEXT)
            })
        }
        Plan::Interrupted(turn_id) => {
            tracing::warn!(turn = %turn_id, "a turn was interrupted, and is not run again");
            failed(turn_id, INTERRUPTED_TEXT)
        }
        Plan::Bury(malformed) => {
            tracing::error!(reason = malformed.reason, "a turn that cannot be read");
            let properties = properties::of_dead_letter(&delivery.properties, &malformed.reason);
            let body = without_grant(&delivery.data);
            if !publish(&answers.channel, &answers.dead_queue, &body, properties).await {
                return Attended::Undelivered;
            }
            failed(malformed.turn_id, UNREADABLE_TEXT)
        }
    };
    if !reply(&answers.channel, &delivery.properties, &answer).await {
        return Attended::Undelivered;
    }
    match within(
        "take the acknowledgement",
        delivery.acker.ack(BasicAckOptions::default()),
    )
    .await
    {
        Ok(true) => Attended::Done,
        Ok(false) => Attended::Undelivered,
        Err(error) => {
            tracing::warn!(%error, "a turn was not acknowledged");
            Attended::Undelivered
        }
    }
}

/// What is to be done about a delivery.
enum Plan {
    Run(Box<TurnMessage>),
    /// It was begun before; only answered.
    Interrupted(Uuid),
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
        Ok(message) if delivery.redelivered => Plan::Interrupted(message.turn_id),
        Ok(message) => Plan::Run(Box::new(message)),
        Err(malformed) => Plan::Bury(malformed),
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

/// Sends the answer to whoever asked. True where nothing more can be done about it.
async fn reply(answers: &Channel, asked: &BasicProperties, answer: &TurnAnswer) -> bool {
    let Some(address) = asked.reply_to() else { return true };
    let body = serde_json::to_vec(answer).expect("an answer is made of texts and ids");
    publish(
        answers,
        address.as_str(),
        &body,
        properties::of_answer(asked.correlation_id().clone()),
    )
    .await
}

/// Publishes to a queue. False when the broker has not taken it and may take it later.
async fn publish(channel: &Channel, queue: &str, body: &[u8], properties: BasicProperties) -> bool {
    // To RabbitMQ an address for direct replies is no queue: a mandatory message to it comes back even when it was delivered.
    let options = BasicPublishOptions {
        mandatory: !queue.starts_with(DIRECT_REPLY_TO),
        ..BasicPublishOptions::default()
    };
    let confirmed = limited(PUBLISH_LIMIT, "take a message", async {
        channel
            .basic_publish("".into(), queue.into(), options, body, properties)
            .await?
            .await
    })
    .await;
    match confirmed {
        Ok(Confirmation::Ack(None) | Confirmation::NotRequested) => true,
        Ok(Confirmation::Ack(Some(_)) | Confirmation::Nack(Some(_))) => {
            tracing::warn!(queue, "a message came back: there is no such queue");
            true
        }
        Ok(Confirmation::Nack(None)) => false,
        Err(error) => {
            tracing::warn!(%error, "a message was not published");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::tests::runtime;
    use lapin::types::AMQPValue;
    use serde_json::json;

    fn delivery(redelivered: bool, body: &Value) -> Delivery {
        Delivery::mock(1, "".into(), "agent.turns".into(), redelivered, body.to_string().into())
    }

    fn turn(id: Uuid) -> Value {
        let context = runtime(&json!({"mode": "school"})).context;
        json!({"turnId": id, "grant": "live", "context": context.as_ref(), "message": "Hi", "deadlineMs": 1})
    }

    #[test]
    fn a_turn_that_was_delivered_before_is_not_run_again() {
        let id = Uuid::from_u128(7);
        assert!(matches!(plan(&delivery(false, &turn(id))), Plan::Run(message) if message.turn_id == id));
        assert!(matches!(plan(&delivery(true, &turn(id))), Plan::Interrupted(interrupted) if interrupted == id));
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

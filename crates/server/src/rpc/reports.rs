//! Takes claims and reports of turns, stores them, replies, acks. One that cannot be read or is not proven goes to the dead letters; one
//! that cannot be stored yet is tried until it can be, while its sender waits.

use super::{
    RpcError,
    connection::{self, Link, RETRY_DELAY},
    message, topology,
    turns::{Sent, TurnSender},
};
use crate::{
    config::BrokerConfig,
    conversation::{Conversations, Due, ReportError, Taken},
};
use broker_guard::UNREADABLE_HEADER;
use contract::{
    envelope::{MAX_PACKET_BYTES, REASON_HEADER},
    turn::ToTheBooks,
};
use futures_util::StreamExt;
use lapin::{
    BasicProperties, Channel, Confirmation, Consumer,
    message::Delivery,
    options::{BasicAckOptions, BasicConsumeOptions, BasicPublishOptions},
    types::{AMQPValue, FieldTable},
};
use serde_json::{Value, json};
use std::{future::Future, sync::Arc, time::Duration};
use tokio::{task::JoinSet, time::timeout};
use uuid::Uuid;

/// How many are stored at once. Each holds a connection to the database, of which calls need most.
const CONCURRENCY: u16 = 6;
/// The wait before a report that could not be stored is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(500);
/// How long reports under way are given once the process was asked to stop.
const DRAIN_LIMIT: Duration = Duration::from_secs(3);

/// What turns are kept in, and who sends those that go on.
#[derive(Clone)]
pub(crate) struct Books {
    pub(crate) conversations: Arc<Conversations>,
    pub(crate) turns: Arc<TurnSender>,
}

impl Books {
    /// Sends the message of a turn that is due. Where that fails, it is due still, and is sent again by whoever looks next.
    pub(crate) async fn send(&self, due: Due) {
        let sending = async {
            let Some(message) = self.conversations.message_of(due).await? else {
                return Ok(());
            };
            if self.turns.send(&message).await? == Sent::Stored {
                self.conversations.note_sent(due, &message).await?;
            }
            anyhow::Ok(())
        };
        if let Err(error) = sending.await {
            tracing::warn!(%error, turn = %due.turn, "a turn that goes on could not be sent yet");
        }
    }
}

/// Why something was not taken.
type Refused = &'static str;

/// Takes reports until `shutdown` resolves. `stored` is told each turn that has news.
pub(crate) async fn take_reports(
    books: Books,
    config: &BrokerConfig,
    shutdown: impl Future<Output = ()>,
    stored: impl Fn(Uuid) + Clone + Send + Sync + 'static,
) {
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let opened = tokio::select! {
            () = &mut shutdown => return,
            opened = Desk::open(config) => opened,
        };
        match opened {
            Ok(desk) => {
                if desk.attend(&books, &mut shutdown, &stored).await {
                    return;
                }
            }
            Err(error) => tracing::warn!(%error, "no reports can be taken yet; trying again"),
        }
        tokio::select! {
            () = &mut shutdown => return,
            () = tokio::time::sleep(RETRY_DELAY) => {}
        }
    }
}

/// Where reports are taken, on a connection of their own: calls are not to wait behind them.
struct Desk {
    link: Link,
    consumer: Consumer,
    out: Out,
}

/// Where replies and dead letters go.
#[derive(Clone)]
struct Out {
    replies: Channel,
    dead: Channel,
    dead_queue: Arc<str>,
}

impl Desk {
    async fn open(config: &BrokerConfig) -> Result<Self, RpcError> {
        let link = Link::connect(config.amqp.reveal(), "server, reports").await?;
        topology::declare(&link, &config.topology).await?;
        let channel = link.consuming_channel(CONCURRENCY).await?;
        let queue = config.topology.reports_queue.as_str();
        let options = BasicConsumeOptions::default();
        let consuming = channel.basic_consume(queue.into(), "".into(), options, FieldTable::default());
        let consumer = connection::within(consuming).await?;
        let out = Out {
            replies: link.channel().await?,
            dead: link.confirming_channel().await?,
            dead_queue: config.topology.reports_dead_queue.as_str().into(),
        };
        Ok(Self { link, consumer, out })
    }

    /// Takes reports until told to stop (true) or until the connection is lost (false).
    async fn attend(
        mut self,
        books: &Books,
        shutdown: &mut (impl Future<Output = ()> + Unpin),
        stored: &(impl Fn(Uuid) + Clone + Send + Sync + 'static),
    ) -> bool {
        let mut at_work = JoinSet::new();
        loop {
            tokio::select! {
                () = &mut *shutdown => {
                    let all = async { while at_work.join_next().await.is_some() {} };
                    if timeout(DRAIN_LIMIT, all).await.is_err() {
                        tracing::warn!("reports were not stored in time; the broker delivers them again");
                    }
                    self.link.close().await;
                    return true;
                }
                Some(taken) = at_work.join_next() => if !matches!(taken, Ok(true)) {
                    return false;
                },
                delivery = self.consumer.next() => match delivery {
                    Some(Ok(delivery)) => {
                        let (books, out, stored) = (books.clone(), self.out.clone(), stored.clone());
                        at_work.spawn(async move { take(&books, &out, delivery, stored).await });
                    }
                    Some(Err(error)) => {
                        tracing::warn!(%error, "reports are no longer delivered");
                        return false;
                    }
                    None => return false,
                },
            }
        }
    }
}

/// One claim or report, from its bytes to its ack. False where the broker could not be told.
async fn take(books: &Books, out: &Out, delivery: Delivery, stored: impl Fn(Uuid)) -> bool {
    let taken = match read(&delivery) {
        Ok(message) => enter(books, &message, &stored).await,
        Err(reason) => Err(reason),
    };
    let told = match taken {
        Ok(reply) => answer(out, &delivery, &reply).await,
        Err(reason) => {
            tracing::error!(reason, "a report that cannot be taken");
            bury(out, &delivery, reason).await
        }
    };
    if let Err(error) = told {
        tracing::error!(%error, "what became of a report could not be told");
        return false;
    }
    match delivery.acker.ack(BasicAckOptions::default()).await {
        Ok(acked) => acked,
        Err(error) => {
            tracing::warn!(%error, "a report could not be acked");
            false
        }
    }
}

/// Stores a message, and answers its reply. A turn that goes on because of it is sent before that: whoever reported may be gone.
async fn enter(books: &Books, message: &ToTheBooks, stored: impl Fn(Uuid)) -> Result<Value, Refused> {
    let (turn, reply, due) = match message {
        ToTheBooks::Claim(claim) => {
            let Taken { reply, due } = until_stored(|| books.conversations.claim(claim)).await?;
            (claim.turn_id, json!(reply), due)
        }
        ToTheBooks::Report(report) => {
            let Taken { reply, due } = until_stored(|| books.conversations.record(report)).await?;
            (report.turn_id, json!(reply), due)
        }
    };
    stored(turn);
    if let Some(due) = due {
        books.send(due).await;
        stored(turn);
    }
    Ok(reply)
}

/// Tries until the database takes it, or will never.
async fn until_stored<T, F>(mut attempt: impl FnMut() -> F) -> Result<T, Refused>
where
    F: Future<Output = Result<T, ReportError>>,
{
    loop {
        match attempt().await {
            Ok(taken) => return Ok(taken),
            Err(ReportError::Malformed(reason)) => return Err(reason),
            Err(ReportError::Database(error)) if error.may_pass() => {
                tracing::warn!(%error, "a report could not be stored; trying again");
                tokio::time::sleep(TRY_AGAIN).await;
            }
            Err(ReportError::Database(error)) => {
                tracing::error!(%error, "a report was refused by the database");
                return Err("the database refuses it");
            }
        }
    }
}

fn read(delivery: &Delivery) -> Result<ToTheBooks, Refused> {
    let headers = delivery.properties.headers().as_ref();
    if headers.is_some_and(|headers| headers.contains_key(UNREADABLE_HEADER)) {
        return Err("its properties cannot be read");
    }
    if delivery.data.len() > MAX_PACKET_BYTES {
        return Err("it is larger than 1 MiB");
    }
    serde_json::from_slice(&delivery.data).map_err(|_| "it is no report")
}

/// Replies to whoever has proven to hold the turn's grant. Not as mandatory: the broker returns every such message to a direct reply
/// address, taken or not.
async fn answer(out: &Out, delivery: &Delivery, reply: &Value) -> Result<(), RpcError> {
    let Some(address) = delivery.properties.reply_to() else {
        return Ok(());
    };
    let mut properties = BasicProperties::default().with_content_type("application/json".into());
    if let Some(correlation) = delivery.properties.correlation_id() {
        properties = properties.with_correlation_id(correlation.clone());
    }
    let body = reply.to_string();
    let options = BasicPublishOptions::default();
    let publishing = out
        .replies
        .basic_publish("".into(), address.clone(), options, body.as_bytes(), properties);
    connection::within(publishing).await.map(drop)
}

/// Copies a report to the dead letters, without its body: that holds a grant, and what people and rows say.
async fn bury(out: &Out, delivery: &Delivery, reason: Refused) -> Result<(), RpcError> {
    let mut headers = FieldTable::default();
    headers.insert(REASON_HEADER.into(), AMQPValue::LongString(reason.into()));
    let properties = message::to_keep(&delivery.properties, headers);
    let publishing = async {
        let options = BasicPublishOptions::default();
        let queue = out.dead_queue.as_ref();
        out.dead
            .basic_publish("".into(), queue.into(), options, b"", properties)
            .await?
            .await
    };
    match connection::within(publishing).await? {
        Confirmation::Ack(_) | Confirmation::NotRequested => Ok(()),
        Confirmation::Nack(_) => Err(RpcError::Refused),
    }
}

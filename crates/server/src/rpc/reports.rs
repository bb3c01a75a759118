//! Takes what workers report of turns, stores it, acks. A report that cannot be read or is not proven goes to the dead letters; one that
//! cannot be stored yet is tried until it can be, since nobody would send it again.

use super::{
    RpcError,
    connection::{self, Link, RETRY_DELAY},
    message, topology,
    turns::TurnSender,
};
use crate::{
    config::BrokerConfig,
    conversation::{Conversations, Recorded, ReportError},
};
use broker_guard::UNREADABLE_HEADER;
use contract::{
    envelope::{MAX_PACKET_BYTES, REASON_HEADER},
    turn::{CancelTurn, TurnReport},
};
use futures_util::StreamExt;
use lapin::{
    Channel, Confirmation, Consumer,
    message::Delivery,
    options::{BasicAckOptions, BasicConsumeOptions, BasicPublishOptions},
    types::{AMQPValue, FieldTable},
};
use std::{future::Future, sync::Arc, time::Duration};
use tokio::{task::JoinSet, time::timeout};
use uuid::Uuid;

/// How many reports are stored at once. Each holds a connection to the database, of which calls need most.
const CONCURRENCY: u16 = 4;
/// The wait before a report that could not be stored is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(500);
/// How long reports under way are given once the process was asked to stop.
const DRAIN_LIMIT: Duration = Duration::from_secs(3);

/// What reports are stored in, and who tells workers what they have not heard.
#[derive(Clone)]
pub(crate) struct Books {
    pub(crate) conversations: Arc<Conversations>,
    pub(crate) turns: Arc<TurnSender>,
}

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
    dead: Dead,
}

#[derive(Clone)]
struct Dead {
    channel: Channel,
    queue: Arc<str>,
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
        let dead = Dead {
            channel: link.confirming_channel().await?,
            queue: config.topology.reports_dead_queue.as_str().into(),
        };
        Ok(Self { link, consumer, dead })
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
                        let (books, dead, stored) = (books.clone(), self.dead.clone(), stored.clone());
                        at_work.spawn(async move { take(&books, &dead, delivery, stored).await });
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

/// One report, from its bytes to its ack. False where the broker could not be told.
async fn take(books: &Books, dead: &Dead, delivery: Delivery, stored: impl Fn(Uuid)) -> bool {
    let taken = match read(&delivery) {
        Ok(report) => record(books, &report).await.map(|()| stored(report.turn_id)),
        Err(reason) => Err(reason),
    };
    if let Err(reason) = taken {
        tracing::error!(reason, "a report that cannot be taken");
        if let Err(error) = bury(dead, &delivery, reason).await {
            tracing::error!(%error, "the dead letter could not be stored");
            return false;
        }
    }
    match delivery.acker.ack(BasicAckOptions::default()).await {
        Ok(acked) => acked,
        Err(error) => {
            tracing::warn!(%error, "a report could not be acked");
            false
        }
    }
}

async fn record(books: &Books, report: &TurnReport) -> Result<(), &'static str> {
    loop {
        match books.conversations.record(report).await {
            Ok(Recorded::Wanted) => return Ok(()),
            Ok(Recorded::Unwanted) => {
                let turn_id = report.turn_id;
                if let Err(error) = books.turns.cancel(&CancelTurn { turn_id }).await {
                    tracing::warn!(%error, turn = %turn_id, "a worker could not be told to stop a turn");
                }
                return Ok(());
            }
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

fn read(delivery: &Delivery) -> Result<TurnReport, &'static str> {
    let headers = delivery.properties.headers().as_ref();
    if headers.is_some_and(|headers| headers.contains_key(UNREADABLE_HEADER)) {
        return Err("its properties cannot be read");
    }
    if delivery.data.len() > MAX_PACKET_BYTES {
        return Err("it is larger than 1 MiB");
    }
    serde_json::from_slice(&delivery.data).map_err(|_| "it is no report")
}

/// Copies a report to the dead letters, without its body: that holds a grant, and what people and rows say.
async fn bury(dead: &Dead, delivery: &Delivery, reason: &'static str) -> Result<(), RpcError> {
    let mut headers = FieldTable::default();
    headers.insert(REASON_HEADER.into(), AMQPValue::LongString(reason.into()));
    let properties = message::to_keep(&delivery.properties, headers);
    let publishing = async {
        let options = BasicPublishOptions::default();
        let queue = dead.queue.as_ref();
        dead.channel
            .basic_publish("".into(), queue.into(), options, b"", properties)
            .await?
            .await
    };
    match connection::within(publishing).await? {
        Confirmation::Ack(_) | Confirmation::NotRequested => Ok(()),
        Confirmation::Nack(_) => Err(RpcError::Refused),
    }
}

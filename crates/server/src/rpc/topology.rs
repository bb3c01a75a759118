//! What this side declares: where requests come in, and where dead letters go.

use super::{
    RpcError,
    connection::{Link, within},
};
use contract::{
    topology::Topology,
    turn::{MAX_DEAD_REPORTS, REPORT_DELIVERY_LIMIT, TURN_DELIVERY_LIMIT},
};
use lapin::{
    ExchangeKind,
    options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions},
    types::{AMQPValue, FieldTable},
};

/// How many dead letters are kept; the oldest go first. Enough to find out what happened, too few to fill a disk.
const MAX_DEAD_LETTERS: i32 = 10_000;

/// Declares exchange and queues, on a channel of its own, which a refusal would close.
pub(super) async fn declare(link: &Link, names: &Topology) -> Result<(), RpcError> {
    let channel = link.channel().await?;
    let durable = QueueDeclareOptions {
        durable: true,
        ..QueueDeclareOptions::default()
    };
    let exchange = ExchangeDeclareOptions {
        durable: true,
        ..ExchangeDeclareOptions::default()
    };
    let none = FieldTable::default;
    let (requests, queue) = (names.tools_exchange.as_str(), names.tools_queue.as_str());
    within(channel.exchange_declare(requests.into(), ExchangeKind::Topic, exchange, none())).await?;
    within(channel.queue_declare(queue.into(), durable, none())).await?;
    within(channel.queue_bind(
        queue.into(),
        requests.into(),
        "#".into(),
        QueueBindOptions::default(),
        none(),
    ))
    .await?;
    within(channel.queue_declare(
        names.tools_dead_queue.as_str().into(),
        durable,
        bounded(MAX_DEAD_LETTERS),
    ))
    .await?;
    within(channel.queue_declare(
        names.turns_dead_queue.as_str().into(),
        durable,
        bounded(MAX_DEAD_LETTERS),
    ))
    .await?;
    within(channel.queue_declare(names.turns_queue.as_str().into(), durable, turns(names))).await?;
    within(channel.queue_declare(
        names.reports_dead_queue.as_str().into(),
        durable,
        bounded(MAX_DEAD_REPORTS),
    ))
    .await?;
    within(channel.queue_declare(names.reports_queue.as_str().into(), durable, reports(names))).await?;
    let cancels = names.cancel_exchange.as_str();
    within(channel.exchange_declare(cancels.into(), ExchangeKind::Fanout, exchange, none())).await?;
    within(channel.close(200, "declared".into())).await
}

fn bounded(most: i32) -> FieldTable {
    let mut arguments = FieldTable::default();
    arguments.insert("x-max-length".into(), AMQPValue::LongInt(most));
    arguments
}

fn turns(names: &Topology) -> FieldTable {
    quorum(TURN_DELIVERY_LIMIT, &names.turns_dead_queue)
}

fn reports(names: &Topology) -> FieldTable {
    quorum(REPORT_DELIVERY_LIMIT, &names.reports_dead_queue)
}

/// The very arguments that the worker declares.
fn quorum(limit: i32, dead_queue: &str) -> FieldTable {
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
    arguments.insert("x-delivery-limit".into(), AMQPValue::LongInt(limit));
    arguments.insert("x-dead-letter-exchange".into(), AMQPValue::LongString("".into()));
    arguments.insert(
        "x-dead-letter-routing-key".into(),
        AMQPValue::LongString(dead_queue.into()),
    );
    arguments
}

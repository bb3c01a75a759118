//! What the worker needs to be there at the broker, declared exactly as the server declares it.
//!
//! Each declaration has a channel to itself: a refused one closes its channel.

use super::link::{LinkError, within};
use contract::{
    topology::Topology,
    turn::{MAX_DEAD_REPORTS, REPORT_DELIVERY_LIMIT, TURN_DELIVERY_LIMIT},
};
use lapin::{
    Connection, ExchangeKind,
    options::{ExchangeDeclareOptions, QueueDeclareOptions},
    types::{AMQPValue, FieldTable},
};

/// How many dead turns are kept; the oldest go first. Enough to see what went wrong, not a second store.
const MAX_DEAD_TURNS: i32 = 10_000;

/// The exchange that requests go to: topic, durable, no arguments. A message to an exchange that isn't there would close the
/// channel; one to an exchange without a queue comes back as unroutable, which is what a server that is yet to start should mean.
pub(super) async fn tools_exchange(connection: &Connection, topology: &Topology) -> Result<(), LinkError> {
    exchange(connection, &topology.tools_exchange, ExchangeKind::Topic).await
}

/// The exchange by which every worker is told to stop a turn: fanout, durable, no arguments.
pub(super) async fn cancel_exchange(connection: &Connection, topology: &Topology) -> Result<(), LinkError> {
    exchange(connection, &topology.cancel_exchange, ExchangeKind::Fanout).await
}

/// The queue of turns and the one of dead turns, both durable.
///
/// - `turns_queue`: `x-queue-type` "quorum", `x-delivery-limit` [`TURN_DELIVERY_LIMIT`] as a 32-bit integer,
///   `x-dead-letter-exchange` "" (the default exchange), `x-dead-letter-routing-key` the name of the other.
/// - `turns_dead_queue`: classic, `x-max-length` 10000 as a 32-bit integer.
pub(super) async fn turn_queues(connection: &Connection, topology: &Topology) -> Result<(), LinkError> {
    let (queue, dead_queue) = (&topology.turns_queue, &topology.turns_dead_queue);
    pair(connection, (queue, TURN_DELIVERY_LIMIT), (dead_queue, MAX_DEAD_TURNS)).await
}

/// The queue of reports and the one of dead reports, with the same arguments as those of turns but for the numbers:
/// [`REPORT_DELIVERY_LIMIT`] and [`MAX_DEAD_REPORTS`].
pub(super) async fn report_queues(connection: &Connection, topology: &Topology) -> Result<(), LinkError> {
    let (queue, dead_queue) = (&topology.reports_queue, &topology.reports_dead_queue);
    pair(
        connection,
        (queue, REPORT_DELIVERY_LIMIT),
        (dead_queue, MAX_DEAD_REPORTS),
    )
    .await
}

/// A quorum queue, and the bounded one that its messages go to after so many deliveries.
async fn pair(
    connection: &Connection,
    (name, delivery_limit): (&str, i32),
    (dead_name, max_dead): (&str, i32),
) -> Result<(), LinkError> {
    let mut dead = FieldTable::default();
    dead.insert("x-max-length".into(), AMQPValue::LongInt(max_dead));
    queue(connection, dead_name, dead).await?;
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
    arguments.insert("x-delivery-limit".into(), AMQPValue::LongInt(delivery_limit));
    arguments.insert("x-dead-letter-exchange".into(), AMQPValue::LongString("".into()));
    arguments.insert(
        "x-dead-letter-routing-key".into(),
        AMQPValue::LongString(dead_name.into()),
    );
    queue(connection, name, arguments).await
}

async fn exchange(connection: &Connection, name: &str, kind: ExchangeKind) -> Result<(), LinkError> {
    within("declare an exchange", async {
        let channel = connection.create_channel().await?;
        let options = ExchangeDeclareOptions {
            durable: true,
            ..ExchangeDeclareOptions::default()
        };
        channel
            .exchange_declare(name.into(), kind, options, FieldTable::default())
            .await?;
        channel.close(200, "declared".into()).await
    })
    .await
}

async fn queue(connection: &Connection, name: &str, arguments: FieldTable) -> Result<(), LinkError> {
    within("declare a queue", async {
        let channel = connection.create_channel().await?;
        let options = QueueDeclareOptions {
            durable: true,
            ..QueueDeclareOptions::default()
        };
        channel.queue_declare(name.into(), options, arguments).await?;
        channel.close(200, "declared".into()).await
    })
    .await
}

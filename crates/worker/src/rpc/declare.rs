//! What the worker needs to be there at the broker, declared exactly as the server declares it.
//!
//! Each declaration has a channel to itself: a refused one closes its channel.

use super::link::{LinkError, within};
use contract::{topology::Topology, turn::TURN_DELIVERY_LIMIT};
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
    within("declare the exchange", async {
        let channel = connection.create_channel().await?;
        let options = ExchangeDeclareOptions {
            durable: true,
            ..ExchangeDeclareOptions::default()
        };
        channel
            .exchange_declare(
                topology.tools_exchange.as_str().into(),
                ExchangeKind::Topic,
                options,
                FieldTable::default(),
            )
            .await?;
        channel.close(200, "declared".into()).await
    })
    .await
}

/// The queue of turns and the one of dead turns, both durable.
///
/// - `turns_queue`: `x-queue-type` "quorum", `x-delivery-limit` [`TURN_DELIVERY_LIMIT`] as a 32-bit integer,
///   `x-dead-letter-exchange` "" (the default exchange), `x-dead-letter-routing-key` the name of the other.
/// - `turns_dead_queue`: classic, `x-max-length` 10000 as a 32-bit integer.
pub(super) async fn turn_queues(connection: &Connection, topology: &Topology) -> Result<(), LinkError> {
    let mut dead = FieldTable::default();
    dead.insert("x-max-length".into(), AMQPValue::LongInt(MAX_DEAD_TURNS));
    queue(connection, &topology.turns_dead_queue, dead).await?;
    let mut turns = FieldTable::default();
    turns.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
    turns.insert("x-delivery-limit".into(), AMQPValue::LongInt(TURN_DELIVERY_LIMIT));
    turns.insert("x-dead-letter-exchange".into(), AMQPValue::LongString("".into()));
    turns.insert(
        "x-dead-letter-routing-key".into(),
        AMQPValue::LongString(topology.turns_dead_queue.as_str().into()),
    );
    queue(connection, &topology.turns_queue, turns).await
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

//! Sends turns to workers, and the word to stop one.

use super::{
    RpcError,
    connection::{self, Link},
    topology,
};
use crate::config::BrokerConfig;
use contract::turn::{CancelTurn, TurnMessage};
use lapin::{BasicProperties, Channel};
use serde::Serialize;
use tokio::sync::Mutex;

/// What is known of a message that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// The broker has it.
    Stored,
    /// It may have it.
    Unknown,
}

/// A connection for turns, made anew when it is lost.
pub(crate) struct TurnSender {
    config: BrokerConfig,
    open: Mutex<Option<(Link, Channel)>>,
}

impl TurnSender {
    /// Connects when it is first used.
    pub(crate) fn new(config: BrokerConfig) -> Self {
        Self {
            config,
            open: Mutex::new(None),
        }
    }

    /// Sends a turn, and waits until the broker has stored it. An error is that of a turn that the broker has not got.
    pub(crate) async fn send(&self, turn: &TurnMessage) -> Result<Sent, RpcError> {
        let queue = &self.config.topology.turns_queue;
        let properties = lasting()
            .with_type("turn".into())
            .with_message_id(connection::short(&turn.turn_id.to_string()));
        self.publish("", queue, turn, properties).await
    }

    /// Tells every worker to stop a turn.
    pub(crate) async fn cancel(&self, cancelled: &CancelTurn) -> Result<(), RpcError> {
        let exchange = &self.config.topology.cancel_exchange;
        match self.publish(exchange, "", cancelled, lasting()).await {
            // no worker is there; one that claims the turn later is refused
            Err(RpcError::Unroutable(_)) => Ok(()),
            sent => sent.map(drop),
        }
    }

    /// Whether the broker takes turns.
    pub(crate) async fn check(&self) -> Result<(), RpcError> {
        self.channel().await.map(drop)
    }

    async fn publish<T: Serialize + Sync>(
        &self,
        exchange: &str,
        routing_key: &str,
        body: &T,
        properties: BasicProperties,
    ) -> Result<Sent, RpcError> {
        let body = serde_json::to_vec(body).map_err(|error| RpcError::Unreadable(error.to_string()))?;
        let channel = self.channel().await?;
        match connection::publish(&channel, (exchange, routing_key), &body, properties).await {
            Err(error @ (RpcError::Broker(_) | RpcError::Timeout(_))) => {
                tracing::warn!(%error, "whether the broker took a message is not known");
                Ok(Sent::Unknown)
            }
            published => published.map(|()| Sent::Stored),
        }
    }

    async fn channel(&self) -> Result<Channel, RpcError> {
        let mut open = self.open.lock().await;
        if let Some((link, channel)) = open.as_ref()
            && channel.status().connected()
        {
            // held back, a turn would be begun long after its person has gone
            return if link.is_blocked() {
                Err(RpcError::Refused)
            } else {
                Ok(channel.clone())
            };
        }
        *open = None;
        let link = Link::connect(self.config.amqp.reveal(), "server, turns").await?;
        topology::declare(&link, &self.config.topology).await?;
        let channel = link.confirming_channel().await?;
        *open = Some((link, channel.clone()));
        Ok(channel)
    }

    /// Closes in order.
    pub(crate) async fn close(&self) {
        if let Some((link, _)) = self.open.lock().await.take() {
            link.close().await;
        }
    }
}

/// Properties of a message that must survive the broker.
fn lasting() -> BasicProperties {
    BasicProperties::default()
        .with_content_type("application/json".into())
        .with_delivery_mode(2)
}

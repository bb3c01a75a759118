//! Sends turns to workers, and the word to stop one.

use super::{
    RpcError,
    connection::{self, Link},
    reports::lasting,
    topology,
};
use crate::config::BrokerConfig;
use contract::turn::{CancelTurn, TurnMessage};
use lapin::{BasicProperties, Channel, Confirmation, options::BasicPublishOptions};
use serde::Serialize;
use tokio::sync::Mutex;

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

    /// Sends a turn, and waits until the broker has stored it. An error is that of a turn that the broker has not got; where nobody
    /// knows, the turn may run, and it is as good as sent.
    pub(crate) async fn send(&self, turn: &TurnMessage) -> Result<(), RpcError> {
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
            // no worker is there: none can have the turn, and its time will end it
            Err(RpcError::Unroutable(_)) => Ok(()),
            sent => sent,
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
    ) -> Result<(), RpcError> {
        let body = serde_json::to_vec(body).map_err(|error| RpcError::Unreadable(error.to_string()))?;
        let channel = self.channel().await?;
        let options = BasicPublishOptions {
            mandatory: true,
            ..BasicPublishOptions::default()
        };
        let publishing = async {
            channel
                .basic_publish(exchange.into(), routing_key.into(), options, &body, properties)
                .await?
                .await
        };
        let confirmed = match connection::within(publishing).await {
            Ok(confirmed) => confirmed,
            Err(error) => {
                tracing::warn!(%error, "whether the broker took a message is not known");
                return Ok(());
            }
        };
        match confirmed {
            Confirmation::Ack(None) | Confirmation::NotRequested => Ok(()),
            Confirmation::Ack(Some(_)) => Err(RpcError::Unroutable(routing_key.to_owned())),
            Confirmation::Nack(_) => Err(RpcError::Refused),
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

//! The operator's side of the hop: sends one tool call or one turn through the broker, as a worker or a door would, and waits for
//! what comes back.

use super::{
    RpcError,
    connection::{self, Link},
    topology,
};
use crate::{clock, config::BrokerConfig};
use contract::{
    AgentToolRequest, AgentToolResult, Event,
    envelope::{DEADLINE_HEADER, DIRECT_REPLY_TO, GRANT_HEADER, ReplyPacket, RequestPacket},
    topology::Topology,
    turn::{TurnAnswer, TurnMessage},
};
use futures_util::StreamExt;
use lapin::{
    BasicProperties, Channel, Consumer,
    options::BasicConsumeOptions,
    types::{AMQPValue, FieldTable, ShortString},
};
use serde::de::DeserializeOwned;
use std::time::Duration;
use tokio::time::timeout;
use uuid::Uuid;

/// A connection for calls made one after the other.
pub(crate) struct Client {
    link: Link,
    names: Topology,
    channel: Channel,
    replies: Consumer,
}

/// One call to be sent.
#[derive(Debug)]
pub(crate) struct ToolCall {
    pub(crate) event: Event,
    pub(crate) request: AgentToolRequest,
    pub(crate) grant: String,
    pub(crate) key: String,
    pub(crate) patience: Duration,
}

impl Client {
    /// Connects.
    pub(crate) async fn connect(config: &BrokerConfig) -> Result<Self, RpcError> {
        let link = Link::connect(config.amqp.reveal(), "operator").await?;
        let names = config.topology.clone();
        topology::declare(&link, &names).await?;
        let channel = link.confirming_channel().await?;
        let options = BasicConsumeOptions {
            no_ack: true,
            ..BasicConsumeOptions::default()
        };
        let consuming = channel.basic_consume(DIRECT_REPLY_TO.into(), "".into(), options, FieldTable::default());
        let replies = connection::within(consuming).await?;
        Ok(Self {
            link,
            names,
            channel,
            replies,
        })
    }

    /// Sends a tool call and waits for its result.
    pub(crate) async fn call(&mut self, call: ToolCall) -> Result<AgentToolResult, RpcError> {
        let correlation = Uuid::new_v4().to_string();
        let mut headers = FieldTable::default();
        headers.insert(GRANT_HEADER.into(), AMQPValue::LongString(call.grant.into()));
        let deadline = clock::deadline_in(call.patience);
        headers.insert(DEADLINE_HEADER.into(), AMQPValue::LongLongInt(deadline));
        let event = call.event.as_str();
        let properties = properties(&correlation)
            .with_type(event.into())
            .with_message_id(connection::short(&call.key))
            .with_expiration(connection::short(&call.patience.as_millis().to_string()))
            .with_headers(headers);
        let packet = RequestPacket {
            pattern: event.to_owned(),
            data: call.request,
            id: Some(correlation.clone()),
        };
        self.publish(&self.names.tools_exchange, event, &packet, properties)
            .await?;
        let reply: ReplyPacket = self.reply(&correlation, call.patience).await?;
        Ok(reply.response)
    }

    /// Sends a turn to a worker and waits for its answer.
    pub(crate) async fn turn(&mut self, turn: &TurnMessage, patience: Duration) -> Result<TurnAnswer, RpcError> {
        let correlation = turn.turn_id.to_string();
        let properties = properties(&correlation).with_type("turn".into()).with_delivery_mode(2);
        self.publish("", &self.names.turns_queue, turn, properties).await?;
        self.reply(&correlation, patience).await
    }

    /// Closes in order.
    pub(crate) async fn close(self) {
        self.link.close().await;
    }

    async fn publish<T: serde::Serialize>(
        &self,
        exchange: &str,
        routing_key: &str,
        body: &T,
        properties: BasicProperties,
    ) -> Result<(), RpcError> {
        let body = serde_json::to_vec(body).map_err(|error| RpcError::Unreadable(error.to_string()))?;
        // held back by the broker, it would be delivered long after the caller has gone
        if self.link.is_blocked() {
            return Err(RpcError::Refused);
        }
        connection::publish(&self.channel, (exchange, routing_key), &body, properties).await
    }

    async fn reply<T: DeserializeOwned>(&mut self, correlation: &str, patience: Duration) -> Result<T, RpcError> {
        let waiting = async {
            while let Some(delivery) = self.replies.next().await {
                let delivery = delivery?;
                let of = delivery.properties.correlation_id().as_ref().map(ShortString::as_str);
                if of == Some(correlation) {
                    return serde_json::from_slice(&delivery.data)
                        .map_err(|error| RpcError::Unreadable(error.to_string()));
                }
            }
            Err(RpcError::Lost)
        };
        timeout(patience, waiting)
            .await
            .map_err(|_| RpcError::Timeout(patience))?
    }
}

fn properties(correlation: &str) -> BasicProperties {
    BasicProperties::default()
        .with_content_type("application/json".into())
        .with_reply_to(DIRECT_REPLY_TO.into())
        .with_correlation_id(connection::short(correlation))
}

//! What the server sends: replies, and the dead letters' copies, over a connection of their own.
//!
//! Of their own, because a reply goes where its caller says. `RabbitMQ` 3.10 ends the connection of whoever publishes to a direct reply
//! address that it cannot decode: on the connection of the deliveries, one such packet would take all calls in flight with it, and
//! come again. And a broker that holds publishes back stops reading from who publishes, and would then see no acks either.

use super::{
    PUBLISH_LIMIT, RpcError,
    connection::{self, Link},
    message,
};
use crate::config::Secret;
use contract::{
    AgentToolResult,
    envelope::{MAX_PACKET_BYTES, REASON_HEADER, ReplyPacket},
};
use lapin::{
    BasicProperties, Channel, Confirmation, message::Delivery, options::BasicPublishOptions, types::AMQPValue,
};
use tokio::{sync::Mutex, time::timeout};

/// The connection for what goes out, made anew when it is lost.
pub(super) struct Outgoing {
    amqp: Secret,
    dead_queue: String,
    open: Mutex<Option<Open>>,
}

struct Open {
    link: Link,
    /// Not confirmed: a caller that gets no reply asks again under its key.
    replies: Channel,
    /// Confirmed before their delivery is acked.
    dead: Channel,
}

impl Outgoing {
    pub(super) fn new(amqp: Secret, dead_queue: String) -> Self {
        Self {
            amqp,
            dead_queue,
            open: Mutex::new(None),
        }
    }

    /// Publishes a reply. Not as mandatory: the broker returns every such message to a direct reply address, taken or not.
    pub(super) async fn reply(
        &self,
        address: &str,
        correlation: Option<String>,
        result: AgentToolResult,
    ) -> Result<(), RpcError> {
        let body = serde_json::to_vec(&ReplyPacket::to(correlation.clone(), result))
            .map_err(|error| RpcError::Unreadable(error.to_string()))?;
        let mut properties = BasicProperties::default().with_content_type("application/json".into());
        if let Some(correlation) = correlation {
            properties = properties.with_correlation_id(connection::short(&correlation));
        }
        match self.publish_reply(address, &body, properties.clone()).await {
            // the connection was lost under another's reply
            Err(RpcError::Broker(_)) => self.publish_reply(address, &body, properties).await,
            sent => sent,
        }
    }

    async fn publish_reply(&self, address: &str, body: &[u8], properties: BasicProperties) -> Result<(), RpcError> {
        let (channel, _) = self.channels().await?;
        let options = BasicPublishOptions::default();
        let publishing = channel.basic_publish("".into(), connection::short(address), options, body, properties);
        match timeout(PUBLISH_LIMIT, publishing).await {
            Ok(published) => published.map(drop).map_err(RpcError::from),
            Err(_) => Err(RpcError::Timeout(PUBLISH_LIMIT)),
        }
    }

    /// Copies a delivery to the dead letters, and waits until it is stored there.
    pub(super) async fn bury(&self, delivery: &Delivery, reason: &'static str) -> Result<(), RpcError> {
        let mut headers = delivery.properties.headers().clone().unwrap_or_default();
        headers.insert(REASON_HEADER.into(), AMQPValue::LongString(reason.into()));
        // a grant is a credential, and dead letters are read by people
        let headers = message::without_grant(&headers);
        let properties = message::to_keep(&delivery.properties, headers);
        match self.publish_dead(delivery, properties.clone()).await {
            Err(RpcError::Broker(_)) => self.publish_dead(delivery, properties).await,
            stored => stored,
        }
    }

    async fn publish_dead(&self, delivery: &Delivery, properties: BasicProperties) -> Result<(), RpcError> {
        let (_, channel) = self.channels().await?;
        let body = delivery
            .data
            .get(..MAX_PACKET_BYTES.min(delivery.data.len()))
            .unwrap_or_default();
        let queue = self.dead_queue.as_str();
        let options = BasicPublishOptions::default();
        let publishing = channel.basic_publish("".into(), queue.into(), options, body, properties);
        let stored = async { publishing.await?.await };
        match timeout(PUBLISH_LIMIT, stored).await {
            Ok(Ok(Confirmation::Ack(_) | Confirmation::NotRequested)) => Ok(()),
            Ok(Ok(Confirmation::Nack(_))) => Err(RpcError::Refused),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(RpcError::Timeout(PUBLISH_LIMIT)),
        }
    }

    /// The channels for replies and for dead letters, over the connection that is open or a new one.
    async fn channels(&self) -> Result<(Channel, Channel), RpcError> {
        let mut open = self.open.lock().await;
        if let Some(open) = open.as_ref()
            && open.replies.status().connected()
            && open.dead.status().connected()
        {
            return Ok((open.replies.clone(), open.dead.clone()));
        }
        *open = None;
        let link = Link::connect(self.amqp.reveal(), "server, outgoing").await?;
        let (replies, dead) = (link.channel().await?, link.confirming_channel().await?);
        let channels = (replies.clone(), dead.clone());
        *open = Some(Open { link, replies, dead });
        Ok(channels)
    }

    /// Closes in order, so that what was sent has arrived.
    pub(super) async fn close(&self) {
        if let Some(open) = self.open.lock().await.take() {
            open.link.close().await;
        }
    }
}

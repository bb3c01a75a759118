//! One connection to the broker, with a time limit on everything that could wait for a silent peer.

use super::RpcError;
use lapin::{
    BasicProperties, Channel, Confirmation, Connection, ConnectionProperties,
    options::{BasicPublishOptions, BasicQosOptions, ConfirmSelectOptions},
    types::ShortString,
};
use std::{future::Future, time::Duration};
use tokio::time::timeout;

/// How long connecting, declaring and consuming may take.
pub(super) const SETUP_LIMIT: Duration = Duration::from_secs(5);
/// How long to wait before connecting again: often enough to be back soon after the broker, seldom enough to leave it alone.
pub(super) const RETRY_DELAY: Duration = Duration::from_millis(300);

/// A connection.
pub(super) struct Link {
    connection: Connection,
}

impl Link {
    /// Connects under a name that the broker's operators see.
    pub(super) async fn connect(url: &str, name: &str) -> Result<Self, RpcError> {
        let properties = ConnectionProperties::default().with_connection_name(name.to_owned().into());
        let connection = within(broker_guard::connect(url, properties)).await?;
        Ok(Self { connection })
    }

    pub(super) async fn channel(&self) -> Result<Channel, RpcError> {
        within(self.connection.create_channel()).await
    }

    /// A channel whose publishes are confirmed.
    pub(super) async fn confirming_channel(&self) -> Result<Channel, RpcError> {
        let channel = self.channel().await?;
        within(channel.confirm_select(ConfirmSelectOptions::default())).await?;
        Ok(channel)
    }

    /// A channel on which at most `prefetch` deliveries are out at once.
    pub(super) async fn consuming_channel(&self, prefetch: u16) -> Result<Channel, RpcError> {
        let channel = self.channel().await?;
        within(channel.basic_qos(prefetch, BasicQosOptions::default())).await?;
        Ok(channel)
    }

    /// Whether the broker holds publishes back.
    pub(super) fn is_blocked(&self) -> bool {
        self.connection.status().blocked()
    }

    /// Closes in order, so that the broker logs no fault.
    pub(super) async fn close(self) {
        if let Err(error) = within(self.connection.close(200, "bye".into())).await {
            tracing::debug!(%error, "the connection was not closed in order");
        }
    }
}

/// Publishes something that somebody must take, and waits until the broker has stored it.
///
/// # Errors
///
/// [`RpcError::Unroutable`] and [`RpcError::Refused`] where the broker has not got it. After any other error nobody knows.
pub(super) async fn publish(
    channel: &Channel,
    (exchange, routing_key): (&str, &str),
    body: &[u8],
    properties: BasicProperties,
) -> Result<(), RpcError> {
    let options = BasicPublishOptions {
        mandatory: true,
        ..BasicPublishOptions::default()
    };
    let publishing = channel.basic_publish(exchange.into(), routing_key.into(), options, body, properties);
    match within(async { publishing.await?.await }).await? {
        Confirmation::Ack(None) | Confirmation::NotRequested => Ok(()),
        Confirmation::Ack(Some(_)) => Err(RpcError::Unroutable(routing_key.to_owned())),
        Confirmation::Nack(_) => Err(RpcError::Refused),
    }
}

/// Bounds a step of setting up.
pub(super) async fn within<T>(step: impl Future<Output = Result<T, lapin::Error>>) -> Result<T, RpcError> {
    match timeout(SETUP_LIMIT, step).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(RpcError::Timeout(SETUP_LIMIT)),
    }
}

/// A text as a short string; AMQP's are at most 255 bytes, and what is longer is cut, as it can name nothing.
pub(super) fn short(text: &str) -> ShortString {
    ShortString::try_new(text.to_owned()).unwrap_or_default()
}

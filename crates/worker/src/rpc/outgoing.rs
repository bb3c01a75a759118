//! Where a turn's answer, its reports and dead turns go: queues, by the default exchange, each message confirmed.

use super::link::limited;
use contract::envelope::DIRECT_REPLY_TO;
use lapin::{BasicProperties, Channel, Confirmation, options::BasicPublishOptions};
use std::time::Duration;

/// How long the broker may take to confirm a message. A blocked one may be free again before the turn would be given
/// up.
const PUBLISH_LIMIT: Duration = Duration::from_secs(30);

/// The channel for them. In confirm mode, and apart from that of the turns, so that a fault over an answer takes no
/// acknowledgement with it.
#[derive(Clone)]
pub(super) struct Outgoing(Channel);

impl Outgoing {
    pub(super) const fn over(channel: Channel) -> Self {
        Self(channel)
    }

    pub(super) fn is_open(&self) -> bool {
        self.0.status().connected()
    }

    pub(super) fn into_channel(self) -> Channel {
        self.0
    }

    /// Publishes to a queue. False when the broker has not taken it and may take it later.
    pub(super) async fn publish(&self, queue: &str, body: &[u8], properties: BasicProperties) -> bool {
        // To RabbitMQ an address for direct replies is no queue: a mandatory message to it comes back even when it was
        // delivered.
        let options = BasicPublishOptions {
            mandatory: !queue.starts_with(DIRECT_REPLY_TO),
            ..BasicPublishOptions::default()
        };
        let confirmed = limited(PUBLISH_LIMIT, "take a message", async {
            self.0
                .basic_publish("".into(), queue.into(), options, body, properties)
                .await?
                .await
        })
        .await;
        match confirmed {
            Ok(Confirmation::Ack(None) | Confirmation::NotRequested) => true,
            Ok(Confirmation::Ack(Some(_)) | Confirmation::Nack(Some(_))) => {
                tracing::warn!(queue, "a message came back: there is no such queue");
                true
            }
            Ok(Confirmation::Nack(None)) => false,
            Err(error) => {
                tracing::warn!(%error, "a message was not published");
                false
            }
        }
    }
}

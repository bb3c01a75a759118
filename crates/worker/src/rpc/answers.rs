//! Answers to whoever waits for one directly, over a connection of their own.
//!
//! Of their own, because an answer goes where its asker says. `RabbitMQ` 3.10 ends the connection of whoever publishes to a direct reply
//! address that it cannot decode; on the connection of the turns, one such message would interrupt every turn that this worker has.

use super::{
    link::{LinkError, connect, within},
    outgoing::Outgoing,
};
use lapin::{BasicProperties, Connection, options::ConfirmSelectOptions, uri::AMQPUri};
use tokio::sync::Mutex;

/// Where answers go out.
pub(super) struct Answers {
    address: AMQPUri,
    open: Mutex<Option<Open>>,
}

struct Open {
    /// Held, since it is closed when it is dropped.
    connection: Connection,
    outgoing: Outgoing,
}

impl Answers {
    /// Connects when it is first used, and anew when the connection was lost.
    pub(super) fn to(address: AMQPUri) -> Self {
        Self {
            address,
            open: Mutex::new(None),
        }
    }

    /// Sends an answer. One that cannot be sent is given up: its address may be what the broker stumbles over, and whoever waits
    /// there has a time limit.
    pub(super) async fn send(&self, address: &str, body: &[u8], properties: BasicProperties) {
        // the connection may have been lost under another's answer
        for _ in 0..2 {
            match self.outgoing().await {
                Ok(outgoing) => {
                    if outgoing.publish(address, body, properties.clone()).await {
                        return;
                    }
                }
                Err(error) => tracing::warn!(%error, "an answer cannot be sent yet"),
            }
        }
        tracing::warn!("an answer could not be sent");
    }

    async fn outgoing(&self) -> Result<Outgoing, LinkError> {
        let mut open = self.open.lock().await;
        if let Some(open) = open.as_ref()
            && open.connection.status().connected()
            && open.outgoing.is_open()
        {
            return Ok(open.outgoing.clone());
        }
        *open = None;
        let connection = connect(&self.address, "worker, answers").await?;
        let outgoing = within("open the channel for answers", async {
            let channel = connection.create_channel().await?;
            channel.confirm_select(ConfirmSelectOptions::default()).await?;
            Ok(Outgoing::over(channel))
        })
        .await?;
        *open = Some(Open {
            connection,
            outgoing: outgoing.clone(),
        });
        Ok(outgoing)
    }
}

//! Broker in: takes requests off `agent.tools`, hands them to the pipeline, publishes the reply, acks.
//!
//! A message is acked once its reply is published, and never requeued: what cannot be taken is answered with an error where it has
//! a reply address, and copied to `agent.tools.dead` with the reason. The only module that knows lapin.

pub(crate) mod client;
mod connection;
mod message;
mod topology;

use self::{
    connection::{Link, RETRY_DELAY},
    message::{Rejected, Request},
};
use crate::{
    clock,
    config::BrokerConfig,
    db::tool_call,
    error::{ToolError, to_tool_error},
    execute::{Incoming, Pipeline},
};
use contract::{
    AgentToolResult,
    envelope::{MAX_PACKET_BYTES, REASON_HEADER, ReplyPacket},
    topology::Topology,
};
use futures_util::StreamExt;
use lapin::{
    BasicProperties, Channel, Confirmation, Consumer,
    message::Delivery,
    options::{BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicPublishOptions},
    types::{AMQPValue, FieldTable},
};
use std::{future::Future, sync::Arc, time::Duration};
use tokio::{sync::Mutex, task::JoinSet, time::timeout};

/// How long calls in flight are given to end once the process was asked to stop.
const DRAIN_LIMIT: Duration = Duration::from_secs(5);
/// How long a publish may take before its channel is given up.
const PUBLISH_LIMIT: Duration = Duration::from_secs(5);
/// How often a message is begun before it is dead: one that kills its server each time must not do so for ever.
const MAX_TRIES: i32 = 3;
const CONSUMER_TAG: &str = "agent-tools-server";

/// Why serving ended, or never began.
#[derive(Debug, thiserror::Error)]
pub enum RpcError {
    /// The broker failed or refused.
    #[error("broker: {0}")]
    Broker(#[from] lapin::Error),
    /// The broker did not answer in time.
    #[error("the broker did not answer within {0:?}")]
    Timeout(Duration),
    /// Nobody takes such messages.
    #[error("nobody takes messages for {0}; is a server running?")]
    Unroutable(String),
    /// The broker refused the message.
    #[error("the broker refused the message")]
    Refused,
    /// What came back is no reply.
    #[error("the reply cannot be read: {0}")]
    Unreadable(String),
    /// The connection was lost before the reply.
    #[error("the connection was lost before the reply came")]
    Lost,
}

/// Serves until `shutdown` resolves, through as many connections as it takes. `ready` is called each time calls can be taken.
pub async fn serve(
    pipeline: Arc<Pipeline>,
    config: &BrokerConfig,
    shutdown: impl Future<Output = ()>,
    ready: impl Fn(),
) {
    let server = Arc::new(Server {
        pipeline,
        names: config.topology.clone(),
        redelivered: Mutex::new(()),
    });
    let mut shutdown = std::pin::pin!(shutdown);
    let mut calls = JoinSet::new();
    loop {
        let connected = tokio::select! {
            () = &mut shutdown => break,
            connected = listen(config) => connected,
        };
        match connected {
            Err(error) => tracing::warn!(%error, "no broker yet; trying again"),
            Ok(listening) => {
                ready();
                if take(&server, listening, &mut calls, &mut shutdown).await {
                    return;
                }
                tracing::warn!("the broker's connection or queue was lost; connecting again");
            }
        }
        tokio::time::sleep(RETRY_DELAY).await;
    }
}

/// A connection that takes deliveries.
struct Listening {
    link: Link,
    channels: Channels,
    consumer: Consumer,
}

/// What a call answers through.
#[derive(Clone)]
struct Channels {
    /// Deliveries, replies and acks: one after the other, so that an ack never overtakes its reply. Replies are not confirmed: a
    /// caller that gets none asks again under its key.
    calls: Channel,
    /// Dead letters, which are confirmed before their delivery is acked.
    dead: Channel,
}

/// Connects, declares what this side needs, and begins to consume.
async fn listen(config: &BrokerConfig) -> Result<Listening, RpcError> {
    let link = Link::connect(config.amqp.reveal(), "server").await?;
    topology::declare(&link, &config.topology).await?;
    let calls = link.consuming_channel(config.concurrency).await?;
    let dead = link.confirming_channel().await?;
    let options = BasicConsumeOptions::default();
    let queue = config.topology.tools_queue.as_str();
    let consuming = calls.basic_consume(queue.into(), CONSUMER_TAG.into(), options, FieldTable::default());
    let consumer = connection::within(consuming).await?;
    Ok(Listening {
        link,
        channels: Channels { calls, dead },
        consumer,
    })
}

/// Takes deliveries until the consumer ends (false), or until `shutdown` resolves and the calls in flight have ended (true). The
/// prefetch bounds how many run at once.
async fn take(
    server: &Arc<Server>,
    mut listening: Listening,
    calls: &mut JoinSet<()>,
    shutdown: &mut (impl Future<Output = ()> + Unpin),
) -> bool {
    loop {
        tokio::select! {
            () = &mut *shutdown => {
                drain(&listening.channels.calls, calls).await;
                listening.link.close().await;
                return true;
            }
            Some(ended) = calls.join_next() => if let Err(error) = ended {
                tracing::error!(%error, "a call's task failed");
            },
            delivery = listening.consumer.next() => match delivery {
                Some(Ok(delivery)) => {
                    let (server, channels) = (Arc::clone(server), listening.channels.clone());
                    calls.spawn(async move { server.handle(channels, delivery).await });
                }
                Some(Err(error)) => {
                    tracing::warn!(%error, "consuming failed");
                    return false;
                }
                None => return false,
            },
        }
    }
}

/// Stops taking calls and lets those in flight end.
async fn drain(channel: &Channel, calls: &mut JoinSet<()>) {
    let cancelled = channel.basic_cancel(CONSUMER_TAG.into(), BasicCancelOptions::default());
    if let Err(error) = connection::within(cancelled).await {
        tracing::warn!(%error, "the consumer could not be cancelled");
    }
    let all = async { while calls.join_next().await.is_some() {} };
    if timeout(DRAIN_LIMIT, all).await.is_err() {
        tracing::warn!(
            left = calls.len(),
            "calls did not end in time; the broker delivers them again"
        );
    }
}

struct Server {
    pipeline: Arc<Pipeline>,
    names: Topology,
    /// Redelivered messages run one at a time, so that one which kills the process is counted alone.
    redelivered: Mutex<()>,
}

impl Server {
    /// One delivery, from its bytes to its ack.
    async fn handle(&self, channels: Channels, delivery: Delivery) {
        let result = match Request::read(&delivery) {
            Ok(request) => self.run(&delivery, request).await,
            Err(rejected) => Err(rejected),
        };
        let result = match result {
            Ok(result) => result,
            Err(Rejected { reason, error }) => {
                tracing::warn!(reason, correlation = message::correlation_id(&delivery), "dead letter");
                if let Err(error) = self.bury(&channels.dead, &delivery, reason).await {
                    // unacked, it comes again when the channel is gone
                    tracing::error!(%error, "the dead letter could not be stored");
                    return;
                }
                AgentToolResult::error(to_tool_error(&error, "packet"))
            }
        };
        if let Some(address) = message::reply_address(&delivery)
            && let Err(error) = reply(&channels.calls, &address, message::correlation_id(&delivery), result).await
        {
            tracing::warn!(%error, "a reply could not be published");
            return;
        }
        acknowledge(&delivery).await;
    }

    async fn run(&self, delivery: &Delivery, request: Request) -> Result<AgentToolResult, Rejected> {
        let Some(handler) = self.pipeline.handlers().get(&request.event) else {
            return Err(Rejected::new(
                "unknown event",
                ToolError::Malformed("there is no such tool".to_owned()),
            ));
        };
        let patience = handler.tool.definition.deadline();
        let deadline_ms = request
            .deadline_ms
            .unwrap_or_else(|| clock::now_ms() + millis(patience));
        if clock::left_until(deadline_ms).is_none() {
            return Ok(AgentToolResult::error(ToolError::Expired.to_string()));
        }
        let incoming = Incoming {
            event: request.event,
            request: request.data,
            grant: request.grant,
            key: request.key,
            deadline_ms,
        };
        if !delivery.redelivered {
            return Ok(self.pipeline.execute(incoming).await);
        }
        let _alone = self.redelivered.lock().await;
        match tool_call::count_attempt(self.pipeline.database(), &incoming.key).await {
            Ok(tries) if tries > MAX_TRIES => Err(Rejected::new("tried too often", ToolError::TooManyTries)),
            Ok(_) => Ok(self.pipeline.execute(incoming).await),
            Err(error) => Ok(AgentToolResult::error(to_tool_error(&error.into(), "attempts"))),
        }
    }

    /// Copies a delivery to the dead letters, and waits until it is stored there.
    async fn bury(&self, channel: &Channel, delivery: &Delivery, reason: &'static str) -> Result<(), RpcError> {
        let mut headers = delivery.properties.headers().clone().unwrap_or_default();
        headers.insert(REASON_HEADER.into(), AMQPValue::LongString(reason.into()));
        // a grant is a credential, and dead letters are read by people
        let headers = message::without_grant(&headers);
        let properties = message::to_keep(&delivery.properties, headers);
        let body = delivery
            .data
            .get(..MAX_PACKET_BYTES.min(delivery.data.len()))
            .unwrap_or_default();
        let queue = self.names.tools_dead_queue.as_str();
        let publishing = channel.basic_publish(
            "".into(),
            queue.into(),
            BasicPublishOptions::default(),
            body,
            properties,
        );
        let stored = async { publishing.await?.await };
        match timeout(PUBLISH_LIMIT, stored).await {
            Ok(Ok(Confirmation::Ack(_) | Confirmation::NotRequested)) => Ok(()),
            Ok(Ok(Confirmation::Nack(_))) => Err(RpcError::Refused),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(RpcError::Timeout(PUBLISH_LIMIT)),
        }
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Publishes a reply. Not as mandatory: the broker returns every such message to a direct reply address, taken or not.
async fn reply(
    channel: &Channel,
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
    let options = BasicPublishOptions::default();
    let publishing = channel.basic_publish("".into(), connection::short(address), options, &body, properties);
    match timeout(PUBLISH_LIMIT, publishing).await {
        Ok(published) => published.map(drop).map_err(RpcError::from),
        Err(_) => Err(RpcError::Timeout(PUBLISH_LIMIT)),
    }
}

/// An ack after the channel broke is `Ok(false)`; the message comes again then, and finds its key.
async fn acknowledge(delivery: &Delivery) {
    match delivery.acker.ack(BasicAckOptions::default()).await {
        Ok(true) => {}
        Ok(false) => tracing::warn!("a call could not be acked: its channel is gone"),
        Err(error) => tracing::warn!(%error, "a call could not be acked"),
    }
}

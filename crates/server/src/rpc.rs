//! Broker in: takes requests off `agent.tools`, hands them to the pipeline, publishes the reply, acks.
//!
//! A message is acked once its reply is published, and never requeued: what cannot be taken is answered with an error where it has
//! a reply address, and copied to `agent.tools.dead` with the reason. The only module that knows lapin.

pub(crate) mod client;
mod connection;
mod message;
mod outgoing;
pub(crate) mod reports;
mod topology;
pub(crate) mod turns;

use self::{
    connection::{Link, RETRY_DELAY},
    message::{Rejected, Request},
    outgoing::Outgoing,
};
use crate::{
    clock,
    config::BrokerConfig,
    db::tool_call,
    error::{ToolError, to_tool_error},
    execute::{Incoming, Pipeline},
};
use contract::AgentToolResult;
use futures_util::StreamExt;
use lapin::{
    Channel, Consumer,
    message::Delivery,
    options::{BasicAckOptions, BasicCancelOptions, BasicConsumeOptions},
    types::FieldTable,
};
use std::{future::Future, sync::Arc, time::Duration};
use tokio::{sync::Mutex, task::JoinSet, time::timeout};

/// How long calls in flight are given to end once the process was asked to stop.
const DRAIN_LIMIT: Duration = Duration::from_secs(5);
/// How long a publish may take before its channel is given up.
const PUBLISH_LIMIT: Duration = Duration::from_secs(5);
/// How often a message is begun before it is dead: one that kills its server each time must not do so for ever.
const MAX_TRIES: i32 = 3;
/// How long forgetting a call's tries may keep its reply, and the next redelivered message, waiting.
const FORGET_LIMIT: Duration = Duration::from_secs(1);
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
        outgoing: Outgoing::new(config.amqp.clone(), config.topology.tools_dead_queue.clone()),
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

/// A connection that takes deliveries, and acks them.
struct Listening {
    link: Link,
    calls: Channel,
    consumer: Consumer,
}

/// Connects, declares what this side needs, and begins to consume.
async fn listen(config: &BrokerConfig) -> Result<Listening, RpcError> {
    let link = Link::connect(config.amqp.reveal(), "server").await?;
    topology::declare(&link, &config.topology).await?;
    let calls = link.consuming_channel(config.concurrency).await?;
    let options = BasicConsumeOptions::default();
    let queue = config.topology.tools_queue.as_str();
    let consuming = calls.basic_consume(queue.into(), CONSUMER_TAG.into(), options, FieldTable::default());
    let consumer = connection::within(consuming).await?;
    Ok(Listening { link, calls, consumer })
}

/// Takes deliveries until the consumer ends (false), or until `shutdown` resolves and the calls in flight have ended (true). The
/// prefetch bounds how many run at once.
async fn take(
    server: &Arc<Server>,
    mut listening: Listening,
    calls: &mut JoinSet<Settled>,
    shutdown: &mut (impl Future<Output = ()> + Unpin),
) -> bool {
    loop {
        tokio::select! {
            () = &mut *shutdown => {
                drain(&listening.calls, calls).await;
                server.outgoing.close().await;
                listening.link.close().await;
                return true;
            }
            Some(ended) = calls.join_next() => match ended {
                Ok(Settled::Yes) => {}
                // what is not acked comes again when its channel is gone
                Ok(Settled::No) => return false,
                Err(error) => tracing::error!(%error, "a call's task failed"),
            },
            delivery = listening.consumer.next() => match delivery {
                Some(Ok(delivery)) => {
                    let server = Arc::clone(server);
                    calls.spawn(async move { server.handle(delivery).await });
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
async fn drain(channel: &Channel, calls: &mut JoinSet<Settled>) {
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

/// Whether a delivery was acked, or may be.
enum Settled {
    Yes,
    No,
}

struct Server {
    pipeline: Arc<Pipeline>,
    outgoing: Outgoing,
    /// Redelivered messages run one at a time, so that one which kills the process is counted alone.
    redelivered: Mutex<()>,
}

impl Server {
    /// One delivery, from its bytes to its ack.
    async fn handle(&self, delivery: Delivery) -> Settled {
        let result = match Request::read(&delivery) {
            Ok(request) => self.run(&delivery, request).await,
            Err(rejected) => Err(rejected),
        };
        let result = match result {
            Ok(result) => result,
            Err(Rejected { reason, error }) => {
                tracing::warn!(reason, correlation = message::correlation_id(&delivery), "dead letter");
                if let Err(error) = self.outgoing.bury(&delivery, reason).await {
                    tracing::error!(%error, "the dead letter could not be stored");
                    return Settled::No;
                }
                AgentToolResult::error(to_tool_error(&error, "packet"))
            }
        };
        if let Some(address) = message::reply_address(&delivery) {
            let correlation = message::correlation_id(&delivery);
            if let Err(error) = self.outgoing.reply(&address, correlation, result).await {
                // it may still arrive; else its caller asks again, under its key
                tracing::warn!(%error, "a reply could not be published");
            }
        }
        acknowledge(&delivery).await;
        Settled::Yes
    }

    async fn run(&self, delivery: &Delivery, request: Request) -> Result<AgentToolResult, Rejected> {
        let Some(handler) = self.pipeline.handlers().get(&request.event) else {
            let error = ToolError::unknown_event(&request.event, request.contract.as_deref());
            return Err(Rejected::new("unknown event", error));
        };
        let patience = handler.tool.definition.deadline();
        // a later deadline than the tool's own is no licence to hold a connection
        let latest_ms = clock::deadline_in(patience);
        let deadline_ms = request.deadline_ms.map_or(latest_ms, |asked| asked.min(latest_ms));
        if clock::left_until(deadline_ms).is_none() {
            return Ok(AgentToolResult::error(ToolError::Expired.to_string()));
        }
        let incoming = Incoming {
            event: request.event,
            request: request.data,
            grant: request.grant,
            key: request.key,
            deadline_ms,
            contract: request.contract,
        };
        if !delivery.redelivered {
            return Ok(self.pipeline.execute(incoming).await);
        }
        self.run_again(incoming).await
    }

    /// A message that was begun before. A try counts until it ends: one that is redelivered because another ended the process has
    /// done nothing wrong.
    async fn run_again(&self, incoming: Incoming) -> Result<AgentToolResult, Rejected> {
        let deadline_ms = incoming.deadline_ms;
        let Ok(_alone) = in_time(deadline_ms, self.redelivered.lock()).await else {
            return Ok(AgentToolResult::error(ToolError::Expired.to_string()));
        };
        let key = incoming.key.clone();
        match self.count_attempt(&key, deadline_ms).await {
            Ok(tries) if tries > MAX_TRIES => return Err(Rejected::new("tried too often", ToolError::TooManyTries)),
            Ok(_) => {}
            Err(error) => return Ok(AgentToolResult::error(to_tool_error(&error, "attempts"))),
        }
        let result = self.pipeline.execute(incoming).await;
        self.forget_attempts(&key, deadline_ms).await;
        Ok(result)
    }

    async fn count_attempt(&self, key: &str, deadline_ms: i64) -> Result<i32, ToolError> {
        let limit = clock::left_until(deadline_ms).ok_or(ToolError::Expired)?;
        let counted = tool_call::count_attempt(self.pipeline.database(), key, limit);
        Ok(in_time(deadline_ms, counted).await??)
    }

    /// Tries that are not forgotten do no harm: their message is acked, and comes again only if that is lost.
    async fn forget_attempts(&self, key: &str, deadline_ms: i64) {
        // after the deadline nobody waits for the reply any more
        let limit = clock::left_until(deadline_ms).map_or(FORGET_LIMIT, |left| left.min(FORGET_LIMIT));
        let forgotten = tool_call::forget_attempts(self.pipeline.database(), key, limit);
        match timeout(limit, forgotten).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the tries of a call could not be forgotten"),
            Err(_) => tracing::warn!("the tries of a call could not be forgotten in time"),
        }
    }
}

/// Waits for something of a call that was not yet carried out, as long as its caller does.
async fn in_time<T>(deadline_ms: i64, wait: impl Future<Output = T>) -> Result<T, ToolError> {
    let left = clock::left_until(deadline_ms).ok_or(ToolError::Expired)?;
    timeout(left, wait).await.map_err(|_| ToolError::Expired)
}

/// An ack after the channel broke is `Ok(false)`; the message comes again then, and finds its key.
async fn acknowledge(delivery: &Delivery) {
    match delivery.acker.ack(BasicAckOptions::default()).await {
        Ok(true) => {}
        Ok(false) => tracing::warn!("a call could not be acked: its channel is gone"),
        Err(error) => tracing::warn!(%error, "a call could not be acked"),
    }
}

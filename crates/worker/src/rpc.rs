//! The worker's side of the broker: the one place that knows AMQP.
//!
//! [`AgentToolService`] is the [`AgentToolCaller`] that crosses RabbitMQ. A call is published to the exchange with its event as
//! routing key; its reply comes to the same channel by direct reply-to. Every call ends by its deadline with a result:
//! what cannot be routed, is refused, or meets a blocked broker ends at once, and what was under way when the connection was
//! lost is sent again under the same key while its time lasts. `link` keeps the connection, `pending` knows who waits for
//! which reply, `turns` takes turns from their queue, `attend` is one of them, `books` claims it and `reports` tells the server what
//! happens in it, and `cancels` knows which are to be stopped.

mod answers;
mod attend;
mod books;
mod cancels;
mod declare;
mod link;
mod outbox;
mod outgoing;
mod pending;
mod properties;
mod redaction;
mod reports;
mod turns;

pub use turns::DRAIN_LIMIT;

use crate::{
    caller::{AgentToolCaller, CallFuture, CallTicket, Failure},
    clock,
    config::BrokerUrl,
    tasks::spawn,
    turn::TurnRunner,
};
use answers::Answers;
use contract::{
    AgentToolRequest, AgentToolResult, Event,
    envelope::{MAX_PACKET_BYTES, RequestPacket},
    topology::Topology,
};
use lapin::{Confirmation, PublisherConfirm, options::BasicPublishOptions, uri::AMQPUri};
use link::{Link, Session};
use pending::{Pending, Signal};
use std::{future::Future, sync::Arc};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    task::JoinHandle,
    time::timeout,
};
use uuid::Uuid;

/// How many calls may be under way at once, those included whose message the broker has not confirmed yet. A worker's turns
/// make a few dozen; a server runs 128 at a time.
const MAX_PENDING_CALLS: usize = 512;
/// How often one call is sent. A request that ends the connection each time must not do so until its deadline.
const MAX_SENDS: u32 = 3;

/// The longest key: a property of a message has room for no more.
const MAX_KEY_BYTES: usize = 255;

/// Why the broker's address is of no use.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// TLS is not built in, and lapin would connect without it in silence.
    #[error("is an amqps:// address, and this build speaks no TLS to the broker: use amqp:// inside a private network")]
    Encrypted,
    /// It is no address.
    #[error("is not an address such as amqp://user:password@host:5672/vhost")]
    Malformed,
}

/// Says what is wrong with a broker's address, if anything.
///
/// # Errors
///
/// When it is of no use.
pub fn check_address(url: &str) -> Result<(), BrokerError> {
    parse_address(url).map(drop)
}

fn parse_address(url: &str) -> Result<AMQPUri, BrokerError> {
    if url.starts_with("amqps:") {
        return Err(BrokerError::Encrypted);
    }
    if !url.starts_with("amqp://") {
        return Err(BrokerError::Malformed);
    }
    // The parser's own words may quote the address, and with it the password.
    url.parse().map_err(|_| BrokerError::Malformed)
}

/// The [`AgentToolCaller`] that crosses the broker.
pub struct AgentToolService {
    topology: Arc<Topology>,
    link: Link,
    answers: Arc<Answers>,
    pending: Arc<Pending>,
    slots: Arc<Semaphore>,
}

impl AgentToolService {
    /// Starts to connect, and keeps connected until [`AgentToolService::close`] or its end. Needs a runtime.
    ///
    /// # Errors
    ///
    /// When the address is of no use. A broker that is away is waited for.
    pub fn start(url: &BrokerUrl, topology: Topology) -> Result<Self, BrokerError> {
        let address = parse_address(url.reveal())?;
        let topology = Arc::new(topology);
        let pending = Arc::new(Pending::default());
        let answers = Arc::new(Answers::to(address.clone()));
        let link = Link::start(address, topology.clone(), pending.clone());
        Ok(Self {
            topology,
            link,
            answers,
            pending,
            slots: Arc::new(Semaphore::new(MAX_PENDING_CALLS)),
        })
    }

    /// Takes turns from their queue until `shutdown` resolves, then waits for those under way, up to [`DRAIN_LIMIT`].
    pub async fn take_turns(
        &self,
        runner: Arc<TurnRunner>,
        concurrency: u16,
        shutdown: impl Future<Output = ()>,
        ready: impl FnOnce(),
    ) {
        let post = turns::Post {
            link: &self.link,
            answers: &self.answers,
            pending: &self.pending,
            topology: &self.topology,
            concurrency,
        };
        turns::take_turns(post, runner, shutdown, ready).await;
    }

    /// Closes the connection. Calls under way end as with one that was lost.
    pub async fn close(&self) {
        self.link.close().await;
    }

    async fn call_within(
        &self,
        event: Event,
        request: AgentToolRequest,
        ticket: CallTicket,
    ) -> Result<AgentToolResult, Failure> {
        let left = clock::left_until(ticket.deadline_ms);
        if left.is_zero() {
            return Err(Failure::TooLate);
        }
        if ticket.idempotency_key.len() > MAX_KEY_BYTES {
            tracing::error!(%event, "a key that has no room on the wire");
            return Err(Failure::Refused);
        }
        let slot = self.slots.clone().try_acquire_owned().map_err(|_| Failure::Busy)?;
        let correlation = Uuid::new_v4().to_string();
        let packet = RequestPacket {
            pattern: event.to_string(),
            data: request,
            id: Some(correlation.clone()),
        };
        let body = serde_json::to_vec(&packet).expect("a request is made of JSON values, texts and ids");
        if body.len() > MAX_PACKET_BYTES {
            return Ok(AgentToolResult::error(
                "Invalid tool arguments: arguments: they are too large. Send less at once.",
            ));
        }
        let (waiting, signal) = self.pending.wait_for(correlation);
        let mut call = Call {
            event,
            ticket,
            body: body.into(),
            correlation: waiting.correlation(),
            sends: 0,
            slot: Arc::new(slot),
        };
        let ended = timeout(left, call.finish(self, signal)).await;
        ended
            .unwrap_or(Err(Failure::TimedOut))
            .map_err(|failure| after_sends(failure, call.sends))
    }
}

impl AgentToolCaller for AgentToolService {
    fn call(&self, event: Event, request: AgentToolRequest, ticket: CallTicket) -> CallFuture<'_> {
        Box::pin(async move {
            let result = self.call_within(event, request, ticket).await;
            result.unwrap_or_else(|failure| {
                tracing::warn!(%event, ?failure, "a tool call came to nothing");
                failure.to_result(event)
            })
        })
    }
}

/// One call under way.
struct Call {
    event: Event,
    ticket: CallTicket,
    body: Arc<[u8]>,
    correlation: Arc<str>,
    sends: u32,
    slot: Arc<OwnedSemaphorePermit>,
}

/// What became of one message.
enum Sent {
    /// The broker has it.
    Taken,
    /// The broker will not have it.
    Refused,
    /// Nobody knows: the channel was lost.
    Lost,
}

impl Call {
    /// Sends the request, over each connection in turn, until a reply or a failure.
    async fn finish(
        &mut self,
        service: &AgentToolService,
        mut signal: oneshot::Receiver<Signal>,
    ) -> Result<AgentToolResult, Failure> {
        let mut last = None;
        loop {
            let session = service.link.session_after(last).await;
            if session.is_blocked() {
                return Err(Failure::Blocked);
            }
            if self.sends == MAX_SENDS {
                return Err(Failure::Disconnected);
            }
            last = Some(session.number());
            self.sends += 1;
            let sent = self.send(&session, service);
            let outcome = async {
                match sent.await {
                    Ok(Sent::Refused) => Some(Failure::Refused),
                    Ok(Sent::Taken) => {
                        session.ended().await;
                        None
                    }
                    Ok(Sent::Lost) | Err(_) => None,
                }
            };
            tokio::select! {
                biased;
                signal = &mut signal => return read(signal, self.event),
                refused = outcome => if let Some(failure) = refused { return Err(failure) },
            }
            tracing::info!(event = %self.event, "the connection was lost under a call; it is sent again");
        }
    }

    /// Publishes in a task of its own: the caller's time limit must not drop a confirmation, which lapin would then keep for ever.
    /// The task holds the call's slot, so that what a stuck broker has not confirmed is bounded too.
    fn send(&self, session: &Session, service: &AgentToolService) -> JoinHandle<Sent> {
        let channel = session.tools().clone();
        let (event, body, slot) = (self.event, self.body.clone(), self.slot.clone());
        let (topology, pending) = (service.topology.clone(), service.pending.clone());
        let properties = properties::of_call(event, &self.correlation, &self.ticket);
        spawn(async move {
            let options = BasicPublishOptions {
                mandatory: true,
                ..BasicPublishOptions::default()
            };
            let exchange = topology.tools_exchange.as_str().into();
            let published = channel
                .basic_publish(exchange, event.as_str().into(), options, &body, properties)
                .await;
            let sent = confirmed(published, event.as_str(), &pending).await;
            drop(slot);
            sent
        })
    }
}

/// What the broker says to a message.
async fn confirmed(published: lapin::Result<PublisherConfirm>, what: &str, pending: &Pending) -> Sent {
    let confirmed = match published {
        Ok(confirm) => confirm.await,
        Err(error) => Err(error),
    };
    match confirmed {
        Ok(Confirmation::Ack(None) | Confirmation::NotRequested) => Sent::Taken,
        Ok(Confirmation::Ack(Some(returned)) | Confirmation::Nack(Some(returned))) => {
            // Where the broker confirms several messages at once, lapin hands a returned one to any of them: its own
            // correlation id says whose it is.
            if let Some(id) = returned.delivery.properties.correlation_id() {
                pending.settle(id.as_str(), Signal::Unroutable);
            }
            Sent::Taken
        }
        Ok(Confirmation::Nack(None)) => Sent::Refused,
        Err(error) => {
            tracing::debug!(what, %error, "a message was not confirmed");
            Sent::Lost
        }
    }
}

/// What a failure means after this many sends. One that came before the request left, or to a repeated one, must not hide that an
/// earlier send may have been processed; time that ran out before the first send was not the server's.
fn after_sends(failure: Failure, sends: u32) -> Failure {
    match (failure, sends) {
        (Failure::TimedOut, 0) => Failure::Unreachable,
        (Failure::Blocked, 1..) | (Failure::Refused | Failure::Unroutable, 2..) => Failure::Disconnected,
        (failure, _) => failure,
    }
}

fn read(signal: Result<Signal, oneshot::error::RecvError>, event: Event) -> Result<AgentToolResult, Failure> {
    match signal {
        Ok(Signal::Reply(body)) => pending::read_reply(&body, event),
        Ok(Signal::Unroutable) => Err(Failure::Unroutable),
        Err(_) => Err(Failure::Disconnected),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_send_is_not_forgotten() {
        assert_eq!(after_sends(Failure::TimedOut, 0), Failure::Unreachable);
        assert_eq!(after_sends(Failure::Unroutable, 1), Failure::Unroutable);
        for (failure, sends) in [(Failure::Unroutable, 2), (Failure::Refused, 2), (Failure::Blocked, 1)] {
            assert_eq!(after_sends(failure, sends), Failure::Disconnected, "{failure:?}");
        }
    }

    #[test]
    fn only_plain_amqp_addresses_are_taken() {
        assert!(check_address("amqp://guest:guest@127.0.0.1:5672/%2f").is_ok());
        assert!(matches!(check_address("amqps://h"), Err(BrokerError::Encrypted)));
        for malformed in ["", "http://h", "amqp//h", "127.0.0.1:5672", "amqp://h:notaport"] {
            assert!(
                matches!(check_address(malformed), Err(BrokerError::Malformed)),
                "{malformed}"
            );
        }
    }
}

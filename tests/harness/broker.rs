//! A bare peer on the broker: sends what no well-behaved caller would, and sees what comes back.

use contract::{
    AgentToolResult,
    envelope::{CONTRACT_HEADER, DEADLINE_HEADER, DIRECT_REPLY_TO, GRANT_HEADER, REASON_HEADER, ReplyPacket},
    topology::Topology,
    turn::{CancelTurn, ReportTaken, ToTheBooks, TurnClaim, TurnClaimed, TurnMessage, TurnReport},
};
use futures_util::StreamExt;
use lapin::{
    BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, Consumer,
    message::BasicGetMessage,
    options::{
        BasicAckOptions, BasicConsumeOptions, BasicGetOptions, BasicPublishOptions, ConfirmSelectOptions,
        QueueBindOptions, QueueDeclareOptions,
    },
    types::{AMQPValue, FieldTable},
};
use serde::de::DeserializeOwned;
use server::execute::Incoming;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

/// A bare peer.
pub struct Peer {
    connection: Connection,
    channel: Channel,
    replies: Consumer,
    names: Topology,
}

/// One message to be sent as it is.
#[derive(Debug, Clone, Default)]
pub struct Packet {
    /// The body's bytes.
    pub body: Vec<u8>,
    /// Where to, within the exchange for requests; the queue itself where empty.
    pub routing_key: String,
    /// Leaves the reply address out.
    pub without_reply_address: bool,
    /// The `message_id`.
    pub message_id: Option<String>,
    /// The grant header.
    pub grant: Option<String>,
    /// The deadline header.
    pub deadline_ms: Option<i64>,
    /// The header with the hash of the tool's contract.
    pub contract: Option<String>,
}

impl Packet {
    /// The packet of a call.
    #[must_use]
    pub fn of(incoming: &Incoming) -> Self {
        let body = serde_json::json!({"pattern": incoming.event, "data": incoming.request, "id": "1"});
        Self {
            body: serde_json::to_vec(&body).expect("a packet is JSON"),
            routing_key: incoming.event.clone(),
            without_reply_address: false,
            message_id: Some(incoming.key.clone()),
            grant: incoming.grant.clone(),
            deadline_ms: Some(incoming.deadline_ms),
            contract: incoming.contract.clone(),
        }
    }

    /// Just these bytes.
    #[must_use]
    pub fn raw(body: impl Into<Vec<u8>>) -> Self {
        Self {
            body: body.into(),
            ..Self::default()
        }
    }
}

impl Peer {
    /// Connects.
    pub async fn connect(url: &str, names: Topology) -> Self {
        let connection = Connection::connect(url, ConnectionProperties::default())
            .await
            .expect("the broker answers");
        let channel = connection.create_channel().await.expect("a channel opens");
        channel
            .confirm_select(ConfirmSelectOptions::default())
            .await
            .expect("confirms are had");
        let options = BasicConsumeOptions {
            no_ack: true,
            ..BasicConsumeOptions::default()
        };
        let replies = channel
            .basic_consume(DIRECT_REPLY_TO.into(), "".into(), options, FieldTable::default())
            .await
            .expect("replies can be consumed");
        Self {
            connection,
            channel,
            replies,
            names,
        }
    }

    /// Sends a packet; answers its correlation id, and whether the broker could route it.
    pub async fn send(&self, packet: &Packet) -> (String, bool) {
        let correlation = Uuid::new_v4().to_string();
        let mut headers = FieldTable::default();
        if let Some(grant) = &packet.grant {
            headers.insert(GRANT_HEADER.into(), AMQPValue::LongString(grant.as_str().into()));
        }
        if let Some(deadline) = packet.deadline_ms {
            headers.insert(DEADLINE_HEADER.into(), AMQPValue::LongLongInt(deadline));
        }
        if let Some(contract) = &packet.contract {
            headers.insert(CONTRACT_HEADER.into(), AMQPValue::LongString(contract.as_str().into()));
        }
        let mut properties = BasicProperties::default()
            .with_correlation_id(correlation.as_str().into())
            .with_headers(headers);
        if !packet.without_reply_address {
            properties = properties.with_reply_to(DIRECT_REPLY_TO.into());
        }
        if let Some(id) = &packet.message_id {
            properties = properties.with_message_id(id.as_str().into());
        }
        let (exchange, key) = match packet.routing_key.as_str() {
            "" => ("", self.names.tools_queue.as_str()),
            key => (self.names.tools_exchange.as_str(), key),
        };
        let options = BasicPublishOptions {
            mandatory: true,
            ..BasicPublishOptions::default()
        };
        let confirmation = self
            .channel
            .basic_publish(exchange.into(), key.into(), options, &packet.body, properties)
            .await
            .expect("the packet is sent")
            .await
            .expect("the packet is confirmed");
        (correlation, matches!(confirmation, Confirmation::Ack(None)))
    }

    /// Waits for the reply to a packet.
    pub async fn reply(&mut self, correlation: &str, patience: Duration) -> Option<AgentToolResult> {
        let waiting = async {
            while let Some(delivery) = self.replies.next().await {
                let delivery = delivery.expect("a reply is delivered");
                if delivery
                    .properties
                    .correlation_id()
                    .as_ref()
                    .is_some_and(|id| id.as_str() == correlation)
                {
                    let packet: ReplyPacket = serde_json::from_slice(&delivery.data).expect("a reply is a packet");
                    return Some(packet.response);
                }
            }
            None
        };
        timeout(patience, waiting).await.ok().flatten()
    }

    /// Waits for the replies to several packets, in the packets' order; none where there is none in time.
    pub async fn replies(&mut self, correlations: &[String], patience: Duration) -> Vec<Option<AgentToolResult>> {
        let mut found = vec![None; correlations.len()];
        let waiting = async {
            while found.iter().any(Option::is_none) {
                let Some(delivery) = self.replies.next().await else {
                    return;
                };
                let delivery = delivery.expect("a reply is delivered");
                let id = delivery.properties.correlation_id().clone();
                let at = correlations
                    .iter()
                    .position(|sent| id.as_ref().is_some_and(|id| id.as_str() == sent));
                if let Some(place) = at.and_then(|at| found.get_mut(at)) {
                    let packet: ReplyPacket = serde_json::from_slice(&delivery.data).expect("a reply is a packet");
                    *place = Some(packet.response);
                }
            }
        };
        let _ = timeout(patience, waiting).await;
        found
    }

    /// Publishes a body to the queue for requests with just these properties; answers whether the broker could route it.
    pub async fn publish(&self, body: &[u8], properties: BasicProperties) -> bool {
        self.try_publish(body, properties)
            .await
            .expect("the packet is confirmed")
    }

    /// The same, where the broker may have none of it.
    pub async fn try_publish(&self, body: &[u8], properties: BasicProperties) -> lapin::Result<bool> {
        let options = BasicPublishOptions {
            mandatory: true,
            ..BasicPublishOptions::default()
        };
        let queue = self.names.tools_queue.as_str();
        let confirmation = self
            .channel
            .basic_publish("".into(), queue.into(), options, body, properties)
            .await?
            .await?;
        Ok(matches!(confirmation, Confirmation::Ack(None)))
    }

    /// Waits for the next reply, whatever it answers; with the correlation ids of its properties and of its packet.
    pub async fn next_reply(&mut self, patience: Duration) -> Option<(Option<String>, ReplyPacket)> {
        let delivery = timeout(patience, self.replies.next()).await.ok()??;
        let delivery = delivery.expect("a reply is delivered");
        let id = delivery.properties.correlation_id().as_ref().map(ToString::to_string);
        let packet = serde_json::from_slice(&delivery.data).expect("a reply is a packet");
        Some((id, packet))
    }

    /// Sends a packet and waits for its reply.
    pub async fn ask(&mut self, packet: &Packet) -> Option<AgentToolResult> {
        let (correlation, routed) = self.send(packet).await;
        assert!(routed, "nobody takes the packet");
        self.reply(&correlation, Duration::from_secs(20)).await
    }

    /// Takes one dead letter, with its reason.
    pub async fn dead_letter(&self) -> Option<(BasicGetMessage, String)> {
        let queue = self.names.tools_dead_queue.as_str();
        let message = self
            .channel
            .basic_get(queue.into(), BasicGetOptions::default())
            .await
            .expect("a get works")?;
        message
            .delivery
            .acker
            .ack(BasicAckOptions::default())
            .await
            .expect("an ack works");
        let headers = message.delivery.properties.headers().clone().unwrap_or_default();
        let reason = match headers.inner().get(REASON_HEADER) {
            Some(AMQPValue::LongString(text)) => text.to_string(),
            other => panic!("a dead letter without a reason: {other:?}"),
        };
        Some((message, reason))
    }

    /// How many messages wait in the queue for requests, not yet delivered.
    pub async fn waiting(&self) -> u32 {
        self.depth(&self.names.tools_queue).await
    }

    /// How many dead letters there are.
    pub async fn dead(&self) -> u32 {
        self.depth(&self.names.tools_dead_queue).await
    }

    /// How many turns could not be taken.
    pub async fn dead_turns(&self) -> u32 {
        self.depth(&self.names.turns_dead_queue).await
    }

    /// How many reports could not be taken.
    pub async fn dead_reports(&self) -> u32 {
        self.depth(&self.names.reports_dead_queue).await
    }

    async fn depth(&self, queue: &str) -> u32 {
        let passive = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::default()
        };
        let queue = self
            .channel
            .queue_declare(queue.into(), passive, FieldTable::default())
            .await;
        queue.expect("the queue is there").message_count()
    }

    /// The names of this stage.
    #[must_use]
    pub const fn names(&self) -> &Topology {
        &self.names
    }

    /// The bare channel, for what has no method here.
    #[must_use]
    pub const fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Takes a turn off its queue, as a worker does.
    pub async fn take_turn(&self) -> TurnMessage {
        self.take(self.names.turns_queue.as_str()).await
    }

    async fn take<T: DeserializeOwned>(&self, queue: &str) -> T {
        let taken = async {
            loop {
                let options = BasicGetOptions { no_ack: true };
                let got = self.channel.basic_get(queue.into(), options).await;
                if let Some(message) = got.expect("the queue is there") {
                    return serde_json::from_slice(&message.delivery.data).expect("what is in it can be read");
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(30), taken)
            .await
            .expect("something comes in time")
    }

    /// Reports something of a turn, as a worker does.
    pub async fn report(&self, report: &TurnReport) {
        let body = serde_json::to_vec(report).expect("a report can be written");
        self.report_raw(&body).await;
    }

    /// Reports something of a turn, and waits for what becomes of it.
    pub async fn tell(&self, report: &TurnReport) -> ReportTaken {
        self.enter(&ToTheBooks::Report(report.clone())).await
    }

    /// Claims a turn for a run, as a worker does when it is delivered.
    pub async fn claim(&self, turn: &TurnMessage, run: Uuid, redelivered: bool) -> TurnClaimed {
        let claim = TurnClaim {
            turn_id: turn.turn_id,
            grant: turn.grant.clone(),
            dispatch: turn.dispatch,
            run,
            redelivered,
        };
        self.enter(&ToTheBooks::Claim(claim)).await
    }

    async fn enter<T: DeserializeOwned>(&self, message: &ToTheBooks) -> T {
        let own = self.own_queue().await;
        let body = serde_json::to_vec(message).expect("it can be written");
        self.publish_to_books(&body, BasicProperties::default().with_reply_to(own.as_str().into()))
            .await;
        self.take(&own).await
    }

    /// Puts these bytes where reports go.
    pub async fn report_raw(&self, body: &[u8]) {
        self.publish_to_books(body, BasicProperties::default()).await;
    }

    async fn publish_to_books(&self, body: &[u8], properties: BasicProperties) {
        let queue = self.names.reports_queue.as_str();
        let options = BasicPublishOptions::default();
        let properties = properties.with_delivery_mode(2);
        let sent = self
            .channel
            .basic_publish("".into(), queue.into(), options, body, properties);
        sent.await
            .expect("the report is sent")
            .await
            .expect("the report is confirmed");
    }

    /// A queue of what workers are told to stop from now on.
    pub async fn cancels(&self) -> String {
        let queue = self.own_queue().await;
        let exchange = self.names.cancel_exchange.as_str();
        let options = QueueBindOptions::default();
        let bound = self.channel.queue_bind(
            queue.as_str().into(),
            exchange.into(),
            "".into(),
            options,
            FieldTable::default(),
        );
        bound.await.expect("it is bound");
        queue
    }

    async fn own_queue(&self) -> String {
        let options = QueueDeclareOptions {
            exclusive: true,
            ..QueueDeclareOptions::default()
        };
        let queue = self
            .channel
            .queue_declare("".into(), options, FieldTable::default())
            .await;
        queue.expect("a queue is made").name().to_string()
    }

    /// The next turn that workers are told to stop.
    pub async fn next_cancel(&self, queue: &str) -> CancelTurn {
        self.take(queue).await
    }

    /// Waits until so many reports are dead letters.
    pub async fn until_dead_reports(&self, count: u32) {
        let all = async {
            while self.dead_reports().await < count {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(30), all)
            .await
            .expect("dead letters come in time");
        assert_eq!(self.dead_reports().await, count);
    }

    /// Leaves at once.
    pub async fn leave(self) {
        let _ = self.connection.close(200, "bye".into()).await;
    }
}

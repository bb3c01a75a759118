//! Reports what happens in a turn to the server, in order, each report confirmed before the next is sent.

use super::{outbox::Outbox, outgoing::Outgoing, properties};
use crate::turn::Reporter as _;
use contract::turn::{TurnEvent, TurnMessage, TurnOutcome, TurnReport};
use lapin::message::Delivery;
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

/// The broker's count of earlier deliveries of a message.
const DELIVERY_COUNT_HEADER: &str = "x-delivery-count";
/// The least time between reports that hold text only: what a model writes meanwhile goes into one.
const TEXT_PACE: Duration = Duration::from_millis(40);

/// The reports of one delivery of a turn.
pub(super) struct Reports {
    outgoing: Outgoing,
    queue: Arc<str>,
    turn_id: Uuid,
    grant: String,
    attempt: u32,
    /// The place of the next event.
    next: u32,
}

impl Reports {
    pub(super) fn of(message: &TurnMessage, attempt: u32, outgoing: Outgoing, queue: Arc<str>) -> Self {
        Self {
            outgoing,
            queue,
            turn_id: message.turn_id,
            grant: message.grant.clone(),
            attempt,
            next: 1,
        }
    }

    /// Sends what comes into the outbox, until the end of the turn is sent. False when the broker does not take it.
    pub(super) async fn send_all(mut self, outbox: &Outbox) -> bool {
        let mut paced = Instant::now();
        loop {
            outbox.filled().await;
            tokio::select! {
                () = sleep_until(paced) => {}
                () = outbox.urgent() => {}
            }
            let events = outbox.take();
            let is_end = matches!(events.last(), Some(TurnEvent::Ended { .. }));
            if !self.send(events).await {
                return false;
            }
            if is_end {
                return true;
            }
            paced = Instant::now() + TEXT_PACE;
        }
    }

    /// Reports nothing but an end.
    pub(super) async fn send_end(self, outcome: TurnOutcome) -> bool {
        let outbox = Outbox::default();
        outbox.event(TurnEvent::Ended { outcome });
        self.send_all(&outbox).await
    }

    async fn send(&mut self, events: Vec<TurnEvent>) -> bool {
        let first = self.next;
        self.next = first.saturating_add(u32::try_from(events.len()).unwrap_or(u32::MAX));
        let report = TurnReport {
            turn_id: self.turn_id,
            grant: self.grant.clone(),
            attempt: self.attempt,
            first,
            events,
        };
        let body = serde_json::to_vec(&report).expect("a report is made of JSON values, texts and ids");
        self.outgoing.publish(&self.queue, &body, properties::of_report()).await
    }
}

/// Which delivery of its message this is, from 1. A broker that does not count says at least that it is not the first.
pub(super) fn attempt(delivery: &Delivery) -> u32 {
    let headers = delivery.properties.headers().as_ref();
    let count = headers.and_then(|headers| headers.inner().get(DELIVERY_COUNT_HEADER));
    let counted = count.and_then(|count| {
        let number = count.as_long_long_int().or_else(|| count.as_long_int().map(i64::from));
        number.and_then(|number| u32::try_from(number).ok())
    });
    counted
        .unwrap_or_else(|| u32::from(delivery.redelivered))
        .saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapin::{
        BasicProperties,
        types::{AMQPValue, FieldTable},
    };

    #[test]
    fn an_attempt_is_the_brokers_count_and_one_more() {
        let of = |redelivered, count: Option<AMQPValue>| {
            let mut delivery = Delivery::mock(1, "".into(), "agent.turns".into(), redelivered, Vec::new());
            let mut headers = FieldTable::default();
            if let Some(count) = count {
                headers.insert(DELIVERY_COUNT_HEADER.into(), count);
            }
            delivery.properties = BasicProperties::default().with_headers(headers);
            attempt(&delivery)
        };
        assert_eq!(of(false, None), 1);
        assert_eq!(of(true, None), 2);
        assert_eq!(of(true, Some(AMQPValue::LongLongInt(2))), 3);
        assert_eq!(of(true, Some(AMQPValue::LongInt(1))), 2);
        assert_eq!(
            of(true, Some(AMQPValue::LongLongInt(-1))),
            2,
            "what cannot be counts as nothing"
        );
    }
}

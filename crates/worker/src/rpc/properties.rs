//! The properties of what the worker publishes.

use crate::{caller::CallTicket, clock};
use contract::{
    Event,
    envelope::{CONTRACT_HEADER, DEADLINE_HEADER, DIRECT_REPLY_TO, GRANT_HEADER, REASON_HEADER, TRACE_HEADER},
};
use lapin::{
    BasicProperties,
    types::{AMQPValue, FieldTable, ShortString},
};
use uuid::Uuid;

const JSON: &str = "application/json";
/// Lost with the broker: a call that is lost is a call that timed out.
const TRANSIENT: u8 = 1;
/// Survives the broker.
const PERSISTENT: u8 = 2;

/// Those of a tool call. The expiration is what is left of its time now, so they are made anew for each send.
pub(super) fn of_call(event: Event, correlation: &str, ticket: &CallTicket) -> BasicProperties {
    let mut headers = FieldTable::default();
    headers.insert(
        TRACE_HEADER.into(),
        AMQPValue::LongString(trace_parent(ticket.trace_id).into()),
    );
    headers.insert(DEADLINE_HEADER.into(), AMQPValue::LongLongInt(ticket.deadline_ms));
    if let Some(grant) = &ticket.grant {
        headers.insert(GRANT_HEADER.into(), AMQPValue::LongString(grant.as_str().into()));
    }
    if let Some(contract) = &ticket.contract {
        headers.insert(CONTRACT_HEADER.into(), AMQPValue::LongString(contract.as_str().into()));
    }
    let left_ms = clock::left_until(ticket.deadline_ms).as_millis().max(1);
    BasicProperties::default()
        .with_reply_to(DIRECT_REPLY_TO.into())
        .with_correlation_id(correlation.into())
        .with_content_type(JSON.into())
        .with_type(event.as_str().into())
        .with_message_id(ticket.idempotency_key.as_str().into())
        .with_expiration(left_ms.to_string().into())
        .with_delivery_mode(TRANSIENT)
        .with_headers(headers)
}

/// Those of a turn's answer.
pub(super) fn of_answer(correlation: Option<ShortString>) -> BasicProperties {
    let properties = BasicProperties::default()
        .with_content_type(JSON.into())
        .with_delivery_mode(TRANSIENT);
    match correlation {
        Some(correlation) => properties.with_correlation_id(correlation),
        None => properties,
    }
}

/// Those of what is sent to the books of turns.
pub(super) fn to_the_books(correlation: &str) -> BasicProperties {
    BasicProperties::default()
        .with_reply_to(DIRECT_REPLY_TO.into())
        .with_correlation_id(correlation.into())
        .with_content_type(JSON.into())
        .with_delivery_mode(PERSISTENT)
}

/// Those of the copy of a message that could not be taken: what it had, kept for good, with the reason.
pub(super) fn of_dead_letter(original: &BasicProperties, reason: &str) -> BasicProperties {
    let mut headers = original.headers().clone().unwrap_or_default();
    headers.insert(REASON_HEADER.into(), AMQPValue::LongString(reason.into()));
    let mut properties = BasicProperties::default()
        .with_delivery_mode(PERSISTENT)
        .with_headers(headers);
    if let Some(content_type) = original.content_type() {
        properties = properties.with_content_type(content_type.clone());
    }
    if let Some(correlation) = original.correlation_id() {
        properties = properties.with_correlation_id(correlation.clone());
    }
    if let Some(id) = original.message_id() {
        properties = properties.with_message_id(id.clone());
    }
    properties
}

/// A W3C trace context: all calls of a turn share the trace, each is a span.
fn trace_parent(trace: Uuid) -> String {
    let (span, _) = Uuid::new_v4().as_u64_pair();
    format!("00-{}-{span:016x}-01", trace.simple())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_call_says_who_waits_and_for_how_long() {
        let ticket = CallTicket {
            idempotency_key: "turn:call".into(),
            grant: Some("grant".into()),
            contract: Some("hash".into()),
            deadline_ms: clock::deadline_in(Duration::from_secs(10)),
            trace_id: Uuid::from_u128(5),
        };
        let properties = of_call(Event::new("list.departments"), "7", &ticket);
        let left_ms: u64 = properties.expiration().as_ref().unwrap().as_str().parse().unwrap();
        assert!((9_000..=10_000).contains(&left_ms), "{left_ms}");
        assert_eq!(properties.message_id().as_ref().unwrap().as_str(), "turn:call");
        assert_eq!(properties.kind().as_ref().unwrap().as_str(), "list.departments");
        let headers = properties.headers().as_ref().unwrap().inner();
        assert_eq!(
            headers.get(DEADLINE_HEADER),
            Some(&AMQPValue::LongLongInt(ticket.deadline_ms))
        );
        assert_eq!(
            headers.get(CONTRACT_HEADER),
            Some(&AMQPValue::LongString("hash".into()))
        );
        let AMQPValue::LongString(trace) = headers.get(TRACE_HEADER).unwrap() else {
            unreachable!("a text")
        };
        assert_eq!(trace.to_string().len(), 55, "{trace}");
    }
}

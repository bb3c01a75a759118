//! Reads a delivery: step 1, the packet. What cannot be read is rejected with a reason for operators and an error for the caller.

use crate::{error::ToolError, idempotency::MAX_KEY_BYTES};
use broker_guard::UNREADABLE_HEADER;
use contract::envelope::{CONTRACT_HEADER, DEADLINE_HEADER, GRANT_HEADER, MAX_PACKET_BYTES, RequestPacket};
use lapin::{
    BasicProperties,
    message::Delivery,
    types::{AMQPValue, FieldTable},
};
use serde_json::Value;

/// A packet that can be run.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) event: String,
    pub(super) data: Value,
    pub(super) grant: Option<String>,
    pub(super) key: String,
    pub(super) deadline_ms: Option<i64>,
    pub(super) contract: Option<String>,
}

/// Why a delivery is a dead letter.
#[derive(Debug)]
pub(super) struct Rejected {
    /// For operators.
    pub(super) reason: &'static str,
    /// For the caller.
    pub(super) error: ToolError,
}

impl Rejected {
    pub(super) const fn new(reason: &'static str, error: ToolError) -> Self {
        Self { reason, error }
    }

    fn malformed(reason: &'static str) -> Self {
        Self::new(reason, ToolError::Malformed(reason.to_owned()))
    }
}

impl Request {
    /// Reads a delivery.
    pub(super) fn read(delivery: &Delivery) -> Result<Self, Rejected> {
        if header(delivery, UNREADABLE_HEADER).is_some() {
            return Err(Rejected::malformed("the packet's properties cannot be read"));
        }
        if delivery.data.len() > MAX_PACKET_BYTES {
            return Err(Rejected::malformed("the packet is larger than 1 MiB"));
        }
        let no_packet = || Rejected::malformed("the packet is not a JSON object with pattern, data and id");
        // serde would read a list of three as well
        if !is_object(&delivery.data) {
            return Err(no_packet());
        }
        let packet: RequestPacket<Value> = serde_json::from_slice(&delivery.data).map_err(|_| no_packet())?;
        if reply_address(delivery).is_none() {
            return Err(Rejected::malformed("the packet has no reply address"));
        }
        let key = text(delivery.properties.message_id().as_ref())
            .or(text(delivery.properties.correlation_id().as_ref()))
            .or(packet.id.filter(|id| !id.is_empty()));
        let Some(key) = key else {
            return Err(Rejected::malformed("the packet has no id"));
        };
        if key.len() > MAX_KEY_BYTES || key.contains('\0') {
            return Err(Rejected::malformed("the packet's id cannot be a key"));
        }
        Ok(Self {
            event: packet.pattern,
            data: packet.data,
            grant: header(delivery, GRANT_HEADER).and_then(as_text),
            key,
            deadline_ms: deadline(delivery)?,
            contract: contract(delivery)?,
        })
    }
}

fn is_object(json: &[u8]) -> bool {
    json.trim_ascii_start().starts_with(b"{")
}

/// Where the reply goes.
pub(super) fn reply_address(delivery: &Delivery) -> Option<String> {
    text(delivery.properties.reply_to().as_ref())
}

/// What the caller tells its replies apart by: the property, else the packet's id.
pub(super) fn correlation_id(delivery: &Delivery) -> Option<String> {
    text(delivery.properties.correlation_id().as_ref()).or_else(|| {
        let within_bounds = delivery.data.get(..MAX_PACKET_BYTES.min(delivery.data.len()))?;
        let packet: Value = serde_json::from_slice(within_bounds).ok()?;
        packet
            .get("id")?
            .as_str()
            .filter(|id| id.len() <= MAX_KEY_BYTES)
            .map(str::to_owned)
    })
}

/// Headers without the grant.
pub(super) fn without_grant(headers: &FieldTable) -> FieldTable {
    let kept = headers.inner().iter().filter(|(name, _)| name.as_str() != GRANT_HEADER);
    kept.map(|(name, value)| (name.clone(), value.clone()))
        .collect::<std::collections::BTreeMap<_, _>>()
        .into()
}

/// Properties that make a message stay where it is put, of those that a dead letter is read by.
pub(super) fn to_keep(properties: &BasicProperties, headers: FieldTable) -> BasicProperties {
    let mut kept = BasicProperties::default().with_headers(headers).with_delivery_mode(2);
    if let Some(kind) = properties.kind() {
        kept = kept.with_type(kind.clone());
    }
    if let Some(id) = properties.message_id() {
        kept = kept.with_message_id(id.clone());
    }
    if let Some(id) = properties.correlation_id() {
        kept = kept.with_correlation_id(id.clone());
    }
    kept
}

/// The deadline header, in milliseconds since 1970, as a number or, from peers whose numbers are doubles, its text.
fn deadline(delivery: &Delivery) -> Result<Option<i64>, Rejected> {
    let unreadable = || Rejected::malformed("the deadline cannot be read");
    match header(delivery, DEADLINE_HEADER) {
        None => Ok(None),
        Some(AMQPValue::LongLongInt(ms)) => Ok(Some(*ms)),
        Some(AMQPValue::LongInt(ms)) => Ok(Some((*ms).into())),
        Some(AMQPValue::Double(ms)) if ms.is_finite() && ms.abs() < 9e15 => {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "bounded above; a fraction of a millisecond does not matter"
            )]
            let ms = *ms as i64;
            Ok(Some(ms))
        }
        Some(value) => as_text(value)
            .and_then(|text| text.parse().ok())
            .map(Some)
            .ok_or_else(unreadable),
    }
}

/// The hash of the contract that the caller knows. One that cannot be read is not one that fits.
fn contract(delivery: &Delivery) -> Result<Option<String>, Rejected> {
    let unreadable = || Rejected::malformed("the tool's contract cannot be read");
    header(delivery, CONTRACT_HEADER)
        .map(|value| as_text(value).ok_or_else(unreadable))
        .transpose()
}

fn header<'a>(delivery: &'a Delivery, name: &str) -> Option<&'a AMQPValue> {
    delivery.properties.headers().as_ref()?.inner().get(name)
}

fn as_text(value: &AMQPValue) -> Option<String> {
    if let AMQPValue::LongString(text) = value {
        return std::str::from_utf8(text.as_bytes()).ok().map(str::to_owned);
    }
    if let AMQPValue::ShortString(text) = value {
        Some(text.as_str().to_owned())
    } else {
        None
    }
}

fn text(property: Option<&lapin::types::ShortString>) -> Option<String> {
    property
        .map(|text| text.as_str().to_owned())
        .filter(|text| !text.is_empty())
}

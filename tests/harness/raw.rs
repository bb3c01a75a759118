//! AMQP by hand: messages whose properties no client library would write.

use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use url::Url;

const METHOD: u8 = 1;
const HEADER: u8 = 2;
const BODY: u8 = 3;
const FRAME_END: u8 = 0xCE;
/// What `RabbitMQ` proposes.
const FRAME_MAX: u32 = 131_072;
/// How long the broker may take for all of it.
const LIMIT: Duration = Duration::from_secs(20);

/// Properties as they are on the wire: which there are, and their bytes.
#[derive(Debug, Clone, Default)]
pub struct RawProperties {
    flags: u16,
    bytes: Vec<u8>,
}

impl RawProperties {
    /// A table of headers, given by its entries' bytes. To be named first.
    #[must_use]
    pub fn headers(mut self, entries: &[u8]) -> Self {
        self.flags |= 1 << 13;
        self.bytes.extend(long(entries));
        self
    }

    /// The correlation id. To be named after the headers.
    #[must_use]
    pub fn correlation_id(mut self, id: &[u8]) -> Self {
        self.flags |= 1 << 10;
        self.bytes.extend(short(id));
        self
    }

    /// The reply address. To be named after the correlation id.
    #[must_use]
    pub fn reply_to(mut self, address: &[u8]) -> Self {
        self.flags |= 1 << 9;
        self.bytes.extend(short(address));
        self
    }

    /// The message id. To be named after the reply address.
    #[must_use]
    pub fn message_id(mut self, id: &[u8]) -> Self {
        self.flags |= 1 << 7;
        self.bytes.extend(short(id));
        self
    }
}

/// A table entry: its name, and the value with its type before it.
#[must_use]
pub fn entry(name: &[u8], kind: u8, value: &[u8]) -> Vec<u8> {
    [short(name), vec![kind], value.to_vec()].concat()
}

/// Tables in tables, `depth` of them, as one entry of a table.
#[must_use]
pub fn nested_tables(depth: usize) -> Vec<u8> {
    let mut inner = Vec::new();
    for _ in 0..depth {
        inner = entry(b"", b'F', &long(&inner));
    }
    inner
}

/// Lists in lists, `depth` of them, as one entry of a table.
#[must_use]
pub fn nested_lists(depth: usize) -> Vec<u8> {
    let mut inner = Vec::new();
    for _ in 0..depth {
        inner = [vec![b'A'], long(&inner)].concat();
    }
    [short(b"x"), inner].concat()
}

fn short(text: &[u8]) -> Vec<u8> {
    let size = u8::try_from(text.len()).expect("a short string is short");
    [&[size], text].concat()
}

fn long(text: &[u8]) -> Vec<u8> {
    let size = u32::try_from(text.len()).expect("a long string is not that long");
    [&size.to_be_bytes()[..], text].concat()
}

fn method(class: u16, method: u16, arguments: &[&[u8]]) -> Vec<u8> {
    [
        &class.to_be_bytes()[..],
        &method.to_be_bytes()[..],
        &arguments.concat()[..],
    ]
    .concat()
}

/// Publishes one message and waits until the broker has taken it. `to` is the exchange and the routing key.
pub async fn publish(url: &str, to: (&str, &[u8]), properties: &RawProperties, body: &[u8]) {
    timeout(LIMIT, publishing(url, to, properties, body))
        .await
        .expect("the broker takes the message in time");
}

async fn publishing(url: &str, (exchange, key): (&str, &[u8]), properties: &RawProperties, body: &[u8]) {
    let mut wire = Wire::open(url).await;
    let publish = method(60, 40, &[&[0, 0], &short(exchange.as_bytes()), &short(key), &[0]]);
    wire.send(METHOD, 1, &publish).await;
    let size = u64::try_from(body.len()).expect("a size is a size");
    let header = [
        &60_u16.to_be_bytes()[..],
        &[0, 0],
        &size.to_be_bytes(),
        &properties.flags.to_be_bytes(),
        &properties.bytes,
    ]
    .concat();
    wire.send(HEADER, 1, &header).await;
    for part in body.chunks(100_000) {
        wire.send(BODY, 1, part).await;
    }
    // the answer to the close of a channel comes after all that was sent on it was taken
    wire.send(
        METHOD,
        1,
        &method(20, 40, &[&200_u16.to_be_bytes(), &short(b"bye"), &[0; 4]]),
    )
    .await;
    wire.expect(20, 41).await;
}

/// One connection with one channel.
struct Wire(TcpStream);

impl Wire {
    async fn open(url: &str) -> Self {
        let url = Url::parse(url).expect("the broker's address is a URL");
        let address = (url.host_str().expect("it names a host"), url.port().unwrap_or(5672));
        let mut wire = Self(TcpStream::connect(address).await.expect("the broker answers"));
        wire.0.write_all(b"AMQP\x00\x00\x09\x01").await.expect("the wire holds");
        wire.expect(10, 10).await;
        let who = format!("\0{}\0{}", url.username(), url.password().unwrap_or_default());
        let start = [
            &long(b"")[..],
            &short(b"PLAIN"),
            &long(who.as_bytes()),
            &short(b"en_US"),
        ];
        wire.send(METHOD, 0, &method(10, 11, &start)).await;
        wire.expect(10, 30).await;
        let tune = [&8_u16.to_be_bytes()[..], &FRAME_MAX.to_be_bytes(), &[0, 0]];
        wire.send(METHOD, 0, &method(10, 31, &tune)).await;
        let vhost = url.path().trim_start_matches('/').replace("%2f", "/");
        let vhost = if vhost.is_empty() { "/".to_owned() } else { vhost };
        wire.send(
            METHOD,
            0,
            &method(10, 40, &[&short(vhost.as_bytes()), &short(b""), &[0]]),
        )
        .await;
        wire.expect(10, 41).await;
        wire.send(METHOD, 1, &method(20, 10, &[&short(b"")])).await;
        wire.expect(20, 11).await;
        wire
    }

    async fn send(&mut self, kind: u8, channel: u16, payload: &[u8]) {
        let frame = [&[kind][..], &channel.to_be_bytes(), &long(payload), &[FRAME_END]].concat();
        self.0.write_all(&frame).await.expect("the wire holds");
    }

    async fn expect(&mut self, class: u16, method: u16) {
        let mut start = [0; 7];
        self.0.read_exact(&mut start).await.expect("the broker answers");
        let size = u32::from_be_bytes([start[3], start[4], start[5], start[6]]);
        let mut payload = vec![0; usize::try_from(size).expect("a frame fits") + 1];
        self.0.read_exact(&mut payload).await.expect("the answer is whole");
        let got = (
            u16::from_be_bytes([payload[0], payload[1]]),
            u16::from_be_bytes([payload[2], payload[3]]),
        );
        assert_eq!(
            (got.0, got.1),
            (class, method),
            "the broker said {}",
            String::from_utf8_lossy(&payload)
        );
    }
}

//! The little of AMQP 0-9-1 that a load driver needs: one connection, one channel, requests out, direct replies in. Blocking, and
//! on one thread, so that the driver takes as little of the machine as it can from those whom it measures.

use anyhow::{Context as _, bail, ensure};
use contract::envelope::DIRECT_REPLY_TO;
use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};
use url::Url;

const METHOD: u8 = 1;
const HEADER: u8 = 2;
const BODY: u8 = 3;
const HEARTBEAT: u8 = 8;
const FRAME_END: u8 = 0xCE;
/// Around a frame's payload: its kind, channel and size, and its end.
const FRAME_OVERHEAD: usize = 8;
const CHANNEL: u16 = 1;
/// As much as is read at once.
const READ_BYTES: usize = 64 * 1024;

type Method = (u16, u16);
const DELIVER: Method = (60, 60);
const RETURN: Method = (60, 50);

/// What goes out.
#[derive(Debug, Default)]
pub(crate) struct Outgoing<'a> {
    pub(crate) exchange: &'a str,
    pub(crate) routing_key: &'a str,
    pub(crate) mandatory: bool,
    pub(crate) content_type: &'a str,
    pub(crate) correlation_id: &'a str,
    pub(crate) expiration: &'a str,
    pub(crate) message_id: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) headers: &'a [(&'a str, Header<'a>)],
    pub(crate) body: &'a [u8],
}

/// The value of a header.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Header<'a> {
    Text(&'a str),
    Number(i64),
}

/// What comes in.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) correlation_id: String,
    /// The broker could not route the request: this is the request itself.
    pub(crate) is_returned: bool,
    pub(crate) body: Vec<u8>,
}

/// A message of which not all frames have come yet.
#[derive(Debug)]
struct Incoming {
    reply: Reply,
    size: usize,
}

/// A connection with its channel and its consumer of replies.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    out: Vec<u8>,
    input: Vec<u8>,
    consumed: usize,
    chunk: Vec<u8>,
    incoming: Option<Incoming>,
    largest_body: usize,
}

impl Connection {
    /// Connects to `amqp://user:password@host:port/%2f`.
    pub(crate) fn open(url: &str) -> anyhow::Result<Self> {
        let url = Url::parse(url).context("reading the broker's address")?;
        let address = (url.host_str().unwrap_or("127.0.0.1"), url.port().unwrap_or(5672));
        let stream = TcpStream::connect(address).context("connecting to the broker")?;
        stream.set_nodelay(true)?;
        let mut connection = Self {
            stream,
            out: b"AMQP\0\0\x09\x01".to_vec(),
            input: Vec::new(),
            consumed: 0,
            chunk: vec![0; READ_BYTES],
            incoming: None,
            largest_body: 0,
        };
        connection.handshake(&format!("\0{}\0{}", url.username(), url.password().unwrap_or_default()))?;
        Ok(connection)
    }

    fn handshake(&mut self, plain: &str) -> anyhow::Result<()> {
        self.flush()?;
        self.expect((10, 10))?;
        let start = Payload::method((10, 11))
            .long(&[])
            .short("PLAIN")
            .long(plain.as_bytes());
        self.ask(0, &start.short("en_US"))?;
        let tune = self.expect((10, 30))?;
        let mut tune = Reader(&tune);
        let (channels, frame) = (tune.number::<2>()?, tune.number::<4>()?);
        self.largest_body = usize::try_from(frame)? - FRAME_OVERHEAD;
        // no heartbeats: nobody here is silent for long
        let tuned = Payload::method((10, 31)).bytes(&u16::try_from(channels)?.to_be_bytes());
        self.ask(0, &tuned.bytes(&u32::try_from(frame)?.to_be_bytes()).bytes(&[0, 0]))?;
        self.ask(0, &Payload::method((10, 40)).short("/").short("").bytes(&[0]))?;
        self.expect((10, 41))?;
        self.ask(CHANNEL, &Payload::method((20, 10)).short(""))?;
        self.expect((20, 11))?;
        let consume = Payload::method((60, 20))
            .bytes(&[0, 0])
            .short(DIRECT_REPLY_TO)
            .short("");
        let no_ack = 0b10;
        self.ask(CHANNEL, &consume.bytes(&[no_ack]).long(&[]))?;
        self.expect((60, 21)).map(drop)
    }

    fn ask(&mut self, channel: u16, payload: &Payload) -> anyhow::Result<()> {
        frame(&mut self.out, METHOD, channel, &payload.0);
        self.flush()
    }

    fn expect(&mut self, wanted: Method) -> anyhow::Result<Vec<u8>> {
        loop {
            if let Some((kind, payload)) = self.next_frame()? {
                if kind == HEARTBEAT {
                    continue;
                }
                let mut reader = Reader(&payload);
                let got = reader.method()?;
                ensure!(
                    got == wanted,
                    "the broker sent {got:?}, not {wanted:?}: {}",
                    printable(&payload)
                );
                return Ok(reader.0.to_vec());
            }
            self.read()?;
        }
    }

    /// Puts a message into the next [`Connection::flush`].
    pub(crate) fn publish(&mut self, message: &Outgoing<'_>) {
        let publish = Payload::method((60, 40)).bytes(&[0, 0]).short(message.exchange);
        let publish = publish.short(message.routing_key).bytes(&[u8::from(message.mandatory)]);
        frame(&mut self.out, METHOD, CHANNEL, &publish.0);
        frame(&mut self.out, HEADER, CHANNEL, &header(message).0);
        for part in message.body.chunks(self.largest_body) {
            frame(&mut self.out, BODY, CHANNEL, part);
        }
    }

    /// Sends all that was published.
    pub(crate) fn flush(&mut self) -> anyhow::Result<()> {
        self.stream.write_all(&self.out).context("writing to the broker")?;
        self.out.clear();
        Ok(())
    }

    /// The next reply that is here already.
    pub(crate) fn take(&mut self) -> anyhow::Result<Option<Reply>> {
        while let Some((kind, payload)) = self.next_frame()? {
            let mut reader = Reader(&payload);
            match kind {
                METHOD => {
                    let method = reader.method()?;
                    ensure!(
                        method == DELIVER || method == RETURN,
                        "{method:?}: {}",
                        printable(&payload)
                    );
                    self.incoming = Some(Incoming {
                        reply: Reply {
                            correlation_id: String::new(),
                            is_returned: method == RETURN,
                            body: Vec::new(),
                        },
                        size: usize::MAX,
                    });
                }
                HEADER => {
                    let incoming = self.incoming.as_mut().context("a header without its method")?;
                    (incoming.size, incoming.reply.correlation_id) = reader.content_header()?;
                }
                BODY => {
                    let incoming = self.incoming.as_mut().context("a body without its method")?;
                    incoming.reply.body.extend_from_slice(&payload);
                }
                _ => continue,
            }
            if let Some(whole) = self
                .incoming
                .take_if(|incoming| incoming.reply.body.len() >= incoming.size)
            {
                return Ok(Some(whole.reply));
            }
        }
        Ok(None)
    }

    /// Waits for more to be there; false when nothing came in time.
    pub(crate) fn wait(&mut self, patience: Duration) -> anyhow::Result<bool> {
        self.stream
            .set_read_timeout(Some(patience.max(Duration::from_millis(1))))?;
        self.read()
    }

    fn read(&mut self) -> anyhow::Result<bool> {
        self.input.drain(..self.consumed);
        self.consumed = 0;
        match self.stream.read(&mut self.chunk) {
            Ok(0) => bail!("the broker closed the connection"),
            Ok(size) => {
                self.input.extend_from_slice(self.chunk.get(..size).unwrap_or_default());
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(false),
            Err(error) => Err(error).context("reading from the broker"),
        }
    }

    fn next_frame(&mut self) -> anyhow::Result<Option<(u8, Vec<u8>)>> {
        let input = self.input.get(self.consumed..).unwrap_or_default();
        let mut reader = Reader(input);
        let (Ok(kind), Ok(_), Ok(size)) = (reader.number::<1>(), reader.number::<2>(), reader.number::<4>()) else {
            return Ok(None);
        };
        let size = usize::try_from(size)?;
        let Some((payload, rest)) = reader.0.split_at_checked(size) else {
            return Ok(None);
        };
        match rest.first() {
            None => Ok(None),
            Some(&FRAME_END) => {
                let taken = (u8::try_from(kind)?, payload.to_vec());
                self.consumed += size + FRAME_OVERHEAD;
                Ok(Some(taken))
            }
            Some(_) => bail!("a frame does not end where it should"),
        }
    }
}

fn frame(out: &mut Vec<u8>, kind: u8, channel: u16, payload: &[u8]) {
    out.push(kind);
    out.extend(channel.to_be_bytes());
    out.extend(u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(payload);
    out.push(FRAME_END);
}

/// The header frame. Properties stand in the order of their flags.
fn header(message: &Outgoing<'_>) -> Payload {
    let mut flags: u16 = 0;
    let mut values = Payload(Vec::new());
    let mut text = |flag: u16, value: &str, values: Payload| {
        if value.is_empty() {
            return values;
        }
        flags |= flag;
        values.short(value)
    };
    values = text(0x8000, message.content_type, values);
    if !message.headers.is_empty() {
        values = values.long(&table(message.headers).0);
    }
    values = text(0x0400, message.correlation_id, values);
    values = text(0x0200, DIRECT_REPLY_TO, values);
    values = text(0x0100, message.expiration, values);
    values = text(0x0080, message.message_id, values);
    values = text(0x0020, message.kind, values);
    if !message.headers.is_empty() {
        flags |= 0x2000;
    }
    let size = u64::try_from(message.body.len()).unwrap_or(u64::MAX);
    let start = Payload(Vec::new()).bytes(&60u16.to_be_bytes()).bytes(&[0, 0]);
    start
        .bytes(&size.to_be_bytes())
        .bytes(&flags.to_be_bytes())
        .bytes(&values.0)
}

fn table(entries: &[(&str, Header<'_>)]) -> Payload {
    entries
        .iter()
        .fold(Payload(Vec::new()), |table, (name, value)| match value {
            Header::Text(text) => table.short(name).bytes(b"S").long(text.as_bytes()),
            Header::Number(number) => table.short(name).bytes(b"l").bytes(&number.to_be_bytes()),
        })
}

fn printable(payload: &[u8]) -> String {
    String::from_utf8_lossy(payload)
        .chars()
        .filter(|c| !c.is_control())
        .collect()
}

/// A payload in the making.
struct Payload(Vec<u8>);

impl Payload {
    fn method((class, method): Method) -> Self {
        Self(Vec::new())
            .bytes(&class.to_be_bytes())
            .bytes(&method.to_be_bytes())
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Texts of this driver are all shorter than the 255 bytes that fit.
    fn short(self, text: &str) -> Self {
        let length = u8::try_from(text.len()).unwrap_or(u8::MAX);
        let text = text.as_bytes().get(..usize::from(length)).unwrap_or_default();
        self.bytes(&[length]).bytes(text)
    }

    fn long(self, bytes: &[u8]) -> Self {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.bytes(&length.to_be_bytes()).bytes(bytes)
    }
}

/// What is left of a payload.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn number<const BYTES: usize>(&mut self) -> anyhow::Result<u64> {
        let bytes = self.bytes(BYTES)?;
        Ok(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn bytes(&mut self, length: usize) -> anyhow::Result<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length).context("a frame ends early")?;
        self.0 = rest;
        Ok(bytes)
    }

    fn short(&mut self) -> anyhow::Result<&'a str> {
        let length = usize::try_from(self.number::<1>()?)?;
        Ok(std::str::from_utf8(self.bytes(length)?)?)
    }

    fn method(&mut self) -> anyhow::Result<Method> {
        Ok((u16::try_from(self.number::<2>()?)?, u16::try_from(self.number::<2>()?)?))
    }

    /// The body's size and the correlation id.
    fn content_header(&mut self) -> anyhow::Result<(usize, String)> {
        self.bytes(4)?;
        let size = usize::try_from(self.number::<8>()?)?;
        let flags = self.number::<2>()?;
        for flag in [0x8000, 0x4000] {
            if flags & flag != 0 {
                self.short()?;
            }
        }
        if flags & 0x2000 != 0 {
            let length = usize::try_from(self.number::<4>()?)?;
            self.bytes(length)?;
        }
        for flag in [0x1000, 0x0800] {
            if flags & flag != 0 {
                self.bytes(1)?;
            }
        }
        let correlation = if flags & 0x0400 != 0 { self.short()? } else { "" };
        Ok((size, correlation.to_owned()))
    }
}

//! Frames as they come from the broker: most are handed on as they are, those with texts of a sender are looked at.

use super::UNREADABLE_HEADER;
use std::io;

/// Kind, channel and size.
const FRAME_START: usize = 7;
const FRAME_END: u8 = 0xCE;
/// No broker that was asked for its usual frames sends a larger one.
const MAX_FRAME_BYTES: usize = 4 * 1024 * 1024;
/// The deepest table in a table: a broker's own headers have three, and each level costs the parser some of its stack.
const MAX_DEPTH: u8 = 8;

const METHOD: u8 = 1;
const CONTENT_HEADER: u8 = 2;
/// Class and method of `basic.deliver`.
const DELIVER: [u8; 4] = [0, 60, 0, 60];
/// Class, weight and size of the body, before the properties.
const BEFORE_PROPERTIES: usize = 12;

/// How a property is written.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Table,
    Fixed(usize),
}

/// The properties of a message, in their order, each with a flag from the highest bit on.
const PROPERTIES: [Form; 14] = [
    Form::Text,
    Form::Text,
    Form::Table,
    Form::Fixed(1),
    Form::Fixed(1),
    Form::Text,
    Form::Text,
    Form::Text,
    Form::Text,
    Form::Fixed(8),
    Form::Text,
    Form::Text,
    Form::Text,
    Form::Text,
];

/// What came in and was not yet handed on.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// The beginning of a frame that is not whole yet.
    partial: Vec<u8>,
    ready: Vec<u8>,
    /// How much of `ready` was handed on.
    handed_on: usize,
}

impl Frames {
    /// Takes in what was read.
    pub(super) fn take_in(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.handed_on == self.ready.len() {
            self.ready.clear();
            self.handed_on = 0;
        }
        self.partial.extend_from_slice(bytes);
        let mut taken = 0;
        while let Some(frame) = first_frame(self.partial.get(taken..).unwrap_or_default())? {
            taken += frame.len();
            look_at(frame, &mut self.ready);
        }
        self.partial.drain(..taken);
        Ok(())
    }

    /// Hands on as much as there is room for; answers how much.
    pub(super) fn hand_on(&mut self, out: &mut [u8]) -> usize {
        let waiting = self.ready.get(self.handed_on..).unwrap_or_default();
        let size = waiting.len().min(out.len());
        if let (Some(out), Some(waiting)) = (out.get_mut(..size), waiting.get(..size)) {
            out.copy_from_slice(waiting);
        }
        self.handed_on += size;
        size
    }
}

/// The first frame of some bytes, where it is whole.
fn first_frame(bytes: &[u8]) -> io::Result<Option<&[u8]>> {
    let Some((_, size)) = bytes.get(..FRAME_START).and_then(|start| start.split_last_chunk::<4>()) else {
        return Ok(None);
    };
    let size = usize::try_from(u32::from_be_bytes(*size)).unwrap_or(usize::MAX);
    if size > MAX_FRAME_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "no frame of this protocol"));
    }
    Ok(bytes.get(..FRAME_START + size + 1))
}

/// Hands a frame on, or one that can be read in its place.
fn look_at(frame: &[u8], ready: &mut Vec<u8>) {
    let payload = frame.get(FRAME_START..frame.len() - 1).unwrap_or_default();
    match frame.first() {
        Some(&CONTENT_HEADER) if !properties_can_be_read(payload) => {
            ready.extend_from_slice(&unreadable(frame, payload));
        }
        Some(&METHOD) if payload.starts_with(&DELIVER) && !delivery_can_be_read(payload) => {
            let whole = ready.len();
            ready.extend_from_slice(frame);
            let texts = ready.get_mut(whole + FRAME_START + DELIVER.len()..).unwrap_or_default();
            make_readable(texts);
        }
        _ => ready.extend_from_slice(frame),
    }
}

/// A content header with one property: that its own could not be read.
fn unreadable(frame: &[u8], payload: &[u8]) -> Vec<u8> {
    let name = UNREADABLE_HEADER.as_bytes();
    let size_of_name = u8::try_from(name.len()).unwrap_or(u8::MAX);
    let table = [&[size_of_name], name, b"t\x01"].concat();
    let size_of_table = u32::try_from(table.len()).unwrap_or(u32::MAX).to_be_bytes();
    let before = payload.get(..BEFORE_PROPERTIES).unwrap_or_default();
    let payload = [before, &(1_u16 << 13).to_be_bytes(), &size_of_table, &table].concat();
    let size = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    let kind_and_channel = frame.get(..3).unwrap_or_default();
    [kind_and_channel, &size, &payload, &[FRAME_END]].concat()
}

fn properties_can_be_read(payload: &[u8]) -> bool {
    let mut reader = Reader(payload);
    let mut all = || {
        reader.fixed(BEFORE_PROPERTIES)?;
        let (high, low) = (reader.byte()?, reader.byte()?);
        let flags = u16::from_be_bytes([high, low]);
        for (at, form) in PROPERTIES.iter().enumerate() {
            if flags & (1 << (15 - at)) != 0 {
                match form {
                    Form::Text => reader.text()?,
                    Form::Table => reader.table(MAX_DEPTH)?,
                    Form::Fixed(size) => reader.fixed(*size).map(drop)?,
                }
            }
        }
        // the last two are no properties
        (flags.trailing_zeros() >= 2 && reader.0.is_empty()).then_some(())
    };
    all().is_some()
}

/// The consumer's tag, the delivery's, whether it came before, the exchange, the routing key.
fn delivery_can_be_read(payload: &[u8]) -> bool {
    let mut reader = Reader(payload);
    let mut all = || {
        reader.fixed(DELIVER.len())?;
        reader.text()?;
        reader.fixed(9)?;
        reader.text()?;
        reader.text()
    };
    all().is_some()
}

/// Makes the exchange and the routing key of a delivery ASCII, which keeps all sizes. Neither is used.
fn make_readable(after_method: &mut [u8]) {
    let mut at = 0;
    for skipped in [9, 0, 0] {
        let size = usize::from(after_method.get(at).copied().unwrap_or_default());
        at += 1;
        for byte in after_method.iter_mut().skip(at).take(size) {
            if !byte.is_ascii() {
                *byte = b'?';
            }
        }
        at += size + skipped;
    }
}

/// Reads what is written in AMQP's forms; none where it is not.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn fixed(&mut self, size: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(size)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.fixed(1)?.first().copied()
    }

    fn text(&mut self) -> Option<()> {
        let size = self.byte()?;
        std::str::from_utf8(self.fixed(size.into())?).ok().map(drop)
    }

    fn long(&mut self) -> Option<&'a [u8]> {
        let (size, _) = self.fixed(4)?.split_first_chunk::<4>()?;
        self.fixed(usize::try_from(u32::from_be_bytes(*size)).ok()?)
    }

    fn table(&mut self, depth: u8) -> Option<()> {
        let mut entries = Reader(self.long()?);
        while !entries.0.is_empty() {
            entries.text()?;
            entries.value(depth)?;
        }
        Some(())
    }

    fn list(&mut self, depth: u8) -> Option<()> {
        let mut items = Reader(self.long()?);
        while !items.0.is_empty() {
            items.value(depth)?;
        }
        Some(())
    }

    fn value(&mut self, depth: u8) -> Option<()> {
        match self.byte()? {
            b'V' => Some(()),
            b't' | b'b' | b'B' => self.fixed(1).map(drop),
            b's' | b'U' | b'u' => self.fixed(2).map(drop),
            b'I' | b'i' | b'f' => self.fixed(4).map(drop),
            b'D' => self.fixed(5).map(drop),
            b'L' | b'l' | b'd' | b'T' => self.fixed(8).map(drop),
            b'S' | b'x' => self.long().map(drop),
            b'A' => self.list(depth.checked_sub(1)?),
            b'F' => self.table(depth.checked_sub(1)?),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let size = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&[kind, 0, 1][..], &size, payload, &[FRAME_END]].concat()
    }

    fn header(flags: u16, properties: &[u8]) -> Vec<u8> {
        let before = [0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
        frame(
            CONTENT_HEADER,
            &[&before[..], &flags.to_be_bytes(), properties].concat(),
        )
    }

    fn nested(depth: usize) -> Vec<u8> {
        let mut table = 0_u32.to_be_bytes().to_vec();
        for _ in 0..depth {
            let size = u32::try_from(table.len() + 2).unwrap().to_be_bytes();
            table = [&size[..], b"\0F", &table].concat();
        }
        table
    }

    /// What comes out, taken in and handed on a few bytes at a time.
    fn through(bytes: &[u8]) -> Vec<u8> {
        let (mut frames, mut out) = (Frames::default(), Vec::new());
        for part in bytes.chunks(5) {
            frames.take_in(part).unwrap();
            let mut room = [0; 7];
            loop {
                let size = frames.hand_on(&mut room);
                out.extend_from_slice(&room[..size]);
                if size == 0 {
                    break;
                }
            }
        }
        out
    }

    #[test]
    fn what_can_be_read_is_handed_on_as_it_is() {
        let table = b"\0\0\0\x0d\x01aS\0\0\0\x02\xff\xfe\x01bt\x01";
        let all = [
            frame(8, b""),
            frame(METHOD, b"\0\x3c\0\x3c\x01c\0\0\0\0\0\0\0\x01\0\x01e\x02\xc3\xa9"),
            header(1 << 13 | 1 << 10, &[&table[..], b"\x02id"].concat()),
            header(1 << 13, &nested(usize::from(MAX_DEPTH))),
            header(
                0xfffc,
                &[b"\0\0", &nested(0)[..], b"\x01\x02\0\0\0\0", &[0; 8], b"\0\0\0\0"].concat(),
            ),
            frame(3, b"\xff\xfe"),
        ]
        .concat();
        assert_eq!(through(&all), all);
    }

    #[test]
    fn properties_that_cannot_be_read_are_replaced() {
        for (why, unreadable) in [
            ("no text", header(1 << 10, b"\x01\xff")),
            ("cut short", header(1 << 10, b"\x05a")),
            ("more than there are flags for", header(1 << 10, b"\x01ab")),
            ("flags that are no property's", header(1, b"")),
            ("a name that is no text", header(1 << 13, b"\0\0\0\x03\x01\xffV")),
            ("an unknown type", header(1 << 13, b"\0\0\0\x03\x01az")),
            ("too deep", header(1 << 13, &nested(usize::from(MAX_DEPTH) + 1))),
            ("far too deep", header(1 << 13, &nested(20_000))),
        ] {
            let body = frame(3, b"{}");
            let out = through(&[&unreadable[..], &body].concat());
            let replaced = out.strip_suffix(&body[..]).expect("the body follows");
            assert_eq!(first_frame(replaced).unwrap(), Some(replaced), "{why}: one whole frame");
            let payload = &replaced[FRAME_START..replaced.len() - 1];
            assert!(properties_can_be_read(payload), "{why}");
            assert_eq!(payload[4..12], [0, 0, 0, 0, 0, 0, 0, 2], "{why}: the body's size stays");
            assert!(
                payload
                    .windows(UNREADABLE_HEADER.len())
                    .any(|part| part == UNREADABLE_HEADER.as_bytes())
            );
        }
    }

    #[test]
    fn a_routing_key_that_is_no_text_is_made_one() {
        let deliver = |key: &[u8]| {
            frame(
                METHOD,
                &[b"\0\x3c\0\x3c\x01c\0\0\0\0\0\0\0\xf0\0\x01e\x03", key].concat(),
            )
        };
        assert_eq!(through(&deliver(b"a\xffb")), deliver(b"a?b"));
    }

    #[test]
    fn what_is_no_frame_ends_the_connection() {
        assert!(Frames::default().take_in(b"AMQP\x00\x00\x09\x01").is_err());
    }
}

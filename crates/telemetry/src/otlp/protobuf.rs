//! Writing [Protocol Buffers](https://protobuf.dev/programming-guides/encoding/): the few kinds of fields that OTLP's messages have.
//!
//! Messages are written as they are told, without a tree of values in between: a span is a few hundred bytes that are made
//! for each call.

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;
const FIXED32: u32 = 5;

/// A message that is being written, field by field. Fields of messages that are not there are not written, as `proto3` has it.
pub(super) trait Message {
    /// A message inside of this one.
    fn message(&mut self, field: u32, write: impl FnOnce(&mut Vec<u8>));
    /// Bytes, which may be text.
    fn bytes(&mut self, field: u32, value: &[u8]);
    /// A whole number, a truth value or one of several words.
    fn number(&mut self, field: u32, value: u64);
    /// A whole number of eight bytes.
    fn fixed64(&mut self, field: u32, value: u64);
    /// A whole number of four bytes.
    fn fixed32(&mut self, field: u32, value: u32);
    /// A number.
    fn double(&mut self, field: u32, value: f64);
    /// Several whole numbers of eight bytes, or several numbers as their bits.
    fn packed64(&mut self, field: u32, values: impl ExactSizeIterator<Item = u64>);

    /// Text.
    fn text(&mut self, field: u32, value: &str) {
        self.bytes(field, value.as_bytes());
    }
}

impl Message for Vec<u8> {
    fn message(&mut self, field: u32, write: impl FnOnce(&mut Vec<u8>)) {
        tag(self, field, BYTES);
        let at = self.len();
        // Most are short, and their length is one byte.
        self.push(0);
        write(self);
        let length = (self.len() - at - 1) as u64;
        match length {
            0..0x80 => self[at] = length as u8,
            _ => {
                let mut bytes = [0; 10];
                let count = encode(length, &mut bytes);
                self.splice(at..=at, bytes[..count].iter().copied());
            }
        }
    }

    fn bytes(&mut self, field: u32, value: &[u8]) {
        tag(self, field, BYTES);
        varint(self, value.len() as u64);
        self.extend_from_slice(value);
    }

    fn number(&mut self, field: u32, value: u64) {
        tag(self, field, VARINT);
        varint(self, value);
    }

    fn fixed64(&mut self, field: u32, value: u64) {
        tag(self, field, FIXED64);
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn fixed32(&mut self, field: u32, value: u32) {
        tag(self, field, FIXED32);
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn double(&mut self, field: u32, value: f64) {
        self.fixed64(field, value.to_bits());
    }

    fn packed64(&mut self, field: u32, values: impl ExactSizeIterator<Item = u64>) {
        tag(self, field, BYTES);
        varint(self, 8 * values.len() as u64);
        values.for_each(|value| self.extend_from_slice(&value.to_le_bytes()));
    }
}

fn tag(out: &mut Vec<u8>, field: u32, kind: u32) {
    varint(out, u64::from(field << 3 | kind));
}

/// Appends a number of as many bytes as it needs.
pub(super) fn varint(out: &mut Vec<u8>, value: u64) {
    let mut bytes = [0; 10];
    let count = encode(value, &mut bytes);
    out.extend_from_slice(&bytes[..count]);
}

fn encode(mut value: u64, bytes: &mut [u8; 10]) -> usize {
    let mut count = 0;
    while value >= 0x80 {
        bytes[count] = value as u8 | 0x80;
        value >>= 7;
        count += 1;
    }
    bytes[count] = value as u8;
    count + 1
}

/// A field of a message that somebody else wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field<'a> {
    /// A whole number.
    Number(u64),
    /// A text, bytes or a message.
    Bytes(&'a [u8]),
    /// Of a kind that nobody here asks for.
    Other,
}

/// The fields of a message, up to the first that cannot be read.
pub(super) fn fields(mut message: &[u8]) -> impl Iterator<Item = (u64, Field<'_>)> {
    std::iter::from_fn(move || {
        let key = read_varint(&mut message)?;
        let field = match (key & 7) as u32 {
            VARINT => Field::Number(read_varint(&mut message)?),
            BYTES => {
                let length = usize::try_from(read_varint(&mut message)?).ok()?;
                let (bytes, rest) = message.split_at_checked(length)?;
                message = rest;
                Field::Bytes(bytes)
            }
            FIXED64 | FIXED32 => {
                let length = if key & 7 == u64::from(FIXED64) { 8 } else { 4 };
                message = message.get(length..)?;
                Field::Other
            }
            _ => return None,
        };
        Some((key >> 3, field))
    })
}

fn read_varint(from: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for at in 0..10 {
        let byte = *from.get(at)?;
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            *from = &from[at + 1..];
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_as_the_guide_has_them() {
        let mut out = Vec::new();
        out.number(1, 150);
        out.text(2, "testing");
        out.message(3, |inner| inner.number(1, 150));
        assert_eq!(out, b"\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01");
        out.clear();
        out.double(1, 1.0);
        out.fixed32(16, 7);
        out.packed64(6, [1, 2].into_iter());
        assert_eq!(
            out,
            b"\x09\0\0\0\0\0\0\xf0\x3f\x85\x01\x07\0\0\0\x32\x10\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0"
        );
    }

    #[test]
    fn what_was_written_can_be_read() {
        for length in [0, 1, 127, 128, 16_383, 16_384, 100_000] {
            let mut out = Vec::new();
            out.message(2, |inner| {
                inner.text(1, &"x".repeat(length));
                inner.number(3, u64::MAX);
                inner.fixed64(4, 1);
                inner.fixed32(5, 1);
            });
            let all: Vec<_> = fields(&out).collect();
            let [(2, Field::Bytes(inner))] = all[..] else { panic!("{length}") };
            let inner: Vec<_> = fields(inner).collect();
            assert!(matches!(inner[0], (1, Field::Bytes(text)) if text.len() == length));
            assert_eq!(inner[1..], [(3, Field::Number(u64::MAX)), (4, Field::Other), (5, Field::Other)]);
        }
    }

    #[test]
    fn what_is_no_message_ends() {
        for broken in
            [&b"\xff"[..], b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x05ab", b"\x0b", b"\x09\x01", &[0xff; 40]]
        {
            assert_eq!(fields(broken).count(), 0, "{broken:?}");
        }
    }
}

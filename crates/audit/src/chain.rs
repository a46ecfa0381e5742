//! The chain: each record has a number and a hash over itself and the hash of the record before.
//!
//! `hash = blake3 keyed with the hash of the record before (the record without its member "hash")`, in hex at the end of the line. The
//! first record follows 32 zero bytes. A line always has the same form, so that it can be verified without being parsed:
//! `{"v":1,"seq":12,…,"hash":"…"}`.

use crate::clock::Clock;

/// A hash of the chain.
pub(crate) type Hash = [u8; 32];

/// What the first record follows.
pub(crate) const GENESIS: Hash = [0; 32];

/// How every record begins.
pub(crate) const HEAD: &[u8] = b"{\"v\":1,\"seq\":";
/// What is before the hash, at the end of a record.
const BEFORE_HASH: &[u8] = b",\"hash\":\"";
/// What is after it.
const AFTER_HASH: &[u8] = b"\"}";
/// How long the end of a line is that has the hash.
const TAIL: usize = BEFORE_HASH.len() + 64 + AFTER_HASH.len();

/// Longer lines are no records: the longest texts of all members together are shorter.
pub(crate) const LONGEST_LINE: usize = 64 * 1024;

/// Where a chain is: the last record, and what follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    /// The number of the last record; 0 if there is none.
    pub(crate) seq: u64,
    /// Its hash.
    pub(crate) hash: Hash,
}

impl Position {
    /// Before the first record.
    pub(crate) const START: Position = Position { seq: 0, hash: GENESIS };
}

/// Makes records of what happened.
#[derive(Debug)]
pub(crate) struct Chain {
    at: Position,
    clock: Clock,
}

impl Chain {
    /// A chain that goes on from here.
    pub(crate) fn new(at: Position) -> Chain {
        Chain { at, clock: Clock::default() }
    }

    /// The last record.
    pub(crate) fn at(&self) -> Position {
        self.at
    }

    /// Appends a record to `out`, with a line break. `members` is the text of its members, each with a comma before it.
    pub(crate) fn append(&mut self, out: &mut Vec<u8>, ms: u64, kind: &str, members: &[u8]) {
        let start = out.len();
        out.extend_from_slice(HEAD);
        write_number(out, self.at.seq + 1);
        out.extend_from_slice(b",\"time\":\"");
        self.clock.write(out, ms);
        out.extend_from_slice(b"\",\"kind\":\"");
        out.extend_from_slice(kind.as_bytes());
        out.push(b'"');
        out.extend_from_slice(members);
        out.push(b'}');
        let hash = *blake3::keyed_hash(&self.at.hash, &out[start..]).as_bytes();
        out.pop();
        out.extend_from_slice(BEFORE_HASH);
        out.extend_from_slice(&hex(&hash));
        out.extend_from_slice(AFTER_HASH);
        out.push(b'\n');
        self.at = Position { seq: self.at.seq + 1, hash };
    }
}

/// A line as the chain sees it: its number, its hash, and what the hash is over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link<'a> {
    pub(crate) seq: u64,
    /// The hash that it says it has.
    pub(crate) stated: Hash,
    /// Everything before the member `hash`.
    text: &'a [u8],
}

impl<'a> Link<'a> {
    /// Reads a line without its line break. `None` if it does not have the form of a record.
    pub(crate) fn read(line: &'a [u8]) -> Option<Link<'a>> {
        let stated = stated_hash(line)?;
        let text = &line[..line.len() - TAIL];
        let digits = text.strip_prefix(HEAD)?;
        let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
        let digits = std::str::from_utf8(&digits[..end]).ok()?;
        // One number has one spelling.
        if digits.starts_with('0') {
            return None;
        }
        Some(Link { seq: digits.parse().ok()?, stated, text })
    }

    /// The hash that it has if it follows `previous`.
    pub(crate) fn hash_after(&self, previous: &Hash) -> Hash {
        let mut hasher = blake3::Hasher::new_keyed(previous);
        hasher.update(self.text).update(b"}");
        *hasher.finalize().as_bytes()
    }

    /// The hash that it would have with another number.
    pub(crate) fn hash_as(&self, seq: u64, previous: &Hash) -> Hash {
        let digits = self.seq.to_string().len();
        let mut hasher = blake3::Hasher::new_keyed(previous);
        hasher.update(HEAD).update(seq.to_string().as_bytes());
        hasher.update(&self.text[HEAD.len() + digits..]).update(b"}");
        *hasher.finalize().as_bytes()
    }
}

/// The hash at the end of a line, whatever is before it.
pub(crate) fn stated_hash(line: &[u8]) -> Option<Hash> {
    let tail = line.get(line.len().checked_sub(TAIL)?..)?;
    let hex = tail.strip_prefix(BEFORE_HASH)?.strip_suffix(AFTER_HASH)?;
    unhex(hex)
}

/// A number in decimal digits.
pub(crate) fn write_number(out: &mut Vec<u8>, number: u64) {
    let (mut digits, mut at, mut rest) = ([0u8; 20], 20, number);
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// A hash in hex, lower case.
pub(crate) fn hex(hash: &Hash) -> [u8; 64] {
    /// Both digits of each byte.
    static DIGITS: [[u8; 2]; 256] = {
        let (mut pairs, mut byte) = ([[0; 2]; 256], 0);
        while byte < 256 {
            pairs[byte] = [b"0123456789abcdef"[byte >> 4], b"0123456789abcdef"[byte & 15]];
            byte += 1;
        }
        pairs
    };
    let mut text = [0; 64];
    for (at, byte) in hash.iter().enumerate() {
        [text[2 * at], text[2 * at + 1]] = DIGITS[usize::from(*byte)];
    }
    text
}

/// The same as text.
pub(crate) fn hex_text(hash: &Hash) -> String {
    String::from_utf8_lossy(&hex(hash)).into_owned()
}

/// A hash from its hex, lower case only: one hash has one spelling.
pub(crate) fn unhex(text: &[u8]) -> Option<Hash> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut hash = [0; 32];
    if text.len() != 64 {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_record_follows_the_one_before() {
        let (mut chain, mut out) = (Chain::new(Position::START), Vec::new());
        chain.append(&mut out, 0, "start", b",\"version\":\"1\"");
        chain.append(&mut out, 1_500, "call", b"");
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with(
            "{\"v\":1,\"seq\":1,\"time\":\"1970-01-01T00:00:00.000Z\",\"kind\":\"start\",\"version\":\"1\",\"hash\":\""
        ));
        let mut previous = GENESIS;
        for (at, line) in lines.iter().enumerate() {
            assert!(serde_json::from_str::<serde_json::Value>(line).is_ok());
            let link = Link::read(line.as_bytes()).unwrap();
            assert_eq!((link.seq, link.stated), (at as u64 + 1, link.hash_after(&previous)));
            assert_eq!(link.hash_as(link.seq, &previous), link.stated);
            // As somebody else would compute it from the documentation.
            let (body, _) = line.rsplit_once(",\"hash\":").unwrap();
            assert_eq!(
                blake3::keyed_hash(&previous, format!("{body}}}").as_bytes()).as_bytes(),
                &link.stated
            );
            previous = link.stated;
        }
        assert_eq!(chain.at(), Position { seq: 2, hash: previous });
    }

    #[test]
    fn what_is_no_record() {
        let mut out = Vec::new();
        Chain::new(Position::START).append(&mut out, 0, "stop", b"");
        let line = std::str::from_utf8(&out).unwrap().trim_end();
        for bad in [
            "".to_owned(),
            "{}".to_owned(),
            line[1..].to_owned(),
            line[..line.len() - 1].to_owned(),
            line.replace("\"seq\":1", "\"seq\":01"),
            line.replace("\"seq\":1", "\"seq\":"),
            line.replace("\"seq\":1", "\"seq\":99999999999999999999"),
            line.replace("\"hash\":\"", "\"hash\":\"F"),
        ] {
            assert!(Link::read(bad.as_bytes()).is_none(), "{bad}");
        }
        assert!(Link::read(line.as_bytes()).is_some());
    }
}

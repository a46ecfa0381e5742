//! [`Outline`]: what a message is, told from its bytes as they pass, without keeping them.

use crate::id::LONGEST_ID;
use crate::{Id, Json, Limits};

/// The longest name that is of interest.
const LONGEST_NAME: usize = 7;

/// What is known of a message that was too large, or too broken, to be read: whose it is and of which kind.
///
/// Lenient: the text needs neither be whole nor correct JSON. Only the message's own members count, wherever they
/// stand: some write the id first, others last, behind a result of any size.
///
/// ```
/// use tidegate_protocol::lines::Outline;
///
/// let outline = Outline::of(br#"{"result":{"id":1,"text":"aaa"},"id":7}"#);
/// assert_eq!(outline.id().unwrap().as_json(), "7");
/// assert!(outline.is_answer());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outline {
    /// How many braces and brackets are open.
    depth: usize,
    at: At,
    /// Whether the next byte follows a backslash.
    escaped: bool,
    /// The text began with a bracket rather than a brace.
    list: bool,
    /// The name of the member that is being read. Longer ones are of no interest and counted only.
    name: [u8; LONGEST_NAME],
    name_len: usize,
    /// The id as far as it was read.
    id: Vec<u8>,
    id_whole: bool,
    version: bool,
    method: bool,
    answer: bool,
}

/// Where in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum At {
    /// Before the first brace.
    #[default]
    Start,
    /// Before a member's name, or its colon.
    Between,
    /// In a member's name.
    Name,
    /// Before a member's value.
    Value,
    /// In a value of no interest, but in no string of it.
    Passing,
    /// In a string of such a value.
    PassingString,
    /// In an id that is a string.
    IdString,
    /// In an id that is a number.
    IdNumber,
    /// Behind the message, or in no message at all.
    Over,
}

impl Outline {
    /// The outline of a whole text.
    pub fn of(text: &[u8]) -> Outline {
        let mut outline = Outline::default();
        outline.pass(text);
        outline
    }

    /// Takes the next bytes.
    pub fn pass(&mut self, mut bytes: &[u8]) {
        while let Some((&byte, rest)) = bytes.split_first() {
            if self.at == At::PassingString && !self.escaped {
                // Long strings are what large messages consist of.
                let Some(at) = memchr::memchr2(b'"', b'\\', bytes) else { return };
                self.step(bytes[at]);
                bytes = &bytes[at + 1..];
                continue;
            }
            if self.at == At::Over {
                return;
            }
            self.step(byte);
            bytes = rest;
        }
    }

    /// The message's id, if a whole one was seen.
    pub fn id(&self) -> Option<Id> {
        let text = self.id_whole.then(|| std::str::from_utf8(&self.id).ok())??;
        Json::parse(text.to_owned(), &Limits::default()).ok().and_then(Id::from_json)
    }

    /// Whether it says that it is JSON-RPC.
    pub fn has_version(&self) -> bool {
        self.version
    }

    /// Whether it has a method: a request or a notification.
    pub fn has_method(&self) -> bool {
        self.method
    }

    /// Whether it is the answer to a request.
    pub fn is_answer(&self) -> bool {
        self.answer && !self.method
    }

    /// Whether several messages came in a list.
    pub fn is_list(&self) -> bool {
        self.list
    }

    fn step(&mut self, byte: u8) {
        match self.at {
            At::Start => match byte {
                b'{' => (self.at, self.depth) = (At::Between, 1),
                b'[' => (self.at, self.list) = (At::Over, true),
                byte if byte.is_ascii_whitespace() => {}
                _ => self.at = At::Over,
            },
            At::Between => match byte {
                b'"' => (self.at, self.name_len) = (At::Name, 0),
                b':' => self.at = At::Value,
                b'}' => self.at = At::Over,
                _ => {}
            },
            At::Name => self.name(byte),
            At::Value if byte.is_ascii_whitespace() => {}
            At::Value => self.begin_value(byte),
            At::Passing => self.passing(byte),
            At::PassingString => {
                if self.string_ends(byte) {
                    self.at = At::Passing;
                }
            }
            At::IdString => {
                self.keep(byte);
                if self.at == At::IdString && self.string_ends(byte) {
                    (self.at, self.id_whole) = (At::Passing, true);
                }
            }
            At::IdNumber => match byte {
                b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E' => self.keep(byte),
                _ => {
                    (self.at, self.id_whole) = (At::Passing, true);
                    self.passing(byte);
                }
            },
            At::Over => {}
        }
    }

    fn name(&mut self, byte: u8) {
        if self.string_ends(byte) {
            self.at = At::Between;
            match self.name_read() {
                b"jsonrpc" => self.version = true,
                b"method" => self.method = true,
                b"result" | b"error" => self.answer = true,
                _ => {}
            }
        } else {
            if let Some(place) = self.name.get_mut(self.name_len) {
                *place = byte;
            }
            self.name_len += 1;
        }
    }

    fn name_read(&self) -> &[u8] {
        self.name.get(..self.name_len).unwrap_or_default()
    }

    fn begin_value(&mut self, byte: u8) {
        self.at = At::Passing;
        let id = self.name_read() == b"id" && self.id.is_empty();
        match byte {
            b'"' if id => {
                self.at = At::IdString;
                self.keep(byte);
            }
            b'0'..=b'9' | b'-' if id => {
                self.at = At::IdNumber;
                self.keep(byte);
            }
            _ => self.passing(byte),
        }
    }

    fn passing(&mut self, byte: u8) {
        match byte {
            b'"' => self.at = At::PassingString,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    self.at = At::Over;
                }
            }
            b',' if self.depth == 1 => self.at = At::Between,
            _ => {}
        }
    }

    /// Whether this byte of a string ends it.
    fn string_ends(&mut self, byte: u8) -> bool {
        if std::mem::take(&mut self.escaped) {
            return false;
        }
        self.escaped = byte == b'\\';
        byte == b'"'
    }

    /// Keeps a byte of the id, unless that gets longer than any id.
    fn keep(&mut self, byte: u8) {
        if self.id.len() < LONGEST_ID {
            self.id.push(byte);
        } else {
            self.at = if self.at == At::IdString { At::PassingString } else { At::Passing };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The id and the kind.
    fn told(outline: &Outline) -> (Option<String>, &'static str) {
        let kind = match (outline.has_method(), outline.is_answer(), outline.is_list()) {
            (true, ..) => "request",
            (_, true, _) => "answer",
            (.., true) => "list",
            _ => "nothing",
        };
        (outline.id().map(|id| id.as_json().to_owned()), kind)
    }

    #[test]
    fn finds_the_own_id_of_a_message_wherever_it_stands() {
        for (text, id, kind) in [
            (r#"{"jsonrpc":"2.0","id":7,"method":"x","params":{"id":1}}"#, Some("7"), "request"),
            (r#" { "id" : "a,}\"b" , "result":{}"#, Some(r#""a,}\"b""#), "answer"),
            (
                r#"{"method":"x","params":{"id":1,"a":["}",{"id":2}]},"jsonrpc":"2.0","id":3}"#,
                Some("3"),
                "request",
            ),
            (r#"{"result":{"text":"\\","id":1},"id":4,"jsonrpc":"2.0"}"#, Some("4"), "answer"),
            (r#"{"result":{"text":"\"id\":9}"},"id":"x" } "#, Some("\"x\""), "answer"),
            (r#"{"result":NaN,"id":-0}"#, Some("-0"), "answer"),
            (r#"{"error":{"message":"id"},"id":5,"id":6}"#, Some("5"), "answer"),
            // Not the message's own, not whole, or no id.
            (r#"{"result":{"id":1,"text":"aaa","id":5}}"#, None, "answer"),
            (r#"{"jsonrpc":"2.0","id":12"#, None, "nothing"),
            (r#"{"jsonrpc":"2.0","id":"a"#, None, "nothing"),
            (r#"{"id":null,"error":{"#, None, "answer"),
            (r#"{"id":1.5,"error":{"#, None, "answer"),
            (r#"{"id":{"id":3},"method":"x"}"#, None, "request"),
            (r#"{"idea":1,"i":2,"params":{},"method":"x"}"#, None, "request"),
            (r#"{"a":1}{"id":2}"#, None, "nothing"),
            (r#"[{"jsonrpc":"2.0","id":7"#, None, "list"),
            ("Server running on stdio", None, "nothing"),
            ("}]}", None, "nothing"),
            ("", None, "nothing"),
        ] {
            let want = (id.map(str::to_owned), kind);
            assert_eq!(told(&Outline::of(text.as_bytes())), want, "{text}");
            let mut by_bytes = Outline::default();
            text.as_bytes().chunks(1).for_each(|byte| by_bytes.pass(byte));
            assert_eq!(told(&by_bytes), want, "{text}, byte by byte");
        }
    }

    #[test]
    fn keeps_no_more_than_an_id() {
        let long = "x".repeat(1 << 20);
        let mut outline =
            Outline::of(format!(r#"{{"id":"{long}","{long}":"{long}","method":"x"}}"#).as_bytes());
        assert_eq!(told(&outline), (None, "request"));
        assert!(outline.id.capacity() <= 2 * LONGEST_ID);
        outline = Outline::of(format!(r#"{{"params":["{long}",[{}"#, "[".repeat(1 << 20)).as_bytes());
        outline.pass(format!(r#"{}]],"id":1}}"#, "]".repeat(1 << 20)).as_bytes());
        assert_eq!(outline.id().unwrap().as_json(), "1");
    }
}

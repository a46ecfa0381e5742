//! What a line that cannot be read was about: whose answer is lost with it?

use tidegate_protocol::{Id, Json, Limits};

/// What is left of a line that cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Remains {
    /// Not a message at all: a banner, a log line.
    Noise,
    /// A message, but not an answer that somebody is known to wait for.
    Message,
    /// The answer to this request.
    Answer(Id),
}

/// Looks at the two ends of a line, leniently: neither needs to be whole, nor correct JSON.
///
/// The id usually stands near the beginning. Servers of the TypeScript SDK write it last, after the result.
pub(super) fn salvage(head: &[u8], tail: &[u8]) -> Remains {
    let mut members = Members { text: head, at: 0 };
    if members.token() != Some(b'{') {
        // A batch is a message too, but whose?
        let batch = members.token() == Some(b'[') && memchr::memmem::find(head, b"\"jsonrpc\"").is_some();
        return if batch { Remains::Message } else { Remains::Noise };
    }
    members.at += 1;
    let (mut id, mut answer, mut method) = (None, false, false);
    while let Some((name, value)) = members.next() {
        match name {
            b"\"id\"" => id = id.or_else(|| id_of(value)),
            b"\"method\"" => method = true,
            b"\"jsonrpc\"" | b"\"result\"" | b"\"error\"" => answer = true,
            _ => {}
        }
    }
    match id.or_else(|| last_member_id(tail)) {
        // A request of the server's has an id of its own, which says nothing about ours.
        Some(id) if answer && !method => Remains::Answer(id),
        _ if answer => Remains::Message,
        _ => Remains::Noise,
    }
}

fn id_of(value: &[u8]) -> Option<Id> {
    let text = std::str::from_utf8(value).ok()?.to_owned();
    Json::parse(text, &Limits::default()).ok().and_then(Id::from_json)
}

/// The id if it is the last member of the whole line: `…,"id":7}`.
///
/// Exact for correct JSON: the brace at the very end closes the message itself, so what stands before it is the
/// message's last member.
fn last_member_id(tail: &[u8]) -> Option<Id> {
    let tail = tail.trim_ascii_end().strip_suffix(b"}")?.trim_ascii_end();
    let at = memchr::memmem::rfind(tail, b"\"id\"")?;
    let before = tail[..at].trim_ascii_end();
    let value = tail[at + 4..].trim_ascii_start().strip_prefix(b":")?;
    matches!(before.last(), Some(b',' | b'{')).then(|| id_of(value))?
}

/// Walks over an object's own members, as far as the text goes.
struct Members<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Members<'a> {
    /// The byte at the next place that is not white space.
    fn token(&mut self) -> Option<u8> {
        while self.text.get(self.at)?.is_ascii_whitespace() {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    /// The next name, with its quotes, and value. A value that is cut off is not handed out.
    fn next(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        if self.token()? == b',' {
            self.at += 1;
            self.token()?;
        }
        let name = self.string()?;
        if self.token()? != b':' {
            return None;
        }
        self.at += 1;
        self.token()?;
        let start = self.at;
        let whole = self.value().is_some();
        // A name tells something even if its value is cut off.
        Some((name, if whole { &self.text[start..self.at] } else { b"" }))
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        let start = self.at;
        if self.text.get(start) != Some(&b'"') {
            return None;
        }
        self.at += 1;
        loop {
            let Some(found) = memchr::memchr2(b'"', b'\\', &self.text[self.at..]) else {
                self.at = self.text.len();
                return None;
            };
            self.at += found + 1;
            if self.text[self.at - 1] == b'"' {
                return Some(&self.text[start..self.at]);
            }
            self.at = (self.at + 1).min(self.text.len());
        }
    }

    /// Goes to the end of a value: the comma or brace behind it, on this level.
    fn value(&mut self) -> Option<()> {
        let mut depth = 0usize;
        loop {
            match *self.text.get(self.at)? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b',' if depth == 0 => return Some(()),
                b'}' | b']' if depth == 0 => return Some(()),
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_whose_answer_it_was() {
        let answer = |id: &str| Remains::Answer(id_of(id.as_bytes()).expect("an id"));
        for (head, tail, want) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"text":"aaa"#, "aaa", answer("7")),
            (r#" { "id" : "a,}b" , "result":{}"#, "", answer("\"a,}b\"")),
            (r#"{"result":{"id":1,"a":["}",{"id":2}],"b":NaN},"id":3}"#, "", answer("3")),
            // An id that is last, as the TypeScript SDK writes it.
            (r#"{"result":{"id":1,"text":"aaa"#, r#"aa"},"jsonrpc":"2.0","id":9}"#, answer("9")),
            (r#"{"result":{"text":"aaa"#, r#"aa"},"id":"x" } "#, answer("\"x\"")),
            // Ids that are not the message's own, or not whole.
            (r#"{"result":{"id":1,"text":"aaa"#, r#"aa","id":5}}"#, Remains::Message),
            (r#"{"jsonrpc":"2.0","result":{"text":"aaa"#, r#"aa\"id":5}"#, Remains::Message),
            (r#"{"jsonrpc":"2.0","id":12"#, "", Remains::Message),
            (r#"{"jsonrpc":"2.0","id":null,"error":{"#, "", Remains::Message),
            (r#"{"jsonrpc":"2.0","id":1.5,"error":{"#, "", Remains::Message),
            // The server's own requests.
            (r#"{"jsonrpc":"2.0","id":7,"method":"x","params":[]}"#, "", Remains::Message),
            (r#"{"method":"x","params":{"a":"aaa"#, r#""},"jsonrpc":"2.0","id":9}"#, Remains::Noise),
            (r#"[{"jsonrpc":"2.0","id":7"#, "", Remains::Message),
            // Everything else.
            (r#"{"level":30,"id":7,"msg":"listening"}"#, "", Remains::Noise),
            ("Server running on stdio", "", Remains::Noise),
            ("", "", Remains::Noise),
            ("{", "", Remains::Noise),
            (r#"{"a\"#, "", Remains::Noise),
        ] {
            assert_eq!(salvage(head.as_bytes(), tail.as_bytes()), want, "{head} … {tail}");
        }
    }
}

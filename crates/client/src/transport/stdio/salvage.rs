//! What a line that cannot be read was about: whose answer is lost with it?

use tidegate_protocol::lines::Outline;
use tidegate_protocol::{Id, Json, Limits};

/// How much of the end of a line is searched for an id.
const TAIL: usize = 256;

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

/// Looks at a line leniently: it needs neither be whole nor correct JSON.
pub(super) fn salvage(line: &[u8]) -> Remains {
    let outline = Outline::of(line);
    if outline.is_list() {
        // A batch is a message too, but whose?
        let batch = memchr::memmem::find(line, b"\"jsonrpc\"").is_some();
        return if batch { Remains::Message } else { Remains::Noise };
    }
    if !outline.has_version() && !outline.is_answer() {
        return Remains::Noise;
    }
    match outline.id().or_else(|| last_member_id(line)) {
        // A request of the server's has an id of its own, which says nothing about ours.
        Some(id) if !outline.has_method() => Remains::Answer(id),
        _ => Remains::Message,
    }
}

fn id_of(value: &[u8]) -> Option<Id> {
    let text = std::str::from_utf8(value).ok()?.to_owned();
    Json::parse(text, &Limits::default()).ok().and_then(Id::from_json)
}

/// The id if it is the last member of the whole line: `…,"id":7}`. For lines that are too broken in the middle to be
/// walked through: the brace at the very end closes the message itself, so what stands before it is its last member.
fn last_member_id(line: &[u8]) -> Option<Id> {
    let tail = line[line.len().saturating_sub(TAIL)..].trim_ascii_end().strip_suffix(b"}")?.trim_ascii_end();
    let at = memchr::memmem::rfind(tail, b"\"id\"")?;
    let before = tail[..at].trim_ascii_end();
    let value = tail[at + 4..].trim_ascii_start().strip_prefix(b":")?;
    matches!(before.last(), Some(b',' | b'{')).then(|| id_of(value))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_whose_answer_it_was() {
        let answer = |id: &str| Remains::Answer(id_of(id.as_bytes()).expect("an id"));
        for (line, want) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"text":"aaa"#, answer("7")),
            (r#" { "id" : "a,}b" , "result":{}"#, answer("\"a,}b\"")),
            (r#"{"result":{"id":1,"a":["}",{"id":2}],"b":NaN},"id":3}"#, answer("3")),
            // An id that is last, as the TypeScript SDK writes it, and behind a quote too many.
            (r#"{"result":{"id":1,"text":"aaa"},"jsonrpc":"2.0","id":9}"#, answer("9")),
            (r#"{"result":{"text":"a"a"},"id":"x" } "#, answer("\"x\"")),
            // Ids that are not the message's own, or not whole.
            (r#"{"jsonrpc":"2.0","result":{"text":"aaa\"id":5}"#, Remains::Message),
            (r#"{"jsonrpc":"2.0","id":12"#, Remains::Message),
            (r#"{"jsonrpc":"2.0","id":null,"error":{"#, Remains::Message),
            (r#"{"jsonrpc":"2.0","id":1.5,"error":{"#, Remains::Message),
            // The server's own requests.
            (r#"{"jsonrpc":"2.0","id":7,"method":"x","params":[]}"#, Remains::Message),
            (r#"[{"jsonrpc":"2.0","id":7"#, Remains::Message),
            // Everything else.
            (r#"{"level":30,"id":7,"msg":"listening"}"#, Remains::Noise),
            ("Server running on stdio", Remains::Noise),
            ("[info] ready", Remains::Noise),
            ("", Remains::Noise),
            ("{", Remains::Noise),
            (r#"{"a\"#, Remains::Noise),
        ] {
            assert_eq!(salvage(line.as_bytes()), want, "{line}");
        }
    }
}

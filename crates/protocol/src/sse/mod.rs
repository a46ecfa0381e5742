//! Server-sent events: writing them, and reading them from a stream that is cut anywhere.
//!
//! The format is that of the WHATWG HTML standard, section 9.2. Nothing here knows what the events carry.

mod decode;

use memchr::memchr2;

pub use decode::{SseDecoder, SseEvent, SseFault};

/// Appends one event. `data` on several lines becomes several `data` fields, which the reader joins again.
///
/// An empty `data` with an id is an event too: 2025-11-25 streams open with one, to give the client an id to resume
/// from.
///
/// ```
/// let mut out = Vec::new();
/// tidegate_protocol::sse::write_event(&mut out, Some("7"), r#"{"jsonrpc":"2.0"}"#);
/// assert_eq!(out, b"id: 7\ndata: {\"jsonrpc\":\"2.0\"}\n\n");
/// ```
pub fn write_event(out: &mut Vec<u8>, id: Option<&str>, data: &str) {
    out.reserve(data.len() + 32);
    if let Some(id) = id {
        write_field(out, b"id: ", id);
    }
    write_field(out, b"data: ", data);
    out.push(b'\n');
}

/// Appends one event of a type of its own, such as the `endpoint` event of HTTP+SSE (2024-11-05).
pub fn write_named_event(out: &mut Vec<u8>, event: &str, data: &str) {
    write_field(out, b"event: ", event);
    write_event(out, None, data);
}

/// Appends how long the client should wait before it reconnects, in milliseconds.
pub fn write_retry(out: &mut Vec<u8>, ms: u64) {
    write_field(out, b"retry: ", &ms.to_string());
    out.push(b'\n');
}

/// Appends a comment: readers ignore it, but it keeps a quiet connection open.
pub fn write_comment(out: &mut Vec<u8>, text: &str) {
    write_field(out, b": ", text);
    out.push(b'\n');
}

/// One line per line of `value`, each under the same field name.
fn write_field(out: &mut Vec<u8>, name: &[u8], value: &str) {
    let mut rest = value.as_bytes();
    loop {
        out.extend_from_slice(name);
        let Some(end) = memchr2(b'\n', b'\r', rest) else { break };
        out.extend_from_slice(&rest[..end]);
        out.push(b'\n');
        rest = &rest[end + if rest[end..].starts_with(b"\r\n") { 2 } else { 1 }..];
    }
    out.extend_from_slice(rest);
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_form() {
        let written = |write: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            write(&mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(&|o| write_event(o, None, "{}")), "data: {}\n\n");
        assert_eq!(written(&|o| write_event(o, Some("3"), "")), "id: 3\ndata: \n\n");
        assert_eq!(
            written(&|o| write_event(o, None, "a\r\nb\rc\n")),
            "data: a\ndata: b\ndata: c\ndata: \n\n"
        );
        assert_eq!(written(&|o| write_named_event(o, "endpoint", "/m")), "event: endpoint\ndata: /m\n\n");
        assert_eq!(written(&|o| write_retry(o, 500)), "retry: 500\n\n");
        assert_eq!(written(&|o| write_comment(o, "alive")), ": alive\n\n");
    }
}

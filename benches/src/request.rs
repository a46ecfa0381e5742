//! The bytes that go to the servers, built once; only the id changes from request to request.
//!
//! Ids have a fixed width and are patched in place. They must differ, because a legacy session may refuse an id that
//! it has seen, and because answers to requests in flight over stdio are told apart by them.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use serde_json::{Value, json};

pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const LEGACY: &str = "2025-11-25";

const FIRST_ID: u64 = 100_000_000;
const ID_WIDTH: usize = 9;

/// A prepared request.
#[derive(Clone)]
pub(crate) struct Request {
    bytes: Vec<u8>,
    id_at: usize,
}

impl Request {
    /// 2026-07-28 basic/transports/streamable-http: version, method and name are mirrored in headers.
    pub(crate) fn modern_http(addr: SocketAddr, message: &str) -> Self {
        let headers =
            format!("MCP-Protocol-Version: {MODERN}\r\nMcp-Method: tools/call\r\nMcp-Name: echo\r\n");
        Self::new(post(addr, &headers, &modern_call(message)))
    }

    pub(crate) fn legacy_http(addr: SocketAddr, session: &str, message: &str) -> Self {
        let headers = format!("MCP-Protocol-Version: {LEGACY}\r\nMcp-Session-Id: {session}\r\n");
        Self::new(post(addr, &headers, &call(message, None)))
    }

    pub(crate) fn stdio(message: &str) -> Self {
        let mut line = modern_call(message);
        line.push('\n');
        Self::new(line.into_bytes())
    }

    fn new(bytes: Vec<u8>) -> Self {
        let id_at = id_position(&bytes).expect("every template carries an id");
        Self { bytes, id_at }
    }

    /// The request with the `n`th id in it.
    pub(crate) fn numbered(&mut self, n: u64) -> &[u8] {
        let mut rest = FIRST_ID + n % (9 * FIRST_ID);
        for digit in self.bytes[self.id_at..self.id_at + ID_WIDTH].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        &self.bytes
    }
}

pub(crate) fn initialize(addr: SocketAddr) -> Vec<u8> {
    let body = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": LEGACY,
            "capabilities": {},
            "clientInfo": {"name": "tidegate-bench", "version": "1.0.0"},
        },
    });
    post(addr, "", &body.to_string())
}

pub(crate) fn initialized(addr: SocketAddr, session: &str) -> Vec<u8> {
    let headers = format!("MCP-Protocol-Version: {LEGACY}\r\nMcp-Session-Id: {session}\r\n");
    post(addr, &headers, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
}

/// Which request (as numbered by [`Request::numbered`]) an answer belongs to.
///
/// Only the two ends of the answer are searched: the servers write the id before or after the result, and looking
/// through 64 KB of text for it would make the client the bottleneck.
pub(crate) fn number_of(answer: &[u8]) -> Result<u64> {
    let head = &answer[..answer.len().min(64)];
    let tail = &answer[answer.len().saturating_sub(64)..];
    [head, tail]
        .iter()
        .find_map(|part| {
            let at = id_position(part)?;
            let digits = std::str::from_utf8(part.get(at..at + ID_WIDTH)?).ok()?;
            digits.parse::<u64>().ok()?.checked_sub(FIRST_ID)
        })
        .with_context(|| format!("an answer without an id: {}", String::from_utf8_lossy(head)))
}

/// Checks a JSON-RPC answer in full: the right id, a result, and the message as its only text.
pub(crate) fn check_answer(answer: &[u8], n: u64, message: &str) -> Result<()> {
    let shown = String::from_utf8_lossy(&answer[..answer.len().min(300)]);
    let value: Value = serde_json::from_slice(answer).with_context(|| format!("not JSON: {shown}"))?;
    anyhow::ensure!(value["id"] == json!(FIRST_ID + n), "wrong id in {shown}");
    anyhow::ensure!(value["result"]["content"][0]["text"] == message, "no echo in {shown}");
    anyhow::ensure!(value["result"]["isError"] != json!(true), "an error result: {shown}");
    Ok(())
}

fn modern_call(message: &str) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "tidegate-bench", "version": "1.0.0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    call(message, Some(meta))
}

fn call(message: &str, meta: Option<Value>) -> String {
    let message = json!(message);
    let meta = meta.map(|meta| format!(r#","_meta":{meta}"#)).unwrap_or_default();
    format!(
        r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"tools/call","params":{{"name":"echo","arguments":{{"message":{message}}}{meta}}}}}"#
    )
}

fn post(addr: SocketAddr, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {addr}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn id_position(bytes: &[u8]) -> Option<usize> {
    const KEY: &[u8] = b"\"id\":";
    memchr::memmem::find(bytes, KEY).map(|at| at + KEY.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_patched_and_found_again() {
        let mut request = Request::stdio("hello");
        let length = request.numbered(0).len();
        for n in [0, 1, 9, 10, 123_456] {
            let line = request.numbered(n);
            assert_eq!(line.len(), length);
            assert_eq!(number_of(line).unwrap(), n);
            serde_json::from_slice::<Value>(line).unwrap();
        }
    }

    #[test]
    fn an_id_behind_the_result_is_found() {
        let answer = format!(r#"{{"result":{{"text":"{}"}},"id":100000007}}"#, "x".repeat(500));
        assert_eq!(number_of(answer.as_bytes()).unwrap(), 7);
    }

    #[test]
    fn content_length_matches() {
        let mut request = Request::modern_http(([127, 0, 0, 1], 80).into(), "hello");
        let text = String::from_utf8(request.numbered(3).to_vec()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())));
    }

    #[test]
    fn wrong_answers_are_told_apart() {
        let answer = br#"{"jsonrpc":"2.0","id":100000000,"result":{"content":[{"type":"text","text":"a"}]}}"#;
        check_answer(answer, 0, "a").unwrap();
        check_answer(answer, 1, "a").unwrap_err();
        check_answer(answer, 0, "b").unwrap_err();
        check_answer(br#"{"jsonrpc":"2.0","id":100000000,"error":{}}"#, 0, "a").unwrap_err();
    }
}

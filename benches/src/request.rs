//! The bytes that go to the servers, built once; only the id changes from request to request.
//!
//! Ids have a fixed width and are patched in place. They must differ, because a legacy session may refuse an id that
//! it has seen, and because answers to requests in flight over stdio are told apart by them.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::credentials::Credentials;

pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const LEGACY: &str = "2025-11-25";

const FIRST_ID: u64 = 100_000_000;
const ID_WIDTH: usize = 9;

/// What is asked for, and what the answer must be.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) path: &'static str,
    method: &'static str,
    /// The name of the tool, which modern requests mirror in a header.
    name: Option<&'static str>,
    /// The members of `params`.
    params: String,
    expected: Expected,
    /// What requests over HTTP are authenticated with.
    credentials: Option<Arc<Credentials>>,
}

#[derive(Clone)]
enum Expected {
    Text(String),
    Tools(usize),
}

impl Ask {
    /// A call of the echo.
    pub(crate) fn echo(message: &str) -> Self {
        Self::call("/mcp", "echo", json!({"message": message}), message.to_owned())
    }

    /// A call of the floor's echo, which says the message so many times.
    pub(crate) fn repeated_echo(path: &'static str, tool: &'static str, message: &str, times: usize) -> Self {
        Self::call(path, tool, json!({"message": message, "times": times}), message.repeat(times))
    }

    /// A call of the demonstration's tool that takes its time.
    pub(crate) fn count(path: &'static str, tool: &'static str) -> Self {
        Self::call(path, tool, json!({"to": 1}), "Counted to 1".to_owned())
    }

    fn call(path: &'static str, tool: &'static str, arguments: Value, text: String) -> Self {
        let params = format!(r#""name":"{tool}","arguments":{arguments}"#);
        let expected = Expected::Text(text);
        Self { path, method: "tools/call", name: Some(tool), params, expected, credentials: None }
    }

    /// The list of all tools, at least so many.
    pub(crate) fn tools(path: &'static str, at_least: usize) -> Self {
        let expected = Expected::Tools(at_least);
        Self { path, method: "tools/list", name: None, params: String::new(), expected, credentials: None }
    }

    /// The same from somebody who brings these.
    pub(crate) fn with_credentials(mut self, credentials: Option<Arc<Credentials>>) -> Self {
        self.credentials = credentials;
        self
    }

    /// About how long an answer is.
    pub(crate) fn answer_length(&self) -> usize {
        match &self.expected {
            Expected::Text(text) => text.len() + 1024,
            Expected::Tools(count) => count * 512 + 1024,
        }
    }

    /// Checks a JSON-RPC answer in full: the right id, a result, and what was expected of it.
    pub(crate) fn check(&self, answer: &[u8], n: u64) -> Result<()> {
        let shown = String::from_utf8_lossy(&answer[..answer.len().min(300)]);
        let value: Value = serde_json::from_slice(answer).with_context(|| format!("not JSON: {shown}"))?;
        anyhow::ensure!(value["id"] == json!(FIRST_ID + n), "wrong id in {shown}");
        match &self.expected {
            Expected::Text(text) => {
                anyhow::ensure!(value["result"]["content"][0]["text"] == *text, "no echo in {shown}");
                anyhow::ensure!(value["result"]["isError"] != json!(true), "an error result: {shown}");
            }
            Expected::Tools(at_least) => {
                let count = value["result"]["tools"].as_array().map_or(0, Vec::len);
                anyhow::ensure!(count >= *at_least, "{count} tools instead of {at_least} in {shown}");
            }
        }
        Ok(())
    }

    fn modern_body(&self) -> String {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "tidegate-bench", "version": "1.0.0"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let comma = if self.params.is_empty() { "" } else { "," };
        self.body(&format!("{comma}\"_meta\":{meta}"))
    }

    fn body(&self, meta: &str) -> String {
        let Self { method, params, .. } = self;
        format!(r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"{method}","params":{{{params}{meta}}}}}"#)
    }
}

/// A prepared request.
#[derive(Clone)]
pub(crate) struct Request {
    bytes: Vec<u8>,
    id_at: usize,
    /// Where credentials are that differ from request to request.
    credentials: Option<(usize, Arc<Credentials>)>,
}

impl Request {
    /// 2026-07-28 basic/transports/streamable-http: version, method and name are mirrored in headers.
    pub(crate) fn modern_http(addr: SocketAddr, ask: &Ask) -> Self {
        let name = ask.name.map(|name| format!("Mcp-Name: {name}\r\n")).unwrap_or_default();
        let bearer = ask.credentials.as_ref().map(|it| format!("Authorization: Bearer {}\r\n", it.of(0)));
        let bearer = bearer.unwrap_or_default();
        let headers =
            format!("MCP-Protocol-Version: {MODERN}\r\nMcp-Method: {}\r\n{name}{bearer}", ask.method);
        let mut request = Self::new(post(addr, ask.path, &headers, &ask.modern_body()));
        if let Some(credentials) = ask.credentials.as_ref().filter(|it| it.differ()) {
            let at = memchr::memmem::find(&request.bytes, b"Bearer ").map(|at| at + "Bearer ".len());
            request.credentials = at.map(|at| (at, credentials.clone()));
        }
        request
    }

    pub(crate) fn legacy_http(addr: SocketAddr, session: &str, ask: &Ask) -> Self {
        Self::new(post(addr, ask.path, &in_session(session), &ask.body("")))
    }

    pub(crate) fn modern_stdio(ask: &Ask) -> Self {
        Self::new((ask.modern_body() + "\n").into_bytes())
    }

    /// Without a handshake, which only the floor does not ask for.
    pub(crate) fn legacy_stdio(ask: &Ask) -> Self {
        Self::new((ask.body("") + "\n").into_bytes())
    }

    fn new(bytes: Vec<u8>) -> Self {
        let id_at = id_position(&bytes).expect("every template carries an id");
        Self { bytes, id_at, credentials: None }
    }

    /// The request with the `n`th id in it.
    pub(crate) fn numbered(&mut self, n: u64) -> &[u8] {
        let mut rest = FIRST_ID + n % (9 * FIRST_ID);
        for digit in self.bytes[self.id_at..self.id_at + ID_WIDTH].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        if let Some((at, credentials)) = &self.credentials {
            let credential = credentials.of(n).as_bytes();
            self.bytes[*at..*at + credential.len()].copy_from_slice(credential);
        }
        &self.bytes
    }
}

pub(crate) fn initialize(addr: SocketAddr, path: &str) -> Vec<u8> {
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
    post(addr, path, "", &body.to_string())
}

pub(crate) fn initialized(addr: SocketAddr, path: &str, session: &str) -> Vec<u8> {
    post(addr, path, &in_session(session), r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
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

fn in_session(session: &str) -> String {
    format!("MCP-Protocol-Version: {LEGACY}\r\nMcp-Session-Id: {session}\r\n")
}

fn post(addr: SocketAddr, path: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: {addr}\r\nContent-Type: application/json\r\n\
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
        let mut request = Request::modern_stdio(&Ask::echo("hello"));
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
        let mut request = Request::modern_http(([127, 0, 0, 1], 80).into(), &Ask::echo("hello"));
        let text = String::from_utf8(request.numbered(3).to_vec()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())));
    }

    #[test]
    fn wrong_answers_are_told_apart() {
        let answer = br#"{"jsonrpc":"2.0","id":100000000,"result":{"content":[{"type":"text","text":"a"}]}}"#;
        Ask::echo("a").check(answer, 0).unwrap();
        Ask::echo("a").check(answer, 1).unwrap_err();
        Ask::echo("b").check(answer, 0).unwrap_err();
        Ask::echo("a").check(br#"{"jsonrpc":"2.0","id":100000000,"error":{}}"#, 0).unwrap_err();
    }

    #[test]
    fn lists_are_counted() {
        let answer = br#"{"jsonrpc":"2.0","id":100000000,"result":{"tools":[{},{}]}}"#;
        Ask::tools("/mcp", 2).check(answer, 0).unwrap();
        Ask::tools("/mcp", 3).check(answer, 0).unwrap_err();
        serde_json::from_str::<Value>(&Ask::tools("/mcp", 2).modern_body()).unwrap();
        serde_json::from_str::<Value>(&Ask::tools("/mcp", 2).body("")).unwrap();
    }
}

//! Just enough HTTP/1.1 to be rude with.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

/// No answer takes this long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// The message in the body, which is JSON or an event stream whose last event has it.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let text = match self
            .body
            .rfind("\ndata: ")
            .map(|at| at + 1)
            .or(self.body.strip_prefix("data: ").map(|_| 0))
        {
            Some(at) => self.body[at + "data: ".len()..].lines().next().unwrap_or_default(),
            None => &self.body,
        };
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A connection that nobody waits on for longer than [`PATIENCE`].
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// The head of a request with a body of this many bytes.
pub(crate) fn head(method: &str, headers: &[(&str, &str)], length: usize) -> String {
    let mut head = format!(
        "{method} /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n"
    );
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head + "\r\n"
}

/// One request on a connection of its own, and its whole answer.
pub(crate) fn request(address: SocketAddr, method: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    let mut stream = connect(address);
    let headers = [headers, &[("Connection", "close")]].concat();
    // A refusal may come before everything was sent.
    let _ =
        stream.write_all(head(method, &headers, body.len()).as_bytes()).and_then(|()| stream.write_all(body));
    read(&mut stream)
}

/// Reads an answer up to the end of the connection.
pub(crate) fn read(stream: &mut TcpStream) -> Answer {
    let mut all = Vec::new();
    if let Err(error) = stream.read_to_end(&mut all) {
        assert!(!all.is_empty(), "no answer in time: {error}");
    }
    let text = String::from_utf8_lossy(&all);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if chunked { dechunk(body) } else { body.to_owned() };
    Answer { status, head: head.to_owned(), body }
}

fn dechunk(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let Ok(size) = usize::from_str_radix(size.trim(), 16) else { break };
        let Some(chunk) = after.get(..size).filter(|_| size > 0) else { break };
        body += chunk;
        rest = after[size..].trim_start_matches("\r\n");
    }
    body
}

/// A modern request as bytes.
pub(crate) fn modern(id: u64, method: &str, mut params: Value) -> Vec<u8> {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "attacks", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string().into_bytes()
}

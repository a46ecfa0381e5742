//! Just enough HTTP/1.1: whole answers, and streams that stay open.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value;

/// No answer takes this long: it tells slow from stuck.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// Names of headers and their values.
pub(crate) type Headers<'a> = &'a [(&'a str, &'a str)];

/// A whole answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// The value of a header, or "".
    pub(crate) fn header(&self, name: &str) -> &str {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        let mut found = lines.filter(|(found, _)| found.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.trim()).unwrap_or_default()
    }

    /// The message in the body, which is JSON or an event stream whose last event has it; null if there is none.
    pub(crate) fn json(&self) -> Value {
        let mut data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        let text = data.rfind(|data| data.starts_with('{')).unwrap_or(&self.body);
        serde_json::from_str(text).unwrap_or_default()
    }

    /// Whether it is a result, and not the result of a tool that failed.
    pub(crate) fn is_fine(&self) -> bool {
        let message = self.json();
        self.status == 200 && message["result"].is_object() && message["result"]["isError"] != true
    }
}

/// One request on a connection of its own, and its whole answer.
pub(crate) fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: Headers<'_>,
    body: &str,
) -> Answer {
    let mut stream = Stream::open(address, method, path, headers, body);
    stream.read_to_end();
    stream.answer()
}

/// An answer that comes bit by bit.
pub(crate) struct Stream {
    connection: TcpStream,
    seen: Vec<u8>,
    has_ended: bool,
}

impl Stream {
    /// Sends a request. A header that is given replaces the usual one.
    pub(crate) fn open(
        address: SocketAddr,
        method: &str,
        path: &str,
        headers: Headers<'_>,
        body: &str,
    ) -> Stream {
        let mut connection = TcpStream::connect(address).unwrap();
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        connection.set_write_timeout(Some(PATIENCE)).unwrap();
        let host = address.to_string();
        let length = body.len().to_string();
        let usual = [
            ("Host", host.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("Content-Length", &length),
            ("Connection", "close"),
        ];
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        let given = |name: &str| headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        for (name, value) in usual.iter().filter(|(name, _)| !given(name)).chain(headers) {
            head += &format!("{name}: {value}\r\n");
        }
        // A refusal may come before everything was sent.
        let _ = connection.write_all(format!("{head}\r\n{body}").as_bytes());
        Stream { connection, seen: Vec::new(), has_ended: false }
    }

    /// What has come so far.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }

    /// The status, as soon as it is known.
    #[track_caller]
    pub(crate) fn status(&mut self) -> u16 {
        self.until("\r\n\r\n");
        self.answer().status
    }

    /// Reads until there is this text.
    #[track_caller]
    pub(crate) fn until(&mut self, text: &str) -> String {
        let started = Instant::now();
        while !self.text().contains(text) {
            assert!(self.more(), "it ended without {text:?}: {}", self.text());
            // A quiet stream is not silent: comments keep it open.
            assert!(started.elapsed() < PATIENCE, "there is no {text:?}: {}", self.text());
        }
        self.text()
    }

    /// Reads until the end, which comes in time.
    #[track_caller]
    pub(crate) fn read_to_end(&mut self) {
        let started = Instant::now();
        while self.more() {
            assert!(started.elapsed() < PATIENCE, "it does not end: {}", self.text());
        }
    }

    /// Whether it has ended, or ends within this time.
    pub(crate) fn ends_within(&mut self, time: Duration) -> bool {
        let started = Instant::now();
        while !self.has_ended && started.elapsed() < time {
            let left = time.saturating_sub(started.elapsed()).max(Duration::from_millis(1));
            self.connection.set_read_timeout(Some(left)).unwrap();
            self.read(true);
        }
        self.connection.set_read_timeout(Some(PATIENCE)).unwrap();
        self.has_ended
    }

    fn more(&mut self) -> bool {
        if !self.has_ended {
            self.read(false);
        }
        !self.has_ended
    }

    #[track_caller]
    fn read(&mut self, may_be_late: bool) {
        let mut room = [0; 16 * 1024];
        match self.connection.read(&mut room) {
            Ok(0) => self.has_ended = true,
            Ok(read) => self.seen.extend_from_slice(&room[..read]),
            Err(error) if is_late(&error) => {
                assert!(may_be_late, "nothing comes any more: {}", self.text());
            }
            // Cut off.
            Err(_) => self.has_ended = true,
        }
    }

    /// What came, as an answer.
    pub(crate) fn answer(&self) -> Answer {
        let text = self.text();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        let body = if chunked { dechunk(body) } else { body.to_owned() };
        Answer { status, head: head.to_owned(), body }
    }
}

fn is_late(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
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

/// Waits until something is so.
#[track_caller]
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "it does not happen: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

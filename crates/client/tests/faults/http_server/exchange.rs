//! One connection of the misbehaving server: requests in, answers out.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};

use serde_json::Value;

use super::State;
use crate::wire::{Asked, Era, notification};

/// A connection.
pub(crate) struct Exchange<'a> {
    pub(crate) state: &'a State,
    reader: BufReader<TcpStream>,
    pub(super) out: TcpStream,
}

/// A request.
struct Request {
    verb: String,
    path: String,
    /// Names in small letters.
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

impl Exchange<'_> {
    /// Answers requests until the connection ends.
    pub(crate) fn serve(stream: TcpStream, state: &State) {
        let Ok(out) = stream.try_clone() else { return };
        let mut exchange = Exchange { state, reader: BufReader::new(stream), out };
        while let Ok(Some(request)) = exchange.read() {
            if exchange.answer(&request).is_err() {
                break;
            }
        }
        exchange.hang_up();
    }

    fn read(&mut self) -> io::Result<Option<Request>> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let mut words = lines.first().map_or("", String::as_str).split(' ').map(str::to_owned);
        let (verb, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let headers = lines.iter().skip(1).filter_map(|line| line.split_once(':'));
        let headers = headers.map(|(n, v)| (n.to_ascii_lowercase(), v.trim().to_owned())).collect();
        let mut request = Request { verb, path, headers, body: Vec::new() };
        let length = request.header("content-length").and_then(|l| l.parse().ok()).unwrap_or(0);
        request.body.resize(length, 0);
        self.reader.read_exact(&mut request.body)?;
        Ok(Some(request))
    }

    /// Closes the connection, now.
    pub(crate) fn hang_up(&mut self) {
        self.out.shutdown(Shutdown::Both).ok();
    }

    /// Waits until the client closes the connection.
    pub(crate) fn until_closed(&mut self) {
        let mut byte = [0];
        while matches!(self.reader.read(&mut byte), Ok(n) if n > 0) {}
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)
    }

    pub(crate) fn json(&mut self, body: &str) -> io::Result<()> {
        self.json_with(body, "")
    }

    fn json_with(&mut self, body: &str, headers: &str) -> io::Result<()> {
        let length = body.len();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{headers}\r\n"
        );
        self.write(format!("{head}{body}").as_bytes())
    }

    pub(super) fn status(&mut self, head: &str) -> io::Result<()> {
        self.write(format!("{head}Content-Length: 0\r\n\r\n").as_bytes())
    }

    /// Begins an event stream that ends with its connection.
    pub(crate) fn begin_events(&mut self) -> io::Result<()> {
        self.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
    }

    pub(crate) fn event(&mut self, data: &str) -> io::Result<()> {
        self.write(format!("data: {data}\n\n").as_bytes())
    }

    fn answer(&mut self, request: &Request) -> io::Result<()> {
        match request.verb.as_str() {
            "POST" => self.post(request),
            "DELETE" => {
                self.state.note("delete");
                self.status("HTTP/1.1 200 OK\r\n")
            }
            "GET" => self.get(request),
            _ => self.status("HTTP/1.1 405 Method Not Allowed\r\n"),
        }
    }

    fn get(&mut self, request: &Request) -> io::Result<()> {
        match self.state.start.as_str() {
            "mute_streams" => {
                self.until_closed();
                return Ok(());
            }
            "asks" => {
                self.begin_events()?;
                self.event(&Asked::question(900))?;
                self.until_closed();
                return Ok(());
            }
            start if start.starts_with("old") => return self.old_stream(start == "old_mute"),
            _ => {}
        }
        let last = request.header("last-event-id").unwrap_or_default();
        let rest = self.state.rest.lock().unwrap().remove(last);
        match rest {
            Some(asked) => self.resumed(&asked, last),
            None => self.status("HTTP/1.1 405 Method Not Allowed\r\n"),
        }
    }

    fn post(&mut self, request: &Request) -> io::Result<()> {
        let Ok(message) = serde_json::from_slice::<Value>(&request.body) else {
            return self.status("HTTP/1.1 400 Bad Request\r\n");
        };
        if self.state.start.starts_with("old") {
            return self.old_post(&request.path, &message);
        }
        let method = message["method"].as_str().unwrap_or("answer").to_owned();
        if let Some(head) = self.state.refusal(&method) {
            self.state.note(&format!("refused {method}"));
            return self.status(&head);
        }
        if self.state.era == Era::Legacy && method != "initialize" && method != "server/discover" {
            let session = request.header("mcp-session-id").unwrap_or_default();
            if !self.state.sessions.lock().unwrap().contains(session) {
                self.state.note("unknown session");
                return self.status("HTTP/1.1 404 Not Found\r\n");
            }
        }
        let Some(asked) = Asked::read(&message) else { return self.told(&message) };
        self.state.note(&format!("method {method}"));
        self.asked(&asked)
    }

    fn told(&mut self, message: &Value) -> io::Result<()> {
        match message["method"].as_str() {
            Some("notifications/cancelled") => {
                self.state.note("cancelled");
                if self.state.start == "mute_notifications" {
                    self.until_closed();
                }
            }
            Some("notifications/initialized") if self.state.start == "mute_initialized" => {
                self.until_closed()
            }
            Some(_) => {}
            None => {
                self.state.note(&format!("answer {message}"));
                let id = message["id"].as_u64().unwrap_or_default();
                self.state.answers.lock().unwrap().insert(id, message.clone());
                self.state.answered.notify_all();
            }
        }
        self.status("HTTP/1.1 202 Accepted\r\n")
    }

    fn asked(&mut self, asked: &Asked) -> io::Result<()> {
        match (self.state.start.as_str(), asked.method.as_str()) {
            ("mute", _) | ("mute_handshake", "initialize") | ("mute_lists", "tools/list") => {
                self.until_closed();
                return Ok(());
            }
            ("crash", _) => return Err(io::ErrorKind::Other.into()),
            _ => {}
        }
        if asked.method == "subscriptions/listen" {
            return self.subscription(asked);
        }
        match asked.plain(self.state.era, &self.state.start) {
            Some(answer) if asked.method == "initialize" => {
                let session = self.state.new_session();
                self.json_with(&answer, &format!("Mcp-Session-Id: {session}\r\n"))
            }
            // A legacy server does not know what `server/discover` is about.
            Some(_) if asked.method == "server/discover" && self.state.era == Era::Legacy => {
                self.status("HTTP/1.1 400 Bad Request\r\n")
            }
            Some(answer) => self.json(&answer),
            None => self.call(asked),
        }
    }

    /// A subscription that stays open until the client closes it.
    fn subscription(&mut self, asked: &Asked) -> io::Result<()> {
        self.begin_events()?;
        let meta = serde_json::json!({"io.modelcontextprotocol/subscriptionId": asked.id});
        let params = serde_json::json!({"_meta": meta, "notifications": {"toolsListChanged": true}});
        self.event(&notification("notifications/subscriptions/acknowledged", params))?;
        self.until_closed();
        self.state.note("subscription closed");
        Err(io::ErrorKind::Other.into())
    }
}

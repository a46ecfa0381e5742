//! The tools of the misbehaving server over HTTP.

use std::io;
use std::time::Duration;

use serde_json::Value;

use super::exchange::Exchange;
use crate::wire::{Asked, Era, chatter};

/// Ends the connection.
fn hang_up<T>() -> io::Result<T> {
    Err(io::ErrorKind::ConnectionAborted.into())
}

impl Exchange<'_> {
    pub(super) fn call(&mut self, asked: &Asked) -> io::Result<()> {
        self.state.note(&format!("call {}", asked.tool()));
        let good = asked.text("good");
        match asked.tool() {
            "hang" => {
                self.until_closed();
                self.state.note("closed");
                hang_up()
            }
            "slow" => {
                std::thread::sleep(Duration::from_millis(300));
                self.json(&good)
            }
            "crash" => hang_up(),
            "crash_half" => {
                self.head("application/json", good.len())?;
                self.write(&good.as_bytes()[..good.len() / 2])?;
                hang_up()
            }
            "twice" => self.twice(asked),
            "wrong_id" => self.json(&good.replace(&asked.id.to_string(), "\"another\"")),
            "duplicate" => {
                let id = &asked.id;
                self.json(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}},"result":{{"a":1}}}}"#))
            }
            "garbage" => self.json("{\"half\": \n}{"),
            "utf8" => {
                let body = b"{\"jsonrpc\":\"2.0\",\"result\":\"\xff\xfe\"}";
                self.head("application/json", body.len())?;
                self.write(body)
            }
            "html" => {
                let page = "<html><body>Please log in</body></html>";
                self.head("text/html", page.len())?;
                self.write(page.as_bytes())
            }
            "oversize" => self.json(&asked.text(&"x".repeat(asked.number("size") as usize))),
            "oversize_event" => {
                self.begin_events()?;
                let huge = asked.text(&"x".repeat(asked.number("size") as usize));
                self.write(format!("id: huge-{}\ndata: {huge}\n\n", asked.id).as_bytes())?;
                hang_up()
            }
            "drip" => self.drip(asked),
            "half_closed" => {
                self.begin_events()?;
                self.write(format!("data: {}", &good[..good.len() / 2]).as_bytes())?;
                hang_up()
            }
            "half_chunked" => {
                self.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")?;
                self.write(b"40\r\ndata: {\"jsonrpc\"")?;
                hang_up()
            }
            "resume" => {
                let event = format!("event-{}", asked.id);
                self.state.rest.lock().unwrap().insert(event.clone(), asked.clone());
                self.begin_events()?;
                self.write(format!("retry: 20\nid: {event}\ndata:\n\ndata: {{\"jsonr").as_bytes())?;
                hang_up()
            }
            "flood" | "flood_forever" => self.flood(asked),
            "ask" | "ask_forever" => self.asking(asked),
            _ => self.json(&good),
        }
    }

    /// The client came back to a stream. It breaks once more, in front of the answer, and then the answer comes.
    pub(super) fn resumed(&mut self, asked: &Asked, last: &str) -> io::Result<()> {
        self.state.note("resumed");
        self.begin_events()?;
        if !last.starts_with("again") && asked.number("breaks") > 0 {
            let again = format!("again-{last}");
            self.state.rest.lock().unwrap().insert(again.clone(), asked.clone());
            self.write(format!("retry: 20\nid: {again}\ndata:\n\n: a comm").as_bytes())?;
            return hang_up();
        }
        self.event(&asked.text("good"))?;
        hang_up()
    }

    fn head(&mut self, kind: &str, length: usize) -> io::Result<()> {
        self.write(
            format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n").as_bytes(),
        )
    }

    /// Two answers: on one stream, or as two whole HTTP responses to one request.
    fn twice(&mut self, asked: &Asked) -> io::Result<()> {
        let (first, second) = (asked.text("good"), asked.text("again"));
        if asked.number("stream") == 1 {
            self.begin_events()?;
            self.write(format!("data: {first}\n\ndata: {second}\n\n").as_bytes())?;
            return hang_up();
        }
        let one = |body: &str| {
            let length = body.len();
            format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
            )
        };
        self.write(format!("{}{}", one(&first), one(&second)).as_bytes())
    }

    fn drip(&mut self, asked: &Asked) -> io::Result<()> {
        let good = asked.text("good");
        let body = match asked.number("stream") {
            1 => {
                self.begin_events()?;
                format!("data: {good}\n\n")
            }
            _ => {
                self.head("application/json", good.len())?;
                good
            }
        };
        for byte in body.bytes() {
            self.write(&[byte])?;
            std::thread::sleep(Duration::from_millis(asked.number("pause")));
        }
        if asked.number("stream") == 1 { hang_up() } else { Ok(()) }
    }

    fn flood(&mut self, asked: &Asked) -> io::Result<()> {
        self.begin_events()?;
        let count = if asked.tool() == "flood" { asked.number("count") / 2 } else { u64::MAX };
        for n in 0..count {
            let [log, progress] = chatter(asked, n);
            self.write(format!("data: {log}\n\ndata: {progress}\n\n").as_bytes())?;
        }
        self.event(&asked.text("good"))?;
        hang_up()
    }

    fn asking(&mut self, asked: &Asked) -> io::Result<()> {
        let forever = asked.tool() == "ask_forever";
        match self.state.era {
            Era::Modern if forever || asked.params["inputResponses"].is_null() => {
                self.json(&asked.input_required(1))
            }
            Era::Modern => self.json(&asked.text(&asked.params["inputResponses"]["who"].to_string())),
            Era::Legacy => {
                self.begin_events()?;
                let mut answer = Value::Null;
                for id in 1..if forever { u64::MAX } else { 2 } {
                    self.event(&Asked::question(id))?;
                    answer = self.state.answer_to(id);
                    if answer.is_null() {
                        return hang_up();
                    }
                }
                self.event(&asked.text(&answer["result"].to_string()))?;
                hang_up()
            }
        }
    }
}

//! The transport of 2024-11-05: one stream for all answers, messages by POST to another address.

use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};

use serde_json::Value;

use super::exchange::Exchange;
use crate::wire::Asked;

const MESSAGES: &str = "/messages";

impl Exchange<'_> {
    /// The stream. A mute one never says where messages go.
    pub(super) fn old_stream(&mut self, mute: bool) -> io::Result<()> {
        self.state.note("stream");
        self.begin_events()?;
        if !mute {
            self.write(format!("event: endpoint\ndata: {MESSAGES}\n\n").as_bytes())?;
            *self.state.stream.lock().unwrap() = Some(self.out.try_clone()?);
        }
        self.until_closed();
        Ok(())
    }

    pub(super) fn old_post(&mut self, path: &str, message: &Value) -> io::Result<()> {
        if path != MESSAGES {
            return self.status("HTTP/1.1 405 Method Not Allowed\r\n");
        }
        if let Some(asked) = Asked::read(message) {
            self.state.note(&format!("method {}", asked.method));
            if self.old_answer(&asked)? {
                return Ok(());
            }
        } else if message["method"] == "notifications/cancelled" {
            self.state.note("cancelled");
        }
        self.status("HTTP/1.1 202 Accepted\r\n")
    }

    /// Answers on the stream. Whether the POST itself is left without an answer.
    fn old_answer(&mut self, asked: &Asked) -> io::Result<bool> {
        let answer = match asked.plain(self.state.era, &self.state.start) {
            Some(answer) => answer,
            None => {
                self.state.note(&format!("call {}", asked.tool()));
                asked.text("good")
            }
        };
        let stream = self.state.stream.lock().unwrap().as_ref().map(TcpStream::try_clone);
        let mut stream = stream.ok_or(io::ErrorKind::NotConnected)??;
        let say = |stream: &mut TcpStream, text: &str| {
            stream.write_all(format!("event: message\ndata: {text}\n\n").as_bytes())
        };
        match asked.tool() {
            "hang" => {}
            "deaf" => {
                self.until_closed();
                return Ok(true);
            }
            "crash" => stream.shutdown(Shutdown::Both)?,
            "half_closed" => {
                stream.write_all(format!("data: {}", &answer[..answer.len() / 2]).as_bytes())?;
                stream.shutdown(Shutdown::Both)?;
            }
            "twice" => say(&mut stream, &format!("{answer}\n\ndata: {answer}"))?,
            "wrong_id" => say(&mut stream, &answer.replace(&asked.id.to_string(), "\"another\""))?,
            "garbage" => say(
                &mut stream,
                &format!("{{\"half\":\n\ndata: nonsense\n\nevent: noise\ndata: 1\n\ndata: {answer}"),
            )?,
            "duplicate" => {
                let id = &asked.id;
                say(&mut stream, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}},"result":{{}}}}"#))?;
            }
            _ => say(&mut stream, &answer)?,
        }
        Ok(false)
    }
}

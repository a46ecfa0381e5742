//! What comes from the child: cut into lines, read, delivered.

use std::sync::Arc;

use tidegate_protocol::lines::{Line, Lines};
use tidegate_protocol::{Error, Incoming, Limits, Malformed, Message, Symbol};
use tidegate_service::budget::{Budget, Purpose};
use tidegate_service::wire_trace;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::excerpt::excerpt;
use super::input::Input;
use super::salvage::{Remains, salvage};
use crate::transport::inbox::Inbox;

/// Takes what the child writes to standard output.
pub(crate) struct Output {
    pub(super) name: Arc<str>,
    pub(super) limits: Limits,
    pub(super) inbox: Arc<dyn Inbox>,
    /// Wants to know when the child has answered.
    pub(super) input: Option<Input>,
    /// Whether a line came before that was no message.
    pub(super) noisy: bool,
}

impl Output {
    /// What comes over streams that are no process's.
    pub(crate) fn of_streams(name: Arc<str>, limits: Limits, inbox: Arc<dyn Inbox>) -> Output {
        Output { name, limits, inbox, input: None, noisy: false }
    }

    /// Reads and delivers to the end. What has been read is always delivered, also when this is stopped while it waits.
    pub(crate) async fn read(mut self, mut stdout: impl AsyncRead + Unpin) {
        let mut lines = Lines::new(self.limits.max_bytes);
        loop {
            match stdout.read_buf(lines.room()).await {
                Ok(0) => break,
                Ok(_) => {
                    if let Some(input) = &self.input {
                        input.answered();
                    }
                }
                Err(e) => {
                    tracing::debug!(server = &*self.name, error = %e, "cannot read standard output");
                    break;
                }
            }
            while let Some(line) = lines.next() {
                self.line(line);
            }
        }
        if let Some(line) = lines.last() {
            self.line(line);
        }
    }

    fn line(&mut self, line: Line) {
        let text = match line {
            Line::Text(text) => text,
            Line::TooLong { outline, .. } => {
                let what = format!(
                    "the server process {:?} sent a message that is too large: it may have {} bytes",
                    self.name, self.limits.max_bytes
                );
                // A request of the server's has an id of its own, which says nothing about ours.
                let id = outline.id().filter(|_| outline.is_answer());
                return self.inbox.spoiled(id.as_ref(), Error::new(Symbol::TooLarge, what));
            }
        };
        wire_trace::received_from(&self.name, &text);
        let text = match Budget::of_process().charge(text.clone(), Purpose::Answer) {
            Ok(text) => text,
            Err(error) => {
                // Read for its id only: nobody is to wait for what there is no room for.
                return match salvage(&text) {
                    Remains::Answer(id) => self.inbox.spoiled(Some(&id), error),
                    Remains::Message | Remains::Noise => self.inbox.spoiled(None, error),
                };
            }
        };
        match Incoming::parse_bytes(text.clone(), &self.limits) {
            Ok(Incoming::One(message)) => self.deliver(message),
            Ok(Incoming::Batch(batch)) => {
                for message in batch {
                    match message {
                        Ok(message) => self.deliver(message),
                        Err(malformed) => {
                            self.inbox.spoiled(malformed.id.as_ref(), self.unreadable(&malformed))
                        }
                    }
                }
            }
            Err(malformed) => match salvage(&text) {
                Remains::Answer(id) => self.inbox.spoiled(Some(&id), self.unreadable(&malformed)),
                Remains::Message => self.inbox.spoiled(None, self.unreadable(&malformed)),
                Remains::Noise => self.noise(&text),
            },
        }
    }

    fn deliver(&self, message: Message) {
        self.inbox.message(message, None);
    }

    /// What the server wrote wrong is no mistake of whoever called it: no parse error, no invalid request.
    fn unreadable(&self, malformed: &Malformed) -> Error {
        let what = format!("the server process {:?} sent a broken message: {}", self.name, malformed.error);
        let symbol = match malformed.error.symbol() {
            Symbol::TooLarge => Symbol::TooLarge,
            // Not `Unavailable`: the process is still there.
            _ => Symbol::Internal,
        };
        Error::new(symbol, what)
    }

    /// Programs print banners and logs where only messages belong. Told once, so that somebody can set it right.
    fn noise(&mut self, line: &[u8]) {
        let (server, line) = (&*self.name, excerpt(line));
        if std::mem::replace(&mut self.noisy, true) {
            tracing::debug!(server, line, "Ignoring output that is not a message");
        } else {
            tracing::warn!(
                server,
                line,
                "Ignoring output that is not a message; further lines like this are ignored silently"
            );
        }
    }
}

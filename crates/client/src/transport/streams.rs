//! [`Streams`]: a server behind any pair of streams, one message per line: a socket, or something in this process.

use std::io;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tidegate_protocol::{Error, Limits, Symbol};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::stdio::Output;
use super::{Inbox, MessageChannel, log_lost};
use crate::ticket::Ticket;

/// How many messages may wait for a server that does not read, before sending fails.
const BACKLOG: usize = 1024;

type Reader = Box<dyn AsyncRead + Send + Unpin>;
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// How a server is reached over a pair of streams. Each session opens a pair of its own.
#[derive(Clone)]
pub struct Streams(Arc<dyn Fn() -> io::Result<(Reader, Writer)> + Send + Sync>);

impl Streams {
    /// Streams that `open` opens: what the server says, and what is said to it.
    pub fn new<R, W>(open: impl Fn() -> io::Result<(R, W)> + Send + Sync + 'static) -> Streams
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        Streams(Arc::new(move || {
            let (reader, writer) = open()?;
            Ok((Box::new(reader) as Reader, Box::new(writer) as Writer))
        }))
    }
}

/// An open pair of streams. Dropping it closes them.
pub(super) struct Pair {
    messages: mpsc::Sender<Vec<u8>>,
    /// Fires when the pair is to be closed.
    asked: CancellationToken,
    /// Fires when it is.
    done: CancellationToken,
}

impl Pair {
    /// Opens a pair. What comes goes to `inbox`. Only within a Tokio runtime.
    pub(super) fn open(
        name: &str,
        streams: &Streams,
        limits: Limits,
        inbox: Arc<dyn Inbox>,
    ) -> Result<Pair, Error> {
        let (reader, writer) = (streams.0)().map_err(|error| {
            Error::new(Symbol::Unavailable, format!("The server {name:?} cannot be reached"))
                .with_detail(format!("cannot open the streams to the server {name:?}: {error}"))
        })?;
        let (messages, waiting) = mpsc::channel(BACKLOG);
        let (asked, done) = (CancellationToken::new(), CancellationToken::new());
        let output = Output::of_streams(name.into(), limits, inbox.clone());
        let ended = {
            let (asked, done, name) = (asked.clone(), done.clone(), name.to_owned());
            async move {
                tokio::select! {
                    () = output.read(reader) => {}
                    () = write(writer, waiting) => {}
                    () = asked.cancelled() => {}
                }
                done.cancel();
                let what = format!("the server {name:?} closed its streams");
                inbox.closed(Error::new(Symbol::Unavailable, what), None);
            }
        };
        tokio::spawn(ended);
        Ok(Pair { messages, asked, done })
    }

    /// Sends a message. Never waits.
    fn send(&self, message: &[u8]) -> Result<(), Error> {
        let mut line = Vec::with_capacity(message.len() + 1);
        line.extend_from_slice(message);
        line.push(b'\n');
        self.messages.try_send(line).map_err(|error| {
            let what = match error {
                mpsc::error::TrySendError::Full(_) => "the server does not read what it is sent",
                mpsc::error::TrySendError::Closed(_) => "the server closed its streams",
            };
            Error::new(Symbol::Unavailable, what).unexecuted()
        })
    }
}

impl MessageChannel for Pair {
    fn request(&self, _: &Ticket, body: Vec<u8>) -> Result<(), Error> {
        self.send(&body)
    }

    fn is_open(&self) -> bool {
        !self.done.is_cancelled()
    }

    fn tell(&self, body: Vec<u8>) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(std::future::ready(self.send(&body)))
    }

    fn tell_soon(&self, body: Vec<u8>) {
        log_lost(self.send(&body));
    }

    /// Closes the streams and waits until they are.
    fn close(&self) -> BoxFuture<'_, ()> {
        self.asked.cancel();
        Box::pin(self.done.cancelled())
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.asked.cancel();
    }
}

async fn write(mut writer: Writer, mut waiting: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = waiting.recv().await {
        if writer.write_all(&line).await.is_err() || (waiting.is_empty() && writer.flush().await.is_err()) {
            return;
        }
    }
}

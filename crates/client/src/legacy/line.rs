//! [`Line`]: the connection under a legacy session, whichever transport it is.

use std::sync::Arc;
use std::time::Duration;

use tidegate_protocol::{Error, Id, Revision};

use super::old_sse::OldSse;
use super::session::Session;
use crate::child::Child;
use crate::inbox::Inbox;
use crate::streams::Pair;
use crate::ticket::Ticket;

/// How long a server may take to take a notification.
const TAKEN: Duration = Duration::from_secs(30);

/// A connection. What comes back goes to the inbox that it was opened with.
pub(crate) enum Line {
    Child(Child),
    Streams(Pair),
    Http(Arc<Session>),
    Sse(Arc<OldSse>),
}

impl Line {
    /// The transport's name.
    pub(crate) fn transport(&self) -> &'static str {
        match self {
            Line::Child(_) | Line::Streams(_) => "stdio",
            Line::Http(_) => "http",
            Line::Sse(_) => "sse",
        }
    }

    /// Sends a request. Its answer, or why there is none, comes to the inbox.
    pub(crate) fn request(&self, ticket: &Ticket, body: Vec<u8>, inbox: &dyn Inbox) {
        let id = &ticket.id;
        let sent = match self {
            Line::Child(child) => child.send_at(&body, |at| ticket.sent_at(at)),
            Line::Streams(pair) => pair.send(&body),
            Line::Http(session) => return session.request(id, body),
            Line::Sse(old) => return old.request(id, body),
        };
        if let Err(error) = sent {
            inbox.spoiled(Some(id), error);
        }
    }

    /// Nobody waits for the answer to this request any more.
    pub(crate) fn give_up(&self, id: &Id) {
        if let Line::Http(session) = self {
            session.give_up(id);
        }
    }

    /// Whether anything can be sent.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Line::Child(child) => child.is_alive(),
            Line::Streams(pair) => pair.is_open(),
            Line::Http(_) | Line::Sse(_) => true,
        }
    }

    /// Sends a notification or an answer and waits until it was taken, as far as the transport tells.
    pub(crate) async fn tell(&self, body: Vec<u8>) -> Result<(), Error> {
        match self {
            Line::Child(child) => child.send(&body),
            Line::Streams(pair) => pair.send(&body),
            Line::Http(session) => session.tell(body).await,
            Line::Sse(old) => old.tell(body).await,
        }
    }

    /// Sends a notification or an answer without waiting.
    pub(crate) fn tell_soon(&self, body: Vec<u8>) {
        let sent = match self {
            Line::Child(child) => child.send(&body),
            Line::Streams(pair) => pair.send(&body),
            Line::Http(session) => {
                let session = session.clone();
                return spawn(async move { session.tell(body).await });
            }
            Line::Sse(old) => {
                let old = old.clone();
                return spawn(async move { old.tell(body).await });
            }
        };
        report(sent);
    }

    /// The handshake is over.
    pub(crate) fn established(&self, revision: Revision) {
        if let Line::Http(session) = self {
            session.speaks(revision);
        }
    }

    /// Somebody wants to hear the server's log messages: what has come outside of a call is read before the call's answer.
    pub(crate) fn hears_logs(&self) {
        if let Line::Http(session) = self {
            session.hears_logs();
        }
    }

    /// Hears what the server says without being asked, from now on.
    pub(crate) async fn listen(&self) {
        if let Line::Http(session) = self {
            session.listen().await;
        }
    }

    /// Ends the connection properly.
    pub(crate) async fn close(&self) {
        match self {
            Line::Child(child) => child.close().await,
            Line::Streams(pair) => pair.close().await,
            Line::Http(session) => session.close().await,
            Line::Sse(old) => old.abandon(),
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        match self {
            Line::Child(_) | Line::Streams(_) => {} // they end themselves
            Line::Http(session) => session.abandon(),
            Line::Sse(old) => old.abandon(),
        }
    }
}

fn spawn(telling: impl Future<Output = Result<(), Error>> + Send + 'static) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(async move {
            if let Ok(told) = tokio::time::timeout(TAKEN, telling).await {
                report(told);
            }
        });
    }
}

fn report(sent: Result<(), Error>) {
    if let Err(error) = sent {
        tracing::debug!(%error, "a message to the server was lost");
    }
}

//! How servers are reached: one room for each transport.
//!
//! A [`Transport`] is made once from what the user wrote (a [`Target`](crate::Target)). [`Transport::open`] opens a
//! [`MessageChannel`], on which all messages go to and fro; what comes from the server goes to an [`Inbox`]. A modern server
//! over HTTP needs no channel, because there each request is an HTTP request of its own, and a service in this process
//! (`in_process`) is simply called.
//!
//! A new transport is a room here: a type that is a [`MessageChannel`], and a variant of [`Transport`] that opens it.

mod http_sse;
mod in_process;
mod inbox;
mod stdio;
mod streamable_http;
mod streams;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tidegate_protocol::{Error, Id, Limits, Revision};
use tidegate_service::Principal;

use crate::http::HttpClient;
use crate::target::Command;
use crate::ticket::Ticket;

pub(crate) use http_sse::BroadcastFilter;
pub(crate) use in_process::InProcessDoor;
pub(crate) use inbox::{Claim, Inbox};
pub(crate) use stdio::{OnStderr, StderrLog};
pub(crate) use streamable_http::{cut_off, garbled};
pub use streams::Streams;

use http_sse::HttpSse;
use stdio::{Child, ChildSettings};
use streamable_http::StreamableHttp;
use streams::Pair;

/// How long a server may take to take a notification.
const TAKEN: Duration = Duration::from_secs(30);

/// How a server is reached.
#[derive(Clone)]
pub(crate) enum Transport {
    /// A program, over its standard streams.
    Stdio(Command),
    /// A pair of streams.
    Streams(Streams),
    /// Streamable HTTP.
    StreamableHttp(HttpClient),
    /// HTTP+SSE, which is all that servers of 2024-11-05 have.
    HttpSse(HttpClient),
}

/// What every channel to one server is opened with.
pub(crate) struct ChannelSettings {
    /// The server, for logs and errors.
    pub(crate) name: Arc<str>,
    /// What a message may be like.
    pub(crate) limits: Limits,
    /// Who sees what the server's process writes to standard error.
    pub(crate) on_stderr: Option<OnStderr>,
    /// Where what it writes there is logged.
    pub(crate) stderr_log: StderrLog,
    /// How many processes of the server there are.
    pub(crate) processes: Arc<AtomicUsize>,
    /// The channels over HTTP+SSE, which may all be told the same.
    pub(crate) broadcasts: Arc<BroadcastFilter>,
}

impl Transport {
    /// The transport's name.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Transport::Stdio(_) | Transport::Streams(_) => "stdio",
            Transport::StreamableHttp(_) => "http",
            Transport::HttpSse(_) => "sse",
        }
    }

    /// Opens a channel. What comes from the server goes to `inbox`.
    pub(crate) async fn open(
        &self,
        settings: &ChannelSettings,
        inbox: Arc<dyn Inbox>,
    ) -> Result<Arc<dyn MessageChannel>, Error> {
        let ChannelSettings { name, limits, on_stderr, stderr_log, processes, broadcasts } = settings;
        Ok(match self {
            Transport::Stdio(command) => {
                let settings = ChildSettings {
                    limits: *limits,
                    on_stderr: on_stderr.clone(),
                    processes: processes.clone(),
                    ..ChildSettings::default()
                };
                Arc::new(Child::spawn(name, command, &settings, stderr_log, inbox)?)
            }
            Transport::Streams(streams) => Arc::new(Pair::open(name, streams, *limits, inbox)?),
            Transport::StreamableHttp(http) => Arc::new(StreamableHttp::new(http.clone(), inbox, *limits)),
            Transport::HttpSse(http) => Arc::new(HttpSse::open(http, inbox, broadcasts, *limits).await?),
        })
    }

    /// Whether the server is a program that we start.
    pub(crate) fn is_process(&self) -> bool {
        matches!(self, Transport::Stdio(_))
    }

    /// Whether all messages share one pair of streams, in either era.
    pub(crate) fn is_pipe(&self) -> bool {
        matches!(self, Transport::Stdio(_) | Transport::Streams(_))
    }

    /// What to try with a server that does not know this transport.
    pub(crate) fn fallback(&self) -> Option<Transport> {
        match self {
            Transport::StreamableHttp(http) => Some(Transport::HttpSse(http.clone())),
            Transport::Stdio(_) | Transport::Streams(_) | Transport::HttpSse(_) => None,
        }
    }

    /// The same transport with the credentials of one caller.
    pub(crate) fn for_caller(&self, caller: &Principal) -> Transport {
        match self {
            Transport::StreamableHttp(http) => Transport::StreamableHttp(http.for_caller(caller)),
            Transport::HttpSse(http) => Transport::HttpSse(http.for_caller(caller)),
            Transport::Stdio(_) | Transport::Streams(_) => self.clone(),
        }
    }

    /// Closes what is kept open while nobody uses it.
    pub(crate) fn rest(&self) {
        if let Transport::StreamableHttp(http) | Transport::HttpSse(http) = self {
            http.rest();
        }
    }

    /// The same for good.
    pub(crate) fn close(&self) {
        if let Transport::StreamableHttp(http) | Transport::HttpSse(http) = self {
            http.close();
        }
    }
}

/// An open connection to a server on which messages go to and fro. Dropping it ends it; what comes from the server goes to the
/// inbox that it was opened with.
pub(crate) trait MessageChannel: Send + Sync + 'static {
    /// Sends a request. Its answer, or why there is none, comes to the inbox; an error means that nothing was sent.
    fn request(&self, ticket: &Ticket, body: Vec<u8>) -> Result<(), Error>;

    /// Nobody waits for the answer to this request any more.
    fn give_up(&self, _id: &Id) {}

    /// Whether anything can be sent.
    fn is_open(&self) -> bool {
        true
    }

    /// Sends a notification or an answer and waits until it was taken, as far as the transport tells.
    fn tell(&self, body: Vec<u8>) -> BoxFuture<'_, Result<(), Error>>;

    /// Sends a notification or an answer without waiting.
    fn tell_soon(&self, body: Vec<u8>);

    /// The handshake is over.
    fn established(&self, _revision: Revision) {}

    /// Somebody wants to hear the server's log messages: what has come outside of a call is read before the call's answer.
    fn hears_logs(&self) {}

    /// Hears what the server says without being asked, from now on.
    fn listen(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Ends the connection properly.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Sends something in the background, within a bounded time.
fn send_in_background(sending: impl Future<Output = Result<(), Error>> + Send + 'static) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(async move {
            if let Ok(sent) = tokio::time::timeout(TAKEN, sending).await {
                log_lost(sent);
            }
        });
    }
}

fn log_lost(sent: Result<(), Error>) {
    if let Err(error) = sent {
        tracing::debug!(%error, "a message to the server was lost");
    }
}

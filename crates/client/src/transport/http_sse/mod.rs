//! The transport of 2024-11-05: one stream from the server, messages to it by POST.

mod broadcast;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tidegate_protocol::{Error, Id, Incoming, Limits, Message, Symbol};
use tokio_util::sync::CancellationToken;

use super::streamable_http::{cut_off, garbled};
use super::{Inbox, MessageChannel, send_in_background};
use crate::http::{Body, Events, Headers, HttpClient};
use crate::status;
use crate::ticket::Ticket;

pub(crate) use broadcast::BroadcastFilter;
use broadcast::Verdict;

/// How long the server may take to say where messages go.
const ENDPOINT: Duration = Duration::from_secs(10);

/// A connection to a server of the old kind. Dropping it ends it.
pub(super) struct HttpSse(Arc<Stream>);

impl HttpSse {
    /// Opens the stream and waits until the server has said where messages go.
    pub(super) async fn open(
        http: &HttpClient,
        inbox: Arc<dyn Inbox>,
        broadcasts: &Arc<BroadcastFilter>,
        limits: Limits,
    ) -> Result<HttpSse, Error> {
        Stream::open(http, inbox, broadcasts, limits).await.map(HttpSse)
    }
}

impl MessageChannel for HttpSse {
    fn request(&self, ticket: &Ticket, body: Vec<u8>) -> Result<(), Error> {
        self.0.request(&ticket.id, body);
        Ok(())
    }

    fn tell(&self, body: Vec<u8>) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.0.tell(body))
    }

    fn tell_soon(&self, body: Vec<u8>) {
        let stream = self.0.clone();
        send_in_background(async move { stream.tell(body).await });
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.0.ended.cancel();
        Box::pin(std::future::ready(()))
    }
}

impl Drop for HttpSse {
    fn drop(&mut self) {
        self.0.ended.cancel();
    }
}

/// The stream from the server, and where messages to it go. Everything that comes goes to the inbox.
struct Stream {
    /// Where messages go.
    endpoint: HttpClient,
    inbox: Arc<dyn Inbox>,
    /// All connections of this kind, and which of them this is.
    broadcasts: Arc<BroadcastFilter>,
    number: u64,
    limits: Limits,
    ended: CancellationToken,
}

impl Stream {
    async fn open(
        http: &HttpClient,
        inbox: Arc<dyn Inbox>,
        broadcasts: &Arc<BroadcastFilter>,
        limits: Limits,
    ) -> Result<Arc<Stream>, Error> {
        let answered = http.get(Headers::new()).await?;
        let mut events = match answered {
            crate::http::Answered { status, body: Body::Events(events), .. } if status.is_success() => {
                *events
            }
            answered if answered.status.is_success() => match answered.body {
                Body::Other { content_type, excerpt } => {
                    return Err(status::not_mcp(&content_type, &excerpt));
                }
                _ => return Err(status::not_mcp("", "")),
            },
            answered => return Err(status::error(http.url(), &answered, &limits)),
        };
        let endpoint = tokio::time::timeout(ENDPOINT, first_endpoint(http, &mut events)).await;
        let endpoint = endpoint.map_err(|_| no_endpoint())??;
        let ended = CancellationToken::new();
        let (number, broadcasts) = (broadcasts.join(&inbox), broadcasts.clone());
        let stream = Arc::new(Stream { endpoint, inbox, broadcasts, number, limits, ended });
        let reader = stream.clone();
        tokio::spawn(async move {
            let ended = reader.ended.clone();
            let why = tokio::select! {
                why = reader.read(events) => why,
                () = ended.cancelled() => cut_off(),
            };
            reader.broadcasts.leave(reader.number);
            reader.inbox.closed(why, None);
        });
        Ok(stream)
    }

    async fn read(&self, mut events: Events) -> Error {
        loop {
            match events.next().await {
                Ok(Some(event)) if event.kind.as_deref().is_none_or(|kind| kind == "message") => {
                    match Incoming::parse(event.data, &self.limits) {
                        Ok(Incoming::One(message)) => self.take(message),
                        Ok(Incoming::Batch(batch)) => {
                            for message in batch.into_iter().filter_map(Result::ok) {
                                self.take(message);
                            }
                        }
                        Err(bad) => self.inbox.spoiled(bad.id.as_ref(), garbled(&bad.error)),
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) => return cut_off(),
                Err(error) if error.symbol() == Symbol::TooLarge => self.inbox.spoiled(None, error),
                Err(error) => return error,
            }
        }
    }

    /// Takes in a message, unless it is another connection's.
    fn take(&self, message: Message) {
        match (self.broadcasts.judge(self.number, &message), message) {
            (Verdict::Ours, message) => self.inbox.message(message, None),
            (Verdict::Unclear, Message::Request(question)) => self.inbox.unclear(&question),
            (Verdict::Theirs | Verdict::Unclear, _) => {}
        }
    }

    /// Sends a request; its answer comes to the inbox.
    fn request(self: &Arc<Self>, id: &Id, body: Vec<u8>) {
        self.broadcasts.requested(self.number, id);
        let (stream, id) = (self.clone(), id.clone());
        tokio::spawn(async move {
            if let Err(error) = stream.tell(body).await {
                stream.inbox.spoiled(Some(&id), error);
            }
        });
    }

    /// Sends a message and waits until the server has taken it.
    async fn tell(&self, body: Vec<u8>) -> Result<(), Error> {
        let answered = tokio::select! {
            answered = self.endpoint.post(Bytes::from(body), Headers::new()) => answered?,
            () = self.ended.cancelled() => return Err(cut_off()),
        };
        if answered.status.is_success() {
            return Ok(());
        }
        Err(status::error(self.endpoint.url(), &answered, &self.limits))
    }
}

async fn first_endpoint(http: &HttpClient, events: &mut Events) -> Result<HttpClient, Error> {
    while let Some(event) = events.next().await? {
        if event.kind.as_deref() == Some("endpoint") {
            let url = http.url().join(event.data.trim()).map_err(|_| no_endpoint())?;
            return http.at(&url);
        }
    }
    Err(no_endpoint())
}

fn no_endpoint() -> Error {
    let what = "The stream of the old HTTP+SSE transport did not begin with the address for messages";
    Error::new(Symbol::Unavailable, what).unexecuted()
}

//! A legacy session over Streamable HTTP (2025-03-26 to 2025-11-25): requests and their answers. What the server says without
//! being asked is in `unasked`.

mod unasked;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderValue, StatusCode};
use tidegate_protocol::{
    Error, Feature, Id, Incoming, Json, Limits, Message, Method, Revision, Symbol, headers, meta,
};
use tidegate_service::trace::TraceContext;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::{Inbox, MessageChannel, send_in_background};
use crate::http::{Answered, Body, Events, Headers, HttpClient};
use crate::status;
use crate::ticket::Ticket;
use crate::upstream_error::{is_modern_error, upstream_error};

/// How often a broken stream is taken up again before the request on it is given up.
const MAX_RESUMES: usize = 8;
/// How long to wait before coming back to a stream when the server does not say.
const COME_BACK: Duration = Duration::from_secs(1);

/// One session. Dropping it ends it.
pub(super) struct StreamableHttp(Arc<Session>);

impl StreamableHttp {
    pub(super) fn new(http: HttpClient, inbox: Arc<dyn Inbox>, limits: Limits) -> StreamableHttp {
        StreamableHttp(Session::new(http, inbox, limits))
    }
}

impl MessageChannel for StreamableHttp {
    fn request(&self, ticket: &Ticket, body: Vec<u8>) -> Result<(), Error> {
        self.0.request(&ticket.id, ticket.span(), body);
        Ok(())
    }

    /// Nobody waits for the answer to this request any more.
    fn give_up(&self, id: &Id) {
        if let Some(task) = self.0.running().remove(id) {
            task.abort();
        }
    }

    fn tell(&self, body: Vec<u8>) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.0.tell(body))
    }

    fn tell_soon(&self, body: Vec<u8>) {
        let session = self.0.clone();
        send_in_background(async move { session.tell(body).await });
    }

    /// From now on every request names the revision.
    fn established(&self, revision: Revision) {
        _ = self.0.revision.set(revision);
    }

    /// From now on what the stream of the session holds is read before an answer is delivered.
    fn hears_logs(&self) {
        self.0.hears_logs.store(true, Ordering::Relaxed);
    }

    fn listen(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.listen())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.close())
    }
}

impl Drop for StreamableHttp {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// What is known of it. Everything that comes from the server goes to the inbox.
struct Session {
    http: HttpClient,
    inbox: Arc<dyn Inbox>,
    limits: Limits,
    id: OnceLock<HeaderValue>,
    revision: OnceLock<Revision>,
    ended: CancellationToken,
    /// Requests under way, so that none goes on when nobody waits for it any more.
    running: Mutex<HashMap<Id, AbortHandle>>,
    /// Whether anybody wants log messages.
    hears_logs: AtomicBool,
    /// Whoever reads the stream of the session answers here once there is nothing left to read.
    reader: Mutex<Option<mpsc::Sender<oneshot::Sender<()>>>>,
}

impl Session {
    fn new(http: HttpClient, inbox: Arc<dyn Inbox>, limits: Limits) -> Arc<Session> {
        let ended = CancellationToken::new();
        let (id, revision) = (OnceLock::new(), OnceLock::new());
        let (running, reader) = (Mutex::default(), Mutex::default());
        let hears_logs = AtomicBool::new(false);
        Arc::new(Session { http, inbox, limits, id, revision, ended, running, hears_logs, reader })
    }

    fn headers(&self) -> Headers {
        let mut headers = Headers::new();
        if let Some(id) = self.id.get() {
            headers.push(http::HeaderName::from_static(headers::SESSION_ID), id.clone());
        }
        if let Some(revision) = self.revision.get().filter(|r| r.allows(Feature::VersionHeader)) {
            let name = http::HeaderName::from_static(headers::PROTOCOL_VERSION);
            headers.push(name, HeaderValue::from_static(revision.as_str()));
        }
        headers
    }

    /// Sends a request; its answer comes to the inbox.
    fn request(self: &Arc<Self>, id: &Id, span: Option<TraceContext>, body: Vec<u8>) {
        let (session, own) = (self.clone(), id.clone());
        let mut running = self.running();
        let task = tokio::spawn(async move {
            let ended = session.ended.clone();
            tokio::select! {
                () = session.exchange(&own, span, body) => {}
                () = ended.cancelled() => session.inbox.spoiled(Some(&own), session_over()),
            }
            session.running().remove(&own);
        });
        running.insert(id.clone(), task.abort_handle());
    }

    fn running(&self) -> MutexGuard<'_, HashMap<Id, AbortHandle>> {
        self.running.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    async fn exchange(&self, id: &Id, span: Option<TraceContext>, body: Vec<u8>) {
        let mut headers = self.headers();
        headers.push_traceparent(span);
        let answered = match self.http.post(Bytes::from(body), headers).await {
            Ok(answered) => answered,
            Err(error) => return self.inbox.spoiled(Some(id), error),
        };
        if let Some(session) = &answered.session {
            _ = self.id.set(session.clone());
        }
        if let Err(error) = self.take_answer(id, answered).await {
            self.inbox.spoiled(Some(id), error);
        }
    }

    async fn take_answer(&self, id: &Id, answered: Answered) -> Result<(), Error> {
        if !answered.status.is_success() {
            return self.refused(id, answered);
        }
        match answered.body {
            Body::Json(bytes) => {
                self.read_what_came_before().await;
                self.deliver(bytes, id)
            }
            Body::Events(events) => self.follow(id, *events).await,
            Body::Empty => Err(Error::new(
                Symbol::Unavailable,
                format!(
                    "The server took the request without answering it (HTTP {})",
                    answered.status.as_u16()
                ),
            )),
            Body::Other { content_type, excerpt } => Err(status::not_mcp(&content_type, &excerpt)),
        }
    }

    /// A status that says no. A JSON-RPC error in its body is the answer; else the status speaks for itself.
    fn refused(&self, id: &Id, answered: Answered) -> Result<(), Error> {
        if self.is_forgotten(&answered) {
            return Err(forgotten(answered.status).unexecuted());
        }
        let error = status::error_in(&answered.body, &self.limits);
        if let Some(error) = error.as_ref().filter(|error| is_modern(error)) {
            // It misses what only modern requests have, so it is not the server that this session was opened with.
            let error = upstream_error(&Method::Initialize, None, error);
            return Err(Error::new(Symbol::UnsupportedVersion, error.message().to_owned()).unexecuted());
        }
        if let Some(error) = error
            && answered.status.is_client_error()
            && !matches!(answered.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
        {
            let failure = tidegate_protocol::Failure { id: Some(id.clone()), error };
            self.inbox.message(Message::Failure(failure), Some(id));
            return Ok(());
        }
        Err(status::error(self.http.url(), &answered, &self.limits))
    }

    /// Whether this answer says that the server does not know the session (any more). 2025-11-25 transports, Session
    /// Management: that is a 404. The reference servers and servers on old SDKs answer 400 and say it in words.
    fn is_forgotten(&self, answered: &Answered) -> bool {
        self.id.get().is_some()
            && match answered.status {
                StatusCode::NOT_FOUND => true,
                StatusCode::BAD_REQUEST => status::speaks_of_a_session(&answered.body, &self.limits),
                _ => false,
            }
    }

    /// A whole body: one message, or (2025-03-26) several.
    fn deliver(&self, bytes: Bytes, id: &Id) -> Result<(), Error> {
        let incoming = Incoming::parse_bytes(bytes, &self.limits).map_err(|bad| garbled(&bad.error))?;
        let mut answered = false;
        let mut take = |message: Message| {
            answered |= is_answer_to(&message, id);
            self.inbox.message(message, Some(id));
        };
        match incoming {
            Incoming::One(message) => take(message),
            Incoming::Batch(batch) => batch.into_iter().filter_map(Result::ok).for_each(take),
        }
        if answered { Ok(()) } else { Err(wrong_answer()) }
    }

    /// Reads the stream of a request up to its answer, and takes it up again where it breaks.
    async fn follow(&self, id: &Id, mut events: Events) -> Result<(), Error> {
        let mut last = None;
        for _ in 0..MAX_RESUMES {
            let broken = match self.read_until_answer(id, &mut events).await {
                Ok(true) => return Ok(()),
                Ok(false) => None,
                // It would be as large the next time.
                Err(error) if error.symbol() == Symbol::TooLarge => return Err(error),
                Err(error) => Some(error),
            };
            // 2025-11-25 transports, Resumability: only an event with an id can be come back to.
            last = events.last_event_id().and_then(|id| HeaderValue::from_str(id).ok()).or(last);
            let Some(last) = last.clone() else { return Err(broken.unwrap_or_else(cut_off)) };
            tokio::time::sleep(events.retry().unwrap_or(COME_BACK)).await;
            events = match self.resume(last).await? {
                Some(events) => events,
                None => return Err(broken.unwrap_or_else(cut_off)),
            };
        }
        Err(cut_off())
    }

    async fn resume(&self, last: HeaderValue) -> Result<Option<Events>, Error> {
        let mut headers = self.headers();
        headers.push(http::HeaderName::from_static(headers::LAST_EVENT_ID), last);
        let answered = self.http.get(headers).await?;
        Ok(match answered.body {
            Body::Events(events) if answered.status.is_success() => Some(*events),
            _ => None,
        })
    }

    /// Whether the answer came before the stream ended.
    async fn read_until_answer(&self, id: &Id, events: &mut Events) -> Result<bool, Error> {
        while let Some(event) = events.next().await? {
            if event.data.is_empty() {
                continue;
            }
            match Incoming::parse(event.data, &self.limits) {
                Ok(Incoming::One(message)) => {
                    let answer = is_answer_to(&message, id);
                    if answer {
                        self.read_what_came_before().await;
                    }
                    self.inbox.message(message, Some(id));
                    if answer {
                        return Ok(true);
                    }
                }
                Ok(Incoming::Batch(batch)) => {
                    let mut answer = false;
                    for message in batch.into_iter().filter_map(Result::ok) {
                        answer |= is_answer_to(&message, id);
                        self.inbox.message(message, Some(id));
                    }
                    if answer {
                        return Ok(true);
                    }
                }
                Err(bad) if bad.id.as_ref() == Some(id) => return Err(garbled(&bad.error)),
                Err(bad) => {
                    tracing::warn!(error = %bad.error, "the server sent an invalid message")
                }
            }
        }
        Ok(false)
    }

    /// Sends a notification or an answer and waits until the server has taken it.
    async fn tell(&self, body: Vec<u8>) -> Result<(), Error> {
        let answered = tokio::select! {
            answered = self.http.post(Bytes::from(body), self.headers()) => answered?,
            () = self.ended.cancelled() => return Err(session_over()),
        };
        if answered.status.is_success() {
            return Ok(());
        }
        Err(status::error(self.http.url(), &answered, &self.limits))
    }

    /// Ends the session: the server may forget it.
    async fn close(&self) {
        self.ended.cancel();
        if self.id.get().is_some() {
            _ = tokio::time::timeout(Duration::from_secs(2), self.http.delete(self.headers())).await;
        }
    }

    /// Ends what runs, without waiting for anything.
    fn abandon(self: &Arc<Self>) {
        if self.ended.is_cancelled() {
            return;
        }
        self.ended.cancel();
        if self.id.get().is_some()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let session = self.clone();
            runtime.spawn(async move { session.close().await });
        }
    }
}

/// Whether an error is one of a server that expects modern requests.
fn is_modern(error: &Json) -> bool {
    is_modern_error(error) || error.as_str().contains(meta::PROTOCOL_VERSION)
}

fn is_answer_to(message: &Message, id: &Id) -> bool {
    match message {
        Message::Response(response) => response.id == *id,
        Message::Failure(failure) => failure.id.as_ref().is_none_or(|f| f == id),
        _ => false,
    }
}

pub(crate) fn garbled(error: &Error) -> Error {
    let symbol = if error.symbol() == Symbol::TooLarge { Symbol::TooLarge } else { Symbol::Unavailable };
    Error::new(symbol, format!("The server's answer cannot be read: {}", error.message()))
        .with_detail(format!("The server's answer cannot be read: {error}"))
}

fn wrong_answer() -> Error {
    Error::new(Symbol::Unavailable, "The server answered another request than the one it was asked")
}

pub(crate) fn cut_off() -> Error {
    Error::new(Symbol::Unavailable, "The server's stream ended before the answer")
}

fn forgotten(status: StatusCode) -> Error {
    let what = format!("The server no longer knows the session (HTTP {})", status.as_u16());
    Error::new(Symbol::SessionNotFound, what)
}

fn session_over() -> Error {
    Error::new(Symbol::Unavailable, "The session was closed")
}

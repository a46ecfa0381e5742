//! The HTTP+SSE transport of 2024-11-05: a GET opens the stream and names the endpoint for POSTs; every message from
//! the server, responses included, goes out on that one stream.

use std::sync::Arc;

use ::http::{Request, Response};
use axum::body::Body;
use bytes::Bytes;
use futures_util::stream::unfold;
use tidegate_protocol::{Error, Id, Incoming, Message, Method, Revision, Symbol, sse};
use tidegate_service::budget::{Budget, Purpose};
use tidegate_service::usage::NetworkTransport::Tcp;
use tidegate_service::{Door, Identity, Principal};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::endpoint::{Endpoint, Shared};
use super::events::{EventLog, Next};
use super::http_headers::HttpHeaders;
use super::places::{Place, Places};
use super::with_claims::WithClaims;
use super::{body, respond};
use crate::legacy::{ClientSession, MessageSink, drive, handshake, pass_on_changes};
use crate::{traffic, wire};

const STREAM: &str = "/sse";
const MESSAGES: &str = "/messages";
/// Where the transport is.
pub(super) const PATHS: [&str; 2] = [STREAM, MESSAGES];

/// The two endpoints of the old transport.
pub(super) struct HttpSse<D>(Arc<Old<D>>);

impl<D> Clone for HttpSse<D> {
    fn clone(&self) -> Self {
        HttpSse(self.0.clone())
    }
}

impl<D: Door> HttpSse<D> {
    pub(super) fn new(endpoint: Endpoint<D>, places: Arc<Places>) -> HttpSse<D> {
        HttpSse(Arc::new(Old { shared: endpoint.shared, places, open: Default::default() }))
    }

    /// Ends the connections of a principal, and what runs for them.
    pub(super) fn end_of(&self, principal: &Principal) {
        self.0.open().retain(|_, connection| {
            let is_other = connection.identity.principal != *principal;
            if !is_other {
                connection.end();
                connection.log.end();
            }
            is_other
        });
    }

    /// Answers a request at one of the [`PATHS`].
    pub(super) async fn answer(self, request: Request<Body>, identity: Identity) -> Response<Body> {
        let allow = match (request.uri().path(), request.method()) {
            (STREAM, &::http::Method::GET) => return open(self.0, identity),
            (MESSAGES, &::http::Method::POST) => return message(self.0, request, identity).await,
            (STREAM, _) => "GET",
            _ => "POST",
        };
        let what = format!("Method not allowed: use {allow}");
        let mut response = respond::refused(405, &Error::new(Symbol::InvalidRequest, what));
        response.headers_mut().insert(::http::header::ALLOW, ::http::HeaderValue::from_static(allow));
        response
    }
}

/// The connections of the old transport.
struct Old<D> {
    shared: Arc<Shared<D>>,
    /// Room for sessions, of which each connection is one.
    places: Arc<Places>,
    open: std::sync::Mutex<std::collections::HashMap<String, Arc<Connection>>>,
}

/// One stream; the client behind it may not have shaken hands yet.
struct Connection {
    identity: Identity,
    log: Arc<EventLog>,
    client: OnceCell<Arc<ClientSession>>,
    /// Fires when the stream is gone.
    over: CancellationToken,
    /// What still has something to say on the stream.
    running: TaskTracker,
    _place: Place,
}

impl Connection {
    /// In this transport the stream is the session: what runs for it stops.
    fn end(&self) {
        self.over.cancel();
        if let Some(client) = self.client.get() {
            client.end();
        }
    }

    /// Waits until the endpoint closes and nothing has anything to say any more.
    async fn said_all(&self, closing: &CancellationToken) {
        closing.cancelled().await;
        self.running.close();
        self.running.wait().await;
    }
}

impl<D> Old<D> {
    fn open(&self) -> std::sync::MutexGuard<'_, std::collections::HashMap<String, Arc<Connection>>> {
        self.open.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn open<D: Door>(old: Arc<Old<D>>, identity: Identity) -> Response<Body> {
    let place = match old.places.take(&identity.principal) {
        Ok(place) => place,
        Err(error) => return respond::refused(503, &error),
    };
    let share = Budget::of_process().share_of(&identity.principal);
    let connection = Arc::new(Connection {
        identity,
        log: EventLog::for_one_reader(old.shared.settings.kept_bytes, share),
        client: OnceCell::new(),
        over: CancellationToken::new(),
        running: TaskTracker::new(),
        _place: place,
    });
    let id = super::session_id::random_id();
    old.open().insert(id.clone(), connection.clone());
    let reader = connection.log.take_over();
    let mut endpoint = Vec::new();
    sse::write_named_event(&mut endpoint, "endpoint", &format!("{MESSAGES}?sessionId={id}"));
    let state =
        Reading { old: old.clone(), id, connection, reader, sent: 0, endpoint: Some(endpoint.into()) };
    respond::open_ended_events(Box::pin(unfold(state, Reading::step)), old.shared.settings.keep_alive)
}

struct Reading<D> {
    old: Arc<Old<D>>,
    id: String,
    connection: Arc<Connection>,
    reader: u64,
    sent: u64,
    endpoint: Option<Bytes>,
}

impl<D> Reading<D> {
    async fn step(mut self) -> Option<(Bytes, Self)> {
        if let Some(endpoint) = self.endpoint.take() {
            return Some((endpoint, self));
        }
        let log = &self.connection.log;
        loop {
            let next = std::future::poll_fn(|cx| log.poll_next(self.reader, self.sent, cx));
            let next = tokio::select! {
                biased;
                next = next => next,
                () = self.connection.said_all(&self.old.shared.closing) => {
                    // What was said last is read before the end.
                    log.end();
                    continue;
                }
            };
            match next {
                Next::Message(n, message) => {
                    self.sent = n + 1;
                    traffic::sent(Tcp, &message);
                    let mut out = Vec::with_capacity(message.len() + 32);
                    sse::write_named_event(
                        &mut out,
                        "message",
                        std::str::from_utf8(&message).unwrap_or_default(),
                    );
                    return Some((out.into(), self));
                }
                // Nobody could come back to this stream.
                Next::Close => {}
                Next::End => return None,
            }
        }
    }
}

impl<D> Drop for Reading<D> {
    fn drop(&mut self) {
        self.old.open().remove(&self.id);
        self.connection.end();
    }
}

async fn message<D: Door>(old: Arc<Old<D>>, request: Request<Body>, identity: Identity) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let headers = HttpHeaders::read(&parts.headers);
    if !headers.json {
        return respond::not_json();
    }
    let id = parts.uri.query().and_then(|q| q.split('&').find_map(|pair| pair.strip_prefix("sessionId=")));
    let connection = id.and_then(|id| old.open().get(id).cloned());
    let connection = connection.filter(|it| it.identity.principal == identity.principal);
    let Some(connection) = connection else {
        let what = "Session not found: open the event stream first";
        return respond::refused(404, &Error::new(Symbol::SessionNotFound, what));
    };
    let settings = &old.shared.settings;
    let asked = || connection.client.get().is_some_and(|client| client.is_asked());
    let purpose = || if asked() { Purpose::Answer } else { Purpose::NewWork };
    let limit = settings.edge.limits.max_bytes;
    let bytes = match body::read(body, &identity.principal, limit, settings.request_within, purpose).await {
        Ok(bytes) => bytes,
        Err(response) => return response,
    };
    traffic::received(Tcp, &bytes);
    match Incoming::parse_bytes(bytes, &settings.edge.limits) {
        Ok(Incoming::One(message)) => take(&old.shared, &headers, &identity, &connection, message).await,
        Ok(Incoming::Batch(_)) => {
            let what = "Invalid request: batches are not part of this transport";
            respond::refused(400, &Error::new(Symbol::InvalidRequest, what))
        }
        Err(malformed) => respond::malformed(&malformed),
    }
}

async fn take<D: Door>(
    shared: &Arc<Shared<D>>,
    headers: &HttpHeaders<'_>,
    identity: &Identity,
    connection: &Arc<Connection>,
    message: Message,
) -> Response<Body> {
    let door = WithClaims::new(&shared.door, identity).carried_by(headers);
    let log = connection.log.clone();
    let speaking = connection.running.token();
    match (message, connection.client.get()) {
        (Message::Request(request), None) if request.method == Method::Initialize => {
            let shook = handshake(&door, &request, identity.principal.clone(), &shared.edge).await;
            match shook {
                Ok((client, result)) => {
                    let client = Arc::new(client.opened());
                    if connection.client.set(client.clone()).is_err() {
                        let error =
                            Error::new(Symbol::InvalidRequest, "Invalid request: initialize was sent twice");
                        log.send(wire::error(Some(&request.id), &error, None));
                        return respond::accepted();
                    }
                    log.send(wire::result(&request.id, &result));
                    let door = WithClaims::new(&shared.door, &connection.identity);
                    tokio::spawn(pass_on_changes(door, client.clone(), log, false));
                    // The client may have gone while it shook hands, and then nobody else ends its session.
                    if connection.over.is_cancelled() {
                        client.ended.cancel();
                    }
                }
                Err(error) => log.send(wire::error(Some(&request.id), &error, None)),
            }
        }
        (Message::Request(request), None) if request.method == Method::Ping => {
            log.send(wire::result(&request.id, &tidegate_protocol::Json::empty_object()));
        }
        (Message::Request(request), None) => log.send(not_initialized(&request.id)),
        (Message::Request(request), Some(client)) => {
            let run = drive(door, client.clone(), request, log.clone(), shared.edge.clone());
            tokio::spawn(async move {
                if let Some(response) = run.await {
                    log.send(response.message);
                }
                drop(speaking);
            });
        }
        (Message::Notification(notification), Some(client)) => client.notified(&door, notification),
        (Message::Response(response), Some(client)) => client.answered(&response.id, Ok(response.result)),
        (Message::Failure(failure), Some(client)) => {
            if let Some(id) = failure.id {
                client.answered(&id, Err(failure.error));
            }
        }
        _ => {}
    }
    respond::accepted()
}

fn not_initialized(id: &Id) -> Vec<u8> {
    let error = Error::new(Symbol::NotInitialized, "Server not initialized: send initialize first");
    wire::error(Some(id), &error, Some(Revision::V2024_11_05))
}

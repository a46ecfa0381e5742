//! The HTTP+SSE transport of 2024-11-05: a GET opens the stream and names the endpoint for POSTs; every message from
//! the server, responses included, goes out on that one stream.

use std::sync::Arc;

use ::http::Response;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::routing::{get, post};
use bytes::Bytes;
use futures_util::stream::unfold;
use tidegate_protocol::{Error, Id, Incoming, Message, Method, Revision, Symbol, sse};
use tidegate_service::budget::Purpose;
use tidegate_service::{Door, Principal, wire_trace};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::events::{EventLog, Next};
use super::heads::Heads;
use super::{Endpoint, Shared, body, guard, respond};
use crate::legacy::{Lane, Peer, drive, handshake, pump};
use crate::wire;

const STREAM: &str = "/sse";
const MESSAGES: &str = "/messages";

/// Adds the two endpoints of the old transport.
pub(super) fn mount<D: Door>(router: Router, endpoint: Endpoint<D>) -> Router {
    let old = Arc::new(Old { shared: endpoint.shared, open: Default::default() });
    router.merge(
        Router::new().route(STREAM, get(open::<D>)).route(MESSAGES, post(message::<D>)).with_state(old),
    )
}

/// The connections of the old transport.
struct Old<D> {
    shared: Arc<Shared<D>>,
    open: std::sync::Mutex<std::collections::HashMap<String, Arc<Connection>>>,
}

/// One stream; the client behind it may not have shaken hands yet.
struct Connection {
    principal: Principal,
    log: Arc<EventLog>,
    peer: OnceCell<Arc<Peer>>,
    /// Fires when the stream is gone.
    over: CancellationToken,
    /// What still has something to say on the stream.
    running: TaskTracker,
}

impl Connection {
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

async fn open<D: Door>(State(old): State<Arc<Old<D>>>, request: Request) -> Response<Body> {
    let (parts, _) = request.into_parts();
    if let Err(refused) = guard::check(&Heads::read(&parts.headers), &parts, &old.shared.settings) {
        return respond::refused(403, &refused);
    }
    if old.open().len() >= old.shared.settings.max_sessions {
        return respond::refused(503, &Error::new(Symbol::Unavailable, "Too many sessions. Try again later"));
    }
    let principal = parts.extensions.get::<Principal>().cloned().unwrap_or_default();
    let connection = Arc::new(Connection {
        principal,
        log: EventLog::for_one_reader(old.shared.settings.kept_bytes),
        peer: OnceCell::new(),
        over: CancellationToken::new(),
        running: TaskTracker::new(),
    });
    let Ok(id) = super::sessions::new_id() else { return respond::refused(500, &Error::internal()) };
    old.open().insert(id.clone(), connection.clone());
    let reader = connection.log.take_over();
    let mut endpoint = Vec::new();
    sse::write_named_event(&mut endpoint, "endpoint", &format!("{MESSAGES}?sessionId={id}"));
    let state =
        Reading { old: old.clone(), id, connection, reader, sent: 0, endpoint: Some(endpoint.into()) };
    respond::events(Box::pin(unfold(state, Reading::step)), old.shared.settings.keep_alive)
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
                    wire_trace::sent(&message);
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
        // In this transport the stream is the session.
        self.old.open().remove(&self.id);
        self.connection.over.cancel();
        if let Some(peer) = self.connection.peer.get() {
            peer.ended.cancel();
        }
    }
}

async fn message<D: Door>(State(old): State<Arc<Old<D>>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let heads = Heads::read(&parts.headers);
    if let Err(refused) = guard::check(&heads, &parts, &old.shared.settings) {
        return respond::refused(403, &refused);
    }
    if !heads.json {
        return respond::not_json();
    }
    let principal = parts.extensions.get::<Principal>().cloned().unwrap_or_default();
    let id = parts.uri.query().and_then(|q| q.split('&').find_map(|pair| pair.strip_prefix("sessionId=")));
    let connection = id.and_then(|id| old.open().get(id).cloned()).filter(|c| c.principal == principal);
    let Some(connection) = connection else {
        let what = "Session not found: open the event stream first";
        return respond::refused(404, &Error::new(Symbol::SessionNotFound, what));
    };
    let settings = &old.shared.settings;
    let asked = || connection.peer.get().is_some_and(|peer| peer.is_asked());
    let purpose = || if asked() { Purpose::Answer } else { Purpose::NewWork };
    let limit = settings.edge.limits.max_bytes;
    let bytes = match body::read(body, limit, settings.request_within, purpose).await {
        Ok(bytes) => bytes,
        Err(response) => return response,
    };
    wire_trace::received(&bytes);
    match Incoming::parse_bytes(bytes, &settings.edge.limits) {
        Ok(Incoming::One(message)) => take(&old.shared, &connection, message).await,
        Ok(Incoming::Batch(_)) => {
            let what = "Invalid request: batches are not part of this transport";
            respond::refused(400, &Error::new(Symbol::InvalidRequest, what))
        }
        Err(malformed) => respond::malformed(&malformed),
    }
}

async fn take<D: Door>(
    shared: &Arc<Shared<D>>,
    connection: &Arc<Connection>,
    message: Message,
) -> Response<Body> {
    let log = connection.log.clone();
    let speaking = connection.running.token();
    match (message, connection.peer.get()) {
        (Message::Request(request), None) if request.method == Method::Initialize => {
            let shook =
                handshake(&shared.door, &request, connection.principal.clone(), &shared.options).await;
            match shook {
                Ok((peer, result)) => {
                    let peer = Arc::new(peer);
                    if connection.peer.set(peer.clone()).is_err() {
                        let error =
                            Error::new(Symbol::InvalidRequest, "Invalid request: initialize was sent twice");
                        log.send(wire::error(Some(&request.id), &error, None));
                        return respond::accepted();
                    }
                    log.send(wire::result(&request.id, &result));
                    tokio::spawn(pump(shared.door.clone(), peer.clone(), log, false));
                    // The client may have gone while it shook hands, and then nobody else ends its session.
                    if connection.over.is_cancelled() {
                        peer.ended.cancel();
                    }
                }
                Err(error) => log.send(wire::error(Some(&request.id), &error, None)),
            }
        }
        (Message::Request(request), None) if request.method == Method::Ping => {
            log.send(wire::result(&request.id, &tidegate_protocol::Json::empty_object()));
        }
        (Message::Request(request), None) => log.send(not_initialized(&request.id)),
        (Message::Request(request), Some(peer)) => {
            let run = drive(shared.door.clone(), peer.clone(), request, log.clone(), shared.options.clone());
            tokio::spawn(async move {
                if let Some(response) = run.await {
                    log.send(response);
                }
                drop(speaking);
            });
        }
        (Message::Notification(notification), Some(peer)) => peer.notified(&shared.door, notification),
        (Message::Response(response), Some(peer)) => peer.answered(&response.id, Ok(response.result)),
        (Message::Failure(failure), Some(peer)) => {
            if let Some(id) = failure.id {
                peer.answered(&id, Err(failure.error));
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

//! POST of legacy clients: the handshake, requests of a session, and clients that have neither.

use std::future::Future;
use std::sync::Arc;
use std::task::Poll;

use ::http::{HeaderValue, Response};
use axum::body::Body;
use bytes::Bytes;
use tidegate_protocol::{Error, Incoming, Malformed, Message, Method, Request, Revision, headers};
use tidegate_service::{Door, Identity};

use super::endpoint::Shared;
use super::events::{EventLog, Opening};
use super::heads::{Heads, Version};
use super::identified::Identified;
use super::respond;
use super::revive::{no_session, refused};
use super::sessions::Session;
use crate::legacy::{Batch, Lane, Peer, drive, drive_batch, handshake};
use crate::wire;

impl<D: Door> Shared<D> {
    pub(super) async fn legacy_request(
        &self,
        heads: &Heads<'_>,
        request: Request,
        identity: Identity,
    ) -> Response<Body> {
        if request.method == Method::Initialize && heads.session.is_none() {
            return self.initialize(&request, &identity).await;
        }
        if request.method == Method::Initialize && self.open_session(heads, &identity).is_none() {
            // It wants a new session, and is told to send no id: the one that it has is not opened anew for that.
            return no_session(heads, Some(&request.id));
        }
        if self.is_bare(heads) {
            return self.bare(request, &identity).await;
        }
        let session = match self.session(heads, &identity, Some(&request.id)).await {
            Ok(session) => session,
            Err(response) => return response,
        };
        let log = session.open_stream();
        let lane = lane(heads, &log);
        let door = Identified::new(&self.door, &identity);
        let run = drive(door, session.peer.clone(), request, lane, self.options.clone());
        let run = async move { run.await.into_iter().collect() };
        self.run(session, log, run, false).await
    }

    /// A POST without session, modern `_meta` and version header comes from a plain HTTP client that knows no handshake.
    fn is_bare(&self, heads: &Heads<'_>) -> bool {
        self.settings.bare && matches!(heads.version(), Version::Absent) && heads.session.is_none()
    }

    async fn initialize(&self, request: &Request, identity: &Identity) -> Response<Body> {
        let door = Identified::new(&self.door, identity);
        let (peer, result) =
            match handshake(&door, request, identity.principal.clone(), &self.settings.edge).await {
                Ok(done) => done,
                Err(error) => return refused(Some(&request.id), &error),
            };
        match self.sessions.open(peer) {
            Ok(id) => {
                let mut response = respond::json(200, wire::result(&request.id, &result));
                if let Ok(id) = HeaderValue::from_str(&id) {
                    response.headers_mut().insert(headers::SESSION_ID, id);
                }
                response
            }
            Err(error) => refused(Some(&request.id), &error),
        }
    }

    /// One request that stands alone, answered in JSON.
    async fn bare(&self, request: Request, identity: &Identity) -> Response<Body> {
        let peer = Arc::new(Peer::bare(identity.principal.clone()));
        let id = request.id.clone();
        let door = Identified::new(&self.door, identity);
        match drive(door, peer, request, Arc::new(Nowhere), self.options.clone()).await {
            Some(response) => respond::json(200, response),
            None => respond::error(Some(&id), &Error::internal(), Some(Revision::V2025_03_26)),
        }
    }

    /// Notifications, answers and batches.
    pub(super) async fn legacy_other(
        &self,
        heads: &Heads<'_>,
        incoming: Incoming,
        identity: Identity,
    ) -> Response<Body> {
        if self.is_bare(heads) {
            return match incoming {
                Incoming::Batch(messages) => {
                    let peer = Arc::new(Peer::bare(identity.principal.clone()));
                    let batch = match batch_of(messages, peer.revision) {
                        Ok(batch) => batch,
                        Err(response) => return response,
                    };
                    let (door, lane) = (Identified::new(&self.door, &identity), Arc::new(Nowhere));
                    batch_json(drive_batch(door, peer, batch, lane, self.options.clone()).await)
                }
                // Nobody waits for it and there is no session it could matter to.
                Incoming::One(_) => respond::accepted(),
            };
        }
        let session = match self.session(heads, &identity, None).await {
            Ok(session) => session,
            Err(response) => return response,
        };
        match incoming {
            Incoming::One(Message::Notification(notification)) => {
                session.peer.notified(&Identified::new(&self.door, &identity), notification);
            }
            Incoming::One(Message::Response(response)) => {
                session.peer.answered(&response.id, Ok(response.result))
            }
            Incoming::One(Message::Failure(failure)) => {
                if let Some(id) = failure.id {
                    session.peer.answered(&id, Err(failure.error));
                }
            }
            // Requests do not come here.
            Incoming::One(Message::Request(_)) => {}
            Incoming::Batch(messages) => {
                return match batch_of(messages, session.peer.revision) {
                    Ok(batch) => self.batch(heads, session, batch, &identity).await,
                    Err(response) => response,
                };
            }
        }
        respond::accepted()
    }

    async fn batch(
        &self,
        heads: &Heads<'_>,
        session: Arc<Session>,
        batch: Batch,
        identity: &Identity,
    ) -> Response<Body> {
        let log = session.open_stream();
        let lane = lane(heads, &log);
        let door = Identified::new(&self.door, identity);
        let run = drive_batch(door, session.peer.clone(), batch, lane, self.options.clone());
        self.run(session, log, run, true).await
    }

    /// Runs a request to its end, whether or not its client stays: JSON if nothing but the response is sent, else a
    /// stream that the client can come back to.
    async fn run(
        &self,
        session: Arc<Session>,
        log: Arc<EventLog>,
        run: impl Future<Output = Vec<Vec<u8>>> + Send + 'static,
        batch: bool,
    ) -> Response<Body> {
        let mut run = Box::pin(run);
        // Many requests are answered at once: those need no task of their own.
        if let Poll::Ready(responses) = futures_util::poll!(&mut run) {
            log.finish(responses);
        } else {
            session.streams.keep(&log);
            let (session, log) = (session.clone(), log.clone());
            tokio::spawn(async move { session.streams.finish(&log, run.await) });
        }
        match std::future::poll_fn(|cx| log.poll_opening(cx)).await {
            Opening::Responses(responses) => {
                session.streams.drop_stream(log.number);
                if batch { batch_json(responses) } else { single_json(responses) }
            }
            Opening::Stream => {
                session.streams.keep_once(&log);
                self.stream(session, log, 0)
            }
        }
    }
}

/// The batch that these messages are, or the refusal.
fn batch_of(messages: Vec<Result<Message, Malformed>>, revision: Revision) -> Result<Batch, Response<Body>> {
    Batch::of(messages, revision).map_err(|error| respond::error(None, &error, Some(revision)))
}

/// Where the messages of a request go before its response: to its stream, if the client reads streams.
fn lane(heads: &Heads<'_>, log: &Arc<EventLog>) -> Arc<dyn Lane> {
    if heads.accepts_events() { log.clone() } else { Arc::new(Nowhere) }
}

/// A client without a stream hears nothing but its response.
struct Nowhere;

impl Lane for Nowhere {
    fn send(&self, _: Vec<u8>) {}

    fn reaches_client(&self) -> bool {
        false
    }
}

fn single_json(mut responses: Vec<Bytes>) -> Response<Body> {
    match responses.pop() {
        Some(response) => respond::json(200, response),
        // Cancelled: there is no response, and nobody waits for one.
        None => respond::accepted(),
    }
}

fn batch_json(responses: Vec<impl AsRef<[u8]>>) -> Response<Body> {
    if responses.is_empty() {
        return respond::accepted();
    }
    respond::json(200, wire::batch(responses))
}

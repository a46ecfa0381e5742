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
use super::events::{EventLog, Opening, Responses};
use super::http_headers::{HttpHeaders, Version};
use super::respond;
use super::revive::{no_session, refused};
use super::sessions::Session;
use super::with_claims::WithClaims;
use crate::call_id::CallId;
use crate::legacy::{Batch, ClientSession, MessageSink, drive_as, drive_batch, handshake};
use crate::modern::correlation;
use crate::wire;

impl<D: Door> Shared<D> {
    pub(super) async fn legacy_request(
        &self,
        headers: &HttpHeaders<'_>,
        request: Request,
        identity: Identity,
    ) -> Response<Body> {
        if request.method == Method::Initialize && headers.session.is_none() {
            return self.initialize(&request, &identity).await;
        }
        if request.method == Method::Initialize && self.open_session(headers, &identity).is_none() {
            // It wants a new session, and is told to send no id: the one that it has is not opened anew for that.
            return no_session(headers, Some(&request.id));
        }
        if self.is_bare(headers) {
            return self.bare(headers, request, &identity).await;
        }
        let session = match self.session(headers, &identity, Some(&request.id)).await {
            Ok(session) => session,
            Err(response) => return response,
        };
        let log = session.open_stream();
        let sink = sink(headers, &log);
        let door = WithClaims::new(&self.door, &identity).carried_by(headers);
        let correlation = correlation(request.params.meta());
        let named = CallId::of(&request.method, correlation, &self.edge);
        let run = drive_as(correlation, door, session.client.clone(), request, sink, self.edge.clone());
        let run = async move { Responses::of_one(run.await) };
        respond::naming(named, self.run(session, log, run, false).await)
    }

    /// A POST without session, modern `_meta` and version header comes from a plain HTTP client that knows no handshake.
    fn is_bare(&self, headers: &HttpHeaders<'_>) -> bool {
        self.settings.bare && matches!(headers.version(), Version::Absent) && headers.session.is_none()
    }

    async fn initialize(&self, request: &Request, identity: &Identity) -> Response<Body> {
        let door = WithClaims::new(&self.door, identity);
        let (client, result) =
            match handshake(&door, request, identity.principal.clone(), &self.settings.edge).await {
                Ok(done) => done,
                Err(error) => return refused(Some(&request.id), &error),
            };
        match self.sessions.open(client) {
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
    async fn bare(&self, headers: &HttpHeaders<'_>, request: Request, identity: &Identity) -> Response<Body> {
        let client = Arc::new(ClientSession::bare(identity.principal.clone(), &self.edge));
        let id = request.id.clone();
        let door = WithClaims::new(&self.door, identity).carried_by(headers);
        let correlation = correlation(request.params.meta());
        let named = CallId::of(&request.method, correlation, &self.edge);
        let sink = Arc::new(DiscardSink);
        let response = match drive_as(correlation, door, client, request, sink, self.edge.clone()).await {
            Some(response) => single_json(vec![response.message.into()], response.required_scopes),
            None => respond::error(Some(&id), &Error::internal(), Some(Revision::V2025_03_26)),
        };
        respond::naming(named, response)
    }

    /// Notifications, answers and batches.
    pub(super) async fn legacy_other(
        &self,
        headers: &HttpHeaders<'_>,
        incoming: Incoming,
        identity: Identity,
    ) -> Response<Body> {
        if self.is_bare(headers) {
            return match incoming {
                Incoming::Batch(messages) => {
                    let client = Arc::new(ClientSession::bare(identity.principal.clone(), &self.edge));
                    let batch = match batch_of(messages, client.revision) {
                        Ok(batch) => batch,
                        Err(response) => return response,
                    };
                    let door = WithClaims::new(&self.door, &identity).carried_by(headers);
                    let sink = Arc::new(DiscardSink);
                    batch_json(drive_batch(door, client, batch, sink, self.edge.clone()).await)
                }
                // Nobody waits for it and there is no session it could matter to.
                Incoming::One(_) => respond::accepted(),
            };
        }
        let session = match self.session(headers, &identity, None).await {
            Ok(session) => session,
            Err(response) => return response,
        };
        match incoming {
            Incoming::One(Message::Notification(notification)) => {
                session.client.notified(&WithClaims::new(&self.door, &identity), notification);
            }
            Incoming::One(Message::Response(response)) => {
                session.client.answered(&response.id, Ok(response.result))
            }
            Incoming::One(Message::Failure(failure)) => {
                if let Some(id) = failure.id {
                    session.client.answered(&id, Err(failure.error));
                }
            }
            // Requests do not come here.
            Incoming::One(Message::Request(_)) => {}
            Incoming::Batch(messages) => {
                return match batch_of(messages, session.client.revision) {
                    Ok(batch) => self.batch(headers, session, batch, &identity).await,
                    Err(response) => response,
                };
            }
        }
        respond::accepted()
    }

    async fn batch(
        &self,
        headers: &HttpHeaders<'_>,
        session: Arc<Session>,
        batch: Batch,
        identity: &Identity,
    ) -> Response<Body> {
        let log = session.open_stream();
        let sink = sink(headers, &log);
        let door = WithClaims::new(&self.door, identity).carried_by(headers);
        let run = drive_batch(door, session.client.clone(), batch, sink, self.edge.clone());
        let run = async move { Responses { messages: run.await, required_scopes: None } };
        self.run(session, log, run, true).await
    }

    /// Runs a request to its end, whether or not its client stays: JSON if nothing but the response is sent, else a
    /// stream that the client can come back to.
    async fn run(
        &self,
        session: Arc<Session>,
        log: Arc<EventLog>,
        run: impl Future<Output = Responses> + Send + 'static,
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
            Opening::Responses(responses, required_scopes) => {
                session.streams.drop_stream(log.number);
                if batch { batch_json(responses) } else { single_json(responses, required_scopes) }
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
fn sink(headers: &HttpHeaders<'_>, log: &Arc<EventLog>) -> Arc<dyn MessageSink> {
    if headers.accepts_events() { log.clone() } else { Arc::new(DiscardSink) }
}

/// A client without a stream hears nothing but its response.
struct DiscardSink;

impl MessageSink for DiscardSink {
    fn send(&self, _: Vec<u8>) {}

    fn reaches_client(&self) -> bool {
        false
    }
}

fn single_json(mut responses: Vec<Bytes>, required_scopes: Option<Vec<String>>) -> Response<Body> {
    match responses.pop() {
        Some(response) => respond::json_or_scopes(response, required_scopes),
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

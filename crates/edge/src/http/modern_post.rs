//! A modern request over HTTP: JSON when nothing streams, an event stream when something does.
//!
//! The call lives inside the response: when the client goes away the response is dropped, and the call with it
//! (2026-07-28 streamable-http, Cancellation).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use ::http::{HeaderMap, HeaderValue, Response};
use axum::body::Body;
use bytes::Bytes;
use bytestring::ByteString;
use futures_util::stream::unfold;
use tidegate_protocol::headers::{self, RequestHeaders};
use tidegate_protocol::{Error, Id, Meta, Method, Request, Revision, Symbol};
use tidegate_service::budget::Budget;
use tidegate_service::trace::{self, Origin};
use tidegate_service::{Door, Identity, Notice, Outbox, ParamHeaders, Reply, Subscription};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::endpoint::Shared;
use super::http_headers::HttpHeaders;
use super::respond;
use crate::call_id::CallId;
use crate::edge_settings::Eras;
use crate::{modern, wire};

impl<D: Door> Shared<D> {
    /// Checks a modern request and starts the call that it is, or refuses it.
    pub(super) fn start_modern(
        &self,
        http: &HeaderMap,
        headers: &HttpHeaders<'_>,
        request: Request,
        identity: Identity,
    ) -> Result<Started, Response<Body>> {
        let id = request.id.clone();
        let refuse = |error: Error| respond::error(Some(&id), &error, Some(Revision::LATEST_MODERN));
        if let Some(error) = modern_only(&request, self.settings.edge.eras) {
            return Err(refuse(error));
        }
        let meta = modern::read_meta(&request).map_err(refuse)?;
        let mirrored = RequestHeaders {
            version: headers.version.map(HeaderValue::as_bytes),
            method: headers.method.map(HeaderValue::as_bytes),
            name: headers.name.map(HeaderValue::as_bytes),
        };
        once(headers).and_then(|()| headers::check(&mirrored, &request, &meta.version)).map_err(refuse)?;
        let mut call = modern::call(request, meta, &self.edge, identity).map_err(refuse)?;
        if trace::is_on() {
            call.context
                .came_with(headers.carrier(), || Origin { request: Some(id.clone()), ..headers.origin() });
        }
        let revision = call.context.revision;
        // Dropping the response stops the call; work that it has handed elsewhere hears of it through the token.
        let guard = call.context.cancel.clone().drop_guard();
        if call.method == Method::ToolsCall {
            call.context.param_headers = Some(param_headers(http, headers));
        }
        let streams = headers.accepts_events();
        let outbox = if streams { modern::open_outbox(&mut call, self.settings.edge.relays) } else { None };
        let named = CallId::of(&call.method, call.context.correlation, &self.edge);
        let reply: ReplyFuture = Box::pin(modern::answer(&self.door, call, self.settings.edge.eras));
        Ok(Started { id, call: named, revision, guard, streams, outbox, reply })
    }

    /// Waits for the reply, or for the first notification, which makes the response a stream.
    pub(super) async fn finish_modern(&self, started: Started) -> Response<Body> {
        let call = started.call;
        respond::naming(call, self.modern_answer(started).await)
    }

    async fn modern_answer(&self, started: Started) -> Response<Body> {
        let Started { id, call, revision, guard, streams, outbox, mut reply } = started;
        let Some(outbox) = outbox else {
            let reply = reply.await;
            return self.modern_response(id, call, revision, reply, streams, guard);
        };
        let (notice, reply) = tokio::select! {
            biased;
            Some(notice) = outbox.next() => (notice, reply),
            reply = &mut reply => match outbox.try_next() {
                Some(notice) => (notice, Box::pin(std::future::ready(reply)) as ReplyFuture),
                None => return self.modern_response(id, call, revision, reply, streams, guard),
            },
        };
        let state = Streaming {
            id,
            call,
            revision,
            outbox,
            reply: Some(reply),
            first: Some(notice),
            guard: Some(guard),
        };
        respond::events(Box::pin(unfold(state, Streaming::step)), self.settings.keep_alive)
    }

    /// The response to a call that sent no notifications.
    fn modern_response(
        &self,
        id: Id,
        call: Option<CallId>,
        revision: Revision,
        reply: Reply,
        streams: bool,
        guard: DropGuard,
    ) -> Response<Body> {
        match reply {
            Reply::Subscription(subscription) if streams => {
                let closing = self.closing.clone();
                let state = Listening { id, subscription, next: Step::Acknowledge, closing, _guard: guard };
                respond::quiet_events(Box::pin(unfold(state, Listening::step)), self.settings.keep_alive)
            }
            Reply::Subscription(subscription) => {
                subscription.events.close();
                let what = "Not acceptable: a subscription needs Accept: text/event-stream";
                respond::json(406, wire::error(Some(&id), &Error::new(Symbol::InvalidRequest, what), None))
            }
            Reply::Error(error) => {
                guard.disarm();
                respond::error(Some(&id), &error, Some(revision))
            }
            reply => {
                guard.disarm();
                respond::reply(&id, call, &reply, revision)
            }
        }
    }
}

type ReplyFuture = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// A modern call under way.
pub(super) struct Started {
    id: Id,
    /// What the answer calls it.
    call: Option<CallId>,
    /// What the caller speaks.
    revision: Revision,
    /// Cancels the call if the client goes away before the reply.
    guard: DropGuard,
    streams: bool,
    /// Where notifications come from, if the call can have any.
    outbox: Option<Outbox>,
    reply: ReplyFuture,
}

/// A call that sends notifications before its response.
struct Streaming {
    id: Id,
    /// What the answer calls it.
    call: Option<CallId>,
    /// What the caller speaks.
    revision: Revision,
    outbox: Outbox,
    reply: Option<ReplyFuture>,
    first: Option<Notice>,
    /// Cancels the call if the client goes away before the reply.
    guard: Option<DropGuard>,
}

impl Streaming {
    async fn step(mut self) -> Option<(Bytes, Self)> {
        loop {
            let notice = match self.first.take() {
                Some(notice) => Some(notice),
                None => {
                    let reply = self.reply.as_mut()?;
                    tokio::select! {
                        biased;
                        notice = self.outbox.next() => notice,
                        reply = reply => {
                            // What was sent before the response goes out before it, and nothing after it.
                            let mut bytes = Vec::new();
                            while let Some(notice) = self.outbox.try_next() {
                                bytes.extend_from_slice(&notice_event(&notice));
                            }
                            self.outbox.close();
                            let reply = wire::modern_reply(&self.id, self.call, &reply, self.revision);
                            bytes.extend_from_slice(&respond::event(&reply));
                            self.replied();
                            return Some((Budget::of_process().charge_anyway(bytes.into()), self));
                        }
                    }
                }
            };
            match notice {
                Some(Notice::CloseStream) => {}
                Some(notice) => return Some((notice_event(&notice), self)),
                None => {
                    let reply = self.reply.as_mut()?.await;
                    self.replied();
                    let reply = wire::modern_reply(&self.id, self.call, &reply, self.revision);
                    return Some((respond::event(&reply), self));
                }
            }
        }
    }

    /// The call is over. A task that it started goes on, so the token must not fire any more.
    fn replied(&mut self) {
        self.reply = None;
        if let Some(guard) = self.guard.take() {
            guard.disarm();
        }
    }
}

fn notice_event(notice: &Notice) -> Bytes {
    if *notice == Notice::CloseStream {
        return Bytes::new();
    }
    let mut message = Vec::with_capacity(160);
    notice.write(&mut message, None);
    respond::event(&message)
}

/// An open `subscriptions/listen`.
struct Listening {
    id: Id,
    subscription: Subscription,
    next: Step,
    closing: CancellationToken,
    _guard: DropGuard,
}

enum Step {
    Acknowledge,
    Events,
    Ended,
}

impl Listening {
    async fn step(mut self) -> Option<(Bytes, Self)> {
        let message = match self.next {
            Step::Acknowledge => {
                self.next = Step::Events;
                modern::acknowledgement(&self.id, &self.subscription)
            }
            Step::Events => match self.closing.run_until_cancelled(self.subscription.events.next()).await {
                Some(Some(notice)) => modern::subscription_notice(&self.id, &notice),
                Some(None) | None => {
                    self.next = Step::Ended;
                    modern::subscription_end(&self.id)
                }
            },
            Step::Ended => return None,
        };
        Some((respond::event(&message), self))
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // Tells the service that nobody listens any more.
        self.subscription.events.close();
    }
}

/// A mirrored header that comes twice could be read as one value here and as the other elsewhere.
fn once(headers: &HttpHeaders<'_>) -> Result<(), Error> {
    match headers.twice {
        None => Ok(()),
        Some(name) => {
            Err(Error::new(Symbol::HeaderMismatch, format!("Header mismatch: the {name} header is repeated")))
        }
    }
}

/// The `Mcp-Param-*` headers of a request.
fn param_headers(http: &HeaderMap, headers: &HttpHeaders<'_>) -> Arc<ParamHeaders> {
    static NONE: std::sync::LazyLock<Arc<ParamHeaders>> = std::sync::LazyLock::new(Arc::default);
    if !headers.has_params {
        return NONE.clone();
    }
    let mut found = Vec::new();
    for (name, value) in http {
        if name.as_str().starts_with(headers::PARAM_PREFIX) {
            found.push((ByteString::from(name.as_str()), value.as_bytes().to_vec()));
        }
    }
    Arc::new(ParamHeaders(found))
}

/// What a server that speaks only the modern era tells a legacy client that wants to shake hands: the versions it
/// speaks, because the message may be all that the client can show (2026-07-28 basic/versioning). To a modern client
/// `initialize` is a method like any other that does not exist.
pub(crate) fn modern_only(request: &Request, eras: Eras) -> Option<Error> {
    if eras.legacy() || request.method != Method::Initialize || Meta::is_modern(request.params.meta()) {
        return None;
    }
    let wanted = request.params.str("protocolVersion").unwrap_or_default();
    Some(Error::unsupported_version(&wanted, eras.revisions()))
}

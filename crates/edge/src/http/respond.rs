//! HTTP responses.

use std::pin::Pin;
use std::time::Duration;

use ::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use ::http::{HeaderValue, Response, StatusCode};
use axum::body::Body;
use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::unfold;
use tidegate_protocol::result_id::Piece;
use tidegate_protocol::{Error, Id, Malformed, Revision, Symbol, sse};
use tidegate_service::budget::{Budget, RETRY_AFTER_SECONDS};
use tidegate_service::usage::NetworkTransport::Tcp;
use tidegate_service::{Reply, wire_trace};

use super::extensions::{OpenEnded, RequiredScopes};
use crate::call_id::CallId;
use crate::required_scopes::required_scopes;
use crate::{traffic, wire};

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(super) const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

/// A JSON body.
pub(super) fn json(status: u16, message: impl Into<Bytes>) -> Response<Body> {
    let message = message.into();
    traffic::sent(Tcp, &message);
    let message = Budget::of_process().charge_anyway(message);
    let mut response = Response::new(Body::from(message));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// A JSON-RPC response in a JSON body. One that is a refusal for want of scopes has status 403, and names them to the layers
/// around the edge.
pub(super) fn json_or_scopes(message: Bytes, required_scopes: Option<Vec<String>>) -> Response<Body> {
    match required_scopes {
        None => json(200, message),
        Some(scopes) => with_scopes(json(403, message), scopes),
    }
}

#[cold]
fn with_scopes(mut response: Response<Body>, scopes: Vec<String>) -> Response<Body> {
    response.extensions_mut().insert(RequiredScopes(scopes));
    response
}

/// The response to a modern call. A large result goes out from where it is, between the two ends of its envelope.
pub(super) fn reply(id: &Id, call: Option<CallId>, reply: &Reply, revision: Revision) -> Response<Body> {
    let large = match reply {
        Reply::Complete(result) | Reply::Task(result) if result.len() >= LARGE => result,
        _ => return json(200, wire::modern_reply(id, call, reply, revision)),
    };
    wire_trace::sent(large.as_str().as_bytes());
    // What was counted on its way in may have been written anew since.
    let result = Budget::of_process().charge_anyway(large.text().as_bytes().clone());
    let splices = CallId::splices(call, large);
    let pieces = splices.pieces(large.as_str()).map(|piece| match piece {
        Piece::Kept(range) => result.slice(range),
        Piece::New(text) => Bytes::copy_from_slice(text),
    });
    let head = [wire::result_head(id).into()];
    let parts: Vec<Bytes> = head.into_iter().chain(pieces).chain([Bytes::from_static(b"}")]).collect();
    Tcp.has_sent(parts.iter().map(Bytes::len).sum());
    let mut response = Response::new(Body::new(Parts { parts, next: 0 }));
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// The header that names the call.
pub(super) const CALL_ID: &str = "tidegate-correlation-id";

/// A response that names the call it is the answer to.
pub(super) fn naming(call: Option<CallId>, mut response: Response<Body>) -> Response<Body> {
    if let Some(call) = call
        && let Ok(id) = HeaderValue::from_str(call.id.as_str())
    {
        response.headers_mut().insert(CALL_ID, id);
    }
    response
}

/// From this size on a result is not copied into its envelope.
const LARGE: usize = 16 * 1024;

/// A body of known length in pieces.
struct Parts {
    parts: Vec<Bytes>,
    next: usize,
}

impl http_body::Body for Parts {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        let at = self.next;
        self.next += 1;
        let part = self.parts.get_mut(at).map(std::mem::take);
        std::task::Poll::Ready(part.map(|part| Ok(http_body::Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.next >= self.parts.len()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        let left: usize = self.parts.iter().map(Bytes::len).sum();
        http_body::SizeHint::with_exact(left as u64)
    }
}

/// A JSON-RPC error with the HTTP status it has.
pub(super) fn error(id: Option<&Id>, error: &Error, revision: Option<Revision>) -> Response<Body> {
    let status = error.symbol().http_status(revision.unwrap_or(Revision::LATEST_MODERN));
    let mut response = json(status, wire::error(id, error, revision));
    let seconds = match error.symbol() {
        Symbol::Overloaded => Some(RETRY_AFTER_SECONDS),
        // In whole seconds, and not too early.
        Symbol::RateLimited if status == 429 => {
            error.retry_after().map(|after| after.as_millis().div_ceil(1000).try_into().unwrap_or(u32::MAX))
        }
        _ => None,
    };
    if let Some(seconds) = seconds {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    match required_scopes(error) {
        None => response,
        Some(scopes) => with_scopes(response, scopes),
    }
}

/// The answer to a body of another type.
pub(super) fn not_json() -> Response<Body> {
    let what = "Unsupported media type: send the message as Content-Type: application/json";
    refused(415, &Error::new(Symbol::InvalidRequest, what))
}

/// The answer to something that is no message: the client's mistake, whatever the code.
pub(super) fn malformed(malformed: &Malformed) -> Response<Body> {
    let status = if malformed.error.symbol() == Symbol::TooLarge { 413 } else { 400 };
    json(status, wire::error(malformed.id.as_ref(), &malformed.error, None))
}

/// A refusal by HTTP itself: a status, and an error without an id.
pub(super) fn refused(status: u16, error: &Error) -> Response<Body> {
    json(status, wire::error(None, error, None))
}

/// The answer at a path where nothing is.
pub(super) fn not_found(endpoint: &str) -> Response<Body> {
    let what = format!("Not found: the MCP endpoint is at {endpoint}");
    refused(404, &Error::new(Symbol::InvalidRequest, what))
}

/// `202 Accepted`, nothing to say.
pub(super) fn accepted() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// Anything that yields ready-made SSE bytes.
pub(super) type Events = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// An event stream with keep-alive comments while it is quiet.
pub(super) fn events(stream: Events, keep_alive: Duration) -> Response<Body> {
    let stream = unfold(stream, move |mut stream| async move {
        let next = std::future::poll_fn(|cx| stream.as_mut().poll_next(cx));
        match tokio::time::timeout(keep_alive, next).await {
            Ok(Some(bytes)) => Some((Ok::<_, std::convert::Infallible>(bytes), stream)),
            Ok(None) => None,
            Err(_) => {
                let mut out = Vec::with_capacity(4);
                sse::write_comment(&mut out, "");
                Some((Ok(out.into()), stream))
            }
        }
    });
    let mut response = Response::new(Body::from_stream(stream));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, EVENT_STREAM);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // 2026-07-28 streamable-http: proxies must not hold events back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// An event stream that belongs to no single request.
pub(super) fn open_ended_events(stream: Events, keep_alive: Duration) -> Response<Body> {
    let mut response = events(stream, keep_alive);
    response.extensions_mut().insert(OpenEnded);
    response
}

/// Marks the answer that is a stream which waits for nothing in particular, and to which its client can come back: its
/// connection may be closed when another needs the place.
#[derive(Clone, Copy)]
pub(super) struct Quiet;

/// Such a stream.
pub(super) fn quiet_events(stream: Events, keep_alive: Duration) -> Response<Body> {
    let mut response = open_ended_events(stream, keep_alive);
    response.extensions_mut().insert(Quiet);
    response
}

/// One event without an id.
pub(super) fn event(message: &[u8]) -> Bytes {
    traffic::sent(Tcp, message);
    let mut out = Vec::with_capacity(message.len() + 16);
    sse::write_event(&mut out, None, std::str::from_utf8(message).unwrap_or_default());
    Budget::of_process().charge_anyway(out.into())
}

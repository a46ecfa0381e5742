//! Server-sent events for somebody who follows.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Response};
use futures_util::stream::unfold;
use tidegate::edge::http::OpenEnded;
use tokio_util::sync::CancellationToken;

use super::access::Still;
use super::feed::{Follower, Next};

/// A comment goes out on a quiet stream this often, so that nothing in between closes it. That is also when it is looked whether
/// its reader still may read.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// One event, as it is sent. `data` is JSON on one line.
pub(super) fn event(name: &str, data: &str) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}

/// That events were lost, and how many.
pub(super) fn lost(count: u64) -> Bytes {
    event("lost", &format!("{{\"count\":{count}}}"))
}

/// Where events come from.
pub(super) trait Source: Send + 'static {
    /// Waits for the next ones, as they are sent.
    fn next(&mut self) -> impl Future<Output = Bytes> + Send;
}

impl Source for Follower {
    async fn next(&mut self) -> Bytes {
        match Follower::next(self).await {
            Next::Event(event) => event,
            Next::Lost(count) => lost(count),
        }
    }
}

/// An answer that goes on until its reader leaves, may not read any more, or everything ends.
pub(super) fn answer(source: impl Source, still: Still, ending: CancellationToken) -> Response<Body> {
    let first = Some(Bytes::from_static(b": following\n\n"));
    let events = unfold((first, source, still, ending), |(first, mut source, still, ending)| async move {
        if let Some(first) = first {
            return Some((Ok::<_, Infallible>(first), (None, source, still, ending)));
        }
        let next = tokio::select! {
            () = ending.cancelled() => return None,
            next = tokio::time::timeout(KEEP_ALIVE, source.next()) => next,
        };
        if !still() {
            return None;
        }
        Some((Ok(next.unwrap_or(Bytes::from_static(b":\n\n"))), (None, source, still, ending)))
    });
    let mut response = Response::new(Body::from_stream(events));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // Proxies must not hold events back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    // It ends with the credential that it was opened with.
    response.extensions_mut().insert(OpenEnded);
    response
}

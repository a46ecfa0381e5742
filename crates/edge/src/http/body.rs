//! Reading a request body, bounded.

use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body::{Body as _, Frame};
use http_body_util::BodyExt;
use tidegate_protocol::{Error, Symbol};

/// The whole body, or why not. Most arrive as one piece, which is taken as it is.
pub(super) async fn read(mut body: Body, limit: usize, stalled: Duration) -> Result<Bytes, Error> {
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large(limit));
    }
    let mut first = Bytes::new();
    let mut rest: Option<BytesMut> = None;
    while let Some(frame) = next(&mut body, stalled).await? {
        let frame = frame.map_err(|e| {
            tracing::debug!(error = %e, "the request body broke off");
            Error::new(Symbol::ParseError, "Parse error: the request body broke off")
        })?;
        let Ok(data) = frame.into_data() else { continue };
        let so_far = rest.as_ref().map_or(first.len(), BytesMut::len);
        if so_far + data.len() > limit {
            return Err(too_large(limit));
        }
        if so_far == 0 {
            first = data;
            if body.is_end_stream() {
                return Ok(first);
            }
            continue;
        }
        rest.get_or_insert_with(|| {
            let mut all = BytesMut::with_capacity(expected(&body, so_far + data.len(), limit));
            all.extend_from_slice(&first);
            all
        })
        .extend_from_slice(&data);
    }
    Ok(rest.map_or(first, BytesMut::freeze))
}

/// The next piece. Most are there already; for those that are not, the client has `stalled`.
async fn next(
    body: &mut Body,
    stalled: Duration,
) -> Result<Option<Result<Frame<Bytes>, axum::Error>>, Error> {
    let mut frame = body.frame();
    if let Poll::Ready(frame) = futures_util::poll!(&mut frame) {
        return Ok(frame);
    }
    tokio::time::timeout(stalled, frame).await.map_err(|_| {
        let what = format!("Parse error: no more of the request body came for {} s", stalled.as_secs());
        Error::new(Symbol::ParseError, what)
    })
}

/// How much room to make: what the client announced, within the limit.
fn expected(body: &Body, so_far: usize, limit: usize) -> usize {
    let left = body.size_hint().lower().min(limit as u64) as usize;
    so_far + left
}

fn too_large(limit: usize) -> Error {
    Error::new(Symbol::TooLarge, format!("The request body is larger than the limit of {limit} bytes"))
}

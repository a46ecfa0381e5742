//! Reading a request body, bounded in size and time.

use std::task::Poll;
use std::time::Duration;

use ::http::Response;
use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body::{Body as _, Frame};
use http_body_util::BodyExt;
use tidegate_protocol::{Error, Symbol};
use tidegate_service::Principal;
use tidegate_service::budget::{Budget, FREE, Hold, Purpose};
use tokio::time::{Instant, timeout_at};

use super::respond;

/// The whole body, or the answer that says why not. Most arrive as one piece, which is taken as it is; large ones are
/// counted before there is room made for them, for the principal that sends them.
pub(super) async fn read(
    mut body: Body,
    principal: &Principal,
    limit: usize,
    within: Duration,
    purpose: impl Fn() -> Purpose,
) -> Result<Bytes, Response<Body>> {
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large(limit));
    }
    let mut first = Bytes::new();
    let mut rest: Option<BytesMut> = None;
    let mut hold = None;
    let announced = body.size_hint().lower() as usize;
    if let Err(refused) = count(&mut hold, announced, principal, &purpose) {
        return Err(refuse(body, limit, within, refused).await);
    }
    // One for the whole body, however many pieces it comes in.
    let mut deadline = None;
    while let Some(frame) = next(&mut body, &mut deadline, within).await? {
        let frame = frame.map_err(|e| {
            tracing::debug!(error = %e, "the request body was cut off");
            let what = "Parse error: the request body was cut off";
            respond::error(None, &Error::new(Symbol::ParseError, what), None)
        })?;
        let Ok(data) = frame.into_data() else { continue };
        let so_far = rest.as_ref().map_or(first.len(), BytesMut::len);
        if so_far + data.len() > limit {
            return Err(too_large(limit));
        }
        if let Err(refused) = count(&mut hold, so_far + data.len(), principal, &purpose) {
            return Err(refuse(body, limit - so_far, within, refused).await);
        }
        if so_far == 0 {
            first = data;
            if body.is_end_stream() {
                return Ok(counted(hold, first));
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
    Ok(counted(hold, rest.map_or(first, BytesMut::freeze)))
}

/// Lets the rest of a body pass by, and then refuses it: an answer to somebody who is still sending gets lost.
async fn refuse(mut body: Body, limit: usize, within: Duration, error: Error) -> Response<Body> {
    let rest = async {
        let mut left = limit;
        while let Some(Ok(frame)) = body.frame().await {
            match left.checked_sub(frame.into_data().map_or(0, |data| data.len())) {
                Some(less) => left = less,
                None => break,
            }
        }
    };
    let _ = tokio::time::timeout(within, rest).await;
    respond::error(None, &error, None)
}

/// Sets aside what a body has or will have, if that is much.
fn count(
    hold: &mut Option<Hold>,
    bytes: usize,
    principal: &Principal,
    purpose: &impl Fn() -> Purpose,
) -> Result<(), Error> {
    if bytes <= FREE {
        return Ok(());
    }
    let budget = Budget::of_process();
    let hold = hold.get_or_insert_with(|| budget.hold_anyway(0).counted_for(budget.share_of(principal)));
    hold.grow_to(bytes, purpose())
}

fn counted(hold: Option<Hold>, body: Bytes) -> Bytes {
    match hold {
        Some(hold) => hold.keep(body),
        None => body,
    }
}

/// The next piece. Most are there already; the clock starts with the first that is not.
async fn next(
    body: &mut Body,
    deadline: &mut Option<Instant>,
    within: Duration,
) -> Result<Option<Result<Frame<Bytes>, axum::Error>>, Response<Body>> {
    let mut frame = body.frame();
    if let Poll::Ready(frame) = futures_util::poll!(&mut frame) {
        return Ok(frame);
    }
    let deadline = *deadline.get_or_insert_with(|| Instant::now() + within);
    timeout_at(deadline, frame).await.map_err(|_| {
        let what = format!("Request timeout: the request body did not arrive within {within:?}");
        respond::refused(408, &Error::new(Symbol::Timeout, what))
    })
}

/// How much room to make: what the client announced, within the limit.
fn expected(body: &Body, so_far: usize, limit: usize) -> usize {
    let left = body.size_hint().lower().min(limit as u64) as usize;
    so_far + left
}

fn too_large(limit: usize) -> Response<Body> {
    let what = format!("The request body is larger than the limit of {limit} bytes");
    respond::error(None, &Error::new(Symbol::TooLarge, what), None)
}

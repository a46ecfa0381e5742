//! [`Flow`]: the body of an answer together with the connection that it comes over.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body as _, Incoming};

use super::connection::HttpConnection;
use super::pool::Pool;

/// A body that nobody wants is read up to here to keep the connection; beyond, a new connection is cheaper.
const DISCARD_BYTES: usize = 64 * 1024;
/// The same in time.
pub(super) const DISCARD_TIME: Duration = Duration::from_secs(1);

/// A body in the making. At its end the connection goes back to the pool; dropped before, the connection is closed.
pub(super) struct Flow {
    body: Incoming,
    connection: Option<Box<HttpConnection>>,
    pool: Arc<Pool>,
}

impl Flow {
    pub(super) fn new(body: Incoming, connection: Box<HttpConnection>, pool: Arc<Pool>) -> Flow {
        let mut flow = Flow { body, connection: Some(connection), pool };
        flow.release_at_end();
        flow
    }

    /// Whose body it is, for error messages.
    pub(super) fn host(&self) -> &Arc<str> {
        self.pool.host()
    }

    /// How many bytes are still to come, as far as the server said.
    pub(super) fn announced(&self) -> u64 {
        self.body.size_hint().lower()
    }

    /// Whether everything has come.
    pub(super) fn is_ended(&self) -> bool {
        self.connection.is_none()
    }

    /// The next piece. May be dropped and called again without loss.
    pub(super) async fn data(&mut self) -> Option<Result<Bytes, hyper::Error>> {
        poll_fn(|cx| self.poll_data(cx)).await
    }

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, hyper::Error>>> {
        let Some(connection) = &mut self.connection else { return Poll::Ready(None) };
        // Asking first tells the connection that there is room; what it then reads is there for the second time.
        let body = &mut self.body;
        let mut frame = poll_body(body, &mut Context::from_waker(Waker::noop()));
        if frame.is_pending() {
            frame = connection.drive_until(cx, |cx| poll_body(body, cx));
        }
        match &frame {
            Poll::Pending => {}
            Poll::Ready(Some(Err(_))) => self.connection = None,
            Poll::Ready(None) => self.release(),
            Poll::Ready(Some(Ok(_))) => self.release_at_end(),
        }
        frame
    }

    /// Reads the rest if it is little and comes soon, so that the connection can be used again.
    pub(super) async fn discard(mut self) {
        if self.is_ended() {
            return;
        }
        let rest = async {
            let mut left = DISCARD_BYTES;
            while let Some(Ok(data)) = self.data().await {
                match left.checked_sub(data.len()) {
                    Some(less) => left = less,
                    None => break,
                }
            }
        };
        let _ = tokio::time::timeout(DISCARD_TIME, rest).await;
    }

    fn release_at_end(&mut self) {
        if self.body.is_end_stream() {
            self.release();
        }
    }

    fn release(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.put(connection);
        }
    }
}

/// The next piece that has any bytes. Trailers say nothing to us.
fn poll_body(body: &mut Incoming, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, hyper::Error>>> {
    loop {
        match Pin::new(&mut *body).poll_frame(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Ready(Some(Err(e))) => return Poll::Ready(Some(Err(e))),
            Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) if !data.is_empty() => return Poll::Ready(Some(Ok(data))),
                _ => {}
            },
        }
    }
}

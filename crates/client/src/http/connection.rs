//! [`HttpConnection`]: one HTTP/1.1 connection, driven by whoever waits for its answer, and [`Flow`]: the body of an answer
//! together with the connection that it comes over.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use ::http::{Request, Response};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::pool::Pool;

/// A body that nobody wants is read up to here to keep the connection; beyond, a new connection is cheaper.
const DISCARD_BYTES: usize = 64 * 1024;
/// The same in time.
pub(super) const DISCARD_TIME: Duration = Duration::from_secs(1);

/// What a connection runs over: TCP, perhaps with TLS to a proxy, perhaps with TLS to the server inside of that.
pub(super) type Io = MaybeHttpsStream<MaybeHttpsStream<TokioIo<TcpStream>>>;

pub(super) struct HttpConnection {
    sender: SendRequest<Full<Bytes>>,
    /// Does the reading and writing when polled. Gone once it is done: what still waits for it then fails.
    driver: Driver,
}

impl HttpConnection {
    /// A connection over `io`. In a box, because it is large and goes from hand to hand.
    pub(super) async fn new(io: Io) -> Result<Box<HttpConnection>, hyper::Error> {
        let (sender, driver) = http1::handshake(io).await?;
        Ok(Box::new(HttpConnection { sender, driver: Some(driver) }))
    }

    /// Whether the connection is ready for a request, as far as is known without looking.
    pub(super) fn is_ready(&self) -> bool {
        self.driver.is_some() && self.sender.is_ready()
    }

    /// Whether the connection is open and ready for a request. Notices that the server has closed it.
    pub(super) fn is_idle(&mut self) -> bool {
        // Nobody is to be woken on behalf of an idle connection.
        drive(&mut self.driver, &mut quiet());
        self.is_ready()
    }

    /// Reads and writes until `poll` has what it waits for, which nothing else can bring about.
    pub(super) fn drive_until<T>(
        &mut self,
        cx: &mut Context<'_>,
        poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        drive_until(&mut self.driver, cx, poll)
    }

    /// Sends a request and waits for the head of the answer. The error has the request if none of it was sent.
    pub(super) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Full<Bytes>>>> {
        let mut answer = pin!(self.sender.try_send_request(request));
        let driver = &mut self.driver;
        poll_fn(|cx| drive_until(driver, cx, |cx| answer.as_mut().poll(cx))).await
    }
}

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

type Driver = Option<http1::Connection<Io, Full<Bytes>>>;

/// Wakes nobody.
fn quiet() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// A connection wakes whoever waits for what it has just read, and that is the very task that drives it: each call
/// would be polled once more for nothing. So the waker is left with it only once there is nothing left but to wait.
fn drive_until<T>(
    driver: &mut Driver,
    cx: &mut Context<'_>,
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    drive(driver, &mut quiet());
    if let Poll::Ready(done) = poll(&mut quiet()) {
        return Poll::Ready(done);
    }
    drive(driver, cx);
    poll(&mut quiet())
}

/// Reads and writes as far as possible without waiting.
fn drive(driver: &mut Driver, cx: &mut Context<'_>) {
    if let Some(running) = driver
        && let Poll::Ready(done) = Pin::new(running).poll(cx)
    {
        if let Err(e) = done {
            tracing::debug!(error = %e, "an HTTP connection failed");
        }
        *driver = None;
    }
}

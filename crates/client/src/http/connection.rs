//! [`HttpConnection`]: one HTTP/1.1 connection, driven by whoever waits for its answer.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use ::http::{Request, Response};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

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

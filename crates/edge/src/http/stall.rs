//! Connections whose reader stalls are closed, so that they do not hold a call for ever.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::farewell::Unread;
use super::watch::Pulse;

pin_project! {
    /// A connection that fails when nothing can be written to it for `limit`.
    #[derive(Debug)]
    pub(super) struct StallGuarded<S> {
        #[pin]
        inner: S,
        limit: Duration,
        pulse: Arc<Pulse>,
        // Runs only while a write waits.
        stalled: Option<Pin<Box<Sleep>>>,
    }
}

impl<S> StallGuarded<S> {
    pub(super) fn new(inner: S, limit: Duration, pulse: Arc<Pulse>) -> Self {
        StallGuarded { inner, limit, pulse, stalled: None }
    }

    fn watch<T>(
        stalled: &mut Option<Pin<Box<Sleep>>>,
        limit: Duration,
        written: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            *stalled = None;
            return written;
        }
        let sleep = stalled.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + limit)));
        match sleep.as_mut().poll(cx) {
            Poll::Ready(()) => {
                tracing::info!(?limit, "closing a connection whose reader stalls");
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the reader stalled")))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unread> AsyncRead for StallGuarded<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut this = self.project();
        let before = buf.filled().len();
        let read = this.inner.as_mut().poll_read(cx, buf);
        this.pulse.read(buf.filled().len() - before);
        if this.pulse.is_to_end() {
            this.pulse.leaves_unread(read.is_pending() && this.inner.has_unread());
        }
        read
    }
}

impl<S: AsyncWrite> AsyncWrite for StallGuarded<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.project();
        this.pulse.writing(true);
        let written = this.inner.poll_write(cx, buf);
        Self::watch(this.stalled, *this.limit, written, cx)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.project();
        // hyper flushes when it has written everything it has.
        let flushed = this.inner.poll_flush(cx);
        this.pulse.writing(flushed.is_pending());
        Self::watch(this.stalled, *this.limit, flushed, cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_shutdown(cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.project();
        this.pulse.writing(true);
        let written = this.inner.poll_write_vectored(cx, bufs);
        Self::watch(this.stalled, *this.limit, written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

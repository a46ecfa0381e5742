//! [`Farewell`]: the orderly end of all connections.
//!
//! Told to end, hyper closes a connection between two requests at once, also when the next request has come and nobody has read it yet,
//! which under load is the rule. Here each connection looks first whether something has come: that is read, and answered as the last.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::rt::{Read, Write};
use hyper::server::conn::http1;
use pin_project_lite::pin_project;
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::serve::Http;
use super::watch::Pulse;

/// Tells all connections to end, and waits for that.
pub(super) struct Farewell(watch::Sender<()>);

impl Farewell {
    pub(super) fn new() -> Farewell {
        Farewell(watch::Sender::new(()))
    }

    /// For a connection to come.
    pub(super) fn guest(&self) -> Guest {
        Guest(self.0.subscribe())
    }

    /// Tells them, and waits until there are none.
    pub(super) async fn say(&self) {
        self.0.send_replace(());
        self.0.closed().await;
    }
}

/// One who is told.
pub(super) struct Guest(watch::Receiver<()>);

impl Guest {
    /// Serves a connection until it ends, or is told to.
    pub(super) fn serve<I, S>(
        mut self,
        connection: http1::Connection<I, S>,
        pulse: Arc<Pulse>,
    ) -> Serving<http1::Connection<I, S>>
    where
        I: Read + Write + Unpin,
        S: Http,
    {
        pulse.is_served();
        let told = Box::pin(async move {
            // An error means that nobody is left who could tell.
            let _ = self.0.changed().await;
            self
        });
        Serving { connection, pulse, ending: Ending::Untold { told } }
    }
}

/// How far a connection is on its way to the end.
enum Ending {
    Untold {
        told: Pin<Box<dyn Future<Output = Guest> + Send>>,
    },
    /// It was told, and has something to read first. Whoever waits for the end waits for the guest.
    Reading {
        guest: Guest,
    },
    /// It closes after the request that it is in.
    Told {
        _guest: Guest,
    },
}

pin_project! {
    /// A connection that can be told to end.
    pub(super) struct Serving<C> {
        #[pin]
        connection: C,
        pulse: Arc<Pulse>,
        ending: Ending,
    }
}

impl<I, S> Future for Serving<http1::Connection<I, S>>
where
    I: Read + Write + Unpin,
    S: Http,
{
    type Output = hyper::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        let mut this = self.project();
        if let Ending::Untold { told } = this.ending
            && let Poll::Ready(guest) = told.as_mut().poll(cx)
        {
            this.pulse.is_told();
            *this.ending = Ending::Reading { guest };
        }
        if let Poll::Ready(ended) = this.connection.as_mut().poll(cx) {
            return Poll::Ready(ended);
        }
        // What has come and was not read wakes this again.
        if matches!(this.ending, Ending::Reading { .. }) && !this.pulse.has_unread() {
            let told = Ending::Untold { told: Box::pin(std::future::pending()) };
            if let Ending::Reading { guest } = std::mem::replace(this.ending, told) {
                *this.ending = Ending::Told { _guest: guest };
            }
            this.pulse.is_ending();
            this.connection.as_mut().graceful_shutdown();
            return this.connection.poll(cx);
        }
        Poll::Pending
    }
}

/// A connection of which it can be said whether something has come that nobody has read.
pub(super) trait Unread {
    /// Whether there is. Asked only at the end.
    fn has_unread(&self) -> bool;
}

impl Unread for TcpStream {
    fn has_unread(&self) -> bool {
        peeks(&socket2::SockRef::from(self))
    }
}

#[cfg(unix)]
impl Unread for tokio::net::UnixStream {
    fn has_unread(&self) -> bool {
        peeks(&socket2::SockRef::from(self))
    }
}

/// Asked of the system itself: the runtime may not know yet.
fn peeks(socket: &socket2::Socket) -> bool {
    matches!(socket.peek(&mut [std::mem::MaybeUninit::uninit()]), Ok(1..))
}

#[cfg(feature = "tls")]
impl Unread for tokio_rustls::server::TlsStream<TcpStream> {
    fn has_unread(&self) -> bool {
        self.get_ref().0.has_unread()
    }
}

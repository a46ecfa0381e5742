//! Serving HTTP on a socket: HTTP/1.1, plain or over TLS, bounded, without a router on the way.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use ::http::header::CONNECTION;
use ::http::{HeaderValue, Request};
use axum::body::Body;
use hyper::server::conn::http1;
use hyper::service::{HttpService as HyperService, service_fn};
use hyper_util::rt::TokioIo;
use pin_project_lite::pin_project;
use tidegate_service::Door;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::farewell::{Farewell, Unread};
use super::peer::Peer;
use super::poll_when_woken::PollWhenWoken;
use super::settings::Settings;
use super::stall::StallGuarded;
#[cfg(feature = "tls")]
use super::tls;
use super::watch::{Patience, Pulse, UnderWay, Watch};
use super::{HttpService, respond};

/// The sockets that something is served on. Most have one; `localhost` has one for each kind of address.
#[derive(Debug)]
pub struct Listeners(Vec<Listener>);

#[derive(Debug)]
enum Listener {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixListener),
}

/// A new connection.
enum Accepted {
    Tcp(TcpStream, SocketAddr),
    #[cfg(unix)]
    Unix(UnixStream),
}

impl From<TcpListener> for Listeners {
    fn from(listener: TcpListener) -> Listeners {
        Listeners(vec![Listener::Tcp(listener)])
    }
}

impl From<Vec<TcpListener>> for Listeners {
    fn from(listeners: Vec<TcpListener>) -> Listeners {
        Listeners(listeners.into_iter().map(Listener::Tcp).collect())
    }
}

/// A socket of this machine that is a file. Who may connect is a matter of the file, and nothing is encrypted.
#[cfg(unix)]
impl From<UnixListener> for Listeners {
    fn from(listener: UnixListener) -> Listeners {
        Listeners(vec![Listener::Unix(listener)])
    }
}

impl Listener {
    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<Accepted>> {
        match self {
            Listener::Tcp(listener) => {
                let accepted = std::task::ready!(listener.poll_accept(cx));
                Poll::Ready(accepted.map(|(stream, peer)| Accepted::Tcp(stream, peer)))
            }
            #[cfg(unix)]
            Listener::Unix(listener) => {
                let accepted = std::task::ready!(listener.poll_accept(cx));
                Poll::Ready(accepted.map(|(stream, _)| Accepted::Unix(stream)))
            }
        }
    }
}

impl Listeners {
    /// The next connection to any of them.
    async fn accept(&self) -> io::Result<Accepted> {
        std::future::poll_fn(|cx| {
            let ready = self.0.iter().find_map(|listener| match listener.poll_accept(cx) {
                Poll::Ready(accepted) => Some(accepted),
                Poll::Pending => None,
            });
            ready.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

/// Serves a door on `listeners` behind the guard alone: everybody is the same caller.
pub async fn serve_door<D: Door>(
    door: D,
    listeners: impl Into<Listeners>,
    settings: Settings,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    serve(super::front(door, &settings, |site| site), listeners, settings, shutdown).await
}

/// Serves any HTTP service on `listeners` until `shutdown` is done; then `settings.closing` fires, there are no new
/// connections, and the rest have `settings.drain`. Over TLS if `settings.tls` has a certificate.
pub async fn serve<S: HttpService>(
    service: S,
    listeners: impl Into<Listeners>,
    settings: Settings,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let listeners = listeners.into();
    let shutdown = async {
        shutdown.await;
        settings.closing.cancel();
    };
    let places = Arc::new(Semaphore::new(settings.max_connections));
    let farewell = Farewell::new();
    let watch = Watch::start(Patience { head: settings.request_within, idle: settings.connection_idle });
    #[cfg(feature = "tls")]
    let _following =
        settings.tls.clone().map(|tls| tokio_util::task::AbortOnDropHandle::new(tokio::spawn(tls.follow())));
    // Whatever is left when this function ends is closed with it.
    let mut tasks = JoinSet::new();
    tokio::pin!(shutdown);
    let mut is_over = false;
    loop {
        let accepted = async {
            let stream = listeners.accept().await?;
            Ok::<_, io::Error>((stream, place(&places, &watch).await))
        };
        let (accepted, place) = tokio::select! {
            biased;
            () = &mut shutdown, if !is_over => {
                is_over = true;
                continue;
            }
            accepted = accepted => match accepted {
                Ok(accepted) => accepted,
                Err(e) => {
                    // Out of file descriptors, most likely: give connections time to end.
                    tracing::warn!(error = %e, "Cannot accept a connection");
                    if is_over {
                        break;
                    }
                    watch.make_room();
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            },
            // Whoever came before the end is let in.
            () = std::future::ready(()), if is_over => break,
        };
        while tasks.try_join_next().is_some() {}
        let (stream, peer) = match accepted {
            Accepted::Tcp(stream, peer) => (stream, peer),
            #[cfg(unix)]
            Accepted::Unix(stream) => {
                let pulse = Arc::new(Pulse::default());
                let peer = Peer::of_this_machine();
                let connection = connection(stream, peer, service.clone(), settings.stalled, pulse.clone());
                let connection = farewell.guest().serve(connection, pulse.clone());
                let task = tasks.spawn(async move {
                    ended(connection.await);
                    drop(place);
                });
                watch.add(&pulse, task);
                continue;
            }
        };
        // Small responses must not wait for more to come.
        let _ = stream.set_nodelay(true);
        let pulse = Arc::new(Pulse::default());
        #[cfg(feature = "tls")]
        if let Some(tls) = &settings.tls {
            let peer = Peer::new(&stream, peer, true, &settings);
            let handshake = tls::accept(tls.acceptor(), stream);
            let (service, stalled, of_connection) = (service.clone(), settings.stalled, pulse.clone());
            let guest = farewell.guest();
            // The handshake counts as the beginning of the first request: there is a watch over how long that takes.
            let task = tasks.spawn(async move {
                if let Some(stream) = handshake.await {
                    let connection = connection(stream, peer, service, stalled, of_connection.clone());
                    ended(guest.serve(connection, of_connection).await);
                }
                drop(place);
            });
            watch.add(&pulse, task);
            continue;
        }
        let peer = Peer::new(&stream, peer, false, &settings);
        let connection = connection(stream, peer, service.clone(), settings.stalled, pulse.clone());
        let connection = farewell.guest().serve(connection, pulse.clone());
        let task = tasks.spawn(async move {
            ended(connection.await);
            drop(place);
        });
        watch.add(&pulse, task);
    }
    drop(listeners);
    let ended = async {
        tokio::select! {
            () = farewell.say() => {}
            () = nothing_under_way(&watch) => {}
        }
    };
    if tokio::time::timeout(settings.drain, ended).await.is_err() {
        tracing::warn!("Some connections did not end in time and were closed");
    }
    Ok(())
}

/// How long to wait before looking again at connections that nobody can wait for.
const PAUSE: Duration = Duration::from_millis(50);

/// A place for a connection. At the limit the idlest one gives way; while all are in a request, others wait in the
/// listener's queue.
async fn place(places: &Arc<Semaphore>, watch: &Watch) -> Option<OwnedSemaphorePermit> {
    loop {
        if places.available_permits() == 0 {
            watch.make_room();
        }
        if let Ok(place) = tokio::time::timeout(PAUSE, places.clone().acquire_owned()).await {
            return place.ok();
        }
    }
}

/// Waits until no connection is in a request, or sends an answer. What is left has only begun to ask.
async fn nothing_under_way(watch: &Watch) {
    // Requests that have just come are under way in a moment.
    tokio::time::sleep(PAUSE).await;
    while watch.is_busy() {
        tokio::time::sleep(PAUSE).await;
    }
}

fn ended(connection: hyper::Result<()>) {
    if let Err(e) = connection {
        tracing::debug!(error = %e, "a connection failed");
    }
}

fn connection<S: HttpService, IO: AsyncRead + AsyncWrite + Unread + Unpin>(
    io: IO,
    peer: Peer,
    service: S,
    stalled: Duration,
    pulse: Arc<Pulse>,
) -> http1::Connection<TokioIo<StallGuarded<IO>>, impl Http + use<S, IO>> {
    let io = TokioIo::new(StallGuarded::new(io, stalled, pulse.clone()));
    // One for the whole connection, so that a layer can remember what it found out about the request before.
    let service = RefCell::new(service);
    let service = service_fn(move |mut request: Request<hyper::body::Incoming>| {
        let under_way = UnderWay::new(&pulse);
        let answer = match peer.introduce(&mut request) {
            Ok(()) => Ok(service.borrow_mut().call(request.map(Body::new))),
            Err(refusal) => Err(refusal),
        };
        PollWhenWoken::new(async move {
            let mut answer = match answer {
                Ok(answer) => {
                    let Ok(answer) = answer.await;
                    answer
                }
                Err(refusal) => refusal,
            };
            // Nobody should send another on a connection that is about to close.
            if under_way.is_last() {
                answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            if answer.extensions().get::<respond::Quiet>().is_some() {
                under_way.is_quiet();
            }
            Ok::<_, Infallible>(answer.map(|body| Answer { body, _under_way: under_way }))
        })
    });
    http1::Builder::new().max_buf_size(MAX_BUFFER).serve_connection(io, service)
}

/// How much of a connection hyper reads ahead, and so how long the headers of a request may be; and how much of an answer it
/// gathers before it waits for the reader.
const MAX_BUFFER: usize = 64 * 1024;

pin_project! {
    /// The body of an answer. Its request is under way as long as there is more of it.
    pub(super) struct Answer {
        #[pin]
        body: Body,
        _under_way: UnderWay,
    }
}

impl http_body::Body for Answer {
    type Data = <Body as http_body::Body>::Data;
    type Error = <Body as http_body::Body>::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Self::Data>, Self::Error>>> {
        self.project().body.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

/// What hyper calls a service, as far as it matters here.
pub(super) trait Http:
    HyperService<hyper::body::Incoming, ResBody = Answer, Error = Infallible, Future: Send>
{
}

impl<T: HyperService<hyper::body::Incoming, ResBody = Answer, Error = Infallible, Future: Send>> Http for T {}

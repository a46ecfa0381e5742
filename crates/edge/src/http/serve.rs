//! Serving an endpoint on a socket: plain HTTP/1.1, bounded, without a router on the way.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use ::http::{Request, Response};
use axum::body::Body;
use hyper::server::conn::http1;
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use tidegate_protocol::{Error, Symbol};
use tidegate_service::Door;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tower::Service;

use super::awake::Awake;
use super::pages::Page;
use super::settings::Settings;
use super::stall::StallGuarded;
use super::watch::{Pulse, Watch};
use super::{Endpoint, respond, router};

/// Serves `door` on `listener` until `shutdown` is done; then no new connections, and `settings.drain` for the rest.
pub async fn serve<D: Door>(
    door: D,
    listener: TcpListener,
    settings: Settings,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    if settings.http_sse {
        // More than one path: let the router tell them apart.
        return run(router(door, settings.clone()), listener, &settings, shutdown).await;
    }
    let endpoint = Endpoint::new(door, settings.clone());
    let site = Site { path: settings.path.as_str().into(), pages: settings.pages.clone(), endpoint };
    run(site, listener, &settings, shutdown).await
}

async fn run<S>(
    service: S,
    listener: TcpListener,
    settings: &Settings,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send>
        + Clone
        + Send
        + 'static,
{
    let places = Arc::new(Semaphore::new(settings.max_connections));
    let connections = GracefulShutdown::new();
    let watch = Watch::start(settings.stalled);
    // Whatever is left when this function ends is closed with it.
    let mut tasks = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        // At the limit new connections wait in the listener's queue.
        let accepted = async {
            let place = places.clone().acquire_owned().await;
            (listener.accept().await, place)
        };
        let (stream, place) = tokio::select! {
            (accepted, place) = accepted => match accepted {
                Ok((stream, _)) => (stream, place),
                Err(e) => {
                    // Out of file descriptors, most likely: give connections time to end.
                    tracing::warn!(error = %e, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            () = &mut shutdown => break,
        };
        while tasks.try_join_next().is_some() {}
        let pulse = Arc::new(Pulse::default());
        let connection =
            connections.watch(connection(stream, service.clone(), settings.stalled, pulse.clone()));
        let task = tasks.spawn(async move {
            if let Err(e) = connection.await {
                tracing::debug!(error = %e, "a connection ended badly");
            }
            drop(place);
        });
        watch.add(&pulse, task);
    }
    drop(listener);
    if tokio::time::timeout(settings.drain, connections.shutdown()).await.is_err() {
        tracing::warn!("some connections did not end in time and were closed");
    }
    Ok(())
}

fn connection<S>(
    stream: TcpStream,
    service: S,
    stalled: Duration,
    pulse: Arc<Pulse>,
) -> http1::Connection<TokioIo<StallGuarded<TcpStream>>, impl Http + use<S>>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send>
        + Clone
        + Send
        + 'static,
{
    // Small responses must not wait for more to come.
    let _ = stream.set_nodelay(true);
    let io = TokioIo::new(StallGuarded::new(stream, stalled, pulse.clone()));
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        pulse.begin();
        let answer = service.clone().call(request.map(Body::new));
        let pulse = pulse.clone();
        Awake::new(async move {
            let answer = answer.await;
            pulse.end();
            answer
        })
    });
    http1::Builder::new().serve_connection(io, service)
}

/// What hyper calls a service, as far as it matters here.
trait Http: HttpService<hyper::body::Incoming, ResBody = Body, Error = Infallible, Future: Send> {}

impl<T: HttpService<hyper::body::Incoming, ResBody = Body, Error = Infallible, Future: Send>> Http for T {}

/// One endpoint at one path, and the pages beside it.
struct Site<D> {
    path: Arc<str>,
    pages: Arc<[Page]>,
    endpoint: Endpoint<D>,
}

impl<D> Clone for Site<D> {
    fn clone(&self) -> Self {
        Site { path: self.path.clone(), pages: self.pages.clone(), endpoint: self.endpoint.clone() }
    }
}

impl<D: Door> Service<Request<Body>> for Site<D> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = <Endpoint<D> as Service<Request<Body>>>::Future;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let path = request.uri().path();
        if path == &*self.path || self.pages.iter().any(|page| page.path() == path) {
            return self.endpoint.call(request);
        }
        let what = format!("Not found: the MCP endpoint is at {}", self.path);
        let response = respond::refused(404, &Error::new(Symbol::InvalidRequest, what));
        Box::pin(std::future::ready(Ok(response)))
    }
}

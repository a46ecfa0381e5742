//! [`Dial`]: makes connections, to addresses that the guard allows or through a proxy, plain or with TLS.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tower::{Service, ServiceExt};
use url::{Host, Url};

use crate::proxy::ProxyRoute;
use crate::{Error, Guard, Proxies, tls};

/// Streams may be quiet for a long time; this finds out when the other side is gone without a word.
const KEEP_ALIVE: Duration = Duration::from_secs(60);

/// TCP, perhaps with TLS to a proxy, perhaps with TLS to the server inside of that.
type Stream = MaybeHttpsStream<MaybeHttpsStream<TokioIo<TcpStream>>>;

/// Opens connections.
#[derive(Clone)]
pub(crate) struct Dial {
    pub(crate) guard: Guard,
    pub(crate) proxies: Proxies,
    /// How long it may take, TLS and proxy included.
    pub(crate) within: Duration,
    /// Whether servers are asked for HTTP/2.
    pub(crate) http2: bool,
}

impl Dial {
    async fn open(&self, uri: &Uri) -> Result<Io, Error> {
        let url = Url::parse(&uri.to_string()).map_err(|_| Error::Request("the address is not a URL"))?;
        let route = self.proxies.route(&url)?;
        match tokio::time::timeout(self.within, self.stream(uri, &url, &route)).await {
            Ok(stream) => Ok(Io { stream: stream?, forwarded: matches!(route, ProxyRoute::Forward { .. }) }),
            Err(_) => Err(Error::ConnectTimeout(self.within)),
        }
    }

    async fn stream(&self, uri: &Uri, url: &Url, route: &ProxyRoute) -> Result<Stream, Error> {
        let failed = |error: Box<dyn std::error::Error + Send + Sync>| Error::connect(&*error);
        let host = url.host().ok_or(Error::Request("the address names no host"))?;
        // What a name stands for is the business of a proxy. An address is not.
        if *route != ProxyRoute::Direct && !matches!(host, Host::Domain(_)) {
            self.guard.addresses(&host).await?;
        }
        match route {
            ProxyRoute::Direct => {
                let checked = Checked(self.guard.addresses(&host).await?);
                let mut http = HttpConnector::new_with_resolver(checked);
                self.set_up(&mut http);
                if url.scheme() == "https" {
                    let stream = HttpsConnector::from((http, self.tls()?)).oneshot(uri.clone()).await;
                    return stream.map(Stream::Http).map_err(failed);
                }
                let stream = http.oneshot(uri.clone()).await.map_err(|error| Error::connect(&error))?;
                Ok(Stream::Http(MaybeHttpsStream::Http(stream)))
            }
            ProxyRoute::Forward { proxy, .. } => {
                let stream = HttpsConnector::from((self.plain(), tls()?)).oneshot(proxy.clone()).await;
                stream.map(Stream::Http).map_err(failed)
            }
            ProxyRoute::Tunnel { proxy, credentials } => {
                let mut tunnel = Tunnel::new(proxy.clone(), HttpsConnector::from((self.plain(), tls()?)));
                if let Some(credentials) = credentials {
                    tunnel = tunnel.with_auth(credentials.clone());
                }
                HttpsConnector::from((tunnel, self.tls()?)).oneshot(uri.clone()).await.map_err(failed)
            }
        }
    }

    /// How servers are spoken to.
    fn tls(&self) -> Result<Arc<ClientConfig>, Error> {
        let shared = tls()?;
        if !self.http2 {
            return Ok(shared);
        }
        let mut config = ClientConfig::clone(&shared);
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Arc::new(config))
    }

    fn plain(&self) -> HttpConnector {
        let mut http = HttpConnector::new();
        self.set_up(&mut http);
        http
    }

    fn set_up<R>(&self, http: &mut HttpConnector<R>) {
        http.enforce_http(false);
        // Small requests must not wait for more to come.
        http.set_nodelay(true);
        http.set_keepalive(Some(KEEP_ALIVE));
        http.set_keepalive_interval(Some(KEEP_ALIVE / 4));
        // Of several addresses, one that does not answer must not use up all the time.
        http.set_connect_timeout(Some(self.within));
    }
}

impl Service<Uri> for Dial {
    type Response = Io;
    type Error = Error;
    type Future = BoxFuture<'static, Result<Io, Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let dial = self.clone();
        Box::pin(async move { dial.open(&uri).await })
    }
}

/// What a name was found to stand for, and nothing else.
#[derive(Clone)]
struct Checked(Vec<SocketAddr>);

impl Service<Name> for Checked {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = std::future::Ready<io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Name) -> Self::Future {
        std::future::ready(Ok(self.0.clone().into_iter()))
    }
}

/// A connection that knows whether it goes to a proxy which has to be told where requests go.
pub(crate) struct Io {
    stream: Stream,
    forwarded: bool,
}

impl Connection for Io {
    fn connected(&self) -> Connected {
        Connected::new().proxy(self.forwarded)
    }
}

impl Read for Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl Write for Io {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
    }
}

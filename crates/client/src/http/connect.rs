//! [`Connector`]: how to get a connection to one origin: directly or through a proxy, plain or with TLS.

use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderValue, Uri};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use tidegate_protocol::{Error, Symbol};
use tidegate_web::{Proxies, ProxyRoute};
use tokio::net::TcpStream;
use tower::ServiceExt;
use url::Url;

use super::connection::{HttpConnection, Io};
use super::failure::{self, BoxError};

/// Quiet streams may last for hours; this finds out when the other side is gone without a word.
const KEEP_ALIVE: Duration = Duration::from_secs(60);

/// What the process and the system around it say about connecting.
pub(super) struct Outside {
    proxies: Proxies,
    /// The certificates to trust; those of the system if not set.
    tls: Option<Arc<ClientConfig>>,
}

impl Outside {
    /// `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, and the system's certificates.
    pub(super) fn from_env() -> Outside {
        Outside { proxies: Proxies::from_env(), tls: None }
    }

    #[cfg(test)]
    pub(super) fn of(proxies: impl Into<Proxies>, tls: Option<Arc<ClientConfig>>) -> Outside {
        Outside { proxies: proxies.into(), tls }
    }

    fn tls(&self) -> Result<Arc<ClientConfig>, Error> {
        self.tls.clone().map_or_else(tidegate_web::tls, Ok).map_err(|e| {
            Error::new(Symbol::Unavailable, "The server cannot be reached")
                .with_detail(e.to_string())
                .unexecuted()
        })
    }
}

/// Makes connections to one origin.
pub(super) struct Connector {
    /// The server, for error messages: the host, with the port where that is not the usual one.
    host: Arc<str>,
    uri: Uri,
    route: ProxyRoute,
    http: HttpConnector,
    /// Only where there is TLS to do.
    tls: Option<Arc<ClientConfig>>,
    timeout: Duration,
}

impl Connector {
    /// A connector to where `url` is. `uri` is the same address.
    pub(super) fn new(
        url: &Url,
        uri: &Uri,
        outside: &Outside,
        timeout: Duration,
    ) -> Result<Connector, Error> {
        let route =
            outside.proxies.route(url).map_err(|e| Error::new(Symbol::InvalidParams, e.to_string()))?;
        let over_tls = |uri: &Uri| uri.scheme_str() == Some("https");
        let needs_tls = match &route {
            ProxyRoute::Forward { proxy, .. } => over_tls(proxy),
            ProxyRoute::Direct | ProxyRoute::Tunnel { .. } => over_tls(uri),
        };
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        // Small requests must not wait for more to come.
        http.set_nodelay(true);
        http.set_keepalive(Some(KEEP_ALIVE));
        http.set_keepalive_interval(Some(KEEP_ALIVE / 4));
        http.set_connect_timeout(Some(timeout));
        Ok(Connector {
            host: uri.authority().map_or("", |a| a.as_str()).into(),
            uri: uri.clone(),
            route,
            http,
            tls: if needs_tls { Some(outside.tls()?) } else { None },
            timeout,
        })
    }

    /// The server, for error messages.
    pub(super) fn host(&self) -> &Arc<str> {
        &self.host
    }

    /// Whether requests go to a proxy that forwards them, and with which credentials for it.
    pub(super) fn forwards(&self) -> Option<Option<&HeaderValue>> {
        match &self.route {
            ProxyRoute::Forward { credentials, .. } => Some(credentials.as_ref()),
            ProxyRoute::Direct | ProxyRoute::Tunnel { .. } => None,
        }
    }

    /// A new connection. Whatever goes wrong here, no request was sent.
    pub(super) async fn open(&self) -> Result<Box<HttpConnection>, Error> {
        let failed = |e: BoxError| failure::connect(&self.host, self.proxy(), &*e);
        let io = match tokio::time::timeout(self.timeout, self.stream()).await {
            Ok(stream) => stream.map_err(failed)?,
            Err(_) => return Err(failure::connect_timeout(&self.host, self.proxy(), self.timeout)),
        };
        HttpConnection::new(io).await.map_err(|e| failed(e.into()))
    }

    async fn stream(&self) -> Result<Io, BoxError> {
        match (&self.route, &self.tls) {
            (ProxyRoute::Direct, _) => self.near(&self.uri).await.map(MaybeHttpsStream::Http),
            (ProxyRoute::Forward { proxy, .. }, _) => self.near(proxy).await.map(MaybeHttpsStream::Http),
            (ProxyRoute::Tunnel { proxy, credentials }, Some(tls)) => {
                let mut tunnel = Tunnel::new(proxy.clone(), self.over(tls));
                if let Some(credentials) = credentials {
                    tunnel = tunnel.with_auth(credentials.clone());
                }
                HttpsConnector::from((tunnel, tls.clone())).oneshot(self.uri.clone()).await
            }
            (ProxyRoute::Tunnel { .. }, None) => Err("a tunnel without TLS".into()),
        }
    }

    /// A connection to where the first hop goes.
    async fn near(&self, to: &Uri) -> Result<MaybeHttpsStream<TokioIo<TcpStream>>, BoxError> {
        match &self.tls {
            Some(tls) => self.over(tls).oneshot(to.clone()).await,
            None => Ok(MaybeHttpsStream::Http(self.http.clone().oneshot(to.clone()).await?)),
        }
    }

    fn over(&self, tls: &Arc<ClientConfig>) -> HttpsConnector<HttpConnector> {
        HttpsConnector::from((self.http.clone(), tls.clone()))
    }

    /// The proxy on the way, for error messages.
    fn proxy(&self) -> Option<&str> {
        match &self.route {
            ProxyRoute::Direct => None,
            ProxyRoute::Forward { proxy, .. } | ProxyRoute::Tunnel { proxy, .. } => {
                proxy.authority().map(|a| a.as_str())
            }
        }
    }
}

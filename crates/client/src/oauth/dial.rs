//! [`Dialer`]: connections for [`Http`](super::http::Http), to addresses within a [`Reach`].

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::http::Uri;
use futures_util::future::BoxFuture;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::{Service, ServiceExt};
use url::Host;

use super::reach::{Reach, is_local};
use crate::http::system_tls;

/// What a connection runs over: TCP, perhaps with TLS to a proxy, perhaps with TLS to the server inside of that.
pub(super) type Io = MaybeHttpsStream<MaybeHttpsStream<TokioIo<TcpStream>>>;
pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Opens connections.
pub(super) struct Dialer {
    pub(super) reach: Arc<Reach>,
    proxies: Matcher,
}

impl Dialer {
    /// Connections go no farther than `reach`, and through the proxy that the environment names.
    pub(super) fn new(reach: Reach) -> Dialer {
        Dialer { reach: Arc::new(reach), proxies: Matcher::from_env() }
    }

    /// A connection to where `uri` is.
    pub(super) async fn open(&self, uri: &Uri) -> Result<Io, BoxError> {
        let mut http = HttpConnector::new_with_resolver(Lookup(self.reach.clone()));
        http.enforce_http(false);
        if uri.scheme_str() == Some("http") {
            return Ok(Io::Http(MaybeHttpsStream::Http(http.oneshot(uri.clone()).await?)));
        }
        let tls = system_tls()?;
        // This machine is never behind a proxy: a proxy could not find it.
        let here = Host::parse(uri.host().unwrap_or_default()).is_ok_and(|host| match &host {
            Host::Domain(name) => is_local(&Host::Domain(name)),
            Host::Ipv4(ip) => ip.is_loopback(),
            Host::Ipv6(ip) => ip.is_loopback(),
        });
        let Some(proxy) = self.proxies.intercept(uri).filter(|_| !here) else {
            return Ok(Io::Http(HttpsConnector::from((http, tls)).oneshot(uri.clone()).await?));
        };
        // What the name stands for is the business of the proxy.
        let mut plain = HttpConnector::new();
        plain.enforce_http(false);
        let mut tunnel = Tunnel::new(proxy.uri().clone(), HttpsConnector::from((plain, tls.clone())));
        if let Some(credentials) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credentials.clone());
        }
        HttpsConnector::from((tunnel, tls)).oneshot(uri.clone()).await
    }
}

/// Looks up names, and forgets the addresses that are out of reach. Checking the name alone would not do: who owns a
/// name can let it stand for any address, and for another one a second later.
#[derive(Clone)]
struct Lookup(Arc<Reach>);

impl Service<Name> for Lookup {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let reach = self.0.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let near: Vec<_> =
                found.filter(|address| reach.allows(address.ip()) || reach.is_home(name.as_str())).collect();
            if near.is_empty() {
                return Err(io::Error::other(
                    "its name stands for a private address, and the server is not at one",
                ));
            }
            Ok(near.into_iter())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use url::Url;

    #[tokio::test]
    async fn names_of_private_addresses_lead_nowhere() {
        // Any name of this machine will do: no connection is made.
        let name: Name = "localhost".parse().unwrap();
        let far = Reach::around(&Url::parse("https://192.0.2.1/").unwrap()).await;
        assert!(Lookup(Arc::new(far)).call(name.clone()).await.is_err());
        let near = Reach::around(&Url::parse("http://127.0.0.1:1/").unwrap()).await;
        assert!(Lookup(Arc::new(near)).call(name).await.is_ok());
    }
}

//! [`Proxies`]: which way to go to an address: directly, or through a proxy of the environment.

use std::fmt;
use std::sync::Arc;

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::Matcher;
use url::{Host, Url};

use crate::Error;

/// The proxies that requests go through.
#[derive(Clone)]
pub struct Proxies(Option<Arc<Matcher>>);

/// How requests get to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyRoute {
    /// Straight there.
    Direct,
    /// A proxy takes plain requests and passes them on.
    Forward {
        /// Where the proxy is.
        proxy: Uri,
        /// What it wants in `Proxy-Authorization`.
        credentials: Option<HeaderValue>,
    },
    /// A proxy passes on bytes, so that TLS reaches the server itself.
    Tunnel {
        /// Where the proxy is.
        proxy: Uri,
        /// What it wants in `Proxy-Authorization`.
        credentials: Option<HeaderValue>,
    },
}

impl Proxies {
    /// `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, as curl understands them.
    pub fn from_env() -> Proxies {
        Matcher::from_env().into()
    }

    /// No proxy, whatever the environment says: for requests whose addresses must be checked here.
    pub fn none() -> Proxies {
        Proxies(None)
    }

    /// The way to `url`. This machine is never behind a proxy: a proxy could not find it.
    pub fn route(&self, url: &Url) -> Result<ProxyRoute, Error> {
        let Some(matcher) = self.0.as_ref().filter(|_| !url.host().is_some_and(|host| is_local(&host)))
        else {
            return Ok(ProxyRoute::Direct);
        };
        let uri: Uri = url.as_str().parse().map_err(|_| Error::Request("the address is not a valid URI"))?;
        let Some(found) = matcher.intercept(&uri) else { return Ok(ProxyRoute::Direct) };
        let proxy = found.uri().clone();
        if !matches!(proxy.scheme_str(), Some("http" | "https")) {
            let host = url.host_str().unwrap_or_default().to_owned();
            return Err(Error::Proxy { proxy: proxy.to_string(), host });
        }
        let credentials = found.basic_auth().cloned();
        Ok(match url.scheme() {
            "https" => ProxyRoute::Tunnel { proxy, credentials },
            _ => ProxyRoute::Forward { proxy, credentials },
        })
    }
}

/// Whether the host is this machine by its very name.
pub fn is_local(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
        Host::Ipv4(ip) => ip.is_loopback(),
        Host::Ipv6(ip) => ip.is_loopback(),
    }
}

impl From<Matcher> for Proxies {
    fn from(matcher: Matcher) -> Proxies {
        Proxies(Some(Arc::new(matcher)))
    }
}

impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Proxies").field(&self.0).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_its_way() {
        let proxies =
            Matcher::builder().http("http://u:p@plain:1").https("https://secure:2").no("spared.test");
        let proxies = Proxies::from(proxies.build());
        let route = |url: &str| proxies.route(&Url::parse(url).unwrap()).unwrap();
        let ProxyRoute::Forward { proxy, credentials } = route("http://a.test/x") else { panic!() };
        assert_eq!(
            (proxy.to_string().as_str(), credentials.unwrap().as_bytes()),
            ("http://plain:1/", &b"Basic dTpw"[..])
        );
        assert!(matches!(route("https://a.test/"), ProxyRoute::Tunnel { credentials: None, .. }));
        for direct in [
            "https://spared.test/",
            "http://x.spared.test/",
            "http://localhost:1/",
            "https://127.0.0.9/",
            "http://[::1]/",
        ] {
            assert_eq!(route(direct), ProxyRoute::Direct, "{direct}");
        }
        assert_eq!(
            Proxies::none().route(&Url::parse("http://a.test/").unwrap()).unwrap(),
            ProxyRoute::Direct
        );
    }

    #[test]
    fn other_kinds_of_proxies_are_refused_with_advice() {
        let proxies = Proxies::from(Matcher::builder().all("socks5://p:1").build());
        let error = proxies.route(&Url::parse("https://a.test/").unwrap()).unwrap_err();
        assert!(error.to_string().contains("add a.test to NO_PROXY"), "{error}");
    }
}

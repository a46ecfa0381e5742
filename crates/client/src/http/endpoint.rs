//! [`Endpoint`]: one address with everything that its requests have in common, made once.

use std::sync::Arc;

use ::http::{HeaderMap, HeaderValue, Method, Request, Uri, header};
use bytes::Bytes;
use http_body_util::Full;
use tidegate_protocol::{Error, Revision, Symbol};
use url::Url;

use super::HttpSettings;
use super::connect::{Connector, Outside};
use super::headers::{Configured, Headers, METHOD, PROTOCOL_VERSION};
use super::pool::Pool;

/// The requests that the transports make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Post,
    Get,
    Delete,
}

impl Verb {
    fn method(self) -> Method {
        match self {
            Verb::Post => Method::POST,
            Verb::Get => Method::GET,
            Verb::Delete => Method::DELETE,
        }
    }
}

/// An address, ready to send requests to.
pub(super) struct Endpoint {
    pub(super) url: Url,
    pub(super) pool: Arc<Pool>,
    /// What the request line says.
    target: Uri,
    /// The headers of each verb.
    post: HeaderMap,
    /// Those of a POST that calls a tool in the newest revision: what most requests are.
    tool: HeaderMap,
    get: HeaderMap,
    delete: HeaderMap,
}

impl Endpoint {
    /// A place at `url`, with the connections of `beside` if that is at the same origin.
    pub(super) fn new(
        mut url: Url,
        beside: Option<&Endpoint>,
        configured: &Configured,
        outside: &Outside,
        settings: &HttpSettings,
    ) -> Result<Endpoint, Error> {
        let uri = check(&mut url)?;
        let pool = match beside.filter(|endpoint| same_origin(&endpoint.url, &url)) {
            Some(endpoint) => endpoint.pool.clone(),
            None => {
                let connector = Connector::new(&url, &uri, outside, settings.connect_timeout)?;
                Pool::new(connector, settings.max_idle)
            }
        };
        let mut base = HeaderMap::with_capacity(16);
        base.insert(header::HOST, host(&url)?);
        base.insert(header::USER_AGENT, settings.user_agent.clone());
        configured.apply(&mut base);
        let target = match pool.connector().forwards() {
            None => uri.path_and_query().map_or(uri.clone(), |path| Uri::from(path.clone())),
            // A proxy that forwards plain requests wants to know where to.
            Some(credentials) => {
                if let Some(credentials) = credentials {
                    base.insert(header::PROXY_AUTHORIZATION, credentials.clone());
                }
                uri
            }
        };
        let with = |accept, json| {
            let mut map = base.clone();
            map.insert(header::ACCEPT, HeaderValue::from_static(accept));
            if json {
                map.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            }
            map
        };
        let post = with("application/json, text/event-stream", true);
        let mut tool = post.clone();
        tool.insert(PROTOCOL_VERSION, HeaderValue::from_static(Revision::LATEST_MODERN.as_str()));
        tool.insert(METHOD, HeaderValue::from_static("tools/call"));
        Ok(Endpoint {
            post,
            tool,
            get: with("text/event-stream", false),
            delete: with("application/json, text/event-stream", false),
            url,
            pool,
            target,
        })
    }

    /// A request to here.
    pub(super) fn request(
        &self,
        verb: Verb,
        body: &Bytes,
        headers: &Headers,
        authorization: Option<&HeaderValue>,
    ) -> Request<Full<Bytes>> {
        let mut map = match verb {
            Verb::Post if headers.calls_tool() => self.tool.clone(),
            Verb::Post => self.post.clone(),
            Verb::Get => self.get.clone(),
            Verb::Delete => self.delete.clone(),
        };
        map.reserve(headers.len() + usize::from(authorization.is_some()));
        headers.apply(&mut map);
        if let Some(value) = authorization {
            map.insert(header::AUTHORIZATION, value.clone());
        }
        let mut request = Request::new(Full::new(body.clone()));
        *request.method_mut() = verb.method();
        *request.uri_mut() = self.target.clone();
        *request.headers_mut() = map;
        request
    }
}

/// Whether both are at the same scheme, host and port.
pub(super) fn same_origin(a: &Url, b: &Url) -> bool {
    a.scheme() == b.scheme()
        && a.host_str() == b.host_str()
        && a.port_or_known_default() == b.port_or_known_default()
}

/// Where a redirect leads, if it may be followed: within the origin, or from http to https of the same host.
pub(super) fn redirect(from: &Url, location: &str) -> Option<Url> {
    let mut to = from.join(location).ok()?;
    // Credentials come from us, never from a server.
    to.set_username("").ok()?;
    to.set_password(None).ok()?;
    let upgrade = || {
        let ports = (from.port_or_known_default(), to.port_or_known_default());
        from.scheme() == "http"
            && to.scheme() == "https"
            && from.host_str() == to.host_str()
            // Another port of the same host may be anybody's.
            && (ports == (Some(80), Some(443)) || ports.0 == ports.1)
    };
    (same_origin(from, &to) || upgrade()).then_some(to)
}

/// The address as a `Uri`, if requests can go there.
fn check(url: &mut Url) -> Result<Uri, Error> {
    let wrong = |what: String| Err(Error::new(Symbol::InvalidParams, what));
    if !matches!(url.scheme(), "http" | "https") {
        return wrong(format!(
            "an address that starts with {}: cannot be reached over HTTP; it must start with http:// or https://",
            url.scheme()
        ));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return wrong(format!(
            "the address of {} has a user name or password in it; put them into an Authorization header instead",
            url.host_str().unwrap_or_default()
        ));
    }
    url.set_fragment(None);
    match url.as_str().parse() {
        Ok(uri) => Ok(uri),
        Err(e) => wrong(format!(
            "the address of {} cannot be used in an HTTP request: {e}",
            url.host_str().unwrap_or_default()
        )),
    }
}

/// The `Host` header: the port only where it is not the usual one, which `Url` leaves out by itself.
fn host(url: &Url) -> Result<HeaderValue, Error> {
    let host = url.host_str().unwrap_or_default();
    let value = match url.port() {
        Some(port) => HeaderValue::from_maybe_shared(Bytes::from(format!("{host}:{port}"))),
        None => HeaderValue::from_str(host),
    };
    value.map_err(|_| Error::new(Symbol::InvalidParams, format!("{host:?} is not a host name")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_stay_with_the_server() {
        for (from, location, to) in [
            ("http://a/mcp", "/mcp/", Some("http://a/mcp/")),
            ("http://a/mcp?key=1", "mcp/?key=1", Some("http://a/mcp/?key=1")),
            ("http://a/mcp", "http://A:80/x", Some("http://a/x")),
            ("http://a/mcp", "http://evil@a/x", Some("http://a/x")),
            ("http://a/mcp", "https://a/mcp", Some("https://a/mcp")),
            ("http://a:8443/mcp", "https://a:8443/mcp", Some("https://a:8443/mcp")),
            ("http://a/mcp", "https://a:8443/mcp", None),
            ("http://a:8080/mcp", "https://a/mcp", None),
            ("https://a/mcp", "http://a/mcp", None),
            ("http://a/mcp", "http://b/mcp", None),
            ("http://a/mcp", "https://b/mcp", None),
            ("http://a/mcp", "//b/mcp", None),
            ("http://a/mcp", "http://a:81/mcp", None),
            ("http://a/mcp", "file:///etc/passwd", None),
            ("http://a/mcp", "http://[", None),
        ] {
            let got = redirect(&Url::parse(from).unwrap(), location);
            assert_eq!(got.as_ref().map(Url::as_str), to, "{from} to {location}");
        }
    }

    #[test]
    fn addresses_are_checked() {
        for (url, uri) in [
            ("http://a/mcp#part", Ok("http://a/mcp")),
            ("http://a:80", Ok("http://a/")),
            ("https://[::1]:8443/x?y=%20z", Ok("https://[::1]:8443/x?y=%20z")),
            ("ftp://a/mcp", Err("ftp:")),
            ("file:///mcp", Err("file:")),
            ("http://me:secret@a/mcp", Err("Authorization")),
        ] {
            match (check(&mut Url::parse(url).unwrap()), uri) {
                (Ok(got), Ok(uri)) => assert_eq!(got, uri),
                (Err(got), Err(part)) => {
                    assert!(got.message().contains(part) && !got.message().contains("secret"), "{got:?}");
                }
                (got, _) => panic!("{url}: {got:?}"),
            }
        }
    }
}

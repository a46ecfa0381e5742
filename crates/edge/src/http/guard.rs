//! The guard: the outermost HTTP layer. Host and Origin are checked, so that no web page reaches a local server through DNS
//! rebinding, and web pages of listed origins get what CORS wants.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::http::header::{HOST, ORIGIN};
use ::http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use axum::body::Body;
use pin_project_lite::pin_project;
use tidegate_protocol::{Error, Symbol};
use tower::{Layer, Service};

use super::client_address::ClientAddress;
use super::refused_hosts::RefusedHosts;
use super::settings::Settings;
use super::{HttpService, cors, respond};

/// How many bytes of a name that is not ours are repeated.
const LONGEST: usize = 100;

/// Marks a request that did not come over the loopback interface. The names of this machine mean another one to whoever
/// sent it.
#[derive(Clone, Copy)]
pub(super) struct OffLoopback;

/// Puts a [`Guard`] around HTTP services.
#[derive(Debug, Clone)]
pub struct GuardLayer(Arc<Rules>);

/// What all guards of a front share.
#[derive(Debug)]
struct Rules {
    settings: Settings,
    refused: RefusedHosts,
}

impl GuardLayer {
    /// A guard that lets in what these settings allow: `hosts`, `origins`, `any_host`.
    pub fn new(settings: &Settings) -> GuardLayer {
        GuardLayer(Arc::new(Rules { settings: settings.clone(), refused: RefusedHosts::default() }))
    }
}

impl<S> Layer<S> for GuardLayer {
    type Service = Guard<S>;

    fn layer(&self, inner: S) -> Guard<S> {
        Guard { inner, rules: self.0.clone(), client: None, is_untold: true }
    }
}

/// Refuses requests whose `Host` or `Origin` is not ours, whatever they are for, and answers preflights of web pages.
#[derive(Debug, Clone)]
pub struct Guard<S> {
    pub(super) inner: S,
    rules: Arc<Rules>,
    /// Where the connection comes from: not every request of it says so.
    client: Option<ClientAddress>,
    /// Whether the inside has not been told.
    is_untold: bool,
}

impl<S> Guard<S> {
    /// Remembers where a request comes from, or adds that to it.
    #[cold]
    fn introduce(&mut self, request: &mut Request<Body>) {
        match (request.extensions().get::<ClientAddress>(), self.client) {
            (Some(client), _) => self.client = Some(*client),
            (None, Some(client)) => drop(request.extensions_mut().insert(client)),
            (None, None) => {}
        }
    }
}

impl<S: HttpService> Service<Request<Body>> for Guard<S> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = GuardFuture<S::Future>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let page = cors::Page::of(&request, &self.rules.settings.origins);
        let checked = check(&request, &self.rules.settings);
        if self.is_untold || page.is_some() || checked.is_err() {
            self.introduce(&mut request);
            // Pages are served by a clone.
            self.is_untold = page.is_some() || checked.is_err();
        }
        let checked = checked.map_err(|error| {
            self.rules.refused.tell(error.message(), self.client);
            respond::refused(403, &error)
        });
        match (page, checked) {
            (None, Ok(())) => GuardFuture::Passed { inner: self.inner.call(request) },
            (None, Err(refusal)) => GuardFuture::Refused { response: Some(refusal) },
            (Some(page), Ok(())) => {
                let mut inner = self.inner.clone();
                let answer = page.answer(request, async move |request| {
                    let Ok(response) = inner.call(request).await;
                    response
                });
                GuardFuture::Page { answer: Box::pin(answer) }
            }
            // Also a preflight: under a name that is not ours nothing is allowed.
            (Some(page), Err(refusal)) => GuardFuture::Refused { response: Some(page.may_read(refusal)) },
        }
    }
}

pin_project! {
    /// The future of [`Guard`].
    #[project = Project]
    #[allow(missing_docs)]
    pub enum GuardFuture<F> {
        /// Not let in.
        Refused { response: Option<Response<Body>> },
        /// Let in.
        Passed { #[pin] inner: F },
        /// A web page, whose answer says who may read it.
        Page { answer: Pin<Box<dyn Future<Output = Response<Body>> + Send>> },
    }
}

impl<F: Future<Output = Result<Response<Body>, Infallible>>> Future for GuardFuture<F> {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            Project::Passed { inner } => inner.poll(cx),
            Project::Page { answer } => answer.as_mut().poll(cx).map(Ok),
            Project::Refused { response } => {
                Poll::Ready(Ok(response.take().unwrap_or_else(|| Response::new(Body::empty()))))
            }
        }
    }
}

/// Refuses requests whose `Host` or `Origin` is not ours (2026-07-28 streamable-http, Security).
fn check<B>(request: &Request<B>, settings: &Settings) -> Result<(), Error> {
    if settings.any_host {
        return Ok(());
    }
    let forbidden = |what: String| Err(Error::new(Symbol::InvalidRequest, what));
    let (Ok(host), Ok(origin)) = (only(request.headers(), HOST), only(request.headers(), ORIGIN)) else {
        return forbidden("Forbidden: the Host or Origin header is repeated".to_owned());
    };
    let is_local = request.extensions().get::<OffLoopback>().is_none();
    let is_ours = |name: &str| is_ours(name, settings, is_local);
    // The request target may have a host, too, as it is written for proxies: whoever reads either is told the same.
    let hosts = [host.map(|h| h.to_str().unwrap_or("")), request.uri().authority().map(|a| a.as_str())];
    if hosts == [None, None] {
        return forbidden("Forbidden: a Host header is required".to_owned());
    }
    if let Some(host) = hosts.into_iter().flatten().find(|host| !is_ours(host_name(host))) {
        let name = cut(host_name(host));
        return forbidden(format!(
            "Forbidden: the host {name:?} is not allowed. To allow it, start the server with --allow-host \
             {name} or add it to allow_hosts in the configuration"
        ));
    }
    match origin {
        None => Ok(()),
        Some(origin) => {
            let origin = origin.to_str().unwrap_or("");
            let allowed = settings.origins.iter().any(|o| o.eq_ignore_ascii_case(origin))
                || origin.split_once("://").is_some_and(|(_, rest)| is_ours(host_name(rest)));
            if allowed {
                Ok(())
            } else {
                let origin = cut(origin);
                forbidden(format!(
                    "Forbidden: the origin {origin:?} is not allowed. To allow it, start the server with \
                     --allow-origin {origin} or add it to allow_origins in the configuration"
                ))
            }
        }
    }
}

/// A header that may be there once. If it is there twice, somebody else may have read the other.
fn only(headers: &HeaderMap, name: HeaderName) -> Result<Option<&HeaderValue>, ()> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (value, None) => Ok(value),
        _ => Err(()),
    }
}

fn is_ours(name: &str, settings: &Settings, is_local: bool) -> bool {
    let is_this_machine = || name == "127.0.0.1" || name.eq_ignore_ascii_case("localhost") || name == "[::1]";
    (is_local && is_this_machine()) || settings.hosts.iter().any(|h| h.eq_ignore_ascii_case(name))
}

/// As much of a name as is repeated. Headers are visible ASCII here.
fn cut(name: &str) -> &str {
    name.get(..LONGEST).unwrap_or(name)
}

/// `host` or `[v6]` of `host:port`. What is no such thing stays whole, and so is nobody's name.
fn host_name(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => authority,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(host: Option<&str>, origin: Option<&str>) -> Request<()> {
        let mut request = ::http::Request::builder().uri("/mcp");
        if let Some(host) = host {
            request = request.header("host", host);
        }
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        request.body(()).unwrap()
    }

    fn verdict(host: Option<&str>, origin: Option<&str>, settings: &Settings) -> bool {
        check(&request(host, origin), settings).is_ok()
    }

    #[test]
    fn local_by_default() {
        let s = Settings::default();
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:8765", "[::1]:9", "[::1]"] {
            assert!(verdict(Some(host), None, &s), "{host}");
            assert!(verdict(Some(host), Some(&format!("http://{host}")), &s), "{host}");
        }
        for host in
            ["evil.example.com", "localhost.evil.com", "127.0.0.1.evil.com", "", "[::2]:1", "localhost@evil"]
        {
            assert!(!verdict(Some(host), None, &s), "{host}");
        }
        assert!(!verdict(None, None, &s));
        for origin in ["null", "http://evil.example.com", "https://localhost.evil.com", "", "file://"] {
            assert!(!verdict(Some("localhost"), Some(origin), &s), "{origin}");
        }
    }

    #[test]
    fn a_host_in_the_target_counts_too() {
        let allowed = |target: &str, host: Option<&str>| {
            let mut request = request(host, None);
            *request.uri_mut() = target.parse().unwrap();
            check(&request, &Settings::default()).is_ok()
        };
        assert!(allowed("http://localhost:8765/mcp", Some("localhost")) && allowed("http://[::1]/mcp", None));
        assert!(!allowed("http://evil.example.com/mcp", Some("localhost")));
        assert!(!allowed("http://localhost/mcp", Some("evil.example.com")));
        assert!(!allowed("http://localhost@evil.example.com/mcp", None));
    }

    #[test]
    fn more_on_request() {
        let s = Settings::default().allow_host("tools.example.com").allow_origin("https://app.example.com");
        assert!(verdict(Some("tools.example.com:443"), Some("https://app.example.com"), &s));
        assert!(verdict(Some("tools.example.com"), Some("https://tools.example.com"), &s));
        assert!(!verdict(Some("app.example.com"), None, &s));
        assert!(verdict(Some("x"), Some("y"), &Settings { any_host: true, ..Settings::default() }));
    }

    #[test]
    fn off_loopback_the_names_of_this_machine_must_be_allowed_too() {
        let verdict = |host: &str, origin: Option<&str>, settings: &Settings| {
            let mut request = request(Some(host), origin);
            request.extensions_mut().insert(OffLoopback);
            check(&request, settings).map_err(|e| e.message().to_owned())
        };
        let named = Settings::default().allow_host("mcp.example.com");
        for host in ["localhost", "localhost:8080", "127.0.0.1:8080", "[::1]:8080"] {
            let refused = verdict(host, None, &named).unwrap_err();
            assert!(refused.contains(&format!("--allow-host {}", host_name(host))), "{refused}");
            let allowed = named.clone().allow_host(host_name(host));
            assert_eq!(verdict(host, None, &allowed), Ok(()));
        }
        assert_eq!(verdict("mcp.example.com:8080", None, &named), Ok(()));
        let refused = verdict("mcp.example.com", Some("http://localhost:3000"), &named).unwrap_err();
        assert!(refused.contains("--allow-origin http://localhost:3000"), "{refused}");
    }
}

//! The outbound HTTP layer: requests to one server over pooled HTTP/1.1 connections, plain or with TLS.
//!
//! This is about HTTP and nothing above it: credentials, redirects, proxies, bounded bodies, event streams, and errors
//! that say whether the request may have been executed. Every status goes back to the caller.
//!
//! Connections are driven by the very task that waits for the answer, not by tasks of their own. That saves two
//! switches between tasks per call, and dropping a request or a stream closes its connection at once, which is how a
//! request is cancelled in 2026-07-28.

mod answer;
mod connect;
mod connection;
mod endpoint;
mod events;
mod failure;
mod headers;
mod pool;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderName, HeaderValue, StatusCode, header, response};
use arc_swap::ArcSwap;
use bytes::Bytes;
use tidegate_protocol::{Error, Limits, Symbol};
use tidegate_service::{Principal, wire_trace};
use url::Url;

use crate::auth::{Authorizer, Challenge};
use crate::target::Remote;

pub(crate) use answer::{Answered, Body};
pub(crate) use events::Events;
pub(crate) use headers::{Headers, METHOD, PROTOCOL_VERSION};

use connect::Outside;
use endpoint::{Endpoint, Verb, same_origin};
use headers::Configured;

const DPOP: HeaderName = HeaderName::from_static("dpop");
/// How often one request follows a redirect.
const MAX_HOPS: usize = 5;
/// How often one request answers a challenge: credentials renewed, scope raised, and once more for good measure.
const MAX_CHALLENGES: usize = 3;

/// What holds for all requests of one client.
#[derive(Debug, Clone)]
pub(crate) struct HttpSettings {
    /// Whose server it is, for the log. Default `server`.
    pub(crate) name: Arc<str>,
    /// How long connecting may take, TLS and proxy included. Default 10 s.
    pub(crate) connect_timeout: Duration,
    /// Most bytes of one JSON body, or of one event of a stream. Default 4 MiB.
    pub(crate) max_body: usize,
    /// Most connections that are kept open while nobody uses them. Default 256.
    pub(crate) max_idle: usize,
    /// The `User-Agent`, unless the user configured one. Default `tidegate/<version>`.
    pub(crate) user_agent: HeaderValue,
}

impl Default for HttpSettings {
    fn default() -> Self {
        HttpSettings {
            name: "server".into(),
            connect_timeout: Duration::from_secs(10),
            max_body: Limits::default().max_bytes,
            max_idle: 256,
            user_agent: HeaderValue::from_static(concat!("tidegate/", env!("CARGO_PKG_VERSION"))),
        }
    }
}

/// A client for one address. Clones share everything.
#[derive(Clone)]
pub(crate) struct HttpClient(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    auth: Option<Arc<dyn Authorizer>>,
    /// The address as it was given.
    home: Arc<Endpoint>,
    /// Where requests go: home, or where the server sent us from there.
    endpoint: ArcSwap<Endpoint>,
}

/// What all addresses of one server have in common.
struct Shared {
    settings: HttpSettings,
    configured: Configured,
    outside: Outside,
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the whole address: its query may hold a key.
        f.debug_tuple("HttpClient").field(&self.0.home.pool.host()).finish()
    }
}

impl HttpClient {
    /// A client for `remote`. Nothing is sent yet.
    pub(crate) fn new(
        remote: &Remote,
        auth: Option<Arc<dyn Authorizer>>,
        settings: &HttpSettings,
    ) -> Result<HttpClient, Error> {
        HttpClient::with(remote, auth, settings, Outside::from_env())
    }

    fn with(
        remote: &Remote,
        auth: Option<Arc<dyn Authorizer>>,
        settings: &HttpSettings,
        outside: Outside,
    ) -> Result<HttpClient, Error> {
        let configured = Configured::read(&remote.headers)?;
        let shared = Shared { settings: settings.clone(), configured, outside };
        let home = shared.endpoint(remote.url.clone(), None)?;
        Ok(HttpClient::of(Arc::new(shared), auth, home))
    }

    fn of(shared: Arc<Shared>, auth: Option<Arc<dyn Authorizer>>, home: Endpoint) -> HttpClient {
        let home = Arc::new(home);
        HttpClient(Arc::new(Inner { shared, auth, endpoint: ArcSwap::new(home.clone()), home }))
    }

    /// The same client for another address of the same server, for example the `endpoint` of HTTP+SSE. It shares
    /// connections and credentials, and therefore refuses another origin.
    pub(crate) fn at(&self, url: &Url) -> Result<HttpClient, Error> {
        let here = self.0.endpoint.load_full();
        let mut url = url.clone();
        if !same_origin(&here.url, &url) {
            // After an upgrade to https the server's addresses may still be given with http.
            let moved = same_origin(&self.0.home.url, &url)
                && url.set_scheme(here.url.scheme()).is_ok()
                && url.set_port(here.url.port()).is_ok();
            if !moved {
                let what = format!(
                    "{} names an address at another origin, {}, which is not followed",
                    here.pool.host(),
                    url.origin().ascii_serialization()
                );
                let told = "The server names an address at another origin, which is not followed";
                return Err(Error::new(Symbol::Unavailable, told).with_detail(what));
            }
        }
        let endpoint = self.0.shared.endpoint(url, Some(&here))?;
        Ok(HttpClient::of(self.0.shared.clone(), self.0.auth.clone(), endpoint))
    }

    /// The address as it was given, whatever redirects said since.
    pub(crate) fn url(&self) -> &Url {
        &self.0.home.url
    }

    /// Closes the connections that nobody uses, and keeps none from now on.
    pub(crate) fn close(&self) {
        self.0.home.pool.close();
        self.0.endpoint.load().pool.close();
    }

    /// The same client with the credentials of one caller.
    pub(crate) fn for_caller(&self, caller: &Principal) -> HttpClient {
        let Some(auth) = self.0.auth.as_ref().and_then(|auth| auth.of_caller(caller)) else {
            return self.clone();
        };
        let (home, endpoint) = (self.0.home.clone(), ArcSwap::new(self.0.endpoint.load_full()));
        HttpClient(Arc::new(Inner { shared: self.0.shared.clone(), auth: Some(auth), home, endpoint }))
    }

    /// Closes the connections that nobody uses.
    pub(crate) fn rest(&self) {
        self.0.home.pool.rest();
        self.0.endpoint.load().pool.rest();
    }

    /// Posts a JSON message.
    pub(crate) async fn post(&self, body: Bytes, headers: Headers) -> Result<Answered, Error> {
        self.send(Verb::Post, body, headers).await
    }

    /// Asks for an event stream.
    pub(crate) async fn get(&self, headers: Headers) -> Result<Answered, Error> {
        self.send(Verb::Get, Bytes::new(), headers).await
    }

    /// Ends a session.
    pub(crate) async fn delete(&self, headers: Headers) -> Result<Answered, Error> {
        self.send(Verb::Delete, Bytes::new(), headers).await
    }

    async fn send(&self, verb: Verb, body: Bytes, headers: Headers) -> Result<Answered, Error> {
        let shared = &*self.0.shared;
        let name = &shared.settings.name;
        match verb {
            Verb::Post => wire_trace::sent_to(name, &body),
            Verb::Get => wire_trace::asked(name, "GET"),
            Verb::Delete => wire_trace::asked(name, "DELETE"),
        }
        let mut endpoint = self.0.endpoint.load_full();
        let (mut hops, mut challenges) = (0, 0);
        loop {
            let authorization = match &self.0.auth {
                Some(auth) => match auth.ready() {
                    Some(known) => known,
                    None => auth.authorization().await.map_err(Error::unexecuted)?,
                },
                None => None,
            };
            let mut request = endpoint.request(verb, &body, &headers, authorization.as_ref());
            let own = self.0.auth.as_ref().zip(authorization.as_ref());
            if let Some((auth, own)) = own
                && let Some(proof) = auth.proof(request.method(), &endpoint.url, own)
            {
                request.headers_mut().insert(DPOP, proof);
            }
            let (head, flow) = endpoint.pool.exchange(request).await?;
            if let Some((auth, own)) = own {
                auth.answered(own, head.status, &head.headers);
            }
            if hops < MAX_HOPS
                && let Some(next) = shared.redirected(&endpoint, &head)
            {
                hops += 1;
                flow.discard().await;
                endpoint = Arc::new(next);
                continue;
            }
            self.remember(&endpoint, head.status);
            if challenges < MAX_CHALLENGES
                && let Some(auth) = &self.0.auth
                && answer::is_challenge(&head)
            {
                challenges += 1;
                flow.discard().await;
                let challenge = Challenge {
                    status: head.status.as_u16(),
                    www_authenticate: answer::www_authenticate(&head.headers),
                    refused: authorization.or_else(|| shared.configured.authorization().cloned()),
                };
                // The server refused the request, so it was not executed.
                auth.challenged(challenge).await.map_err(Error::unexecuted)?;
                continue;
            }
            return answer::read(head, flow, &shared.settings).await;
        }
    }

    /// Later requests go straight to where this one was answered. A place that knows nothing (any more) is forgotten.
    fn remember(&self, endpoint: &Arc<Endpoint>, status: StatusCode) {
        let best = if status == StatusCode::NOT_FOUND { &self.0.home } else { endpoint };
        if !Arc::ptr_eq(&self.0.endpoint.load(), best) {
            self.0.endpoint.store(best.clone());
        }
    }
}

impl Shared {
    /// A place at `url`, with the connections of `beside` if that is at the same origin.
    fn endpoint(&self, url: Url, beside: Option<&Endpoint>) -> Result<Endpoint, Error> {
        Endpoint::new(url, beside, &self.configured, &self.outside, &self.settings)
    }

    /// Where the server sends us, if that is somewhere to go: the same server, with body and method kept.
    fn redirected(&self, from: &Endpoint, head: &response::Parts) -> Option<Endpoint> {
        if !matches!(head.status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT) {
            return None;
        }
        let location = head.headers.get(header::LOCATION)?.to_str().ok()?;
        let to = endpoint::redirect(&from.url, location)?;
        self.endpoint(to, Some(from)).ok()
    }
}

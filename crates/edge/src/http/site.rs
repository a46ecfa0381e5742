//! [`Site`]: the endpoint at its path, and what is served beside it.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::http::{Request, Response};
use axum::body::Body;
use tidegate_service::Door;
use tower::Service;

use super::endpoint::Endpoint;
use super::http_sse::{self, HttpSse};
use super::pages::Page;
use super::respond;
use super::settings::Settings;

/// Everything that is served to those who were let in: the MCP endpoint, pages, and the deprecated HTTP+SSE transport. It
/// checks neither hosts nor callers: see [`front`](super::front).
pub struct Site<D> {
    path: Arc<str>,
    pages: Arc<[Page]>,
    endpoint: Endpoint<D>,
    http_sse: Option<HttpSse<D>>,
}

impl<D: Door> Site<D> {
    /// `door` at the path of `settings`, with its pages.
    pub fn new(door: D, settings: &Settings) -> Site<D> {
        let endpoint = Endpoint::new(door, settings);
        let http_sse = settings.http_sse.then(|| HttpSse::new(endpoint.clone()));
        Site { path: settings.path.as_str().into(), pages: settings.pages.clone(), endpoint, http_sse }
    }

    /// How many legacy sessions are open.
    pub fn sessions(&self) -> usize {
        self.endpoint.shared.sessions.len()
    }

    /// Where something is served.
    pub(super) fn paths(&self) -> Vec<String> {
        let old = self.http_sse.iter().flat_map(|_| http_sse::PATHS.map(str::to_owned));
        let pages = self.pages.iter().map(|page| page.path().to_owned());
        let mut paths: Vec<String> = std::iter::once(self.path.to_string()).chain(old).chain(pages).collect();
        paths.sort();
        paths.dedup();
        paths
    }
}

impl<D: Door> Service<Request<Body>> for Site<D> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let path = request.uri().path();
        // The endpoint first: a page at its path is never seen.
        if path == &*self.path {
            return self.endpoint.call(request);
        }
        if let Some(old) = self.http_sse.as_ref().filter(|_| http_sse::PATHS.contains(&path)) {
            let old = old.clone();
            return Box::pin(async move { Ok(old.answer(request).await) });
        }
        let response = match self.pages.iter().find(|page| page.path() == path) {
            Some(page) => page.answer(&request, &self.path),
            None => respond::not_found(&self.path),
        };
        Box::pin(std::future::ready(Ok(response)))
    }
}

impl<D> Clone for Site<D> {
    fn clone(&self) -> Self {
        Site {
            path: self.path.clone(),
            pages: self.pages.clone(),
            endpoint: self.endpoint.clone(),
            http_sse: self.http_sse.clone(),
        }
    }
}

impl<D> fmt::Debug for Site<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site").field("sessions", &self.endpoint.shared.sessions.len()).finish_non_exhaustive()
    }
}

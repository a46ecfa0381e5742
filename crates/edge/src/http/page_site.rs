//! [`PageSite`]: pages and handlers on their own, where there is no MCP endpoint.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::http::{Request, Response};
use axum::body::Body;
use tidegate_protocol::{Error, Symbol};
use tidegate_service::Identity;
use tower::Service;

use super::endpoint::identity;
use super::handler::Handler;
use super::pages::Page;
use super::settings::Settings;
use super::{IdentifiedService, respond};

/// What a [`Site`](super::Site) serves beside its endpoints, on a listener of its own. Like a site it checks neither hosts nor
/// callers: that is done by what is put around it. Clones are the same.
#[derive(Debug, Clone)]
pub struct PageSite {
    pages: Arc<[Page]>,
    handlers: Arc<[Handler]>,
}

impl PageSite {
    /// The pages and handlers of these settings.
    pub fn new(settings: &Settings) -> PageSite {
        PageSite { pages: settings.pages.clone(), handlers: settings.handlers.clone() }
    }

    /// The answer, or the request again if nothing is at its path. `endpoint` is where the MCP endpoint is, for whoever gets to a page
    /// that is not for them.
    pub(super) fn answer(
        &self,
        request: Request<Body>,
        identity: Identity,
        endpoint: &str,
    ) -> Result<Answering, Request<Body>> {
        let path = request.uri().path();
        if let Some(page) = self.pages.iter().find(|page| page.path() == path) {
            let response = page.answer(&request, &identity, endpoint);
            return Ok(Box::pin(std::future::ready(Ok(response))));
        }
        let Some(handler) = self.handlers.iter().find(|handler| handler.is_at(path)) else {
            return Err(request);
        };
        let answer = handler.answer(request, identity);
        Ok(Box::pin(async move { Ok(answer.await) }))
    }

    /// Where something is served: paths, and the beginnings of paths.
    pub(super) fn paths(&self) -> (impl Iterator<Item = &str>, impl Iterator<Item = &str>) {
        (self.pages.iter().map(Page::path), self.handlers.iter().map(Handler::path))
    }
}

/// The future of a site.
pub(super) type Answering = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

impl Service<Request<Body>> for PageSite {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let identity = identity(&request);
        self.call_as(request, identity)
    }
}

impl IdentifiedService for PageSite {
    fn call_as(&mut self, request: Request<Body>, identity: Identity) -> Self::Future {
        self.answer(request, identity, "another address").unwrap_or_else(|_| {
            let what = Error::new(Symbol::InvalidRequest, "Not found: there is no such page here");
            Box::pin(std::future::ready(Ok(respond::refused(404, &what))))
        })
    }
}

//! [`Site`]: the endpoints at their paths, and what is served beside them.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use ::http::{Request, Response};
use arc_swap::ArcSwap;
use axum::body::Body;
use tidegate_service::{Door, Identity, Principal};
use tower::Service;

use super::endpoint::{Common, Endpoint, identity};
use super::endpoint_path::EndpointPath;
use super::http_sse::{self, HttpSse};
use super::page_site::PageSite;
use super::settings::Settings;
use super::{IdentifiedService, respond};

/// Everything that is served to those who were let in: the MCP endpoints, pages, and the deprecated HTTP+SSE transport. It
/// checks neither hosts nor callers: see [`front`](super::front). Clones are the same site.
pub struct Site<D>(Arc<Inner<D>>);

struct Inner<D> {
    settings: Settings,
    default: Endpoint<D>,
    /// The endpoints that have names, by their paths.
    named: ArcSwap<HashMap<String, Endpoint<D>>>,
    /// Held while they change.
    changing: Mutex<()>,
    /// What is beside the endpoints.
    beside: PageSite,
    /// Pages and this transport belong to the default endpoint.
    http_sse: Option<HttpSse<D>>,
    common: Common,
}

impl<D: Door> Site<D> {
    /// `door` at the paths of `settings`, with its pages.
    pub fn new(door: D, settings: &Settings) -> Site<D> {
        let common = Common::new(settings);
        let default = Endpoint::new(door, settings.clone(), &common);
        let http_sse = settings.http_sse.then(|| HttpSse::new(default.clone(), common.places.clone()));
        let site = Site(Arc::new(Inner {
            settings: settings.clone(),
            default,
            named: ArcSwap::default(),
            changing: Mutex::default(),
            beside: PageSite::new(settings),
            http_sse,
            common,
        }));
        site.set_endpoints(settings.endpoints.clone());
        site
    }

    /// From now on these are the endpoints beside the default one. Those that stay, by name and path, keep their sessions. Those
    /// that go end theirs: their streams end, and their paths are not found. A router of [`router`](super::router) goes on
    /// serving the paths that it was made with.
    ///
    /// Of two with one path the later one counts, and one at the path of the default endpoint is never seen.
    pub fn set_endpoints(&self, endpoints: Vec<EndpointPath>) {
        let site = &*self.0;
        let _changing = site.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = site.named.load_full();
        let mut after = HashMap::with_capacity(endpoints.len());
        for EndpointPath { name, path } in endpoints {
            let same = before.get(&path).filter(|there| there.shared.edge.endpoint.as_ref() == Some(&name));
            let endpoint = same.cloned().unwrap_or_else(|| {
                let mut settings = site.settings.clone();
                settings.edge.endpoint = Some(name);
                settings.path = path.clone();
                settings.closing = site.settings.closing.child_token();
                Endpoint::new(site.default.shared.door.clone(), settings, &site.common)
            });
            after.insert(path, endpoint);
        }
        let after = Arc::new(after);
        site.named.store(after.clone());
        for (path, gone) in before.iter() {
            if after.get(path).is_none_or(|there| !Arc::ptr_eq(&there.shared, &gone.shared)) {
                gone.close();
            }
        }
    }

    /// Ends everything of this principal that outlives a request, at all endpoints: its legacy sessions, which cannot be opened
    /// anew, and its connections over HTTP+SSE, with the calls that run for them. What was sealed by an earlier process and has
    /// not been opened by this one is not known here: whoever lets nobody in with the old credentials keeps it closed.
    pub fn end_sessions_of(&self, principal: &Principal) {
        self.endpoints(|endpoint| endpoint.shared.sessions.end_of(principal));
        if let Some(old) = &self.0.http_sse {
            old.end_of(principal);
        }
    }

    /// How many legacy sessions are open.
    pub fn sessions(&self) -> usize {
        let mut sessions = 0;
        self.endpoints(|endpoint| sessions += endpoint.shared.sessions.len());
        sessions
    }

    fn endpoints(&self, mut each: impl FnMut(&Endpoint<D>)) {
        each(&self.0.default);
        self.0.named.load().values().for_each(each);
    }

    /// Where something is served.
    pub(super) fn paths(&self) -> Vec<String> {
        let settings = &self.0.settings;
        let mut paths = vec![settings.path.clone()];
        paths.extend(self.0.named.load().keys().cloned());
        paths.extend(self.0.http_sse.iter().flat_map(|_| http_sse::PATHS.map(str::to_owned)));
        let (pages, handlers) = self.0.beside.paths();
        paths.extend(pages.chain(handlers).map(str::to_owned));
        paths.sort();
        paths.dedup();
        paths
    }

    /// Below which paths everything is served.
    pub(super) fn beginnings(&self) -> Vec<String> {
        self.0.beside.paths().1.map(str::to_owned).collect()
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
        let identity = identity(&request);
        self.call_as(request, identity)
    }
}

impl<D: Door> IdentifiedService for Site<D> {
    fn call_as(&mut self, request: Request<Body>, identity: Identity) -> Self::Future {
        let Inner { settings, default, named, http_sse, beside, .. } = &*self.0;
        let path = request.uri().path();
        // The endpoints first: a page at the path of one is never seen.
        if path == settings.path {
            return default.answer(request, identity);
        }
        if let Some(endpoint) = named.load().get(path) {
            return endpoint.answer(request, identity);
        }
        if let Some(old) = http_sse.as_ref().filter(|_| http_sse::PATHS.contains(&path)) {
            let old = old.clone();
            return Box::pin(async move { Ok(old.answer(request, identity).await) });
        }
        beside
            .answer(request, identity, &settings.path)
            .unwrap_or_else(|_| Box::pin(std::future::ready(Ok(respond::not_found(&settings.path)))))
    }
}

impl<D> Clone for Site<D> {
    fn clone(&self) -> Self {
        Site(self.0.clone())
    }
}

impl<D> fmt::Debug for Site<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.0.named.load();
        f.debug_struct("Site")
            .field("path", &self.0.settings.path)
            .field("endpoints", &named.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

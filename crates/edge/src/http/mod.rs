//! Streamable HTTP as an axum `Router`, for all revisions on one endpoint.
//!
//! ```
//! use tidegate_edge::http::{self, Settings};
//! # use tidegate_service::{Call, Reply};
//! # let door = tower::service_fn(|call: Call| async move {
//! #     Ok::<_, std::convert::Infallible>(Reply::method_not_found(&call.method))
//! # });
//! // Mount it beside anything else that the application serves.
//! let app: axum::Router = axum::Router::new()
//!     .merge(http::router(door, Settings::default().allow_host("tools.example.com")));
//! ```

mod awake;
mod body;
mod cors;
mod events;
mod get;
mod guard;
mod heads;
mod legacy_post;
mod modern_post;
pub(crate) use modern_post::modern_only;
mod old_sse;
mod pages;
mod post;
mod respond;
mod serve;
mod sessions;
mod settings;
mod stall;
mod watch;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::http::{Method, Request, Response};
use axum::Router;
use axum::body::Body;
use axum::middleware::Next;
use tidegate_protocol::{Error, Symbol};
use tidegate_service::budget::Budget;
use tidegate_service::{Door, Principal};
use tokio_util::sync::CancellationToken;
use tower::Service;

pub use pages::Page;
pub use serve::{Listeners, serve};
pub use settings::Settings;

use heads::Heads;
use sessions::Sessions;

use crate::told::Told;

/// A router that serves `door` at the path of `settings` (`/mcp` unless told otherwise), and its pages at theirs.
pub fn router<D: Door>(door: D, settings: Settings) -> Router {
    router_of(Endpoint::new(door, settings))
}

fn router_of<D: Door>(endpoint: Endpoint<D>) -> Router {
    let Settings { path, http_sse: old, pages, .. } = endpoint.shared.settings.clone();
    let mut router = Router::new().route_service(&path, endpoint.clone());
    for page in pages.iter().filter(|page| page.path() != path) {
        router = router.route_service(page.path(), endpoint.clone());
    }
    let router = if old { old_sse::mount(router, endpoint.clone()) } else { router };
    if endpoint.shared.settings.origins.is_empty() {
        return router;
    }
    // What no path and no method of the router answers is answered too.
    router.layer(axum::middleware::from_fn(move |request: Request<Body>, next: Next| {
        let page = cors::Page::of(&request, &endpoint.shared.settings.origins);
        async move {
            match page {
                Some(page) => page.answer(request, |request| next.run(request)).await,
                None => next.run(request).await,
            }
        }
    }))
}

/// The endpoint as a plain `tower::Service`, for those who have no router.
pub struct Endpoint<D> {
    shared: Arc<Shared<D>>,
}

impl<D> Clone for Endpoint<D> {
    fn clone(&self) -> Self {
        Endpoint { shared: self.shared.clone() }
    }
}

impl<D> std::fmt::Debug for Endpoint<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("sessions", &self.shared.sessions.len()).finish_non_exhaustive()
    }
}

/// What all requests of one endpoint share.
struct Shared<D> {
    door: D,
    settings: Settings,
    options: Arc<crate::Options>,
    sessions: Arc<Sessions>,
    /// What modern clients tell.
    told: Told,
    /// Fires when the endpoint is about to close: streams that wait for nothing in particular end.
    closing: CancellationToken,
}

impl<D: Door> Endpoint<D> {
    /// An endpoint in front of `door`.
    pub fn new(door: D, settings: Settings) -> Self {
        let sessions = Arc::new(Sessions::new(settings.max_sessions, settings.session_idle));
        Budget::of_process().add_spare(&sessions);
        let options = Arc::new(settings.edge.clone());
        let (told, closing) = (Told::of(16), CancellationToken::new());
        Endpoint { shared: Arc::new(Shared { door, settings, options, sessions, told, closing }) }
    }

    /// How many legacy sessions are open.
    pub fn sessions(&self) -> usize {
        self.shared.sessions.len()
    }
}

impl<D: Door> Service<Request<Body>> for Endpoint<D> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let shared = self.shared.clone();
        match cors::Page::of(&request, &shared.settings.origins) {
            None => Box::pin(async move { Ok(shared.answer(request).await) }),
            Some(page) => {
                Box::pin(async move { Ok(page.answer(request, |request| shared.answer(request)).await) })
            }
        }
    }
}

impl<D: Door> Shared<D> {
    async fn answer(self: Arc<Self>, request: Request<Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        if let Some(page) = self.settings.page_at(parts.uri.path()) {
            return page.answer(&parts, &self.settings);
        }
        let heads = Heads::read(&parts.headers);
        if let Err(refused) = guard::check(&heads, &parts, &self.settings) {
            return respond::refused(403, &refused);
        }
        let principal = parts.extensions.get::<Principal>().cloned().unwrap_or_default();
        let eras = self.settings.edge.eras;
        // 2026-07-28 streamable-http: there is no stream to open and no session to end.
        let sessions = eras.legacy() && !(eras.modern() && heads.version().is_modern());
        match parts.method {
            Method::POST => self.post(&parts.headers, &heads, body, principal).await,
            Method::GET if sessions => self.get(&heads, &principal),
            Method::DELETE if sessions => self.delete(&heads, &principal),
            _ => {
                let allow = if sessions { "GET, POST, DELETE" } else { "POST" };
                let what = format!("Method not allowed: this endpoint takes {allow}");
                let mut response = respond::refused(405, &Error::new(Symbol::InvalidRequest, what));
                response.headers_mut().insert(::http::header::ALLOW, ::http::HeaderValue::from_static(allow));
                response
            }
        }
    }
}

//! Streamable HTTP for all revisions on one endpoint: as a `tower::Service`, as an axum `Router`, or on a socket.
//!
//! [`front`] is the HTTP side of what every request passes, from the guard to the endpoint.
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

mod body;
mod challenge;
mod client_address;
mod cors;
mod endpoint;
mod endpoint_path;
mod events;
mod extensions;
mod farewell;
mod get;
mod guard;
mod handler;
mod http_headers;
mod legacy_post;
mod modern_post;
mod poll_when_woken;
mod with_claims;
pub(crate) use modern_post::modern_only;
mod http_sse;
mod page_site;
mod pages;
mod peer;
mod places;
mod post;
mod reader;
mod refused_hosts;
mod respond;
mod revive;
mod serve;
mod session_id;
mod sessions;
mod settings;
mod site;
mod stall;
#[cfg(feature = "tls")]
mod tls;
mod trusted_proxies;
mod watch;

use std::convert::Infallible;

use ::http::{Request, Response};
use axum::Router;
use axum::body::Body;
use tidegate_service::{Door, Identity};
use tower::{Layer, Service};

pub use challenge::Challenge;
pub use client_address::ClientAddress;
pub use endpoint_path::EndpointPath;
pub use extensions::{OpenEnded, RequiredScopes};
pub use guard::{Guard, GuardFuture, GuardLayer};
pub use handler::Handler;
pub use page_site::PageSite;
pub use pages::Page;
pub use serve::{Listeners, serve, serve_door};
pub use session_id::SessionSealer;
pub use settings::Settings;
pub use site::Site;
#[cfg(feature = "tls")]
pub use tls::{TlsCertificate, TlsError};
pub use trusted_proxies::{InvalidNetwork, TrustedProxies};

/// Anything that answers HTTP requests here. Implemented by every fitting `tower::Service`; always ready.
pub trait HttpService:
    Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send + 'static>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> HttpService for S where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send + 'static>
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// An HTTP service that is told who calls, by whoever has found that out.
pub trait IdentifiedService: HttpService {
    /// Answers a request of somebody.
    fn call_as(&mut self, request: Request<Body>, identity: Identity) -> Self::Future;
}

/// The HTTP side of the front: what every request passes, outermost first. ARCHITECTURE.md draws it.
///
/// `authenticate` puts layers of the application in between, which find out who calls: one that knows puts an
/// [`Identity`] into the extensions of the request, or says so with [`IdentifiedService::call_as`]; one that refuses answers with a
/// [`Challenge`]. Nothing is served to anybody before that, pages included. Without any it is `|site| site`. A clone of the
/// site is a handle on it: its endpoints can be changed, and sessions ended.
pub fn front<D: Door, A: HttpService>(
    door: D,
    settings: &Settings,
    authenticate: impl FnOnce(Site<D>) -> A,
) -> Guard<A> {
    let site = Site::new(door, settings); // pages, and the MCP endpoints at their paths
    let site = authenticate(site); // who calls?
    GuardLayer::new(settings).layer(site) // Host, Origin, CORS
}

/// A router that serves `door` at the paths of `settings` (`/mcp` unless told otherwise), and its pages at theirs.
pub fn router<D: Door>(door: D, settings: Settings) -> Router {
    let site = Site::new(door, &settings);
    let mut router = Router::new();
    for path in site.paths() {
        router = router.route_service(&path, site.clone());
    }
    for path in site.beginnings() {
        // A wildcard stands for something.
        router = router.route_service(&format!("{path}/"), site.clone());
        router = router.route_service(&format!("{path}/{{*rest}}"), site.clone());
    }
    // What no path and no method of the router answers is guarded too.
    router.layer(GuardLayer::new(&settings))
}

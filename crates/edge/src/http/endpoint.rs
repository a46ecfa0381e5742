//! [`Endpoint`]: the MCP endpoint itself, behind the guard and whatever finds out who calls.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use ::http::{Method, Request, Response};
use axum::body::Body;
use tidegate_protocol::{Error, Symbol};
use tidegate_service::budget::Budget;
use tidegate_service::{Door, Identity, Principal};
use tokio_util::sync::CancellationToken;

use super::client_address::ClientAddress;
use super::http_headers::HttpHeaders;
use super::places::Places;
use super::reader::Reader;
use super::respond;
use super::sessions::Sessions;
use super::settings::Settings;
use crate::notifications::NotificationForwarder;
use crate::session_store::SessionStore;

/// The endpoint for all revisions.
pub(super) struct Endpoint<D> {
    pub(super) shared: Arc<Shared<D>>,
}

impl<D> Clone for Endpoint<D> {
    fn clone(&self) -> Self {
        Endpoint { shared: self.shared.clone() }
    }
}

/// What all requests of one endpoint share.
pub(super) struct Shared<D> {
    pub(super) door: D,
    pub(super) settings: Settings,
    pub(super) edge: Arc<crate::EdgeSettings>,
    pub(super) sessions: Arc<Sessions>,
    /// What modern clients tell.
    pub(super) notifications: NotificationForwarder,
    /// Fires when the endpoint is about to close: streams that wait for nothing in particular end.
    pub(super) closing: CancellationToken,
}

impl<D: Door> Endpoint<D> {
    /// An endpoint in front of `door`.
    pub(super) fn new(door: D, settings: Settings, common: &Common) -> Self {
        let sessions = Sessions::new(&settings, common.places.clone(), common.store.clone());
        Budget::of_process().add_spare(&sessions);
        let edge = Arc::new(settings.edge.clone());
        let (notifications, closing) = (common.notifications.clone(), settings.closing.clone());
        Endpoint { shared: Arc::new(Shared { door, settings, edge, sessions, notifications, closing }) }
    }

    /// Answers a request. Boxed, as whoever serves several things needs it.
    pub(super) fn answer(
        &self,
        request: Request<Body>,
        identity: Identity,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>> {
        let shared = self.shared.clone();
        Box::pin(async move { Ok(shared.answer(request, identity).await) })
    }

    /// Nothing more is served here: sessions and streams end.
    pub(super) fn close(&self) {
        self.shared.closing.cancel();
        self.shared.sessions.end_all();
    }
}

/// What all endpoints of a site share.
pub(super) struct Common {
    /// Room for sessions.
    pub(super) places: Arc<Places>,
    store: Arc<SessionStore>,
    notifications: NotificationForwarder,
}

impl Common {
    pub(super) fn new(settings: &Settings) -> Common {
        let dir = settings.session_dir.clone().filter(|_| settings.session_sealer.is_some());
        Common {
            places: Places::new(settings.max_sessions),
            store: SessionStore::new(dir),
            notifications: NotificationForwarder::of(16),
        }
    }
}

/// Who calls, as a layer in front has found out. One that knows nothing but the principal may say only that.
pub(super) fn identity<B>(request: &Request<B>) -> Identity {
    let extensions = request.extensions();
    match extensions.get::<Identity>() {
        Some(identity) => identity.clone(),
        None => extensions.get::<Principal>().cloned().unwrap_or_default().into(),
    }
}

impl<D: Door> Shared<D> {
    async fn answer(self: Arc<Self>, request: Request<Body>, identity: Identity) -> Response<Body> {
        let reader = Reader::of(&identity.principal);
        reader.counted(self.answer_to(request, identity).await)
    }

    async fn answer_to(self: Arc<Self>, request: Request<Body>, identity: Identity) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let mut headers = HttpHeaders::read(&parts.headers);
        headers.client = parts.extensions.get::<ClientAddress>().copied();
        let eras = self.settings.edge.eras;
        // 2026-07-28 streamable-http: there is no stream to open and no session to end.
        let sessions = eras.legacy() && !(eras.modern() && headers.version().is_modern());
        match parts.method {
            Method::POST => self.post(&parts.headers, &headers, body, identity).await,
            Method::GET if sessions => self.get(&headers, &identity).await,
            Method::DELETE if sessions => self.delete(&headers, &identity.principal).await,
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

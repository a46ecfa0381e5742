//! The session that a request names: one that is open, or one of an earlier process, which is opened anew.

use std::sync::Arc;

use ::http::{HeaderValue, Response};
use axum::body::Body;
use tidegate_protocol::{Error, Id, Symbol};
use tidegate_service::{Door, Identity};

use super::endpoint::Shared;
use super::http_headers::HttpHeaders;
use super::respond;
use super::sessions::Session;
use super::with_claims::WithClaims;
use crate::legacy::revive;

impl<D: Door> Shared<D> {
    /// The session that a request names, or the response that says why not: to the message `id`, if it has one.
    pub(super) async fn session(
        &self,
        headers: &HttpHeaders<'_>,
        identity: &Identity,
        id: Option<&Id>,
    ) -> Result<Arc<Session>, Response<Body>> {
        match self.open_session(headers, identity) {
            Some(session) => Ok(session),
            // Boxed, so that what is rare takes no place in every request.
            None => Box::pin(self.revived(headers, identity, id)).await,
        }
    }

    /// The session, if this process has it.
    pub(super) fn open_session(
        &self,
        headers: &HttpHeaders<'_>,
        identity: &Identity,
    ) -> Option<Arc<Session>> {
        let name = headers.session.and_then(|name| name.to_str().ok());
        name.and_then(|name| self.sessions.find(name, &identity.principal))
    }

    async fn revived(
        &self,
        headers: &HttpHeaders<'_>,
        identity: &Identity,
        id: Option<&Id>,
    ) -> Result<Arc<Session>, Response<Body>> {
        let name = headers.session.and_then(|name| name.to_str().ok()).unwrap_or_default();
        let Some((hello, key)) = self.sessions.ids.open(name, &identity.principal) else {
            return Err(no_session(headers, id));
        };
        let Some(memory) = self.sessions.store.load(key).await else { return Err(no_session(headers, id)) };
        let door = WithClaims::new(&self.door, identity);
        let client = revive(&door, hello, identity.principal.clone(), &self.settings.edge, memory).await;
        let opened = client.and_then(|client| self.sessions.open_anew(name, key, client));
        match opened {
            Ok(Some(session)) => Ok(session),
            Ok(None) => Err(no_session(headers, id)),
            Err(error) => Err(refused(id, &error)),
        }
    }
}

/// There is no such session: it has ended, or never was this caller's.
pub(super) fn no_session(headers: &HttpHeaders<'_>, id: Option<&Id>) -> Response<Body> {
    if headers.session.is_none() {
        let what = "Bad request: the Mcp-Session-Id header is missing. Send initialize first";
        return respond::error(id, &Error::new(Symbol::InvalidRequest, what), None);
    }
    let what = "Session not found: it has ended. Send initialize to start a new one";
    respond::error(id, &Error::new(Symbol::SessionNotFound, what), None)
}

/// A session cannot be opened.
pub(super) fn refused(id: Option<&Id>, error: &Error) -> Response<Body> {
    if error.symbol() == Symbol::InsufficientScope {
        return respond::error(id, error, None);
    }
    let status = if error.symbol() == Symbol::Unavailable { 503 } else { 200 };
    let mut response = respond::json(status, crate::wire::error(id, error, None));
    if status == 503 {
        response.headers_mut().insert(::http::header::RETRY_AFTER, HeaderValue::from_static("30"));
    }
    response
}

//! POST: which era a message belongs to, and who answers it.

use std::sync::Arc;

use axum::body::Body;
use ::http::header::{ACCEPT, CONTENT_TYPE};
use ::http::{HeaderMap, Response};
use tidegate_protocol::{Error, Id, Incoming, Message, Meta, Method, Revision, Symbol, headers};
use tidegate_service::{Door, Principal};

use super::Shared;
use super::{body, respond};

/// What the version header says.
pub(super) enum Version<'a> {
    Absent,
    Known(Revision),
    Unknown(&'a str),
}

impl<'a> Version<'a> {
    pub(super) fn of(headers: &'a HeaderMap) -> Version<'a> {
        match headers.get(headers::PROTOCOL_VERSION) {
            None => Version::Absent,
            Some(value) => {
                let text = value.to_str().unwrap_or("");
                text.trim().parse().map_or(Version::Unknown(text), Version::Known)
            }
        }
    }
}

impl<D: Door> Shared<D> {
    pub(super) async fn post(
        self: Arc<Self>,
        http: &HeaderMap,
        body: Body,
        principal: Principal,
    ) -> Response<Body> {
        // A cross-site form can send other types without asking first; JSON it cannot.
        if !http.get(CONTENT_TYPE).is_some_and(|t| is_json(t.as_bytes())) {
            let what = "Unsupported media type: send the message as Content-Type: application/json";
            return respond::refused(415, &Error::new(Symbol::InvalidRequest, what));
        }
        let bytes = match body::read(body, self.settings.edge.limits.max_bytes).await {
            Ok(bytes) => bytes,
            Err(error) => return respond::error(None, &error, None),
        };
        let incoming = match Incoming::parse_bytes(bytes, &self.settings.edge.limits) {
            Ok(incoming) => incoming,
            Err(malformed) => return respond::error(malformed.id.as_ref(), &malformed.error, None),
        };
        let eras = self.settings.edge.eras;
        let version = Version::of(http);
        match incoming {
            Incoming::One(Message::Request(request)) => {
                let speaks_modern = Meta::is_modern(request.params.meta())
                    || matches!(version, Version::Known(r) if r.is_modern());
                if eras.modern() && (speaks_modern || !eras.legacy()) {
                    self.modern(http, request, principal).await
                } else if let Err(response) = self.check_legacy_version(&version, Some(&request.id)) {
                    response
                } else {
                    // Boxed, so that the future of a modern request stays small: it is moved for each request.
                    Box::pin(self.legacy_request(http, &version, request, principal)).await
                }
            }
            // 2026-07-28 defines no client notifications over HTTP; what comes is taken and has no effect.
            Incoming::One(Message::Notification(_)) if !eras.legacy() => respond::accepted(),
            Incoming::One(Message::Notification(_))
                if eras.modern() && matches!(version, Version::Known(r) if r.is_modern()) =>
            {
                respond::accepted()
            }
            Incoming::One(_) | Incoming::Batch(_) if !eras.legacy() => {
                let what = "Invalid request: the body must be a single JSON-RPC request or notification";
                respond::refused(400, &Error::new(Symbol::InvalidRequest, what))
            }
            other => match self.check_legacy_version(&version, None) {
                Err(response) => response,
                Ok(()) => Box::pin(self.legacy_other(http, &version, other, principal)).await,
            },
        }
    }

    /// 2025-06-18 and later: an unsupported version header is 400.
    pub(super) fn check_legacy_version(
        &self,
        version: &Version<'_>,
        id: Option<&Id>,
    ) -> Result<(), Response<Body>> {
        let named = match version {
            Version::Unknown(text) => text,
            // Only an edge without the modern era gets here with a modern version.
            Version::Known(revision) if revision.is_modern() => revision.as_str(),
            _ => return Ok(()),
        };
        let supported = self.settings.edge.eras.revisions();
        let error = if self.settings.edge.eras.modern() {
            Error::unsupported_version(named, supported)
        } else {
            // A server of the old era has never heard of -32022.
            let names: Vec<_> = supported.iter().map(|r| r.as_str()).collect();
            let what = format!("Bad request: unsupported protocol version {named:?}; supported: {}", names.join(", "));
            Error::new(Symbol::InvalidRequest, what)
        };
        Err(respond::error(id, &error, Some(Revision::LATEST_LEGACY)))
    }
}

/// Whether a media type is JSON, parameters aside.
pub(super) fn is_json(value: &[u8]) -> bool {
    let kind = value.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
    kind.eq_ignore_ascii_case(b"application/json")
}

/// Whether the client reads event streams. One that says nothing about it is taken to.
pub(super) fn accepts_events(http: &HeaderMap) -> bool {
    accepts(http, b"text/event-stream", b"text/*")
}

fn accepts(http: &HeaderMap, kind: &[u8], family: &[u8]) -> bool {
    let mut said = false;
    for value in http.get_all(ACCEPT) {
        for one in value.as_bytes().split(|b| *b == b',') {
            said = true;
            let one = one.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
            if one.eq_ignore_ascii_case(kind) || one.eq_ignore_ascii_case(family) || one == b"*/*" {
                return true;
            }
        }
    }
    !said
}

/// Requests that open a session.
pub(super) fn is_initialize(method: &Method) -> bool {
    *method == Method::Initialize
}

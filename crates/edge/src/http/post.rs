//! POST: which era a message belongs to, and who answers it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use ::http::{HeaderMap, Response};
use axum::body::Body;
use bytes::Bytes;
use tidegate_protocol::{Error, Id, Incoming, Message, Meta, Revision, Symbol};
use tidegate_service::budget::{Budget, Purpose};
use tidegate_service::usage::NetworkTransport::Tcp;
use tidegate_service::{Door, Identity, Principal};

use super::endpoint::Shared;
use super::http_headers::{HttpHeaders, Version};
use super::modern_post::Started;
use super::{body, respond};
use crate::notifications::is_for_service;
use crate::{budget, modern, traffic};

/// Who answers a message.
enum Next<'a> {
    /// It is answered.
    Done(Response<Body>),
    /// A modern call that runs inside the response.
    Modern(Started),
    /// A legacy client's message.
    Legacy(Pin<Box<dyn Future<Output = Response<Body>> + Send + 'a>>),
}

impl<D: Door> Shared<D> {
    pub(super) async fn post(
        self: Arc<Self>,
        http: &HeaderMap,
        headers: &HttpHeaders<'_>,
        body: Body,
        identity: Identity,
    ) -> Response<Body> {
        // A cross-site form can send other types without asking first; JSON it cannot.
        if !headers.json {
            return respond::not_json();
        }
        let (limit, within) = (self.settings.edge.limits.max_bytes, self.settings.request_within);
        let principal = &identity.principal;
        let bytes =
            match body::read(body, principal, limit, within, || self.purpose(headers, principal)).await {
                Ok(bytes) => bytes,
                Err(response) => return response,
            };
        traffic::received(Tcp, &bytes);
        match self.route(http, headers, bytes, identity) {
            Next::Done(response) => response,
            Next::Modern(started) => self.finish_modern(started).await,
            Next::Legacy(answer) => answer.await,
        }
    }

    /// What a body is for, before anybody has read it: a session that was asked something may be about to answer.
    fn purpose(&self, headers: &HttpHeaders<'_>, principal: &Principal) -> Purpose {
        let session = headers.session.and_then(|id| self.sessions.find(id.to_str().ok()?, principal));
        match session.is_some_and(|session| session.client.is_asked()) {
            true => Purpose::Answer,
            false => Purpose::NewWork,
        }
    }

    /// Reads the message and sees to whom it goes. Not async, so that what it looks at is not kept while the call runs.
    fn route<'a>(
        &'a self,
        http: &HeaderMap,
        headers: &'a HttpHeaders<'a>,
        bytes: Bytes,
        identity: Identity,
    ) -> Next<'a> {
        let incoming = match Incoming::parse_bytes(bytes, &self.settings.edge.limits) {
            Ok(incoming) => incoming,
            Err(malformed) => return Next::Done(respond::malformed(&malformed)),
        };
        let eras = self.settings.edge.eras;
        let version = headers.version();
        let is_modern = !eras.legacy() || (eras.modern() && version.is_modern());
        match incoming {
            Incoming::One(Message::Request(request)) => {
                if let Err(error) = budget::admit(&request, &identity.principal) {
                    return Next::Done(respond::error(Some(&request.id), &error, None));
                }
                if is_modern || (eras.modern() && Meta::is_modern(request.params.meta())) {
                    return match self.start_modern(http, headers, request, identity) {
                        Ok(started) => Next::Modern(started),
                        Err(response) => Next::Done(response),
                    };
                }
                match self.check_legacy_version(&version, Some(&request.id)) {
                    Err(response) => Next::Done(response),
                    Ok(()) => Next::Legacy(Box::pin(self.legacy_request(headers, request, identity))),
                }
            }
            // 2026-07-28 defines no client notifications over HTTP. What comes is for whoever may know it.
            Incoming::One(Message::Notification(notification)) if is_modern => {
                if is_for_service(&notification.method) {
                    self.notifications.forward(&self.door, modern::told(notification, &self.edge, identity));
                }
                Next::Done(respond::accepted())
            }
            Incoming::One(_) | Incoming::Batch(_) if is_modern => {
                let what = "Invalid request: the body must be a single JSON-RPC request or notification";
                Next::Done(respond::refused(400, &Error::new(Symbol::InvalidRequest, what)))
            }
            Incoming::Batch(_) if let Err(error) = Budget::of_process().admit_for(&identity.principal) => {
                Next::Done(respond::error(None, &error, None))
            }
            other => match self.check_legacy_version(&version, None) {
                Err(response) => Next::Done(response),
                Ok(()) => Next::Legacy(Box::pin(self.legacy_other(headers, other, identity))),
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
            let what = format!(
                "Bad request: unsupported protocol version {named:?}; supported: {}",
                names.join(", ")
            );
            Error::new(Symbol::InvalidRequest, what)
        };
        Err(respond::error(id, &error, Some(Revision::LATEST_LEGACY)))
    }
}

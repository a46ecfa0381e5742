//! [`Page`]: a file for browsers that is served beside the endpoint.

use std::hash::{DefaultHasher, Hasher};

use ::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH};
use ::http::{HeaderValue, Method, Response, StatusCode, request};
use axum::body::Body;
use bytes::Bytes;
use tidegate_protocol::{Error, Symbol};

use super::heads::Heads;
use super::settings::Settings;
use super::{guard, respond};

/// A file that browsers may get at a path of its own, from the same hosts as the endpoint.
///
/// Pages may load scripts and styles of this server and talk to it, and to nobody else: no inline scripts, no frames.
#[derive(Debug, Clone)]
pub struct Page {
    path: String,
    media_type: &'static str,
    body: Bytes,
    tag: HeaderValue,
}

impl Page {
    /// `body` at `path`, for example `/about` as `text/html; charset=utf-8`.
    pub fn new(path: impl Into<String>, media_type: &'static str, body: impl Into<Bytes>) -> Page {
        let body = body.into();
        let mut hasher = DefaultHasher::new();
        hasher.write(&body);
        let tag = HeaderValue::try_from(format!("\"{:016x}\"", hasher.finish()));
        Page {
            path: path.into(),
            media_type,
            body,
            tag: tag.unwrap_or_else(|_| HeaderValue::from_static("\"\"")),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The response to a request for it.
    pub(super) fn answer(&self, request: &request::Parts, settings: &Settings) -> Response<Body> {
        if let Err(refused) = guard::check(&Heads::read(&request.headers), &request.uri, settings) {
            return respond::refused(403, &refused);
        }
        if request.method != Method::GET && request.method != Method::HEAD {
            let what = "Method not allowed: this page takes GET and HEAD";
            let mut response = respond::refused(405, &Error::new(Symbol::InvalidRequest, what));
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        let known = request.headers.get_all(IF_NONE_MATCH).iter().any(|tags| self.is_among(tags));
        let mut response = if known {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        } else {
            // The answer to HEAD is cut off below us, and keeps its length.
            Response::new(Body::from(self.body.clone()))
        };
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.media_type));
        headers.insert(ETAG, self.tag.clone());
        // A new version of the program has new pages: browsers ask each time, and mostly hear that nothing changed.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        for (name, value) in GUARDS {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        response
    }

    fn is_among(&self, tags: &HeaderValue) -> bool {
        let own = self.tag.as_bytes();
        tags.as_bytes().split(|byte| *byte == b',').any(|tag| {
            let tag = tag.trim_ascii();
            tag == b"*" || tag.strip_prefix(b"W/").unwrap_or(tag) == own
        })
    }
}

/// What keeps a page from being made to do what it was not meant to.
const GUARDS: [(&str, &str); 6] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
];

//! [`Page`]: a page for browsers that is served beside the endpoint.

use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use ::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH};
use ::http::{HeaderValue, Method, Request, Response, StatusCode};
use axum::body::Body;
use bytes::Bytes;
use tidegate_protocol::{Error, Symbol};
use tidegate_service::Identity;

use super::respond;

/// Whether somebody may see a page.
type MaySee = Arc<dyn Fn(&Identity) -> bool + Send + Sync>;

/// The answer to a request of somebody.
type Answer = Arc<dyn Fn(&Request<Body>, &Identity) -> Response<Body> + Send + Sync>;

/// A page that browsers may get at a path of its own, from the same hosts as the endpoint.
///
/// Pages may load scripts and styles of this server and talk to it, and to nobody else: no inline scripts, no frames.
#[derive(Clone)]
pub struct Page {
    path: String,
    media_type: &'static str,
    content: Content,
    is_served: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
    may_see: Option<MaySee>,
    is_alike: bool,
}

#[derive(Clone)]
enum Content {
    /// Always the same; browsers may keep it and ask whether it still is.
    Fixed(Bytes, HeaderValue),
    /// Made for each request.
    Made(Arc<dyn Fn() -> Bytes + Send + Sync>),
    /// Made for whoever asks.
    Answered(Answer),
}

impl Page {
    /// `body` at `path`, for example `/about` as `text/html; charset=utf-8`.
    pub fn new(path: impl Into<String>, media_type: &'static str, body: impl Into<Bytes>) -> Page {
        let body = body.into();
        let mut hasher = DefaultHasher::new();
        hasher.write(&body);
        let tag = HeaderValue::try_from(format!("\"{:016x}\"", hasher.finish()));
        let tag = tag.unwrap_or_else(|_| HeaderValue::from_static("\"\""));
        Page {
            path: path.into(),
            media_type,
            content: Content::Fixed(body, tag),
            is_served: None,
            may_see: None,
            is_alike: false,
        }
    }

    /// A page that is made anew for each request, and kept by no browser.
    pub fn made<B: Into<Bytes>>(
        path: impl Into<String>,
        media_type: &'static str,
        make: impl Fn() -> B + Send + Sync + 'static,
    ) -> Page {
        let content = Content::Made(Arc::new(move || make().into()));
        Page { path: path.into(), media_type, content, is_served: None, may_see: None, is_alike: false }
    }

    /// An answer that depends on who asks, and how: with a status and a media type of its own. No browser keeps it.
    pub fn answered(
        path: impl Into<String>,
        answer: impl Fn(&Request<Body>, &Identity) -> Response<Body> + Send + Sync + 'static,
    ) -> Page {
        let content = Content::Answered(Arc::new(answer));
        Page { path: path.into(), media_type: "", content, is_served: None, may_see: None, is_alike: false }
    }

    /// The same, but served only while this is so; otherwise it is not found.
    #[must_use]
    pub fn only_while(mut self, is_served: impl Fn() -> bool + Send + Sync + 'static) -> Page {
        self.is_served = Some(Arc::new(is_served));
        self
    }

    /// The same, but only for those who may see it; for others it is not found.
    #[must_use]
    pub fn only_for(mut self, may_see: impl Fn(&Identity) -> bool + Send + Sync + 'static) -> Page {
        self.may_see = Some(Arc::new(may_see));
        self
    }

    /// The same, which says the same to everybody: where nobody needs credentials for it, those that somebody brings are not looked at.
    #[must_use]
    pub fn alike_for_all(mut self) -> Page {
        self.is_alike = true;
        self
    }

    /// Whether it says the same to everybody.
    pub fn is_alike(&self) -> bool {
        self.is_alike
    }

    /// Where it is.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether it is something to look at, and not a style or a script of one.
    pub fn is_document(&self) -> bool {
        self.media_type.starts_with("text/html")
    }

    /// The response to a request of somebody for it. `endpoint` is where the MCP endpoint is, for whoever gets to the wrong place.
    pub fn answer(&self, request: &Request<Body>, identity: &Identity, endpoint: &str) -> Response<Body> {
        let is_gone = self.is_served.as_ref().is_some_and(|is_served| !is_served());
        if is_gone || self.may_see.as_ref().is_some_and(|may_see| !may_see(identity)) {
            return respond::not_found(endpoint);
        }
        if request.method() != Method::GET && request.method() != Method::HEAD {
            let what = "Method not allowed: use GET or HEAD";
            let mut response = respond::refused(405, &Error::new(Symbol::InvalidRequest, what));
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        // The answer to HEAD is cut off below us, and keeps its length.
        let mut response = match &self.content {
            Content::Fixed(body, tag) => fixed(request, body, tag),
            Content::Made(make) => {
                let mut response = Response::new(Body::from(make()));
                response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
                response
            }
            Content::Answered(answer) => {
                let mut response = answer(request, identity);
                response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
                response
            }
        };
        let headers = response.headers_mut();
        if !self.media_type.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.media_type));
        }
        for (name, value) in GUARDS {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        response
    }
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page").field("path", &self.path).finish_non_exhaustive()
    }
}

/// A page that a browser may have already.
fn fixed(request: &Request<Body>, body: &Bytes, tag: &HeaderValue) -> Response<Body> {
    let is_known = request.headers().get_all(IF_NONE_MATCH).iter().any(|tags| is_among(tag, tags));
    let mut response = if is_known {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        Response::new(Body::from(body.clone()))
    };
    response.headers_mut().insert(ETAG, tag.clone());
    // A new version of the program has new pages: browsers ask each time, and mostly hear that nothing changed.
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn is_among(own: &HeaderValue, tags: &HeaderValue) -> bool {
    tags.as_bytes().split(|byte| *byte == b',').any(|tag| {
        let tag = tag.trim_ascii();
        tag == b"*" || tag.strip_prefix(b"W/").unwrap_or(tag) == own.as_bytes()
    })
}

/// What keeps a page from being made to do what it was not meant to.
pub(super) const GUARDS: [(&str, &str); 6] = [
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

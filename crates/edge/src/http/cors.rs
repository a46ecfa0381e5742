//! CORS: what lets a web page of another origin, one that the settings name, call and read what it is answered.
//!
//! A browser asks before such a page may send JSON (a "preflight"), without whatever the page would authenticate itself
//! with. So that is answered before anything else looks at the request, and every answer says who may read it, refusals
//! included: else the page would learn of an error only that there was one.

use std::future::Future;

use ::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use ::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use axum::body::Body;
use tidegate_protocol::headers;

/// What a page may send, besides `Mcp-Param-*`.
const ALLOWED: [&str; 11] = [
    "authorization",
    "content-type",
    "accept",
    headers::PROTOCOL_VERSION,
    headers::METHOD,
    headers::NAME,
    headers::SESSION_ID,
    headers::LAST_EVENT_ID,
    "traceparent",
    "tracestate",
    "baggage",
];
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
/// What a page may read.
const EXPOSED: HeaderValue =
    HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate, Retry-After, Tidegate-Correlation-Id");
/// For how many seconds a browser need not ask again.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// The origin of a page that may call.
pub(super) struct Page(HeaderValue);

impl Page {
    /// The page that a request comes from, if it is one of these origins.
    pub(super) fn of(request: &Request<Body>, origins: &[String]) -> Option<Page> {
        if origins.is_empty() {
            return None;
        }
        let mut said = request.headers().get_all(ORIGIN).iter();
        let (Some(origin), None) = (said.next(), said.next()) else { return None };
        let is_allowed = origins.iter().any(|one| one.as_bytes().eq_ignore_ascii_case(origin.as_bytes()));
        is_allowed.then(|| Page(origin.clone()))
    }

    /// Answers its request: the preflight here, everything else by `answer`.
    pub(super) async fn answer<F>(
        self,
        request: Request<Body>,
        answer: impl FnOnce(Request<Body>) -> F,
    ) -> Response<Body>
    where
        F: Future<Output = Response<Body>>,
    {
        let asks_first = request.method() == Method::OPTIONS
            && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        let response = match asks_first {
            true => preflight(request.headers()),
            false => answer(request).await,
        };
        self.may_read(response)
    }

    /// Lets the page read a response.
    pub(super) fn may_read(self, mut response: Response<Body>) -> Response<Body> {
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, self.0);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        headers.insert(VARY, HeaderValue::from_static("Origin"));
        response
    }
}

/// What a page may do next. `*` would not cover `Authorization`, and `Mcp-Param-*` cannot be listed, so what may be sent is
/// named as the browser named it.
fn preflight(asked: &HeaderMap) -> Response<Body> {
    let names = asked.get_all(ACCESS_CONTROL_REQUEST_HEADERS).iter().filter_map(|names| names.to_str().ok());
    let names = names.flat_map(|names| names.split(',')).map(str::trim);
    let allowed: Vec<&str> = names.filter(|name| is_allowed(name)).collect();
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    if let Ok(allowed) = HeaderValue::try_from(allowed.join(", "))
        && !allowed.is_empty()
    {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    }
    response
}

fn is_allowed(name: &str) -> bool {
    let is_param = name.get(..headers::PARAM_PREFIX.len());
    ALLOWED.iter().any(|allowed| name.eq_ignore_ascii_case(allowed))
        || is_param.is_some_and(|start| start.eq_ignore_ascii_case(headers::PARAM_PREFIX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_sent() {
        for name in
            ["Content-Type", "mcp-session-id", "MCP-Protocol-Version", "Mcp-Param-Region", "traceparent"]
        {
            assert!(is_allowed(name), "{name}");
        }
        for name in ["", "cookie", "mcp-param", "x-mcp-param-a", "mcp-session", "*"] {
            assert!(!is_allowed(name), "{name}");
        }
    }
}

//! The documents that clients read before they have a token (RFC 9728). They are open to everybody, web pages included.

use axum::body::Body;
use http::header::{
    ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ALLOW, CACHE_CONTROL, CONTENT_TYPE,
};
use http::{HeaderValue, Method, Response, StatusCode};

use crate::resource::{Resource, WELL_KNOWN};

/// Where clients of older revisions look for an authorization server beside the resource. There is none.
const NOT_HERE: [&str; 2] = ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"];

/// The answer at a path of metadata; `None` at any other. `all` has the default endpoint first.
pub(crate) fn answer<'a>(
    method: &Method,
    path: &str,
    all: impl Iterator<Item = &'a Resource>,
) -> Option<Response<Body>> {
    if !path.starts_with("/.well-known/") {
        return None;
    }
    if NOT_HERE.iter().any(|known| is_under(path, known)) {
        return Some(open(StatusCode::NOT_FOUND, Body::empty()));
    }
    if !is_under(path, WELL_KNOWN) {
        return None;
    }
    let mut all = all.peekable();
    let found = match path == WELL_KNOWN {
        true => all.peek().copied(),
        false => all.find(|resource| resource.metadata_path == path),
    };
    let Some((_, document)) = found.and_then(|resource| resource.metadata.as_ref()) else {
        return Some(open(StatusCode::NOT_FOUND, Body::empty()));
    };
    Some(match *method {
        Method::GET | Method::HEAD => {
            let body = if method == Method::GET { document.clone().into() } else { Body::empty() };
            let mut response = open(StatusCode::OK, body);
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=60"));
            response
        }
        Method::OPTIONS => {
            let mut response = open(StatusCode::NO_CONTENT, Body::empty());
            let methods = HeaderValue::from_static("GET, HEAD");
            response.headers_mut().insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
            response
        }
        _ => {
            let mut response = open(StatusCode::METHOD_NOT_ALLOWED, Body::empty());
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS"));
            response
        }
    })
}

fn is_under(path: &str, start: &str) -> bool {
    path.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn open(status: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    response
}

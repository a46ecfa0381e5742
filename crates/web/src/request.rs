//! [`Request`]: what is asked for, how long that may take, and which redirects are followed.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use percent_encoding::percent_decode_str;
use url::Url;

use crate::redirect::{Follow, becomes_get, forget_secrets};

/// How long an answer may take, if nothing else is said.
const WITHIN: Duration = Duration::from_secs(30);

/// A request that has not been sent.
#[derive(Clone)]
pub struct Request {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) within: Duration,
    pub(crate) silence: Option<Duration>,
    pub(crate) follow: Follow,
    pub(crate) hops: usize,
}

impl Request {
    /// A request. A user name and password in the address go into `Authorization`.
    pub fn new(method: Method, mut url: Url) -> Request {
        let mut headers = HeaderMap::new();
        if let Some(credentials) = credentials(&url) {
            headers.insert(header::AUTHORIZATION, credentials);
        }
        // Both fail only for addresses without a host, which fail later anyway.
        _ = url.set_username("");
        _ = url.set_password(None);
        url.set_fragment(None);
        Request {
            method,
            url,
            headers,
            body: Bytes::new(),
            within: WITHIN,
            silence: None,
            follow: Follow::Never,
            hops: 0,
        }
    }

    /// A GET.
    pub fn get(url: Url) -> Request {
        Request::new(Method::GET, url)
    }

    /// A POST of JSON.
    pub fn post_json(url: Url, body: impl Into<Bytes>) -> Request {
        let request = Request::new(Method::POST, url);
        request.header(header::CONTENT_TYPE, HeaderValue::from_static("application/json")).body(body)
    }

    /// Adds a header, in place of one of the same name. Values that are marked as sensitive are not sent to another
    /// origin, should a redirect lead there.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Request {
        self.headers.insert(name, value);
        self
    }

    /// Adds headers.
    #[must_use]
    pub fn headers(mut self, headers: HeaderMap) -> Request {
        self.headers.extend(headers);
        self
    }

    /// Where it goes.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// What is sent.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Request {
        self.body = body.into();
        self
    }

    /// How long all of it may take, from waiting for a turn to the last byte of the answer. Default 30 s.
    #[must_use]
    pub fn within(mut self, within: Duration) -> Request {
        self.within = within;
        self
    }

    /// How long to wait for the next piece of the answer. Default: as long as all of it may take.
    #[must_use]
    pub fn silence(mut self, silence: Duration) -> Request {
        self.silence = Some(silence);
        self
    }

    /// Follows up to `most` redirects. Default: none. One that is not followed is the answer.
    #[must_use]
    pub fn follow(mut self, follow: Follow, most: usize) -> Request {
        (self.follow, self.hops) = (follow, most);
        self
    }

    /// The same request after a redirect.
    pub(crate) fn moved(&mut self, status: StatusCode, to: Url) {
        if to.origin() != self.url.origin() {
            forget_secrets(&mut self.headers);
        }
        if becomes_get(status, &self.method) {
            self.method = Method::GET;
            self.body = Bytes::new();
            self.headers.remove(header::CONTENT_TYPE);
        }
        // Credentials come from us, never from a server: those in its address are dropped.
        self.url = Request::new(Method::GET, to).url;
    }
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the whole address: its query may hold a key.
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("host", &self.url.host_str())
            .finish_non_exhaustive()
    }
}

fn credentials(url: &Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let plain = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let pair = format!("{}:{}", plain(url.username()), plain(url.password().unwrap_or_default()));
    let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_leave_the_address_and_stay_with_the_origin() {
        let mut request = Request::post_json("https://us%20er:pw@a.test/x#part".parse().unwrap(), "{}");
        assert_eq!(request.url.as_str(), "https://a.test/x");
        assert_eq!(request.headers[header::AUTHORIZATION], "Basic dXMgZXI6cHc=");
        assert!(!format!("{request:?}").contains("pw"));
        request.moved(StatusCode::TEMPORARY_REDIRECT, "https://a.test/y".parse().unwrap());
        assert!(request.headers.contains_key(header::AUTHORIZATION) && request.body == "{}");
        request.moved(StatusCode::SEE_OTHER, "https://x:y@b.test/".parse().unwrap());
        assert_eq!(request.url.as_str(), "https://b.test/");
        assert!(!request.headers.contains_key(header::AUTHORIZATION));
        assert!(request.method == Method::GET && request.body.is_empty());
        assert!(!request.headers.contains_key(header::CONTENT_TYPE));
    }
}

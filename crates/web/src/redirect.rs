//! [`Redirects`]: whether an answer sends us elsewhere, and whether we go.

use http::{HeaderMap, Method, StatusCode, header};
use url::Url;

/// Which redirects are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Follow {
    /// None: a redirect is an answer like any other.
    #[default]
    Never,
    /// Within the origin, and to https elsewhere.
    SameOriginOrHttps,
    /// Anywhere, but from https only to https.
    NoDowngrade,
    /// Anywhere. Only where nothing secret is sent, and what comes back is not trusted.
    Anywhere,
}

/// Why a redirect is not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedirectRefused {
    /// It does not say where to.
    NoLocation,
    /// It leads to something that is no address.
    NotAUrl,
    /// It leads where the policy does not go.
    Unsafe(Url),
    /// There were too many before.
    TooMany,
}

/// Follows a request from hop to hop.
#[derive(Debug, Clone)]
pub struct Redirects {
    follow: Follow,
    left: usize,
}

impl Redirects {
    /// At most `most` redirects that `follow` allows.
    pub fn new(follow: Follow, most: usize) -> Redirects {
        Redirects { follow, left: most }
    }

    /// Where to go next after this answer from `from`. `None` if it is the answer to keep.
    pub fn next(
        &mut self,
        from: &Url,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<Option<Url>, RedirectRefused> {
        if self.follow == Follow::Never || !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok(None);
        }
        let location =
            headers.get(header::LOCATION).and_then(|to| to.to_str().ok()).unwrap_or_default().trim();
        if location.is_empty() {
            return Err(RedirectRefused::NoLocation);
        }
        let to = from.join(location).map_err(|_| RedirectRefused::NotAUrl)?;
        let goes = match self.follow {
            Follow::Never => false,
            Follow::SameOriginOrHttps => to.origin() == from.origin() || to.scheme() == "https",
            Follow::NoDowngrade => from.scheme() != "https" || to.scheme() == "https",
            Follow::Anywhere => true,
        };
        if !goes {
            return Err(RedirectRefused::Unsafe(to));
        }
        self.left = self.left.checked_sub(1).ok_or(RedirectRefused::TooMany)?;
        Ok(Some(to))
    }
}

/// Takes credentials out of the headers of a request that goes to another origin: those that are known to be some, and
/// whatever is marked as secret.
pub(crate) fn forget_secrets(headers: &mut HeaderMap) {
    for name in [header::AUTHORIZATION, header::COOKIE, header::PROXY_AUTHORIZATION] {
        headers.remove(name);
    }
    let secret: Vec<_> =
        headers.iter().filter(|(_, value)| value.is_sensitive()).map(|(name, _)| name.clone()).collect();
    for name in secret {
        headers.remove(name);
    }
}

/// Whether the next request is a GET without a body (RFC 9110 section 15.4).
pub(crate) fn becomes_get(status: StatusCode, method: &Method) -> bool {
    match status.as_u16() {
        303 => method != Method::HEAD,
        301 | 302 => method == Method::POST,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn next(follow: Follow, from: &str, to: &str) -> Result<Option<Url>, RedirectRefused> {
        let headers = HeaderMap::from_iter([(header::LOCATION, HeaderValue::from_str(to).unwrap())]);
        Redirects::new(follow, 1).next(&Url::parse(from).unwrap(), StatusCode::FOUND, &headers)
    }

    #[test]
    fn each_policy_goes_so_far() {
        use Follow::{Anywhere, Never, NoDowngrade, SameOriginOrHttps};
        for (from, to, who) in [
            ("https://a.test/x", "/y", &[SameOriginOrHttps, NoDowngrade, Anywhere][..]),
            ("https://a.test/x", "https://b.test/", &[SameOriginOrHttps, NoDowngrade, Anywhere]),
            ("https://a.test/x", "http://a.test/", &[Anywhere]),
            ("http://a.test/x", "http://a.test/y", &[SameOriginOrHttps, NoDowngrade, Anywhere]),
            ("http://a.test/x", "http://a.test:81/", &[NoDowngrade, Anywhere]),
            ("http://a.test/x", "http://b.test/", &[NoDowngrade, Anywhere]),
            ("http://a.test/x", "https://b.test/", &[SameOriginOrHttps, NoDowngrade, Anywhere]),
        ] {
            for follow in [SameOriginOrHttps, NoDowngrade, Anywhere] {
                assert_eq!(
                    next(follow, from, to).is_ok(),
                    who.contains(&follow),
                    "{from} to {to}: {follow:?}"
                );
            }
            assert_eq!(next(Never, from, to), Ok(None));
        }
    }

    #[test]
    fn redirects_end() {
        let url = Url::parse("http://a.test/").unwrap();
        let headers = HeaderMap::from_iter([(header::LOCATION, HeaderValue::from_static("/again"))]);
        let mut redirects = Redirects::new(Follow::Anywhere, 2);
        for _ in 0..2 {
            assert!(redirects.next(&url, StatusCode::FOUND, &headers).unwrap().is_some());
        }
        assert_eq!(redirects.next(&url, StatusCode::FOUND, &headers), Err(RedirectRefused::TooMany));
        assert_eq!(redirects.next(&url, StatusCode::OK, &headers), Ok(None));
        assert_eq!(redirects.next(&url, StatusCode::NOT_MODIFIED, &headers), Ok(None));
        assert_eq!(
            redirects.next(&url, StatusCode::FOUND, &HeaderMap::new()),
            Err(RedirectRefused::NoLocation)
        );
        assert_eq!(next(Follow::Anywhere, "http://a.test/", "http://["), Err(RedirectRefused::NotAUrl));
    }

    #[test]
    fn secrets_stay_behind() {
        let mut key = HeaderValue::from_static("k");
        key.set_sensitive(true);
        let mut headers = HeaderMap::from_iter([
            (header::AUTHORIZATION, HeaderValue::from_static("Bearer t")),
            (header::COOKIE, HeaderValue::from_static("c")),
            ("x-api-key".parse().unwrap(), key),
            (header::ACCEPT, HeaderValue::from_static("*/*")),
        ]);
        forget_secrets(&mut headers);
        assert_eq!(headers.len(), 1);
        assert!(headers.contains_key(header::ACCEPT));
    }

    #[test]
    fn some_redirects_drop_the_body() {
        for (status, method, get) in [
            (303, Method::POST, true),
            (303, Method::PUT, true),
            (302, Method::POST, true),
            (301, Method::POST, true),
            (302, Method::PUT, false),
            (307, Method::POST, false),
            (308, Method::POST, false),
        ] {
            assert_eq!(becomes_get(StatusCode::from_u16(status).unwrap(), &method), get, "{status} {method}");
        }
    }
}

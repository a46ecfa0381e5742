//! [`Remote`]: fetches the keys of an issuer over HTTP.
//!
//! What the operator wrote may be anywhere, on a private network too. Where the issuer leads from there (the `jwks_uri` of its
//! metadata) must be the same host or a public one, and a redirect stays within its origin.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::Value;
use tidegate_web::{Follow, Guard, Redirects, Request, Web, is_local};
use url::Url;

use super::key_set::KeySet;
use crate::jwt::SetupError;
use crate::jwt::strict_json::Object;

/// How large a document may be.
pub(super) const MOST_BYTES: usize = 1024 * 1024;
/// How long one request may take.
const WITHIN: Duration = Duration::from_secs(10);
/// How many redirects are followed.
const HOPS: usize = 3;

/// Where keys come from.
pub(super) struct Remote {
    web: Web,
    place: Place,
}

enum Place {
    Keys(Url),
    Issuer { issuer: String, metadata: Vec<Url> },
}

/// Keys that have just come.
pub(super) struct Fetched {
    pub(super) keys: KeySet,
    /// What is wrong with single ones.
    pub(super) notes: Vec<String>,
    /// How long their server calls them fresh.
    pub(super) fresh: Option<Duration>,
}

impl Remote {
    /// Keys at this address.
    pub(super) fn at(address: &str, settings: tidegate_web::Settings) -> Result<Remote, SetupError> {
        let url = checked("jwks", address)?;
        Ok(Remote { web: guarded(&url, settings), place: Place::Keys(url) })
    }

    /// Keys where the metadata of this issuer says.
    pub(super) fn of_issuer(issuer: &str, settings: tidegate_web::Settings) -> Result<Remote, SetupError> {
        let url = checked("issuer", issuer)?;
        let metadata = metadata_places(&url);
        Ok(Remote {
            web: guarded(&url, settings),
            place: Place::Issuer { issuer: issuer.to_owned(), metadata },
        })
    }

    /// Fetches them. The error is a sentence without an end.
    pub(super) async fn fetch(&self) -> Result<Fetched, String> {
        let (headers, body) = match &self.place {
            Place::Keys(url) => self.document(url).await?,
            Place::Issuer { issuer, metadata } => {
                let keys = self.discover(issuer, metadata).await?;
                self.document(&keys).await?
            }
        };
        let mut notes = Vec::new();
        let keys = KeySet::read(&body, &mut notes)?;
        Ok(Fetched { keys, notes, fresh: max_age(&headers) })
    }

    /// The `jwks_uri` of the first document that is this issuer's. Others are as good as none.
    async fn discover(&self, issuer: &str, places: &[Url]) -> Result<Url, String> {
        let mut trouble: Option<(&Url, String)> = None;
        for place in places {
            let found = match self.document(place).await {
                Ok((_, body)) => jwks_uri(&body, issuer).map_err(|why| format!("{place}: {why}")),
                Err(why) => Err(why),
            };
            match found {
                Ok(url) => return Ok(url),
                Err(why) => {
                    // What is wrong with a document says more than that another one is not there.
                    let says_more = |before: &str| before.contains(NOT_THERE) && !why.contains(NOT_THERE);
                    if trouble.as_ref().is_none_or(|(_, before)| says_more(before)) {
                        trouble = Some((place, why));
                    }
                }
            }
        }
        let Some((place, why)) = trouble else { return Err("the issuer has no metadata".to_owned()) };
        let others: Vec<&str> = places.iter().filter(|one| *one != place).map(Url::as_str).collect();
        Err(format!("{why} (nor are there keys by way of {})", others.join(" or ")))
    }

    async fn document(&self, url: &Url) -> Result<(HeaderMap, Bytes), String> {
        let mut url = url.clone();
        let mut redirects = Redirects::new(Follow::NoDowngrade, HOPS);
        loop {
            let request = Request::get(url.clone())
                .header(
                    header::ACCEPT,
                    HeaderValue::from_static("application/json, application/jwk-set+json"),
                )
                .within(WITHIN);
            let answer =
                self.web.send(request).await.map_err(|error| format!("{url}: {error}{}", advice(&error)))?;
            match redirects.next(&url, answer.status(), answer.headers()) {
                Ok(Some(next)) if next.origin() == url.origin() => {
                    url = next;
                    continue;
                }
                Ok(Some(_)) => {
                    return Err(format!("{url}: it redirects to another host, which is not followed"));
                }
                Ok(None) => {}
                Err(_) => return Err(format!("{url}: it redirects to nowhere, or too often")),
            }
            let status = answer.status();
            if status != StatusCode::OK {
                return Err(format!("{url}: {NOT_THERE} {}", status.as_u16()));
            }
            let headers = answer.headers().clone();
            let body = answer.whole(MOST_BYTES).await.map_err(|error| format!("{url}: {error}"))?;
            return Ok((headers, body));
        }
    }
}

const NOT_THERE: &str = "it answers HTTP";

/// 2026-07-28 authorization-server-discovery: RFC 8414, then OpenID Connect in the form of RFC 8414, then in its own.
fn metadata_places(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let at = |path: String| {
        let mut url = issuer.clone();
        url.set_path(&path);
        url
    };
    let mut places = vec![
        at(format!("/.well-known/oauth-authorization-server{path}")),
        at(format!("/.well-known/openid-configuration{path}")),
    ];
    if !path.is_empty() {
        places.push(at(format!("{path}/.well-known/openid-configuration")));
    }
    places
}

fn jwks_uri(document: &[u8], issuer: &str) -> Result<Url, String> {
    let Object(document) =
        serde_json::from_slice(document).map_err(|error| format!("it is no metadata: {error}"))?;
    match document.get("issuer") {
        // RFC 8414 section 3.3: character by character, or it must not be used.
        Some(Value::String(named)) if named == issuer => {}
        Some(Value::String(named)) => {
            let named: String = named.chars().take(200).collect();
            return Err(format!("its `issuer` is {named:?} and not {issuer:?}"));
        }
        _ => return Err("it names no `issuer`".to_owned()),
    }
    let Some(Value::String(uri)) = document.get("jwks_uri") else {
        return Err("it has no `jwks_uri`".to_owned());
    };
    checked("jwks_uri", uri).map_err(|error| error.to_string())
}

/// An address that may be asked for keys: with https, or on this machine.
pub(crate) fn checked(what: &'static str, address: &str) -> Result<Url, SetupError> {
    let wrong = |why| SetupError::Address { what, address: address.to_owned(), why };
    let url = Url::parse(address).map_err(|_| wrong("it is not a URL"))?;
    let host = url.host().ok_or_else(|| wrong("it names no host"))?;
    if url.scheme() != "https" && !(url.scheme() == "http" && is_local(&host)) {
        return Err(wrong("it must start with https://, because what it says is trusted"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("it must not hold a user name or a password"));
    }
    if url.fragment().is_some() || what == "issuer" && url.query().is_some() {
        return Err(wrong("it must have no query and no fragment"));
    }
    Ok(url)
}

/// A client that goes to the host of `home`, wherever that is, and else to public ones only.
pub(crate) fn guarded(home: &Url, settings: tidegate_web::Settings) -> Web {
    let guard = Guard::public().or_host(home.host_str().unwrap_or_default());
    Web::new(tidegate_web::Settings { guard, ..settings })
}

fn advice(error: &tidegate_web::Error) -> &'static str {
    match error {
        tidegate_web::Error::Forbidden { .. } => "; if that is right, write this address as `jwks`",
        _ => "",
    }
}

/// How long an answer is fresh (RFC 9111 section 5.2.2). What must not be kept is fresh for no time.
fn max_age(headers: &HeaderMap) -> Option<Duration> {
    let mut fresh = None;
    for value in headers.get_all(header::CACHE_CONTROL) {
        for word in value.to_str().ok()?.split(',') {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            match name.trim().to_ascii_lowercase().as_str() {
                "no-store" | "no-cache" => return Some(Duration::ZERO),
                "max-age" => {
                    fresh = value.trim().trim_matches('"').parse().ok().map(Duration::from_secs).or(fresh)
                }
                _ => {}
            }
        }
    }
    fresh
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jwt::tests::{Answer, Server};

    #[tokio::test]
    async fn an_issuer_without_metadata_is_told_with_every_place_that_was_looked_at() {
        let server = Server::start().await;
        let fetch = async || {
            let remote = Remote::of_issuer(&server.url, tidegate_web::Settings::default()).unwrap();
            remote.fetch().await.err().unwrap()
        };
        let oauth = format!("{}/.well-known/oauth-authorization-server", server.url);
        let openid = format!("{}/.well-known/openid-configuration", server.url);
        assert_eq!(
            fetch().await,
            format!("{oauth}: it answers HTTP 404 (nor are there keys by way of {openid})")
        );
        server.at("/.well-known/openid-configuration", Answer::json(&serde_json::json!({})));
        let why = fetch().await;
        assert_eq!(why, format!("{openid}: it names no `issuer` (nor are there keys by way of {oauth})"));
    }

    #[test]
    fn metadata_is_looked_for_where_the_specification_says_and_in_its_order() {
        for (issuer, expected) in [
            (
                "https://id.example",
                &[
                    "https://id.example/.well-known/oauth-authorization-server",
                    "https://id.example/.well-known/openid-configuration",
                ][..],
            ),
            (
                "https://id.example/",
                &[
                    "https://id.example/.well-known/oauth-authorization-server",
                    "https://id.example/.well-known/openid-configuration",
                ],
            ),
            (
                "https://id.example/realms/a",
                &[
                    "https://id.example/.well-known/oauth-authorization-server/realms/a",
                    "https://id.example/.well-known/openid-configuration/realms/a",
                    "https://id.example/realms/a/.well-known/openid-configuration",
                ],
            ),
        ] {
            let places = metadata_places(&Url::parse(issuer).unwrap());
            assert_eq!(places.iter().map(Url::as_str).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn metadata_must_be_of_the_issuer_and_name_a_safe_address() {
        let read = |text: &str| jwks_uri(text.as_bytes(), "https://id.example/a");
        let good = read(r#"{"issuer":"https://id.example/a","jwks_uri":"https://keys.example/k"}"#);
        assert_eq!(good.unwrap().as_str(), "https://keys.example/k");
        for (text, why) in [
            (r#"{"issuer":"https://id.example/a/","jwks_uri":"https://k.example"}"#, "its `issuer` is"),
            (r#"{"issuer":"https://id.example/A","jwks_uri":"https://k.example"}"#, "its `issuer` is"),
            (r#"{"jwks_uri":"https://k.example"}"#, "names no `issuer`"),
            (r#"{"issuer":"https://id.example/a"}"#, "no `jwks_uri`"),
            (r#"{"issuer":"https://id.example/a","jwks_uri":"http://k.example"}"#, "https://"),
            (r#"{"issuer":"https://id.example/a","jwks_uri":"file:///etc/passwd"}"#, "names no host"),
            (
                r#"{"issuer":"https://id.example/a","issuer":"b","jwks_uri":"https://k.example"}"#,
                "no metadata",
            ),
            ("<html>", "no metadata"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn addresses_are_https_or_on_this_machine() {
        for good in
            ["https://id.example/x", "http://127.0.0.1:8080/k", "http://localhost/k", "http://[::1]:9/k"]
        {
            assert!(checked("jwks", good).is_ok(), "{good}");
        }
        for bad in [
            "http://id.example",
            "ftp://id.example",
            "id.example",
            "https://",
            "https://a:b@id.example",
            "https://a/#b",
        ] {
            assert!(checked("jwks", bad).is_err(), "{bad}");
        }
        assert!(checked("jwks", "https://id.example/k?p=1").is_ok());
        assert!(checked("issuer", "https://id.example/k?p=1").is_err());
    }

    #[test]
    fn how_long_an_answer_is_fresh() {
        for (value, fresh) in [
            ("", None),
            ("public", None),
            ("max-age=60", Some(60)),
            ("public, Max-Age=\"60\", must-revalidate", Some(60)),
            ("max-age=soon", None),
            ("no-store, max-age=60", Some(0)),
            ("max-age=60, no-cache", Some(0)),
        ] {
            let headers = HeaderMap::from_iter([(header::CACHE_CONTROL, HeaderValue::from_static(value))]);
            assert_eq!(max_age(&headers), fresh.map(Duration::from_secs), "{value}");
        }
    }
}

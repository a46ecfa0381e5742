//! [`Http`]: the few requests that getting a token takes, bounded in time and size, and only to where they may go.
//!
//! It is apart from the client for MCP requests on purpose: that one goes to an address which the user chose, this one
//! to addresses which servers name. It keeps no connections, as hours may pass between two tokens.

use std::time::Duration;

use ::http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use bytes::Bytes;
use serde_json::{Map, Value};
use tidegate_web::{Error, Follow, RedirectRefused, Redirects, Settings, Web};
use url::Url;

use super::allowed_addresses::AllowedAddresses;
use super::fault::Fault;

/// How long one request may take, from connecting to the last byte.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How large an answer may be.
const MAX_BODY: usize = 1024 * 1024;
/// How many redirects a description may be behind.
const MAX_REDIRECTS: usize = 3;

/// Sends requests within a [`AllowedAddresses`].
pub(super) struct Http {
    allowed: AllowedAddresses,
    web: Web,
}

/// A whole answer.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Http {
    /// Requests go no farther than `allowed`.
    pub(super) fn new(allowed: AllowedAddresses) -> Http {
        let settings = Settings { guard: allowed.guard(), connect: TIMEOUT, idle: 0, ..Settings::default() };
        Http { allowed, web: Web::new(settings) }
    }

    /// Where requests may go.
    pub(super) fn allowed(&self) -> &AllowedAddresses {
        &self.allowed
    }

    /// A description in JSON, or nothing if there is none. Follows redirects within the origin or to https.
    pub(super) async fn document(&self, mut url: Url) -> Result<Option<Map<String, Value>>, Fault> {
        let mut redirects = Redirects::new(Follow::SameOriginOrHttps, MAX_REDIRECTS);
        loop {
            let answer = self.send(get(&url)?).await?;
            match redirects.next(&url, answer.status, &answer.headers) {
                Ok(None) => {}
                Ok(Some(next)) => {
                    if next.origin() != url.origin() {
                        self.allowed.check("address", next.as_str())?;
                    }
                    url = next;
                    continue;
                }
                Err(RedirectRefused::NoLocation | RedirectRefused::NotAUrl) => return Ok(None),
                Err(RedirectRefused::Unsafe(next)) => {
                    let why = "another server redirects to it, and it is not https";
                    return Err(Fault::Address { what: "address", address: next.into(), why });
                }
                Err(RedirectRefused::TooMany) => {
                    let host = host(&url);
                    let what = format!("{host} redirects requests for its description too often");
                    return Err(Fault::Metadata(what));
                }
            }
            return match answer.status {
                StatusCode::OK => Ok(serde_json::from_slice(&answer.body).ok()),
                status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                    Err(Fault::Network {
                        host: host(&url),
                        why: format!("it answers HTTP {}", status.as_u16()),
                    })
                }
                _ => Ok(None),
            };
        }
    }

    /// Sends one request and reads its answer. The address must have gone through [`AllowedAddresses::check`].
    pub(super) async fn send(&self, request: Request<Bytes>) -> Result<Answer, Fault> {
        let (host, answer) = self.start(request).await?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let body = answer.whole(MAX_BODY).await.map_err(|error| failed(host, &error))?;
        Ok(Answer { status, headers, body })
    }

    /// Sends one request and reads only the head of the answer, because the body may be endless.
    pub(super) async fn head(&self, request: Request<Bytes>) -> Result<(StatusCode, HeaderMap), Fault> {
        let (_, answer) = self.start(request).await?;
        Ok((answer.status(), answer.headers().clone()))
    }

    /// The host, for error messages, and its answer.
    async fn start(&self, request: Request<Bytes>) -> Result<(String, tidegate_web::Answer), Fault> {
        let (head, body) = request.into_parts();
        let host = head.uri.authority().map_or("the server", |authority| authority.as_str()).to_owned();
        let unusable = |_| Fault::Network { host: host.clone(), why: "the address is not a URL".to_owned() };
        let url = Url::parse(&head.uri.to_string()).map_err(unusable)?;
        let mut headers = head.headers;
        headers.entry(header::ACCEPT).or_insert(HeaderValue::from_static("application/json"));
        let asked = tidegate_web::Request::new(head.method, url).headers(headers).body(body).within(TIMEOUT);
        match self.web.send(asked).await {
            Ok(answer) => Ok((host, answer)),
            Err(error) => Err(failed(host, &error)),
        }
    }
}

/// A plain GET.
pub(super) fn get(url: &Url) -> Result<Request<Bytes>, Fault> {
    let unusable =
        |_| Fault::Address { what: "address", address: url.to_string(), why: "it is not a valid URI" };
    Request::get(url.as_str()).body(Bytes::new()).map_err(unusable)
}

/// The host for error messages, which leaves out what may be secret in an address.
pub(super) fn host(url: &Url) -> String {
    match (url.host_str().unwrap_or("the server"), url.port()) {
        (host, Some(port)) => format!("{host}:{port}"),
        (host, None) => host.to_owned(),
    }
}

fn failed(host: String, error: &Error) -> Fault {
    let why = match error {
        Error::Forbidden { .. } => {
            "its name stands for a private address, and the server is not at one".to_owned()
        }
        error if error.is_timeout() => format!("no answer within {} s", TIMEOUT.as_secs()),
        error => error.to_string(),
    };
    Fault::Network { host, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn names_of_private_addresses_lead_nowhere() {
        // Any name of this machine will do: nobody listens at this port.
        let asked = || get(&Url::parse("https://localhost:1/").unwrap()).unwrap();
        let outcome = async |home: &str| {
            let allowed = AllowedAddresses::around(&Url::parse(home).unwrap()).await;
            Http::new(allowed).send(asked()).await.map(|_| ()).unwrap_err().to_string()
        };
        let far = outcome("https://192.0.2.1/").await;
        assert!(far.contains("stands for a private address"), "{far}");
        let near = outcome("http://127.0.0.1:1/").await;
        assert!(!near.contains("private address"), "{near}");
    }
}

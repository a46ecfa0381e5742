//! [`Http`]: the few requests that getting a token takes, bounded in time and size, and only to where they may go.
//!
//! It is apart from the client for MCP requests on purpose: that one goes to an address which the user chose, this one
//! to addresses which servers name. It keeps no connections, as hours may pass between two tokens.

use std::time::Duration;

use ::http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri, header};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use serde_json::{Map, Value};
use tokio::task::JoinHandle;
use url::Url;

use super::dial::{BoxError, Dialer};
use super::fault::Fault;
use super::reach::Reach;

/// How long one request may take, from connecting to the last byte.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How large an answer may be.
const MAX_BODY: usize = 1024 * 1024;
/// How many redirects a description may be behind.
const MAX_REDIRECTS: usize = 3;

/// Sends requests within a [`Reach`].
pub(super) struct Http {
    dialer: Dialer,
}

/// A whole answer.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Http {
    /// Requests go no farther than `reach`.
    pub(super) fn new(reach: Reach) -> Http {
        Http { dialer: Dialer::new(reach) }
    }

    /// Where requests may go.
    pub(super) fn reach(&self) -> &Reach {
        &self.dialer.reach
    }

    /// A description in JSON, or nothing if there is none. Follows redirects within the origin or to https.
    pub(super) async fn document(&self, mut url: Url) -> Result<Option<Map<String, Value>>, Fault> {
        for _ in 0..=MAX_REDIRECTS {
            let answer = self.send(get(&url)?).await?;
            if answer.status.is_redirection() {
                let to = answer.headers.get(header::LOCATION).and_then(|to| to.to_str().ok());
                let Some(next) = to.and_then(|to| url.join(to).ok()) else { return Ok(None) };
                if next.origin() != url.origin() {
                    if next.scheme() != "https" {
                        let why = "another server redirects to it, and it is not https";
                        return Err(Fault::Address { what: "address", address: next.into(), why });
                    }
                    self.reach().check("address", next.as_str())?;
                }
                url = next;
                continue;
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
        Err(Fault::Metadata(format!("{} redirects requests for its description too often", host(&url))))
    }

    /// Sends one request and reads its answer. The address must have gone through [`Reach::check`].
    pub(super) async fn send(&self, request: Request<Bytes>) -> Result<Answer, Fault> {
        in_time(&request.uri().clone(), async {
            let (response, _open) = self.start(request).await?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, MAX_BODY).collect().await?.to_bytes();
            Ok(Answer { status: head.status, headers: head.headers, body })
        })
        .await
    }

    /// Sends one request and reads only the head of the answer, because the body may be endless.
    pub(super) async fn head(&self, request: Request<Bytes>) -> Result<(StatusCode, HeaderMap), Fault> {
        in_time(&request.uri().clone(), async {
            let (response, _open) = self.start(request).await?;
            let (head, _) = response.into_parts();
            Ok((head.status, head.headers))
        })
        .await
    }

    async fn start(&self, request: Request<Bytes>) -> Result<(Response<Incoming>, Open), BoxError> {
        let (mut head, body) = request.into_parts();
        let uri = std::mem::take(&mut head.uri);
        let io = self.dialer.open(&uri).await?;
        let (mut sender, connection) = http1::handshake(io).await?;
        let open = Open(tokio::spawn(async move { _ = connection.await }));
        let authority = uri.authority().ok_or("the address names no host")?;
        head.uri = uri.path_and_query().map_or_else(|| Uri::from_static("/"), |path| Uri::from(path.clone()));
        head.headers.insert(header::HOST, HeaderValue::from_str(authority.as_str())?);
        head.headers.entry(header::ACCEPT).or_insert(HeaderValue::from_static("application/json"));
        let agent = HeaderValue::from_static(concat!("tidegate/", env!("CARGO_PKG_VERSION")));
        head.headers.insert(header::USER_AGENT, agent);
        let response = sender.send_request(Request::from_parts(head, Full::new(body))).await?;
        Ok((response, open))
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

async fn in_time<T>(uri: &Uri, exchange: impl Future<Output = Result<T, BoxError>>) -> Result<T, Fault> {
    let failed = |why| {
        let host = uri.authority().map_or("the server", |a| a.as_str()).to_owned();
        Fault::Network { host, why }
    };
    match tokio::time::timeout(TIMEOUT, exchange).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(failed(causes(&*error))),
        Err(_) => Err(failed(format!("no answer within {} s", TIMEOUT.as_secs()))),
    }
}

/// An error with its causes, the last of which is often the only telling one.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        next = cause.source();
    }
    text
}

/// A connection that is closed when the answer has been read.
struct Open(JoinHandle<()>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.abort();
    }
}

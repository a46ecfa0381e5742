//! [`Sender`]: brings one request to a collector, and finds out what became of it.

use std::time::Duration;

use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, TE};
use http::{HeaderValue, Method, StatusCode};
use tidegate_web::{Answer, Request, Settings, Web, retry_after};
use url::Url;

use super::protobuf::{Field, fields};

/// How a collector is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// Protocol Buffers in HTTP requests, usually on port 4318.
    #[default]
    HttpProtobuf,
    /// gRPC, usually on port 4317.
    Grpc,
}

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    Spans,
    Figures,
}

impl Signal {
    const fn path(self, protocol: Protocol) -> &'static str {
        match (protocol, self) {
            (Protocol::HttpProtobuf, Signal::Spans) => "v1/traces",
            (Protocol::HttpProtobuf, Signal::Figures) => "v1/metrics",
            (Protocol::Grpc, Signal::Spans) => "opentelemetry.proto.collector.trace.v1.TraceService/Export",
            (Protocol::Grpc, Signal::Figures) => {
                "opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
            }
        }
    }
}

/// Why a request was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NotSent {
    /// For the log.
    pub(super) why: String,
    /// Whether it may be sent again, and if so, not before this time is over.
    pub(super) again: Option<Duration>,
}

/// What the collector would not have of a request that it took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Rejected {
    pub(super) count: u64,
    pub(super) why: String,
}

/// More than this nobody says about a request.
const MOST: usize = 64 * 1024;
/// How much of what a collector says gets into the log, in characters.
const LONGEST: usize = 200;

/// Sends requests to one collector.
#[derive(Debug, Clone)]
pub(super) struct Sender {
    web: Web,
    endpoint: Url,
    protocol: Protocol,
    headers: HeaderMap,
    timeout: Duration,
}

impl Sender {
    pub(super) fn new(endpoint: &Url, protocol: Protocol, headers: HeaderMap, timeout: Duration) -> Sender {
        let http2 = protocol == Protocol::Grpc;
        let web = Web::new(Settings { connect: timeout, idle: 1, http2, ..Settings::default() });
        Sender { web, endpoint: endpoint.clone(), protocol, headers, timeout }
    }

    /// Where it goes, for the log.
    pub(super) fn host(&self) -> String {
        let port = self.endpoint.port_or_known_default().unwrap_or_default();
        format!("{}:{port}", self.endpoint.host_str().unwrap_or_default())
    }

    pub(super) async fn send(&self, signal: Signal, message: Vec<u8>) -> Result<Rejected, NotSent> {
        let request = self
            .request(signal, message)
            .ok_or_else(|| NotSent { why: "its address cannot be used".to_owned(), again: None })?;
        let answer = self.web.send(request).await.map_err(broken)?;
        match self.protocol {
            Protocol::HttpProtobuf => over_http(answer).await,
            Protocol::Grpc => over_grpc(answer).await,
        }
    }

    fn request(&self, signal: Signal, message: Vec<u8>) -> Option<Request> {
        let mut url = self.endpoint.clone();
        let base = match self.protocol {
            Protocol::HttpProtobuf => self.endpoint.path().trim_end_matches('/'),
            Protocol::Grpc => "",
        };
        url.set_path(&format!("{base}/{}", signal.path(self.protocol)));
        let request = Request::new(Method::POST, url).within(self.timeout).headers(self.headers.clone());
        Some(match self.protocol {
            Protocol::HttpProtobuf => {
                let kind = HeaderValue::from_static("application/x-protobuf");
                request.header(CONTENT_TYPE, kind).body(message)
            }
            Protocol::Grpc => {
                // Not compressed, and how long it is.
                let mut framed = Vec::with_capacity(message.len() + 5);
                framed.push(0);
                framed.extend_from_slice(&u32::try_from(message.len()).ok()?.to_be_bytes());
                framed.extend_from_slice(&message);
                let kind = HeaderValue::from_static("application/grpc");
                request
                    .header(CONTENT_TYPE, kind)
                    .header(TE, HeaderValue::from_static("trailers"))
                    .body(framed)
            }
        })
    }
}

/// Whatever breaks on the way may be sent again: a span that comes twice is still one.
fn broken(error: tidegate_web::Error) -> NotSent {
    NotSent { why: error.to_string(), again: Some(Duration::ZERO) }
}

async fn over_http(answer: Answer) -> Result<Rejected, NotSent> {
    let status = answer.status();
    let wait = retry_after(answer.headers(), std::time::SystemTime::now());
    if status.is_success() {
        // What cannot be read says nothing.
        return Ok(rejected(&answer.whole(MOST).await.unwrap_or_default()));
    }
    let may_come_again = matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    );
    let again = may_come_again.then(|| wait.unwrap_or_default());
    Err(NotSent { why: format!("it answered {status}"), again })
}

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

async fn over_grpc(answer: Answer) -> Result<Rejected, NotSent> {
    let http = answer.status();
    let head = answer.headers().clone();
    let (body, trailers) = answer.with_trailers(MOST).await.map_err(broken)?;
    let said = |name: &HeaderName| {
        let value = trailers.get(name).or_else(|| head.get(name))?;
        value.to_str().ok().map(str::to_owned)
    };
    let Some(status) = said(&GRPC_STATUS).and_then(|status| status.trim().parse::<u32>().ok()) else {
        return Err(NotSent { why: format!("it answered {http} and speaks no gRPC"), again: None });
    };
    if status == 0 {
        let message = body.get(5..).unwrap_or_default();
        return Ok(rejected(message));
    }
    // Cancelled, deadline exceeded, exhausted, aborted, out of range, unavailable, data loss (OTLP specification, Failures).
    let may_come_again = matches!(status, 1 | 4 | 8 | 10 | 11 | 14 | 15);
    let why = format!(
        "it answered with the gRPC status {status} {}",
        short(&said(&GRPC_MESSAGE).unwrap_or_default())
    );
    Err(NotSent { why: why.trim_end().to_owned(), again: may_come_again.then_some(Duration::ZERO) })
}

/// What an `Export…ServiceResponse` says: its `partial_success` has a number and a sentence.
fn rejected(response: &[u8]) -> Rejected {
    let mut all = Rejected::default();
    for (number, field) in fields(response) {
        let (1, Field::Bytes(partial)) = (number, field) else { continue };
        for (number, field) in fields(partial) {
            match (number, field) {
                // It is signed; what is negative is no number of things.
                (1, Field::Number(count)) => all.count = i64::try_from(count).map_or(0, |_| count),
                (2, Field::Bytes(why)) => all.why = short(&String::from_utf8_lossy(why)),
                _ => {}
            }
        }
    }
    all
}

fn short(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::super::protobuf::Message;
    use super::*;

    #[test]
    fn what_a_collector_would_not_have() {
        let mut response = Vec::new();
        response.message(1, |partial| {
            partial.number(1, 3);
            partial.text(2, &"no room ".repeat(100));
        });
        let told = rejected(&response);
        assert_eq!((told.count, told.why.len()), (3, LONGEST));
        let mut negative = Vec::new();
        negative.message(1, |partial| partial.number(1, u64::MAX));
        for nothing in [&b""[..], b"<html>", &[0xff; 64], &negative] {
            assert_eq!(rejected(nothing), Rejected::default(), "{nothing:?}");
        }
    }

    #[test]
    fn where_it_goes() {
        for (endpoint, protocol, signal, expected) in [
            ("http://a.test:4318", Protocol::HttpProtobuf, Signal::Spans, "http://a.test:4318/v1/traces"),
            (
                "https://a.test/otlp/",
                Protocol::HttpProtobuf,
                Signal::Figures,
                "https://a.test/otlp/v1/metrics",
            ),
            (
                "http://a.test:4317/ignored",
                Protocol::Grpc,
                Signal::Spans,
                "http://a.test:4317/opentelemetry.proto.collector.trace.v1.TraceService/Export",
            ),
        ] {
            let sender =
                Sender::new(&endpoint.parse().unwrap(), protocol, HeaderMap::new(), Duration::from_secs(1));
            let request = sender.request(signal, Vec::new()).unwrap();
            assert_eq!(request.url().as_str(), expected);
        }
    }
}

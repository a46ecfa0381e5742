//! [`Asked`]: a request to the admin API that fits its route; and the two kinds of answers.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Request, Response, StatusCode};
use serde_json::Value;
use url::form_urlencoded;

use super::access::Still;
use super::routes::{Fits, Route};

/// No body has to be larger.
const LARGEST: usize = 16 * 1024;
/// How long a body may take.
const WITHIN: Duration = Duration::from_secs(10);

/// A request that fits its route.
pub(super) struct Asked {
    /// What stands for the names in the path, in its order.
    values: Vec<String>,
    query: Vec<(String, String)>,
    /// The request as it came.
    pub(super) request: Request<Body>,
    /// Whether whoever asked still may.
    pub(super) still: Still,
    /// Whether it came through the socket.
    pub(super) is_operator: bool,
}

impl Asked {
    /// Reads what the path and the query say. A parameter that there is not, or that does not fit, is named.
    pub(super) fn read(
        route: &Route,
        values: Vec<String>,
        request: Request<Body>,
        still: Still,
        is_operator: bool,
    ) -> Result<Asked, Refusal> {
        let query = request.uri().query().unwrap_or_default().as_bytes();
        let query: Vec<(String, String)> = form_urlencoded::parse(query).into_owned().collect();
        for (at, (name, value)) in query.iter().enumerate() {
            let Some(parameter) = route.query.iter().find(|known| known.name == name) else {
                let known: Vec<&str> = route.query.iter().map(|known| known.name).collect();
                let known =
                    if known.is_empty() { "there are none here".to_owned() } else { known.join(", ") };
                return Err(Refusal::bad(format!("unknown parameter {name:?}: {known}")));
            };
            if query[..at].iter().any(|(before, _)| before == name) {
                return Err(Refusal::bad(format!("the parameter {name} is there twice")));
            }
            match parameter.fits {
                Fits::Text => {}
                Fits::Whole(least, most) => {
                    if !value.parse::<u64>().is_ok_and(|number| (least..=most).contains(&number)) {
                        let what = format!("{name} must be a number from {least} to {most}");
                        return Err(Refusal::bad(what));
                    }
                }
                Fits::OneOf(words) => {
                    if !words.contains(&&**value) {
                        return Err(Refusal::bad(format!("{name} must be one of {}", words.join(", "))));
                    }
                }
            }
        }
        Ok(Asked { values, query, request, still, is_operator })
    }

    /// What stands for the first name in the path.
    pub(super) fn name(&self) -> &str {
        self.values.first().map_or("", String::as_str)
    }

    /// A parameter.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A parameter that is a number.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// The body, which is JSON.
    pub(super) async fn body(&mut self) -> Result<Value, Refusal> {
        let body = std::mem::take(self.request.body_mut());
        let read = tokio::time::timeout(WITHIN, axum::body::to_bytes(body, LARGEST)).await;
        let bytes: Bytes = match read {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(_)) => {
                return Err(Refusal::new(
                    413,
                    format!("the body must be whole, and at most {LARGEST} bytes"),
                ));
            }
            Err(_) => return Err(Refusal::new(408, "the body did not come in time")),
        };
        serde_json::from_slice(&bytes)
            .map_err(|error| Refusal::bad(format!("the body must be JSON: {error}")))
    }
}

/// Why something is not answered.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) sentence: String,
    /// The methods that would be answered.
    pub(super) allowed: Option<String>,
}

impl Refusal {
    pub(super) fn new(status: u16, sentence: impl Into<String>) -> Refusal {
        Refusal { status, sentence: sentence.into(), allowed: None }
    }

    pub(super) fn bad(sentence: impl Into<String>) -> Refusal {
        Refusal::new(400, sentence)
    }

    pub(super) fn not_found() -> Refusal {
        Refusal::new(404, "not found: GET /api/openapi.json says what there is, to those who may know")
    }

    pub(super) fn method(allowed: String) -> Refusal {
        let sentence = format!("method not allowed: use {allowed}");
        Refusal { status: 405, sentence, allowed: Some(allowed) }
    }
}

/// An answer in JSON.
pub(super) fn json(status: u16, body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(format!("{body}\n")));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

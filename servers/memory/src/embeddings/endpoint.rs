//! [`Endpoint`]: a service that makes vectors of texts, and speaks as OpenAI's does: `POST {base}/embeddings`.

use std::time::{Duration, SystemTime};

use http::header::AUTHORIZATION;
use http::{HeaderValue, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_service::layers::Circuit;
use tidegate_web::{Attempts, Backoff, Circuits, Error, Request, Web, retry_after};
use tokio::time::Instant;
use url::Url;

use crate::circuits;
use crate::error::{Code, Fault, Result};

/// How long one answer may take.
const WITHIN: Duration = Duration::from_secs(60);
/// How often a call is tried again: three attempts in all.
const RETRIES: u32 = 2;
/// Another try is worth it if it has this long to answer. Who asks a question does not wait for one.
const ENOUGH: Duration = Duration::from_secs(10);
/// How long to wait before the first other try; then twice as long each time.
const WAIT: Duration = Duration::from_secs(1);
/// How long to wait at most if the service asks for it.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// What is said of a service that takes too long.
const TOO_SLOW: &str = "it did not answer in time";
/// Longest answer.
const MAX_ANSWER: usize = 64 * 1024 * 1024;
/// Most dimensions of a vector.
const MAX_DIMENSIONS: usize = 10_000;

/// A service that makes vectors of texts, and speaks as OpenAI's does.
#[derive(Clone)]
#[non_exhaustive]
pub struct Endpoint {
    /// Where it is, without `/embeddings`: `https://api.openai.com/v1`.
    pub base: String,
    /// The name of the model.
    pub model: String,
    /// The key, if it wants one.
    pub key: Option<String>,
    /// How many dimensions to ask for. As many as the model has, if not given.
    pub dimensions: Option<usize>,
}

impl Endpoint {
    /// A service that wants no key, with as many dimensions as the model has.
    pub fn new(base: impl Into<String>, model: impl Into<String>) -> Endpoint {
        Endpoint { base: base.into(), model: model.into(), key: None, dimensions: None }
    }
}

/// An [`Endpoint`] that can be called.
pub(super) struct Service {
    endpoint: Endpoint,
    url: Url,
    web: Web,
    wait: Duration,
    pub(super) circuit: Circuit,
}

/// Why a call gave nothing.
struct Failed {
    reason: String,
    /// If it is worth another try, and after how long if the service says so.
    again: Option<Option<Duration>>,
    /// Whether it is about these texts rather than the service.
    refused: bool,
    /// Whether the service did not answer, or said that it is in trouble.
    down: bool,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Embedded>,
}

#[derive(Deserialize)]
struct Embedded {
    embedding: Vec<f32>,
    index: Option<usize>,
}

impl Service {
    pub(super) fn new(endpoint: Endpoint) -> Result<Service> {
        let base = endpoint.base.trim_end_matches('/');
        let url = Url::parse(&format!("{base}/embeddings")).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host()).ok_or_else(
            || Fault::input("embeddings base", "must be an address such as https://api.openai.com/v1"),
        )?;
        if endpoint.model.trim().is_empty() {
            return Err(Fault::input("embeddings model", "must not be empty"));
        }
        if endpoint.dimensions.is_some_and(|count| !(1..=MAX_DIMENSIONS).contains(&count)) {
            return Err(Fault::input("embeddings dimensions", format!("must be 1 to {MAX_DIMENSIONS}")));
        }
        let circuit =
            Circuits::one(&format!("the embedding service at {}", url.host_str().unwrap_or_default()));
        Ok(Service { endpoint, url, web: Web::default(), wait: WAIT, circuit })
    }

    /// The model, by a name that differs if its vectors do.
    pub(super) fn name(&self) -> String {
        match self.endpoint.dimensions {
            Some(count) => format!("{}@{count}", self.endpoint.model),
            None => self.endpoint.model.clone(),
        }
    }

    /// The vectors of these texts, in their order. What fails for a while is tried again, but only until `until`. A fault
    /// with the code of wrong input is about the texts, any other about the service.
    pub(super) async fn embed(&self, texts: &[String], until: Instant) -> Result<Vec<Vec<f32>>> {
        let backoff = Backoff { retries: RETRIES, first: self.wait, patience: LONGEST_WAIT };
        let mut attempts = Attempts::new(backoff);
        let pass = circuits::begin(&self.circuit, None)?;
        loop {
            let tried = tokio::time::timeout_at(until, self.call(texts)).await;
            let failed = match tried {
                Ok(Ok(vectors)) => {
                    pass.success();
                    return Ok(vectors);
                }
                Ok(Err(failed)) => failed,
                Err(_) => {
                    pass.failure(TOO_SLOW);
                    return Err(self.fault(TOO_SLOW));
                }
            };
            let left = until.saturating_duration_since(Instant::now()).saturating_sub(ENOUGH);
            match failed.again.and_then(|asked| attempts.again(asked, Some(left), fastrand::f64())) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => {
                    match failed.down {
                        true => pass.failure(&failed.reason),
                        false => pass.success(),
                    }
                    let fault = self.fault(&failed.reason);
                    return Err(match failed.refused {
                        true => Fault { code: Code::InvalidInput, ..fault },
                        false => fault,
                    });
                }
            }
        }
    }

    async fn call(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, Failed> {
        let mut body = json!({"model": self.endpoint.model, "input": texts, "encoding_format": "float"});
        if let Some(count) = self.endpoint.dimensions {
            body["dimensions"] = json!(count);
        }
        let mut request = Request::post_json(self.url.clone(), body.to_string()).within(WITHIN);
        if let Some(key) = &self.endpoint.key {
            let mut value = HeaderValue::try_from(format!("Bearer {key}"))
                .map_err(|_| lasting("its key contains invalid characters".to_owned()))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        let passing = |reason: &str| Failed {
            reason: reason.to_owned(),
            again: Some(None),
            refused: false,
            down: true,
        };
        let answer = self.web.send(request).await.map_err(|error| match error.is_timeout() {
            true => passing(TOO_SLOW),
            false => passing("it cannot be reached"),
        })?;
        let status = answer.status();
        let asked = retry_after(answer.headers(), SystemTime::now()).map(|wait| wait.min(LONGEST_WAIT));
        let bytes = answer.whole(MAX_ANSWER).await.map_err(|error| match error {
            Error::TooLarge(most) => lasting(format!("its response has more than {most} bytes")),
            _ => passing("its response was cut off"),
        })?;
        if !status.is_success() {
            let passing = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
            let refused = matches!(status.as_u16(), 400 | 413 | 422);
            return Err(Failed {
                reason: self.said(status, &bytes),
                again: passing.then_some(asked),
                refused,
                down: status.is_server_error(),
            });
        }
        let answer: Answer = serde_json::from_slice(&bytes)
            .map_err(|_| lasting("its response has no \"data\": [{\"embedding\": […]}]".to_owned()))?;
        self.ordered(answer, texts.len()).map_err(lasting)
    }

    /// The vectors in the order of the texts, if there is one for each.
    fn ordered(&self, answer: Answer, count: usize) -> Result<Vec<Vec<f32>>, String> {
        let mut vectors = vec![Vec::new(); count];
        for (at, one) in answer.data.into_iter().enumerate() {
            let place = vectors.get_mut(one.index.unwrap_or(at)).filter(|place| place.is_empty());
            *place.ok_or_else(|| format!("it was given {count} texts and answered with others"))? =
                one.embedding;
        }
        let wanted = self.endpoint.dimensions.or(vectors.first().map(Vec::len)).unwrap_or_default();
        for vector in &vectors {
            if vector.is_empty() || vector.len() > MAX_DIMENSIONS {
                return Err(format!("it did not answer with a vector for each of {count} texts"));
            }
            if vector.len() != wanted {
                return Err(format!(
                    "its vectors should have {wanted} dimensions, and one has {}",
                    vector.len()
                ));
            }
        }
        Ok(vectors)
    }

    /// What the service says of a failure. What is wrong inside of it is for the log, and not for callers.
    fn said(&self, status: StatusCode, body: &[u8]) -> String {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let error = &body["error"];
        let message =
            error["message"].as_str().or(error.as_str()).or(body["message"].as_str()).unwrap_or_default();
        let mut message: String = message.chars().filter(|c| !c.is_control()).take(300).collect();
        if let Some(key) = self.endpoint.key.as_deref().filter(|key| !key.is_empty()) {
            message = message.replace(key, "…");
        }
        if status.is_server_error() && !message.is_empty() {
            tracing::warn!(%status, message, "the embedding service failed");
            message.clear();
        }
        match message.is_empty() {
            true => format!("it answered {status}"),
            false => format!("it answered {status}: {message}"),
        }
    }

    fn fault(&self, reason: &str) -> Fault {
        let at = self.url.host_str().unwrap_or_default();
        outside(&format!(
            "The embedding model {:?} at {at} returned no vectors: {reason}",
            self.endpoint.model
        ))
    }
}

fn lasting(reason: String) -> Failed {
    Failed { reason, again: None, refused: false, down: false }
}

fn outside(what: &str) -> Fault {
    Fault::new(Code::Outside, what)
}

#[cfg(test)]
#[path = "endpoint_tests.rs"]
mod tests;

//! Asking a provider: sending, hearing, and asking again when it was busy.

use std::time::{Duration, Instant, SystemTime};

use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::Value;
use tidegate_protocol::sse::SseDecoder;
use tidegate_service::layers::Pass;
use tidegate_web::{Answer, Attempts, Backoff, Request as Sent};

use super::conversation::{ModelReply, Request};
use super::{Kind, ModelChoice, Models, Provider, RequestStyle, anthropic, openai, plain};
use crate::circuits;
use crate::error::{Code, Fault, Result};

/// How long one answer may take at the very most; agents have less.
pub(super) const WITHIN: Duration = Duration::from_secs(600);
/// How often a provider that was busy is asked again.
const AGAIN: u32 = 2;
/// The longest wait that a provider may ask for.
const PATIENCE: Duration = Duration::from_secs(30);
/// Most bytes of one answer.
pub(super) const MAX_ANSWER: usize = 8 * 1024 * 1024;
/// Most bytes of one event of a stream.
const MAX_EVENT: usize = 4 * 1024 * 1024;
/// Most bytes of a refusal that are read, and most characters that are told.
const MAX_REFUSAL: usize = 64 * 1024;
const TOLD: usize = 300;

/// A piece of what a model writes.
pub(crate) enum Delta<'a> {
    /// Text, which may have the answer in it.
    Text(&'a str),
    /// The JSON of the answer, given by the tool for that.
    Answer(&'a str),
    /// What was written so far is void: the model is asked again.
    Again,
}

/// Hears what a model writes while it does.
pub(crate) type OnDelta<'a> = &'a mut (dyn FnMut(Delta<'_>) + Send);

/// Why there is no answer.
enum ProviderFailure {
    /// It will not be better next time.
    Final(Fault),
    /// It may be better with less asked of the endpoint.
    Refused(Fault),
    /// The limit of tokens has another name there.
    OtherLimit,
    /// It may be better after a while: after how long, if the provider says so, and whether it is down rather than busy.
    Later { fault: Fault, wait: Option<Duration>, down: bool },
}

impl From<Fault> for ProviderFailure {
    fn from(fault: Fault) -> ProviderFailure {
        ProviderFailure::Final(fault)
    }
}

impl ProviderFailure {
    /// The provider does not answer as it should.
    fn down(fault: Fault) -> ProviderFailure {
        ProviderFailure::Later { fault, wait: None, down: true }
    }
}

pub(super) fn outside(message: String) -> Fault {
    Fault::new(Code::Outside, message)
}

/// Asks a model. `manner` is what works with it: what it does not take is left out from then on. A model that failed
/// three times in a row, each time after all attempts, is not asked for a while; others of its provider are.
pub(crate) async fn say(
    models: &Models,
    chosen: ModelChoice<'_>,
    model: &str,
    request: &Request<'_>,
    manner: &mut RequestStyle,
    until: Instant,
    heard: OnDelta<'_>,
) -> Result<ModelReply> {
    let mut newer = false;
    let mut attempts = Attempts::new(Backoff { retries: AGAIN, first: models.pause, patience: PATIENCE });
    let pass = models.leave(chosen.provider, Some(model), Some(until))?;
    loop {
        let trouble = match attempt(models, chosen.provider, model, request, (*manner, newer), heard).await {
            Ok(said) => {
                pass.success();
                return Ok(said);
            }
            Err(trouble) => trouble,
        };
        match trouble {
            ProviderFailure::Final(fault) => {
                pass.success();
                return Err(fault);
            }
            ProviderFailure::OtherLimit => newer = true,
            ProviderFailure::Refused(fault) => match manner.less() {
                Some(less) => *manner = less,
                None => {
                    pass.success();
                    return Err(fault);
                }
            },
            ProviderFailure::Later { fault, wait, down } => {
                let Some(wait) = attempts.again(wait, None, fastrand::f64()) else {
                    // One that is only busy is there.
                    if down {
                        pass.failure(&fault.message);
                    }
                    return Err(fault);
                };
                tracing::debug!(provider = %chosen.provider.name, ?wait, %fault, "asking a model again");
                heard(Delta::Again);
                tokio::time::sleep(wait).await;
            }
        }
    }
}

impl Models {
    /// Leave to ask a model of a provider, unless that one keeps failing; or for what is about no model.
    pub(super) fn leave(
        &self,
        provider: &Provider,
        model: Option<&str>,
        until: Option<Instant>,
    ) -> Result<Pass> {
        let name = provider.known_as();
        let circuit = match model {
            Some(model) => self.circuits.part(&name, model),
            None => self.circuits.of(&name),
        };
        circuits::begin(&circuit, until)
    }
}

pub(super) fn address(provider: &Provider, what: &str) -> Result<url::Url> {
    let base = provider.base_url.trim_end_matches('/');
    let between = if provider.kind == Kind::Anthropic && !base.ends_with("/v1") { "/v1" } else { "" };
    let at = url::Url::parse(&format!("{base}{between}/{what}")).ok();
    at.filter(|at| matches!(at.scheme(), "http" | "https")).ok_or_else(|| {
        outside(format!("The URL of the provider {} is not an http or https URL", provider.name))
    })
}

pub(super) fn headers(provider: &Provider) -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    if let Some(key) = &provider.api_key {
        let (name, value) = match provider.kind {
            Kind::Anthropic => ("x-api-key".parse().ok(), key.reveal().to_owned()),
            Kind::OpenAi => (Some(AUTHORIZATION), format!("Bearer {}", key.reveal())),
        };
        let mut value = HeaderValue::from_str(&value).map_err(|_| {
            outside(format!("The API key of the provider {} contains invalid characters", provider.name))
        })?;
        value.set_sensitive(true);
        if let Some(name) = name {
            headers.insert(name, value);
        }
    }
    if provider.kind == Kind::Anthropic {
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
    }
    Ok(headers)
}

async fn attempt(
    models: &Models,
    provider: &Provider,
    model: &str,
    request: &Request<'_>,
    (manner, newer): (RequestStyle, bool),
    heard: OnDelta<'_>,
) -> Result<ModelReply, ProviderFailure> {
    let (what, body) = match provider.kind {
        Kind::Anthropic => ("messages", anthropic::body(request, model, manner)),
        Kind::OpenAi => ("chat/completions", openai::body(request, model, manner, newer)),
    };
    let asked = Sent::post_json(address(provider, what)?, body.to_string()).headers(headers(provider)?);
    let response = models
        .web
        .send(asked.within(WITHIN))
        .await
        .map_err(|error| ProviderFailure::down(unreachable(provider, &error)))?;
    if !response.status().is_success() {
        return Err(refusal(provider, model, newer, response).await);
    }
    let mut said = read_reply(provider, request, response, heard).await?;
    if said.model.is_empty() {
        said.model = model.to_owned();
    }
    if manner == RequestStyle::Plain {
        plain::read(&mut said, request);
    }
    Ok(said)
}

/// An answer on its way, in the words of its provider.
enum Reader {
    Anthropic(anthropic::Reader),
    OpenAi(openai::Reader),
}

impl Reader {
    fn event(&mut self, data: &str, heard: OnDelta<'_>) -> Result<()> {
        match self {
            Reader::Anthropic(reader) => reader.event(data, heard),
            Reader::OpenAi(reader) => reader.event(data, heard),
        }
    }
}

/// Reads the answer as it comes.
async fn read_reply(
    provider: &Provider,
    request: &Request<'_>,
    mut response: Answer,
    heard: OnDelta<'_>,
) -> Result<ModelReply, ProviderFailure> {
    let broken = |why: &str| {
        ProviderFailure::down(outside(format!("The response of the provider {} {why}", provider.name)))
    };
    let in_one_piece = response.header(CONTENT_TYPE).starts_with("application/json");
    let mut reader = match provider.kind {
        Kind::Anthropic => Reader::Anthropic(anthropic::Reader::default()),
        Kind::OpenAi => Reader::OpenAi(openai::Reader::default()),
    };
    let (mut events, mut whole, mut bytes) = (SseDecoder::new(MAX_EVENT), Vec::new(), 0);
    let mut take = |reader: &mut Reader, data: &str| reader.event(data, &mut *heard);
    // What a provider says about itself in the middle of its answer may be over in a moment.
    let later = |fault: Fault| {
        let what = hide(provider, fault).message;
        ProviderFailure::down(outside(format!(
            "The provider {} failed while it was answering: {what}",
            provider.name
        )))
    };
    loop {
        let piece = match response.chunk().await {
            Ok(Some(piece)) => piece,
            Ok(None) => break,
            Err(_) => return Err(broken("was cut off")),
        };
        bytes += piece.len();
        if bytes > MAX_ANSWER {
            return Err(ProviderFailure::Final(outside(format!(
                "The response of the provider {} is too long",
                provider.name
            ))));
        }
        match in_one_piece {
            true => whole.extend_from_slice(&piece),
            false => each_event(&mut events, &piece, |data| take(&mut reader, data)).map_err(later)?,
        }
    }
    if in_one_piece {
        let message: Value = serde_json::from_slice(&whole).map_err(|_| broken("is not valid JSON"))?;
        match &mut reader {
            Reader::Anthropic(reader) => reader.read_message(&message),
            Reader::OpenAi(reader) => reader.read_message(&message),
        }
    } else {
        // Some end their stream without the empty line after the last event.
        each_event(&mut events, b"\n\n", |data| take(&mut reader, data)).map_err(later)?;
    }
    let said = match reader {
        Reader::Anthropic(reader) => reader.finish(),
        Reader::OpenAi(reader) => reader.finish(request.turns.len()),
    };
    said.ok_or_else(|| broken("was cut off"))
}

/// Hands over the data of each event that this piece of the stream completes.
fn each_event(events: &mut SseDecoder, piece: &[u8], mut each: impl FnMut(&str) -> Result<()>) -> Result<()> {
    events.push(piece);
    while let Some(event) = events.next_event() {
        let event = event.map_err(|_| outside("The model sent an event that is too long".to_owned()))?;
        each(&event.data)?;
    }
    Ok(())
}

/// What is to be done about a status that is no success.
async fn refusal(provider: &Provider, model: &str, newer: bool, response: Answer) -> ProviderFailure {
    let (status, name) = (response.status(), &provider.name);
    let wait = tidegate_web::retry_after(response.headers(), SystemTime::now());
    let body = response.beginning(MAX_REFUSAL).await;
    let code = status.as_u16();
    let why = match serde_json::from_slice::<Value>(&body) {
        Ok(body) => hide(provider, provider_error(body.get("error").unwrap_or(&body))).message,
        Err(_) => "no details".to_owned(),
    };
    let said = |what: String| outside(format!("{what} ({code}): {why}"));
    match code {
        // Not even a part of what it says about the key is told.
        401 | 403 => ProviderFailure::Final(outside(format!(
            "The provider {name} rejected the API key ({code}): check the key, and that it may use the model {model}"
        ))),
        404 => ProviderFailure::Final(said(format!("The provider {name} does not know the model {model}"))),
        400 | 422 if !newer && why.contains("max_completion_tokens") => ProviderFailure::OtherLimit,
        400 | 422 | 501 => {
            ProviderFailure::Refused(said(format!("The provider {name} rejected the request")))
        }
        429 => ProviderFailure::Later {
            fault: said(format!("The provider {name} has received too many requests")),
            wait,
            down: false,
        },
        _ if status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT => {
            let what = if code == 529 { "is overloaded" } else { "failed" };
            let fault = said(format!("The provider {name} {what}"));
            ProviderFailure::Later { fault, wait, down: status.is_server_error() }
        }
        _ => ProviderFailure::Final(said(format!("The provider {name} returned an unexpected status"))),
    }
}

/// What a provider says of an error.
pub(super) fn provider_error(error: &Value) -> Fault {
    let text = error.as_str().or_else(|| error["message"].as_str()).or_else(|| error["detail"].as_str());
    let text = text.unwrap_or("no details").trim();
    let mut short: String = text.chars().filter(|c| !c.is_control()).take(TOLD).collect();
    if text.chars().count() > TOLD {
        short.push('…');
    }
    outside(short)
}

/// The same without the key, should it have been said back.
fn hide(provider: &Provider, mut fault: Fault) -> Fault {
    if let Some(key) = provider.api_key.as_ref().map(super::Secret::reveal).filter(|key| !key.is_empty()) {
        fault.message = fault.message.replace(key, "(secret)");
    }
    fault
}

pub(super) fn unreachable(provider: &Provider, error: &tidegate_web::Error) -> Fault {
    tracing::warn!(provider = %provider.name, %error, "a provider cannot be reached");
    let why = if error.is_timeout() { "it did not answer in time" } else { "the connection failed" };
    outside(format!("The provider {} cannot be reached: {why}", provider.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_the_same_wherever_they_are_cut() {
        let text =
            ": hello\r\nevent: a\r\ndata: {\"ä\":\r\ndata: 1}\r\n\r\n\ndata:two\n\nid: 3\r\rdata: last";
        for size in 1..text.len() {
            let (mut events, mut seen) = (SseDecoder::new(MAX_EVENT), Vec::new());
            for piece in text.as_bytes().chunks(size).chain([&b"\n\n"[..]]) {
                let each = |data: &str| {
                    seen.push(data.to_owned());
                    Ok(())
                };
                each_event(&mut events, piece, each).unwrap();
            }
            assert_eq!(seen, ["{\"ä\":\n1}", "two", "last"], "in pieces of {size}");
        }
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut events = SseDecoder::new(MAX_EVENT);
        let piece = vec![b'x'; 1 << 20];
        let taken = (0..5).try_for_each(|_| each_event(&mut events, &piece, |_| Ok(())));
        assert!(taken.unwrap_err().message.contains("too long"));
    }
}

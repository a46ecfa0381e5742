//! Asking a provider: sending, hearing, and asking again when it was busy.

use std::time::{Duration, Instant};

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use serde_json::Value;
use tidegate_service::layers::Pass;

use super::sse::Events;
use super::talk::{Request, Said};
use super::{Chosen, Kind, Manner, Models, Provider, anthropic, openai, plain};
use crate::circuits;
use crate::store::{Code, Fault, Result};

/// How long one answer may take at the very most; agents have less.
const WITHIN: Duration = Duration::from_secs(600);
/// How often a provider that was busy is asked again.
const AGAIN: u32 = 2;
/// The longest wait that a provider may ask for.
const PATIENCE: Duration = Duration::from_secs(30);
/// Most bytes of one answer.
pub(super) const MAX_ANSWER: usize = 8 * 1024 * 1024;
/// Most bytes of a refusal that are read, and most characters that are told.
const MAX_REFUSAL: usize = 64 * 1024;
const TOLD: usize = 300;

/// A piece of what a model writes.
pub(crate) enum Piece<'a> {
    /// Text, which may have the answer in it.
    Text(&'a str),
    /// The JSON of the answer, given by the tool for that.
    Answer(&'a str),
    /// What was written so far is void: the model is asked again.
    Again,
}

/// Hears what a model writes while it does.
pub(crate) type Heard<'a> = &'a mut (dyn FnMut(Piece<'_>) + Send);

/// Why there is no answer.
enum Trouble {
    /// It will not be better next time.
    Final(Fault),
    /// It may be better with less asked of the endpoint.
    Refused(Fault),
    /// The limit of tokens has another name there.
    OtherLimit,
    /// It may be better after a while: after how long, if the provider says so, and whether it is down rather than busy.
    Later { fault: Fault, wait: Option<Duration>, down: bool },
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Trouble {
        Trouble::Final(fault)
    }
}

impl Trouble {
    /// The provider does not answer as it should.
    fn down(fault: Fault) -> Trouble {
        Trouble::Later { fault, wait: None, down: true }
    }
}

pub(super) fn outside(message: String) -> Fault {
    Fault::new(Code::Outside, message)
}

/// Asks a model. `manner` is what works with it: what it does not take is left out from then on. A model that failed
/// three times in a row, each time after all attempts, is not asked for a while; others of its provider are.
pub(crate) async fn say(
    models: &Models,
    chosen: Chosen<'_>,
    model: &str,
    request: &Request<'_>,
    manner: &mut Manner,
    until: Instant,
    heard: Heard<'_>,
) -> Result<Said> {
    let (mut again, mut newer) = (0, false);
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
            Trouble::Final(fault) => {
                pass.success();
                return Err(fault);
            }
            Trouble::OtherLimit => newer = true,
            Trouble::Refused(fault) => match manner.less() {
                Some(less) => *manner = less,
                None => {
                    pass.success();
                    return Err(fault);
                }
            },
            Trouble::Later { fault, wait, down } => {
                // A little of chance, so that not everybody who was sent away comes back together.
                let chance = Duration::from_millis(tidegate_service::epoch_ms() % 97);
                let wait = wait.unwrap_or_else(|| models.pause * 2u32.pow(again) + chance);
                if again == AGAIN || wait > PATIENCE {
                    // One that is only busy is there.
                    if down {
                        pass.failure(&fault.message);
                    }
                    return Err(fault);
                }
                tracing::debug!(provider = %chosen.provider.name, ?wait, %fault, "asking a model again");
                again += 1;
                heard(Piece::Again);
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

    pub(super) fn client(&self) -> Result<&reqwest::Client> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let made = crate::web::client(WITHIN)?
            .build()
            .map_err(|error| outside(format!("The HTTP client for models cannot be created: {error}")))?;
        Ok(self.client.get_or_init(|| made))
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
    (manner, newer): (Manner, bool),
    heard: Heard<'_>,
) -> Result<Said, Trouble> {
    let (what, body) = match provider.kind {
        Kind::Anthropic => ("messages", anthropic::body(request, model, manner)),
        Kind::OpenAi => ("chat/completions", openai::body(request, model, manner, newer)),
    };
    let asked = models.client()?.post(address(provider, what)?).headers(headers(provider)?).json(&body);
    let response = asked.send().await.map_err(|error| Trouble::down(unreachable(provider, &error)))?;
    if !response.status().is_success() {
        return Err(refusal(provider, model, newer, response).await);
    }
    let mut said = hear(provider, request, response, heard).await?;
    if said.model.is_empty() {
        said.model = model.to_owned();
    }
    if manner == Manner::Plain {
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
    fn event(&mut self, data: &str, heard: Heard<'_>) -> Result<()> {
        match self {
            Reader::Anthropic(reader) => reader.event(data, heard),
            Reader::OpenAi(reader) => reader.event(data, heard),
        }
    }
}

/// Reads the answer as it comes.
async fn hear(
    provider: &Provider,
    request: &Request<'_>,
    mut response: Response,
    heard: Heard<'_>,
) -> Result<Said, Trouble> {
    let broken =
        |why: &str| Trouble::down(outside(format!("The response of the provider {} {why}", provider.name)));
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let in_one_piece = kind.starts_with("application/json");
    let mut reader = match provider.kind {
        Kind::Anthropic => Reader::Anthropic(anthropic::Reader::default()),
        Kind::OpenAi => Reader::OpenAi(openai::Reader::default()),
    };
    let (mut events, mut whole, mut bytes) = (Events::default(), Vec::new(), 0);
    let mut take = |reader: &mut Reader, data: &str| reader.event(data, &mut *heard);
    // What a provider says about itself in the middle of its answer may be over in a moment.
    let later = |fault: Fault| {
        let what = hide(provider, fault).message;
        Trouble::down(outside(format!(
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
            return Err(Trouble::Final(outside(format!(
                "The response of the provider {} is too long",
                provider.name
            ))));
        }
        match in_one_piece {
            true => whole.extend_from_slice(&piece),
            false => events.take(&piece, |data| take(&mut reader, data)).map_err(later)?,
        }
    }
    if in_one_piece {
        let message: Value = serde_json::from_slice(&whole).map_err(|_| broken("is not valid JSON"))?;
        match &mut reader {
            Reader::Anthropic(reader) => reader.whole(&message),
            Reader::OpenAi(reader) => reader.whole(&message),
        }
    } else {
        events.end(|data| take(&mut reader, data)).map_err(later)?;
    }
    let said = match reader {
        Reader::Anthropic(reader) => reader.finish(),
        Reader::OpenAi(reader) => reader.finish(request.turns.len()),
    };
    said.ok_or_else(|| broken("was cut off"))
}

/// What is to be done about a status that is no success.
async fn refusal(provider: &Provider, model: &str, newer: bool, response: Response) -> Trouble {
    let (status, name) = (response.status(), &provider.name);
    let wait = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let wait = wait.filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0 && *seconds < 1e9);
    let body = bounded(response, MAX_REFUSAL).await;
    let code = status.as_u16();
    let why = match serde_json::from_slice::<Value>(&body) {
        Ok(body) => hide(provider, told(body.get("error").unwrap_or(&body))).message,
        Err(_) => "no details".to_owned(),
    };
    let said = |what: String| outside(format!("{what} ({code}): {why}"));
    match code {
        // Not even a part of what it says about the key is told.
        401 | 403 => Trouble::Final(outside(format!(
            "The provider {name} rejected the API key ({code}): check the key, and that it may use the model {model}"
        ))),
        404 => Trouble::Final(said(format!("The provider {name} does not know the model {model}"))),
        400 | 422 if !newer && why.contains("max_completion_tokens") => Trouble::OtherLimit,
        400 | 422 | 501 => Trouble::Refused(said(format!("The provider {name} rejected the request"))),
        429 => Trouble::Later {
            fault: said(format!("The provider {name} has received too many requests")),
            wait: wait.map(Duration::from_secs_f64),
            down: false,
        },
        _ if status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT => {
            let what = if code == 529 { "is overloaded" } else { "failed" };
            let (fault, wait) =
                (said(format!("The provider {name} {what}")), wait.map(Duration::from_secs_f64));
            Trouble::Later { fault, wait, down: status.is_server_error() }
        }
        _ => Trouble::Final(said(format!("The provider {name} returned an unexpected status"))),
    }
}

/// What a provider says of an error.
pub(super) fn told(error: &Value) -> Fault {
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

pub(super) fn unreachable(provider: &Provider, error: &reqwest::Error) -> Fault {
    tracing::warn!(provider = %provider.name, error = %error_text(error), "a provider cannot be reached");
    let why = if error.is_timeout() { "it did not answer in time" } else { "the connection failed" };
    outside(format!("The provider {} cannot be reached: {why}", provider.name))
}

/// The error and its causes, without the address: it may hold a password.
fn error_text(error: &reqwest::Error) -> String {
    let mut text = if error.is_connect() { "no connection".to_owned() } else { "no answer".to_owned() };
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

/// As much of a body as is wanted.
pub(super) async fn bounded(mut response: Response, most: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Ok(Some(piece)) = response.chunk().await {
        bytes.extend_from_slice(&piece);
        if bytes.len() > most {
            break;
        }
    }
    bytes
}

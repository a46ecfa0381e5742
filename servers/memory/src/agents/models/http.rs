//! Asking a provider: sending, hearing, and asking again when it was busy.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use serde_json::Value;

use super::sse::Events;
use super::talk::{Request, Said};
use super::{Chosen, Kind, Manner, Models, Provider, anthropic, openai, plain};
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

/// Hears how many bytes of text have come.
pub(crate) type Heard<'a> = &'a mut (dyn FnMut(usize) + Send);

/// Why there is no answer.
enum Trouble {
    /// It will not be better next time.
    Final(Fault),
    /// It may be better with less asked of the endpoint.
    Refused(Fault),
    /// The limit of tokens has another name there.
    OtherLimit,
    /// It may be better after a while.
    Later(Fault, Option<Duration>),
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Trouble {
        Trouble::Final(fault)
    }
}

pub(super) fn outside(message: String) -> Fault {
    Fault::new(Code::Outside, message)
}

/// Asks a model. `manner` is what works with it: what it does not take is left out from then on.
pub(crate) async fn say(
    models: &Models,
    chosen: Chosen<'_>,
    model: &str,
    request: &Request<'_>,
    manner: &mut Manner,
    heard: Heard<'_>,
) -> Result<Said> {
    let (mut again, mut newer) = (0, false);
    loop {
        let trouble = match attempt(models, chosen.provider, model, request, (*manner, newer), heard).await {
            Ok(said) => return Ok(said),
            Err(trouble) => trouble,
        };
        match trouble {
            Trouble::Final(fault) => return Err(fault),
            Trouble::OtherLimit => newer = true,
            Trouble::Refused(fault) => *manner = manner.less().ok_or(fault)?,
            Trouble::Later(fault, wait) => {
                // A little of chance, so that not everybody who was sent away comes back together.
                let chance = Duration::from_millis(tidegate_service::epoch_ms() % 97);
                let wait = wait.unwrap_or_else(|| models.pause * 2u32.pow(again) + chance);
                if again == AGAIN || wait > PATIENCE {
                    return Err(fault);
                }
                tracing::debug!(provider = %chosen.provider.name, ?wait, %fault, "asking a model again");
                again += 1;
                tokio::time::sleep(wait).await;
            }
        }
    }
}

impl Models {
    pub(super) fn client(&self) -> Result<&reqwest::Client> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let made = crate::web::client(WITHIN)?
            .build()
            .map_err(|error| outside(format!("No connection to models can be made: {error}")))?;
        Ok(self.client.get_or_init(|| made))
    }
}

pub(super) fn address(provider: &Provider, what: &str) -> Result<url::Url> {
    let base = provider.base_url.trim_end_matches('/');
    let between = if provider.kind == Kind::Anthropic && !base.ends_with("/v1") { "/v1" } else { "" };
    let at = url::Url::parse(&format!("{base}{between}/{what}")).ok();
    at.filter(|at| matches!(at.scheme(), "http" | "https")).ok_or_else(|| {
        outside(format!("The address of the provider {} is no http or https address", provider.name))
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
            outside(format!("The key of the provider {} has characters that no key has", provider.name))
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
    let response = asked.send().await.map_err(|error| Trouble::Later(unreachable(provider, &error), None))?;
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
    fn event(&mut self, data: &str) -> Result<usize> {
        match self {
            Reader::Anthropic(reader) => reader.event(data),
            Reader::OpenAi(reader) => reader.event(data),
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
    let broken = |why: &str| {
        Trouble::Later(outside(format!("The answer of the provider {} {why}", provider.name)), None)
    };
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let in_one_piece = kind.starts_with("application/json");
    let mut reader = match provider.kind {
        Kind::Anthropic => Reader::Anthropic(anthropic::Reader::default()),
        Kind::OpenAi => Reader::OpenAi(openai::Reader::default()),
    };
    let (mut events, mut whole, mut bytes) = (Events::default(), Vec::new(), 0);
    let mut take = |reader: &mut Reader, data: &str| {
        heard(reader.event(data)?);
        Ok(())
    };
    // What a provider says about itself in the middle of its answer may be over in a moment.
    let later = |fault: Fault| {
        let what = hide(provider, fault).message;
        Trouble::Later(
            outside(format!("The provider {} failed amid its answer: {what}", provider.name)),
            None,
        )
    };
    loop {
        let piece = match response.chunk().await {
            Ok(Some(piece)) => piece,
            Ok(None) => break,
            Err(_) => return Err(broken("broke off")),
        };
        bytes += piece.len();
        if bytes > MAX_ANSWER {
            return Err(Trouble::Final(outside(format!(
                "The answer of the provider {} is too long",
                provider.name
            ))));
        }
        match in_one_piece {
            true => whole.extend_from_slice(&piece),
            false => events.take(&piece, |data| take(&mut reader, data)).map_err(later)?,
        }
    }
    if in_one_piece {
        let message: Value = serde_json::from_slice(&whole).map_err(|_| broken("is no JSON"))?;
        match &mut reader {
            Reader::Anthropic(reader) => reader.whole(&message),
            Reader::OpenAi(reader) => reader.whole(&message)?,
        }
    } else {
        events.end(|data| take(&mut reader, data)).map_err(later)?;
    }
    let said = match reader {
        Reader::Anthropic(reader) => reader.finish(),
        Reader::OpenAi(reader) => reader.finish(request.turns.len()),
    };
    said.ok_or_else(|| broken("broke off"))
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
        Err(_) => "it says nothing more".to_owned(),
    };
    let said = |what: String| outside(format!("{what} ({code}): {why}"));
    match code {
        // Not even a part of what it says about the key is told.
        401 | 403 => Trouble::Final(outside(format!(
            "The provider {name} refused the key ({code}): check the key, and that it may use the model {model}"
        ))),
        404 => Trouble::Final(said(format!("The provider {name} does not know the model {model}"))),
        400 | 422 if !newer && why.contains("max_completion_tokens") => Trouble::OtherLimit,
        400 | 422 | 501 => Trouble::Refused(said(format!("The provider {name} refused what was asked"))),
        429 => Trouble::Later(
            said(format!("The provider {name} has had too many requests")),
            wait.map(Duration::from_secs_f64),
        ),
        _ if status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT => {
            let what = if code == 529 { "is overloaded" } else { "failed" };
            Trouble::Later(said(format!("The provider {name} {what}")), wait.map(Duration::from_secs_f64))
        }
        _ => Trouble::Final(said(format!("The provider {name} did not answer"))),
    }
}

/// What a provider says of an error.
pub(super) fn told(error: &Value) -> Fault {
    let text = error.as_str().or_else(|| error["message"].as_str()).or_else(|| error["detail"].as_str());
    let text = text.unwrap_or("it says nothing more").trim();
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
    let why = if error.is_timeout() { "it did not answer in time" } else { "there is no connection to it" };
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

//! [`Models`]: which models agents are run by, and how each is asked.
//!
//! Two kinds of endpoints are spoken to: Anthropic's Messages API, and what OpenAI's chat completions have become the
//! common form of (Ollama, llama.cpp, vLLM and many more). What differs between them stays in here.

pub(crate) mod answer;
mod anthropic;
mod choose;
mod conversation;
mod env;
mod http;
mod names;
mod openai;
mod plain;
mod sampling;

use std::fmt;
use std::time::Duration;

use tidegate_web::{Circuits, Web};

use crate::circuits;

pub(crate) use choose::ModelChoice;
pub(crate) use choose::check;
pub(crate) use conversation::{ANSWER, ModelReply, Request, ToolCall, ToolOffer, ToolReply, Turn, Usage};
pub(crate) use http::{Delta, say};
pub(crate) use names::name_of;
pub(crate) use plain::RequestStyle;
pub(crate) use sampling::say as sample;

/// Which models agents are run by. With no provider, the client's own model is asked.
#[derive(Debug)]
#[non_exhaustive]
pub struct Models {
    /// Where models are, in the order in which they are preferred.
    pub providers: Vec<Provider>,
    /// The model that is used if neither the caller nor the agent names one: `name`, or `provider/name`.
    pub default_model: Option<String>,
    /// How long to wait before a provider that was overloaded is asked again; twice as long each further time.
    pub pause: Duration,
    /// The way out.
    web: Web,
    /// Which providers and models keep failing.
    circuits: Circuits,
}

impl Default for Models {
    fn default() -> Models {
        Models {
            providers: Vec::new(),
            default_model: None,
            pause: Duration::from_secs(1),
            web: Web::default(),
            circuits: Circuits::new(PROVIDERS),
        }
    }
}

/// How many providers and models are remembered for having failed.
const PROVIDERS: usize = 256;

impl Models {
    /// These providers.
    pub fn new(providers: impl IntoIterator<Item = Provider>) -> Models {
        Models { providers: providers.into_iter().collect(), ..Models::default() }
    }

    /// The providers, and the state of their circuits: that of the worst of their models.
    pub(crate) fn circuits(&self) -> Vec<(&str, serde_json::Value)> {
        let one = |provider: &'_ Provider| circuits::shown(&self.circuits.peek(&provider.known_as()));
        self.providers.iter().map(|provider| (provider.name.as_str(), one(provider))).collect()
    }
}

/// Somewhere that models can be asked.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Provider {
    /// A name for it, to be used in `provider/model`.
    pub name: String,
    /// What it speaks.
    pub kind: Kind,
    /// Where it is: what `/v1/messages` or `/chat/completions` is put after.
    pub base_url: String,
    /// The key that it wants, if it wants one.
    pub api_key: Option<Secret>,
    /// The models that may be used there, the usual one first. Any, if the list is empty.
    pub models: Vec<String>,
}

/// What a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// The Messages API of Anthropic.
    Anthropic,
    /// Chat completions as OpenAI has them, and Ollama, llama.cpp, vLLM and others have them too.
    OpenAi,
}

impl Provider {
    /// What speaks `kind`, at the address that is known for that.
    pub fn usual(kind: Kind) -> Provider {
        match kind {
            Kind::Anthropic => {
                Provider { api_key: None, ..Provider::anthropic(env::ANTHROPIC, String::new()) }
            }
            Kind::OpenAi => Provider::openai(env::OPENAI),
        }
    }

    /// The same at another address.
    pub fn at(mut self, base_url: impl Into<String>) -> Provider {
        self.base_url = base_url.into();
        self
    }

    /// Anthropic, or whoever speaks like it.
    pub fn anthropic(base_url: impl Into<String>, api_key: impl Into<Secret>) -> Provider {
        Provider {
            name: "anthropic".to_owned(),
            kind: Kind::Anthropic,
            base_url: base_url.into(),
            api_key: Some(api_key.into()),
            models: Vec::new(),
        }
    }

    /// An endpoint that is compatible with OpenAI's. `base_url` usually ends in `/v1`.
    pub fn openai(base_url: impl Into<String>) -> Provider {
        Provider {
            name: "openai".to_owned(),
            kind: Kind::OpenAi,
            base_url: base_url.into(),
            api_key: None,
            models: Vec::new(),
        }
    }

    /// What it is called where it failed.
    fn known_as(&self) -> String {
        format!("the provider {}", self.name)
    }

    /// The same under another name.
    pub fn named(mut self, name: impl Into<String>) -> Provider {
        self.name = name.into();
        self
    }

    /// The same with a key.
    pub fn api_key(mut self, key: impl Into<Secret>) -> Provider {
        self.api_key = Some(key.into());
        self
    }

    /// The same with these models only.
    pub fn models(mut self, models: impl IntoIterator<Item = impl Into<String>>) -> Provider {
        self.models = models.into_iter().map(Into::into).collect();
        self
    }
}

/// A key. It is sent to its provider and shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The key itself.
    fn reveal(&self) -> &str {
        &self.0
    }
}

impl<T: Into<String>> From<T> for Secret {
    fn from(key: T) -> Secret {
        Secret(key.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_not_shown() {
        let models = Models::new([Provider::anthropic("http://127.0.0.1", "sk-very-secret")]);
        let shown = format!("{models:?}");
        assert!(!shown.contains("sk-very") && shown.contains("(secret)"), "{shown}");
    }
}

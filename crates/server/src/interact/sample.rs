//! Asking the client's model.

use serde_json::{Map, Value, json};
use tidegate_protocol::Json;
use tidegate_protocol::content::{Content, Role};

use super::{Ask, Asked, Kind};
use crate::cx::Cx;

/// A question to the client's model.
///
/// ```
/// use tidegate_server::Sample;
///
/// let question = Sample::new().system("Answer with one word.").user("What is the capital of France?").max_tokens(100);
/// ```
#[derive(Debug, Clone)]
pub struct Sample {
    messages: Vec<Value>,
    max_tokens: u64,
    params: Map<String, Value>,
    key: Option<String>,
}

impl Default for Sample {
    fn default() -> Self {
        Sample::new()
    }
}

impl Sample {
    /// An empty conversation, to be answered in at most 1024 tokens.
    pub fn new() -> Sample {
        Sample { messages: Vec::new(), max_tokens: 1024, params: Map::new(), key: None }
    }

    /// The key under which the answer comes back; see [`Ask::key`].
    pub fn key(mut self, key: impl Into<String>) -> Sample {
        self.key = Some(key.into());
        self
    }

    /// Something the user says.
    pub fn user(self, content: impl Into<Content>) -> Sample {
        self.message(Role::User, content)
    }

    /// Something the model said.
    pub fn assistant(self, content: impl Into<Content>) -> Sample {
        self.message(Role::Assistant, content)
    }

    /// One message.
    pub fn message(mut self, role: Role, content: impl Into<Content>) -> Sample {
        self.messages.push(json!({"role": role, "content": content.into()}));
        self
    }

    /// How long the answer may be.
    pub fn max_tokens(mut self, tokens: u64) -> Sample {
        self.max_tokens = tokens;
        self
    }

    fn param(mut self, name: &str, value: impl Into<Value>) -> Sample {
        self.params.insert(name.into(), value.into());
        self
    }

    fn preference(mut self, name: &str, value: impl Into<Value>) -> Sample {
        self.params.entry("modelPreferences").or_insert_with(|| json!({}))[name] = value.into();
        self
    }

    /// The system prompt.
    pub fn system(self, prompt: impl Into<String>) -> Sample {
        self.param("systemPrompt", prompt.into())
    }

    /// The temperature.
    pub fn temperature(self, temperature: f64) -> Sample {
        self.param("temperature", temperature)
    }

    /// Texts at which the answer ends.
    pub fn stop_sequences(self, stops: impl IntoIterator<Item = impl Into<String>>) -> Sample {
        let stops: Vec<String> = stops.into_iter().map(Into::into).collect();
        self.param("stopSequences", stops)
    }

    /// A model that would be welcome, or a part of its name; earlier ones are preferred.
    pub fn model_hint(mut self, name: impl Into<String>) -> Sample {
        let preferences = self.params.entry("modelPreferences").or_insert_with(|| json!({}));
        if let Some(hints) = preferences["hints"].as_array_mut() {
            hints.push(json!({"name": name.into()}));
        } else {
            preferences["hints"] = json!([{"name": name.into()}]);
        }
        self
    }

    /// How much low cost matters, from 0 to 1.
    pub fn cost_priority(self, priority: f64) -> Sample {
        self.preference("costPriority", priority)
    }

    /// How much speed matters, from 0 to 1.
    pub fn speed_priority(self, priority: f64) -> Sample {
        self.preference("speedPriority", priority)
    }

    /// How much intelligence matters, from 0 to 1.
    pub fn intelligence_priority(self, priority: f64) -> Sample {
        self.preference("intelligencePriority", priority)
    }

    /// Which context the client should add: `none`, `thisServer` or `allServers`.
    pub fn include_context(self, which: impl Into<String>) -> Sample {
        self.param("includeContext", which.into())
    }

    /// Tools that the model may use, as definitions on the wire. The client must support tools in sampling.
    pub fn tools(self, tools: Vec<Value>) -> Sample {
        self.param("tools", tools)
    }

    /// How the model is to use the tools: `auto`, `required` or `none`.
    pub fn tool_choice(self, mode: impl Into<String>) -> Sample {
        self.param("toolChoice", json!({"mode": mode.into()}))
    }

    fn asked(mut self, checked: bool) -> Asked {
        let tools = self.params.contains_key("tools") || self.params.contains_key("toolChoice");
        self.params.insert("messages".into(), self.messages.into());
        self.params.insert("maxTokens".into(), self.max_tokens.into());
        Asked { kind: Kind::Sample { tools, checked }, params: Json::from(Value::Object(self.params)) }
    }
}

/// What the model answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampled {
    /// The content blocks, as they came.
    pub content: Vec<Value>,
    /// The model that answered.
    pub model: String,
    /// Why it stopped.
    pub stop_reason: Option<String>,
}

impl Sampled {
    /// The text of the answer, its blocks joined.
    pub fn text(&self) -> String {
        self.content.iter().filter_map(|block| block.get("text")?.as_str()).collect::<Vec<_>>().join("\n")
    }
}

impl Cx {
    /// Asks the client's model.
    pub fn sample(&self, sample: Sample) -> Ask<Sampled> {
        let key = sample.key.clone();
        Ask::new(self, key, Ok(sample.asked(true)), |answer| Ok(sampled(answer)))
    }

    /// Asks the client's model, and takes an answer that is none: what is wrong with it is for the handler to tell.
    /// With [`Cx::sample`] such an answer ends the call with a JSON-RPC error.
    pub fn try_sample(&self, sample: Sample) -> Ask<Result<Sampled, String>> {
        let key = sample.key.clone();
        Ask::new(self, key, Ok(sample.asked(false)), |answer| Ok(check(&answer).map(|()| sampled(answer))))
    }
}

fn sampled(mut answer: Value) -> Sampled {
    let text = |name: &str| answer.get(name).and_then(Value::as_str).map(str::to_owned);
    let (model, stop_reason) = (text("model").unwrap_or_default(), text("stopReason"));
    let content = match answer.get_mut("content").map(Value::take) {
        Some(Value::Array(blocks)) => blocks,
        Some(block) => vec![block],
        None => Vec::new(),
    };
    Sampled { content, model, stop_reason }
}

pub(super) fn check(answer: &Value) -> Result<(), String> {
    if !matches!(answer.get("role").and_then(Value::as_str), Some("assistant" | "user")) {
        return Err("must have a \"role\" that is \"assistant\" or \"user\"".into());
    }
    if !answer.get("model").is_some_and(Value::is_string) {
        return Err("must name its \"model\"".into());
    }
    let block = |b: &Value| b.get("type").is_some_and(Value::is_string);
    match answer.get("content") {
        Some(Value::Array(blocks)) if blocks.iter().all(block) => Ok(()),
        Some(one) if block(one) => Ok(()),
        _ => Err("must have \"content\" with a \"type\"".into()),
    }
}

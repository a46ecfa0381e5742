//! What was written about the memory.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Time;

/// The memory that is part of Tidegate. It is served if a server has builtin = "memory", or if there is no configuration
/// at all.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Memory {
    /// Which of its tools are listed: "core" for those that most assistants need, "all" for every one. Tools that are not
    /// listed can be called all the same. Default "core".
    pub(crate) tools: Option<Listed>,
    /// Where it is kept: a file, or a PostgreSQL database as "postgres://user@host/name". Default: memory.db in tidegate
    /// in the user's directory for data, such as ~/.local/share/tidegate/memory.db.
    pub(crate) store: Option<String>,
    /// Folders whose files can be taken into the memory, by everybody who can call it. Default none.
    pub(crate) folders: Vec<String>,
    /// Whether pages of this machine and of private networks can be taken into the memory. Default false.
    pub(crate) allow_private_addresses: Option<bool>,
    /// How many tenants may have a memory of their own in it, besides the usual one. Those who have one keep it. Default 1000.
    pub(crate) max_tenants: Option<u64>,
    /// What compares texts by meaning: a folder with a static model, or an endpoint. Default: the model that `tidegate model`
    /// brought; without one, search goes by words.
    pub(crate) embeddings: Option<Embeddings>,
    /// The model that agents use if neither they nor the caller name one: its name, or "provider/name". Default: the
    /// first model of the first provider.
    pub(crate) model: Option<String>,
    /// Where models for agents are, by a name for each. Default: what the environment says (ANTHROPIC_API_KEY,
    /// OPENAI_API_KEY, OPENAI_BASE_URL, OLLAMA_HOST), and if that says nothing, the client's own model is asked.
    #[schemars(with = "std::collections::BTreeMap<String, Provider>")]
    pub(crate) models: IndexMap<String, Provider>,
    /// How far an agent may go for one question, with all agents that it asks for its sake.
    pub(crate) agents: Option<Agents>,
}

/// How far an agent may go for one question.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Agents {
    /// How long it may take, such as "60s" or "5m"; the server's `timeout` holds, too. Default "60s".
    pub(crate) time: Option<Time>,
    /// How often a model may be asked, the answer included; answers that do not fit are asked for again besides. Default 8.
    pub(crate) steps: Option<u64>,
    /// How many tokens may be used, in and out together. Default 100000.
    pub(crate) tokens: Option<u64>,
}

/// Which tools are listed.
#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Listed {
    Core,
    All,
}

/// What compares texts by meaning.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Embeddings {
    /// A folder with a static model as model2vec writes it: model.safetensors, tokenizer.json, config.json.
    pub(crate) folder: Option<String>,
    /// An endpoint that speaks as OpenAI's does, such as "http://127.0.0.1:11434/v1".
    pub(crate) url: Option<String>,
    /// The model to use there.
    pub(crate) model: Option<String>,
    /// The key that the endpoint wants. Default none.
    pub(crate) api_key: Option<String>,
}

/// Somewhere that models can be asked.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Provider {
    /// What it speaks: "anthropic" for the Messages API, "openai" for chat completions as OpenAI, Ollama, llama.cpp and
    /// vLLM have them.
    pub(crate) kind: ProviderKind,
    /// Its address. Default: that of Anthropic or OpenAI.
    pub(crate) url: Option<String>,
    /// The key that it wants. Default none.
    pub(crate) api_key: Option<String>,
    /// The models that may be used there, the usual one first. Default: any.
    #[serde(default)]
    pub(crate) models: Vec<String>,
}

/// What a provider speaks.
#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ProviderKind {
    Anthropic,
    Openai,
}

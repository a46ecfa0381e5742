//! `[memory]` of a configuration as it is written. The comments on the fields are what people read in their editors.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;
use tidegate_builtin::Time;

/// The built-in memory. It is served if a server has builtin = "memory", or if there is no configuration at all.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Memory {
    /// Which of its tools are listed: "core" for those that most assistants need, "all" for every one. Tools that are not
    /// listed can still be called. Default "core".
    pub(crate) tools: Option<Listed>,
    /// Where it is stored: a file, or a PostgreSQL database such as "postgres://user@host/name". Default:
    /// tidegate/memory.db in the user's data directory, such as ~/.local/share/tidegate/memory.db.
    pub(crate) store: Option<String>,
    /// Folders whose files can be ingested by everybody who can call the memory. Default none.
    pub(crate) folders: Vec<String>,
    /// Whether pages on this machine and in private networks can be ingested. Default false.
    pub(crate) allow_private_addresses: Option<bool>,
    /// How many tenants may have a memory of their own, besides the default one. Existing tenants keep theirs. Default 1000.
    pub(crate) max_tenants: Option<u64>,
    /// What compares texts by meaning: a folder with a static model, or an endpoint. Default: the model that `tidegate model`
    /// installed; without one, search goes by words.
    pub(crate) embeddings: Option<Embeddings>,
    /// The model that agents use if neither they nor the caller name one: its name, or "provider/name". Default: the
    /// first model of the first provider.
    pub(crate) model: Option<String>,
    /// Model providers for agents, by name. Default: from the environment (ANTHROPIC_API_KEY, OPENAI_API_KEY,
    /// OPENAI_BASE_URL, OLLAMA_HOST), and if none of these is set, the client's own model.
    #[schemars(with = "std::collections::BTreeMap<String, Provider>")]
    pub(crate) models: IndexMap<String, Provider>,
    /// Limits for what an agent may do for one question, including all agents that it asks in turn.
    pub(crate) agents: Option<Agents>,
}

/// Limits for what an agent may do for one question.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Agents {
    /// How long it may take, such as "60s" or "5m"; the server's `timeout` applies, too. Default "60s".
    pub(crate) time: Option<Time>,
    /// How often a model may be asked, including for the answer; invalid answers are requested again in addition. Default 8.
    pub(crate) steps: Option<u64>,
    /// How many tokens may be used, input and output together. Default 100000.
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
    /// A folder with a static model in the format of model2vec: model.safetensors, tokenizer.json, config.json.
    pub(crate) folder: Option<String>,
    /// An OpenAI-compatible endpoint, such as "http://127.0.0.1:11434/v1".
    pub(crate) url: Option<String>,
    /// The model to use there.
    pub(crate) model: Option<String>,
    /// The API key of the endpoint. Default none.
    pub(crate) api_key: Option<String>,
}

/// A model provider.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Provider {
    /// Its API: "anthropic" for the Messages API, "openai" for chat completions as OpenAI, Ollama, llama.cpp and vLLM offer
    /// them.
    pub(crate) kind: ProviderKind,
    /// Its URL. Default: that of Anthropic or OpenAI.
    pub(crate) url: Option<String>,
    /// Its API key. Default none.
    pub(crate) api_key: Option<String>,
    /// The models that may be used there, the default one first. Default: any.
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

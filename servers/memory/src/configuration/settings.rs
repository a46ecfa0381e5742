//! [`MemorySettings`]: what `[memory]` of a configuration means.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// What the memory that is part of the program is told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemorySettings {
    /// Whether all tools are listed, and not only those that most assistants need. All can be called.
    pub all_tools: bool,
    /// Where it is kept; `None` for the usual place.
    pub store: Option<MemoryStore>,
    /// Folders whose files can be taken into it.
    pub folders: Vec<PathBuf>,
    /// Whether pages of this machine and its network can be taken into it.
    pub private_addresses: bool,
    /// How many tenants may have a memory in it; `None` for as many as usual.
    pub max_tenants: Option<usize>,
    /// What compares texts by meaning.
    pub embeddings: Option<Embeddings>,
    /// Where models for agents are, in the order in which they are preferred.
    pub models: Vec<ModelProvider>,
    /// The model that is used if nobody names one.
    pub model: Option<String>,
    /// How far agents may go.
    pub agents: AgentBounds,
}

/// How far an agent may go for one question, with all agents that it asks. What is not said is as it usually is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentBounds {
    /// How long it may take.
    pub time: Option<Duration>,
    /// How often a model may be asked.
    pub steps: Option<usize>,
    /// How many tokens may be used, in and out together.
    pub tokens: Option<u64>,
}

/// Where a memory is kept.
#[derive(Clone, PartialEq, Eq)]
pub enum MemoryStore {
    /// In a file.
    File(PathBuf),
    /// In a PostgreSQL database, by its address, which may hold a password.
    Postgres(String),
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemoryStore::File(path) => write!(f, "File({})", path.display()),
            MemoryStore::Postgres(_) => f.write_str("Postgres"),
        }
    }
}

/// What makes vectors of texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Embeddings {
    /// A static model in a folder.
    Folder(PathBuf),
    /// An endpoint that speaks as OpenAI's does.
    Endpoint {
        /// What `/embeddings` is put after.
        url: String,
        /// The model.
        model: String,
        /// The key that it wants, if it wants one.
        api_key: Option<ApiKey>,
    },
}

/// Somewhere that models can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelProvider {
    /// A name for it.
    pub name: String,
    /// Whether it speaks Anthropic's Messages API, and not OpenAI's chat completions.
    pub anthropic: bool,
    /// Its address; `None` for the provider's own.
    pub url: Option<String>,
    /// The key that it wants, if it wants one.
    pub api_key: Option<ApiKey>,
    /// The models that may be used there; any if there are none.
    pub models: Vec<String>,
}

/// A key. Its `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(pub String);

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey")
    }
}

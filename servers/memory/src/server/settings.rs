//! [`MemoryServerSettings`]: what the memory can be told about where it runs.

use std::path::PathBuf;
use std::time::Duration;

use tidegate_builtin::Allows;
use tidegate_protocol::Profile;
use tidegate_service::BoxDoor;

use crate::embeddings::Embedder;
use crate::models::Models;
use crate::texts::MAX_BYTES;

/// What the memory can be told about where it runs.
#[derive(Default)]
#[non_exhaustive]
pub struct MemoryServerSettings {
    /// Which tools are listed. Every tool can be called all the same.
    pub listed: Listed,
    /// What agents reach tools of other servers through.
    pub tools: Option<BoxDoor>,
    /// What decides whether an agent may use a tool or a resource of the memory in the name of whoever asked it. Without it, it may.
    pub allows: Option<Allows>,
    /// Folders whose files can be taken into the knowledge base, by every caller. None, if none is named.
    pub folders: Vec<PathBuf>,
    /// How large a document may be, in bytes: 10 MB if nothing is said.
    pub max_document_bytes: Option<usize>,
    /// How many tenants may have a memory, besides the usual one: 1000 if nothing is said.
    pub max_tenants: Option<usize>,
    /// Whether every caller is authenticated, but for the user of this machine. Then nobody chooses a tenant or a user:
    /// `tenant_id` and `user_id` are not listed, and whoever sends them can only repeat their own. `false` if nothing is
    /// said; callers that are known can only repeat their own tenant in any case.
    pub is_authenticated: bool,
    /// Whether pages may also be fetched from this machine and its network. Only for a server whose callers may see
    /// everything there.
    pub allow_private_addresses: bool,
    /// The models that agents are run by. With none of them, the client's own model is asked.
    pub models: Models,
    /// How far agents may go.
    pub agents: Bounds,
    /// Whose numbers errors have: by default those of the specification.
    pub errors: Profile,
    /// What makes vectors of texts, so that what means the same is found. Without it, search goes by words.
    pub embeddings: Option<Embedder>,
}

impl MemoryServerSettings {
    /// How large a document may be, in bytes.
    pub(crate) fn max_document_bytes(&self) -> usize {
        self.max_document_bytes.unwrap_or(MAX_BYTES)
    }

    /// The models that the environment speaks of; see [`Models::from_env`] for the variables.
    pub fn models_from_env() -> Models {
        Models::from_env()
    }
}

/// Which tools are listed: an assistant pays for every one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Listed {
    /// The 24 that most assistants need.
    #[default]
    Core,
    /// All of them.
    All,
}

/// How far an agent may go for one question.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Bounds {
    /// How often it may call tools and look at what they give, the answer included.
    pub steps: usize,
    /// How long it may take.
    pub time: Duration,
    /// How many tokens it may use, in and out together.
    pub tokens: u64,
    /// How many tokens each thing that it says may have.
    pub answer_tokens: u64,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { steps: 8, time: Duration::from_secs(60), tokens: 100_000, answer_tokens: 4_096 }
    }
}

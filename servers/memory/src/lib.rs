//! A memory for assistants: a knowledge graph that never forgets.
//!
//! [`server`] makes an MCP server of a [`Store`]. Names and results of its tools are those that assistants know from
//! `server-memory`, and what was changed or deleted can still be looked up: every version of everything is kept.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let store = tidegate_memory::Store::open(folder.path().join("memory.db"))?;
//! let server = tidegate_memory::server(store);
//! # drop(server);
//! # Ok(())
//! # }
//! ```

mod agents;
mod archive;
mod changes;
mod circuits;
mod configuration;
mod documents;
mod embeddings;
mod error;
mod graph;
mod indexing;
mod models;
mod pages;
mod schema;
mod search;
#[doc(hidden)]
pub mod search_benchmark;
mod server;
mod store;
mod texts;
mod undo;
mod uri;

pub use archive::file::Imported;
pub use archive::history::Counts;
pub use archive::read::Problem;
pub use configuration::{
    AgentBounds, ApiKey, Embeddings, MemorySettings, MemoryStore, ModelProvider, builtin, usual_models,
};
pub use embeddings::{Embedder, Endpoint, HUGGING_FACE, MODEL_FILES, download};
pub use error::{Code, Fault};
pub use graph::history::{EntityVersion, RelationVersion};
pub use graph::model::{Entity, Graph, Properties, Relation};
pub use graph::relations::Direction;
pub use models::{Kind as ProviderKind, Models, Provider, Secret};
pub use server::page::{PAGE, PageFile, page};
pub use server::settings::{Bounds, Listed, MemoryServerSettings};
pub use server::{server, server_with};
pub use store::{Memory, Store, backup, tenant_key};

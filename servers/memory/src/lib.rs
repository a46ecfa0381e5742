//! A memory for assistants: a knowledge graph that never forgets.
//!
//! [`server`] makes an MCP server of a [`Store`]. Names and results of its tools are those that assistants know from
//! `server-memory`, and what was changed or deleted can still be looked up: every version of everything is kept.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = std::env::temp_dir().join(format!("tidegate-memory-doc-{}", std::process::id()));
//! let store = tidegate_memory::Store::open(folder.join("memory.db"))?;
//! let server = tidegate_memory::server(store);
//! # drop(server);
//! # std::fs::remove_dir_all(folder)?;
//! # Ok(())
//! # }
//! ```

mod agents;
mod circuits;
mod configuration;
mod devflow;
mod documents;
mod embed;
mod escape;
mod graph;
mod jsonl;
#[doc(hidden)]
pub mod measured;
mod options;
mod page;
mod prompts;
mod resources;
mod search;
mod store;
mod telling;
mod tenant;
mod tools;
mod touched;

use std::sync::Arc;

use tidegate_server::{Cx, Server, ServerDoor};

pub use agents::models::{Kind as ProviderKind, Models, Provider, Secret};
pub use configuration::{
    AgentBounds, ApiKey, Embeddings, MemorySettings, MemoryStore, ModelProvider, builtin, usual_models,
};
pub use embed::{Embedder, Endpoint, HUGGING_FACE, MODEL_FILES, download};
pub use graph::history::{EntityVersion, RelationVersion};
pub use graph::model::{Entity, Graph, Properties, Relation};
pub use graph::relations::Direction;
pub use jsonl::file::Imported;
pub use jsonl::read::Problem;
pub use jsonl::whole::Counts;
pub use options::{Bounds, Listed, Options};
pub use page::{PAGE, PageFile, page};
pub use store::{Code, Fault, Memory, Store, backup};

/// Whose memory it is if nobody says who calls.
const DEFAULT_TENANT: &str = "default";

/// What [`Store::of`] knows a tenant by, or whoever calls without one.
pub fn tenant_key(tenant: Option<&str>) -> String {
    tenant.map_or(DEFAULT_TENANT.to_owned(), |tenant| format!("tenant:{tenant}"))
}

/// What the tools remember with.
#[derive(Clone)]
pub(crate) struct Recall {
    store: Store,
    options: Arc<Options>,
    /// What finds by meaning, if there is a model for that.
    meaning: Option<embed::Meaning>,
    /// The agents that are being asked.
    runs: agents::Runs,
    /// What pages are fetched with.
    pages: Arc<documents::Fetcher>,
}

impl Recall {
    /// The memory of whoever calls: that of their tenant, or their own, or where nobody is known the one that they name.
    fn of(&self, cx: &Cx) -> Memory {
        // Whoever calls may watch, and others may change what they watch.
        self.store.look_at_others();
        let (principal, mut memory) = (cx.principal(), self.store.of(&tenant::of(cx)));
        if let Some(name) = tenant::chosen(cx) {
            memory = memory.asked_for_as(&name);
        }
        let client = cx.client_info().and_then(|info| info.to::<serde_json::Value>().ok());
        let name = client.as_ref().and_then(|info| info["name"].as_str());
        match principal.subject.as_deref().or(name) {
            Some(who) => memory.by(who),
            None => memory,
        }
    }
}

/// The memory server, as it is without any settings.
pub fn server(store: Store) -> ServerDoor {
    server_with(store, Options::default())
}

/// The memory server.
pub fn server_with(store: Store, options: Options) -> ServerDoor {
    if let Some(most) = options.max_tenants {
        store.limit_tenants(most);
    }
    let meaning = options.embeddings.clone().map(|embedder| embed::Meaning::new(embedder, &store));
    let recall = Recall {
        pages: Arc::new(documents::Fetcher::new(&options)),
        store,
        options: Arc::new(options),
        meaning,
        runs: agents::Runs::default(),
    };
    let server = Server::new("tidegate-memory", env!("CARGO_PKG_VERSION")).title("Memory").instructions(
        "A persistent memory: a graph of entities, their observations and properties, and the relations between \
             them. Search it (search_nodes) before you ask the user, and store what will be useful later \
             (create_entities, add_observations, create_relations). Nothing is lost: get_entity_history shows earlier \
             versions, and undo reverts a change.",
    );
    let server = server.error_profile(recall.options.errors);
    let server = tools::add(server, &recall);
    let server = documents::add(server, &recall);
    let server = agents::add(server, &recall);
    let server = embed::add(server, &recall);
    let server = resources::add(server, &recall);
    let server = page::add(server, &recall);
    let server = match recall.options.listed {
        Listed::Core => server.listed(|name| tools::CORE.contains(&name)),
        Listed::All => server,
    };
    let door = prompts::add(server, &recall).build();
    telling::begin(&recall.store, &door.handle());
    door
}

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

mod graph;
mod jsonl;
mod prompts;
mod resources;
mod store;
mod tools;

use tidegate_server::{Json, Principal, Server, ServerDoor};

pub use graph::history::{EntityVersion, RelationVersion};
pub use graph::model::{Entity, Graph, Relation};
pub use graph::relations::Direction;
pub use store::{Code, Fault, Memory, Store};

/// Whose memory it is if nobody says who calls.
const DEFAULT_TENANT: &str = "default";

/// What the tools remember with.
#[derive(Clone)]
pub(crate) struct Recall {
    store: Store,
}

impl Recall {
    /// The memory of whoever calls: that of their tenant, or their own.
    fn of(&self, principal: &Principal, client: Option<&Json>) -> Memory {
        // A tenant and a person of the same name are not the same, and neither is nobody.
        let tenant = match (&principal.tenant, &principal.subject) {
            (Some(tenant), _) => format!("tenant:{tenant}"),
            (None, Some(subject)) => format!("subject:{subject}"),
            (None, None) => DEFAULT_TENANT.to_owned(),
        };
        let memory = self.store.of(&tenant);
        let client = client.and_then(|info| info.to::<serde_json::Value>().ok());
        let name = client.as_ref().and_then(|info| info["name"].as_str());
        match principal.subject.as_deref().or(name) {
            Some(who) => memory.by(who),
            None => memory,
        }
    }
}

/// The memory server.
pub fn server(store: Store) -> ServerDoor {
    let recall = Recall { store };
    let server = Server::new("tidegate-memory", env!("CARGO_PKG_VERSION")).title("Memory").instructions(
        "A lasting memory: a graph of entities, what is known of them, and how they are connected. Look here \
             (search_nodes) before you ask, and keep what is worth knowing next time (create_entities, \
             add_observations, create_relations). Nothing is lost: get_entity_history shows what was.",
    );
    let server = tools::add(server, &recall);
    let server = resources::add(server, &recall);
    prompts::add(server, &recall).build()
}

//! The server: what assistants and people see of the memory, put together.

pub(crate) mod agents;
pub(crate) mod notices;
pub(crate) mod page;
pub(crate) mod prompts;
pub(crate) mod resources;
pub(crate) mod runs;
pub(crate) mod settings;
pub(crate) mod state;
pub(crate) mod tenant;
pub(crate) mod tools;

use std::sync::Arc;

use tidegate_server::{Server, ServerDoor, ToolError};

use settings::{Listed, MemoryServerSettings};
use state::ServerState;

use crate::indexing;
use crate::search::SearchEngine;
use crate::store::Store;
use crate::texts::Fetcher;

/// The memory server, as it is without any settings.
pub fn server(store: Store) -> ServerDoor {
    server_with(store, MemoryServerSettings::default())
}

/// The memory server.
pub fn server_with(store: Store, settings: MemoryServerSettings) -> ServerDoor {
    if let Some(most) = settings.max_tenants {
        store.limit_tenants(most);
    }
    let state = ServerState {
        search: SearchEngine::new(&store, settings.embeddings.clone(), indexing::text_of_page),
        fetcher: Arc::new(Fetcher::new(settings.allow_private_addresses, settings.max_document_bytes())),
        store,
        settings: Arc::new(settings),
        runs: runs::Runs::default(),
        own_tools,
    };
    let server = Server::new("tidegate-memory", env!("CARGO_PKG_VERSION")).title("Memory").instructions(
        "A persistent memory: a graph of entities, their observations and properties, and the relations between \
             them. Search it (search_nodes) before you ask the user, and store what will be useful later \
             (create_entities, add_observations, create_relations). Nothing is lost: get_entity_history shows earlier \
             versions, and undo reverts a change.",
    );
    let server = server.error_profile(state.settings.errors);
    let server = own_tools(server, &state);
    let server = page::add(server, &state);
    let server = match state.settings.listed {
        Listed::Core => server.listed(|name| tools::CORE.contains(&name)),
        Listed::All => server,
    };
    let door = prompts::add(server, &state).build();
    notices::begin(&state.store, &door.handle(), state.settings.is_authenticated);
    door
}

/// All tools and resources: what clients use, and agents that are asked. Whoever calls, the same is asked of them first.
fn own_tools(server: Server, state: &ServerState) -> Server {
    let is_authenticated = state.settings.is_authenticated;
    let server = server
        .admit(move |call| tenant::gate(call, is_authenticated).map_err(ToolError::from))
        .may_watch(move |principal, uri| tenant::may_watch(principal, uri, is_authenticated));
    let server = tools::add_graph(server, state);
    let server = tools::add_documents(server, state);
    let server = resources::add_documents(server, state);
    let server = agents::add(server, state);
    let server = tools::add_embeddings(server, state);
    resources::add(server, state)
}

//! [`ServerState`]: what every tool, resource and prompt of the server works with.

use std::sync::Arc;

use tidegate_server::{Cx, Server};

use super::runs::Runs;
use super::settings::MemoryServerSettings;
use super::tenant;
use crate::error::Result;
use crate::search::SearchEngine;
use crate::store::{Memory, Store};
use crate::texts::Fetcher;

/// What every tool, resource and prompt of the server works with. Clones are handles on the same.
#[derive(Clone)]
pub(crate) struct ServerState {
    pub(crate) store: Store,
    pub(crate) settings: Arc<MemoryServerSettings>,
    /// Finds by words, and by meaning if there is a model for that.
    pub(crate) search: SearchEngine,
    /// The agents that are being asked.
    pub(crate) runs: Runs,
    /// What pages are fetched with.
    pub(crate) fetcher: Arc<Fetcher>,
    /// Adds what agents may use of the memory itself. It is given from above, because asking an agent is one of these tools.
    pub(crate) own_tools: fn(Server, &ServerState) -> Server,
}

impl ServerState {
    /// The memory of whoever calls: that of their tenant, or their own, or where nobody is known the one that they name.
    /// For tools, which check what is named before they are called.
    pub(crate) fn memory(&self, cx: &Cx) -> Memory {
        // Whoever calls may watch, and others may change what they watch.
        self.store.follow_other_processes();
        let (principal, mut memory) = (cx.principal(), self.store.of(&tenant::store_key(cx)));
        if let Some(name) = tenant::chosen(cx) {
            memory = memory.named_by_caller(&name);
        }
        let client = cx.client_info().and_then(|info| info.to::<serde_json::Value>().ok());
        let name = client.as_ref().and_then(|info| info["name"].as_str());
        // Whom a change is from is told as exactly as it is known.
        match tenant::user_key(principal).as_deref().or(name) {
            Some(who) => memory.by(who),
            None => memory,
        }
    }

    /// The same for whatever is no tool, if the caller may name it.
    pub(crate) fn admitted_memory(&self, cx: &Cx) -> Result<Memory> {
        tenant::admit(cx)?;
        Ok(self.memory(cx))
    }
}

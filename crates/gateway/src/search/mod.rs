//! Tool search: for catalogues that are too large to be shown.
//!
//! Instead of all tools, clients see two of the gateway's own and the favourites of the configuration. `search_tools`
//! finds tools, `call_tool` calls them. Every tool can still be called by its own name, listed or not.

mod call;
mod definitions;
mod fields;
mod find;
mod fuzzy;
mod index;
#[cfg(test)]
mod ranking;
mod words;

use std::sync::Arc;

use bytestring::ByteString;
use tidegate_config::{ToolMode, ToolSettings};
use tidegate_protocol::{Error, Object, Params, Symbol};
use tidegate_service::{Call, Context, Reply};

use crate::build::State;
use crate::endpoints::Endpoint;
use crate::router::Router;
use crate::shown::Listed;
use crate::snapshot::{Row, Table};
use definitions::{CALL, SEARCH};
pub(crate) use index::Index;

/// The names that servers cannot have where tools are listed in this way.
pub(crate) fn own_names(mode: ToolMode) -> &'static [&'static str] {
    match mode {
        ToolMode::All => &[],
        ToolMode::Search => &[SEARCH, CALL],
    }
}

/// The definitions that are listed in this way.
pub(crate) fn shown(table: &Table, tools: &ToolSettings, mode: ToolMode) -> Vec<Listed> {
    let listed = |(name, row): (&ByteString, &Row)| Listed {
        name: name.clone(),
        server: Some(row.server),
        definition: row.definition.clone(),
    };
    let may_be_called = table.iter().filter(|(_, row)| row.withheld.is_none());
    match mode {
        ToolMode::All => may_be_called.map(listed).collect(),
        ToolMode::Search => {
            let favourites = may_be_called.filter(|(name, _)| tools.favourites.matches(name));
            let own = own_names(mode).iter().zip(definitions::own());
            let own = own.map(|(name, definition)| Listed {
                name: ByteString::from_static(name),
                server: None,
                definition,
            });
            own.chain(favourites.map(listed)).collect()
        }
    }
}

impl State {
    /// How tools are listed to whoever makes a call.
    pub(crate) fn mode(&self, context: &Context) -> ToolMode {
        self.endpoints.of(context).and_then(Endpoint::mode).unwrap_or(self.tools.mode)
    }

    /// The gateway's own tools that whoever makes a call has.
    pub(crate) fn own_tools(&self, context: &Context) -> &'static [&'static str] {
        match !self.is_unknown(context) && self.endpoints.of(context).is_none_or(Endpoint::has_tools) {
            true => own_names(self.mode(context)),
            false => &[],
        }
    }

    /// The index of the tools, which whoever first needs it builds. That takes a while: see [`indexed`].
    fn index(&self) -> &Index {
        self.snapshot.index.get_or_init(|| {
            let servers: Vec<&str> = self.mounts.iter().map(|mount| mount.name()).collect();
            Index::new(&self.snapshot.tools, &servers)
        })
    }
}

/// Whether a call is of a tool of the gateway's own.
pub(crate) fn is_own_tool(router: &Router, call: &Call) -> bool {
    let own = router.state.load().own_tools(&call.context);
    !own.is_empty() && call.params.str("name").is_some_and(|name| own.contains(&&*name))
}

/// Calls a tool of the gateway's own.
pub(crate) async fn own_tool(router: &Arc<Router>, call: Call) -> Result<Reply, Error> {
    match call.params.str("name").as_deref() {
        Some(SEARCH) => search(router, &call).await,
        _ => call::call_tool(router, call).await,
    }
}

/// Finds tools, within the limits of the configuration.
async fn search(router: &Arc<Router>, call: &Call) -> Result<Reply, Error> {
    let pass = router.enter_here(call).await?;
    let reply = find::search_tools(router, call).await?;
    pass.map_or(Ok(()), |pass| pass.answered(&reply))?;
    Ok(reply)
}

/// What is on offer, with an index that is ready. Building one is left to a thread that has the time for it.
async fn indexed(router: &Router) -> Result<Arc<State>, Error> {
    let state = router.state.load_full();
    if state.snapshot.index.get().is_none() {
        let building = state.clone();
        let built = tokio::task::spawn_blocking(move || _ = building.index());
        built.await.map_err(|_| Error::internal())?;
    }
    Ok(state)
}

/// The arguments of a call; none if they are left out.
fn arguments(params: &Params) -> Result<Object, Error> {
    match params.json("arguments") {
        None => Ok(Object::empty()),
        Some(arguments) => Object::of(&arguments).ok_or_else(|| wrong("\"arguments\" must be an object")),
    }
}

/// Arguments that the model can put right.
fn wrong(what: impl std::fmt::Display) -> Error {
    Error::new(Symbol::Validation, format!("Invalid arguments: {what}"))
}

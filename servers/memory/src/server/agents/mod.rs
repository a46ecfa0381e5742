//! Agents as clients meet them: asking one, making and finding them, and reading what was said.
//!
//! Asking one ([`ask`]) is a conversation with a model ([`crate::models`]) that goes on until there is an answer which fits the
//! agent's schema ([`run`]), calling tools on the way ([`toolbox`]).

mod answer_text;
mod ask;
mod caller;
mod find;
mod list;
mod manage;
mod resources;
mod run;
mod sessions;
mod streaming;
mod tool_names;
mod tool_output;
mod toolbox;

use tidegate_server::Server;

use super::state::ServerState;

/// The tools and resources about agents.
pub(crate) fn add(server: Server, state: &ServerState) -> Server {
    let server = ask::add(server, state);
    let server = manage::tools(state).into_iter().fold(server, Server::tool);
    let server = list::tools(state).into_iter().fold(server, Server::tool);
    let server = sessions::tools(state).into_iter().fold(server, Server::tool);
    resources::add(server, state)
}

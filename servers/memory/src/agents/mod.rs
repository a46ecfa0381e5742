//! Agents: a system prompt, a schema for answers and tools, run by whatever model there is.
//!
//! An agent is a JSON document ([`agentlet`]). Some come with the server ([`system`]), others are made by people and kept
//! with all their versions ([`kept`]). Asking one ([`ask`]) is a conversation with a model ([`models`]) that goes on until
//! there is an answer which fits the agent's schema ([`run`]), calling tools on the way ([`reach`]); what was said is kept
//! for the next question ([`sessions`]).

mod address;
mod agentlet;
mod answer;
pub(crate) mod archive;
mod ask;
mod budget;
mod caller;
mod check;
mod find;
mod given;
mod index;
mod kept;
mod look;
mod manage;
pub(crate) mod models;
mod names;
mod reach;
mod resources;
mod run;
mod sessions;
mod spoken;
mod system;
mod talks;
mod undo;
mod version;
mod writing;

use tidegate_server::Server;

use crate::Recall;

pub(crate) use budget::Runs;
pub(crate) use index::said;
pub(crate) use reach::depth;
pub(crate) use resources::{OWN, is_of_user, name_at};
pub(crate) use undo::undo;

/// The tables of this module.
pub(crate) const TABLES: &[&str] = &[
    kept::TABLES[0],
    kept::TABLES[1],
    kept::TABLES[2],
    sessions::TABLES[0],
    sessions::TABLES[1],
    sessions::TABLES[2],
    sessions::TABLES[3],
];

/// What came to these tables later.
pub(crate) const LATER: &[&str] = &index::TABLES;

/// What came after that.
pub(crate) const USERS: &[&str] = &kept::LATER;

/// What this module adds to a server: tools, resources and prompts.
pub(crate) fn add(server: Server, recall: &Recall) -> Server {
    let server = ask::add(server, recall);
    let server = manage::tools(recall).into_iter().fold(server, Server::tool);
    let server = look::tools(recall).into_iter().fold(server, Server::tool);
    let server = talks::tools(recall).into_iter().fold(server, Server::tool);
    resources::add(server, recall)
}

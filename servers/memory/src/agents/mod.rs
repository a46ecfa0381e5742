//! Agents: a system prompt, a schema for answers and tools, as they are kept.
//!
//! An agent is a JSON document ([`agentlet`]). Some come with the server ([`system`]), others are made by people and kept
//! with all their versions ([`repository`]). What was said to them and by them is kept for the next question ([`sessions`]).
//! Who runs them is [`crate::server::agents`].

pub(crate) mod address;
pub(crate) mod agentlet;
pub(crate) mod check;
pub(crate) mod index;
pub(crate) mod owner;
pub(crate) mod repository;
pub(crate) mod sessions;
pub(crate) mod system;
mod undo;
pub(crate) mod version;

pub(crate) use index::page_text;
pub(crate) use undo::undo;

/// The tables of this module.
pub(crate) const TABLES: &[&str] = &[
    repository::TABLES[0],
    repository::TABLES[1],
    repository::TABLES[2],
    sessions::TABLES[0],
    sessions::TABLES[1],
    sessions::TABLES[2],
    sessions::TABLES[3],
];

/// What came with undo and search: what a change did to agents can be undone, and they can be found.
pub(crate) const PAGES: &[&str] = &index::TABLES;

/// What came after that: agents are each user's own.
pub(crate) const OWNERS: &[&str] = &repository::OWNERS;

/// What came last: an agent is found by its user and name alone.
pub(crate) const ANYWHERE: &[&str] =
    &["CREATE INDEX agents_anywhere ON agents (owner, name) WHERE gone IS NULL"];

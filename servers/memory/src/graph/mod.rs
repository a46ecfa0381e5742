//! The knowledge graph: entities, what is known of them, and how they are connected. Nothing in it is ever overwritten.

pub(crate) mod decay;
pub(crate) mod entities;
pub(crate) mod history;
pub(crate) mod model;
pub(crate) mod pages;
pub(crate) mod read;
pub(crate) mod relations;
pub(crate) mod search;

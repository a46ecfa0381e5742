//! The memory server, as clients see it.

mod agents;
mod archive;
mod arguments;
mod asking;
mod cluster;
mod documents;
mod edit;
mod files;
mod finding;
mod graph;
mod ingest;
mod isolation;
mod kill;
mod knowledge;
mod lending;
#[path = "../../src/embeddings/loopback.rs"]
mod loopback;
mod meaning;
mod modules;
#[cfg(feature = "postgres")]
mod pgvector;
mod portable;
#[cfg(feature = "postgres")]
mod postgres;
mod properties;
mod provider;
mod resources;
mod retract;
mod rig;
mod search;
mod shapes;
mod sharing;
mod surface;
mod tenants;
mod timeline;
mod undo;
mod walk;
mod watching;

//! [`EndpointPath`]: an endpoint beside the default one.

use std::sync::Arc;

/// An endpoint beside the default one: its name, which every call that comes in there carries, and its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointPath {
    /// The name, as in `Context::endpoint`.
    pub name: Arc<str>,
    /// Where it is, for example `/research/mcp`.
    pub path: String,
}

impl EndpointPath {
    /// The endpoint `name` at `path`.
    pub fn new(name: impl Into<Arc<str>>, path: impl Into<String>) -> EndpointPath {
        EndpointPath { name: name.into(), path: path.into() }
    }
}

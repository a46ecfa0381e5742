//! Tests against other people's MCP implementations. Nothing lives here: this crate is its tests, `tests/rmcp` with
//! clients of others and `tests/servers` with servers of others, and the small servers (`servers`) of the latter.

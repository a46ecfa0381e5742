//! Tests against other people's MCP implementations. Nothing lives here: this crate is its tests, `tests/rmcp` with rmcp
//! as a client of our servers and `tests/servers` with servers of others, and the small servers (`servers`) and clients
//! (`clients`) of the latter, with an identity provider (`identity`).

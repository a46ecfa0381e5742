//! Differential tests against other people's MCP implementations. Nothing lives here: this crate is its tests.

//! Servers from npm: the reference servers, and version 2 of the TypeScript SDK.

mod everything;
mod memory;
mod typescript;

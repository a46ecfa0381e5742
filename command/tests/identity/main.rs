//! Who calls `tidegate serve`, and what they see of each other: the built program with `[auth]`, over HTTP.
//!
//! [`issuer`] is an identity provider of a few lines, which signs whatever a test wants signed. [`rig`] is the program with a
//! configuration, and its callers: Ann and Bob of the tenant reef, Cid of the tenant tide, and another Ann whom another issuer knows.
//! [`http`] is how they talk to it, [`upstreams`] are the servers behind it.
//!
//! Then come the promises of docs/security.md, one file each. `apart` has a table of everything that is kept for a caller, and what
//! the others get who ask for it.
#![cfg(unix)]

mod http;
mod issuer;
mod rig;
mod upstreams;

mod apart;
mod challenges;
mod conformance;
mod endpoints;
mod headers;
mod keys;
mod providers;
mod sessions;
mod tenants;
mod tokens;

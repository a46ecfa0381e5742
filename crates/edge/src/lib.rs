//! Inbound transports: whatever drives a [`Door`](tidegate_service::Door) from outside.
//!
//! [`stdio`] speaks newline-delimited JSON over the standard streams (or any pair of streams); [`http`] is
//! Streamable HTTP as an axum `Router` that can be mounted anywhere. Both serve all revisions at once: a modern
//! request stands alone and becomes a call as it is; a legacy client's handshake opens a session, and the session's
//! requests become the same kind of call. Nothing behind the edge knows the difference.

mod budget;
mod call_id;
mod edge_settings;
pub mod http;
mod in_flight;
mod legacy;
mod modern;
mod notifications;
mod required_scopes;
mod session_store;
pub mod stdio;
mod traffic;
mod wire;

pub use edge_settings::{EdgeSettings, Eras};

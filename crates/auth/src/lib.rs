//! Who calls: API keys, JWT access tokens, opaque tokens, and what an OAuth 2.1 protected resource tells its clients.
//!
//! [`Authenticator`] is the whole of it: it verifies credentials, remembers those that are good, and makes the layer
//! [`Authenticate`] for the gap of `tidegate_edge::http::front` and the layer [`ScopeGate`] for doors. Each kind of credential has a
//! room of its own, which answers with [`Verified`] or a [`Refusal`].

mod auth_error;
mod authenticate;
mod authenticator;
mod authorized_body;
mod bearer;
mod cache;
mod credential;
mod inactive;
pub mod introspection;
mod issuers;
pub mod jwt;
pub mod keys;
mod metadata;
mod refusal;
mod refusal_detail;
mod refused_logins;
mod reload_log;
mod resource;
mod scope_gate;
mod scopes;
mod tenant_name;
mod verified;

pub use auth_error::AuthError;
pub use authenticate::{Authenticate, AuthenticateFuture};
pub use authenticator::Authenticator;
pub use refusal::Refusal;
pub use resource::ProtectedResource;
pub use scope_gate::{ScopeGate, ScopeGateFuture, ScopeGateLayer};
pub use tenant_name::is_tenant_name;
pub use verified::Verified;

//! Who calls: API keys, JWT access tokens, opaque tokens, and what an OAuth 2.1 protected resource tells its clients.

pub mod introspection;
pub mod jwt;
pub mod keys;
mod refusal;
mod tenant_name;
mod verified;

pub use refusal::Refusal;
pub use tenant_name::is_tenant_name;
pub use verified::Verified;

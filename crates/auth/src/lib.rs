//! Who calls: API keys, JWT access tokens, opaque tokens, and what an OAuth 2.1 protected resource tells its clients.

mod refusal;
mod verified;

pub use refusal::Refusal;
pub use verified::Verified;

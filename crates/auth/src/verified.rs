//! [`Verified`]: what a good credential says.

use std::sync::Arc;

use tidegate_service::Identity;

/// What a good credential says.
#[derive(Debug, Clone)]
pub struct Verified {
    /// Whose it is, always with claims.
    pub identity: Identity,
    /// Whom it is for: `aud` of a token; empty for a key.
    pub audiences: Vec<Arc<str>>,
    /// Of a key: only these endpoints, by name; `default` is the default one. `None` for all.
    pub endpoints: Option<Vec<Arc<str>>>,
    /// When it ends, in milliseconds since 1970.
    pub expires_ms: Option<u64>,
    /// When the verifier wants to be asked again, in milliseconds since 1970.
    pub recheck_ms: Option<u64>,
}

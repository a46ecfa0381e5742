//! The seal on what a caller brings back: names of parked calls and of tasks.

use tidegate_protocol::Error;
use tidegate_protocol::seal::{Binding, Key, Sealer};

/// A sealer of one client alone: what it seals means nothing to another, or after a restart.
pub(crate) fn own_sealer() -> Sealer {
    Sealer::new(Key::new(tidegate_service::random()))
}

/// Seals a few bytes until a moment, for whoever they are bound to.
pub(super) fn seal(
    sealer: &Sealer,
    content: &[u8],
    binding: &Binding<'_>,
    expires_ms: u64,
) -> Result<String, Error> {
    sealer.seal(content, binding, expires_ms, tidegate_service::random()).ok_or_else(Error::internal)
}

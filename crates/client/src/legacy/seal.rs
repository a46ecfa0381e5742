//! The seal on what a caller brings back: names of parked calls and of tasks.

use tidegate_protocol::Error;
use tidegate_protocol::seal::{Binding, Key, Sealer};

/// A sealer of this client alone: what it seals means nothing to another, or after a restart.
pub(crate) fn sealer() -> Sealer {
    let mut key = [0; 32];
    // Without randomness from the system nothing could be sealed; what is sealed with a guess is only refused.
    if getrandom::fill(&mut key).is_err() {
        fastrand::fill(&mut key);
    }
    Sealer::new(Key::new(key))
}

/// Seals a few bytes until a moment, for whoever they are bound to.
pub(super) fn seal(
    sealer: &Sealer,
    content: &[u8],
    binding: &Binding<'_>,
    expires_ms: u64,
) -> Result<String, Error> {
    let mut nonce = [0; 24];
    getrandom::fill(&mut nonce).map_err(|_| Error::internal())?;
    sealer.seal(content, binding, expires_ms, nonce).ok_or_else(Error::internal)
}

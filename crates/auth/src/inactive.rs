//! [`Inactive`]: opaque tokens that their issuer has said are not good, so that whoever keeps sending one does not make us ask
//! each time.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::cache::Digest;

/// How long such an answer is believed. A token may become good a moment after it was first sent.
const BELIEVED_MS: u64 = 10_000;
const MOST: usize = 8192;

/// Tokens that are not good, at most 8,192. Only looked at for tokens that are not known to be good.
#[derive(Debug, Default)]
pub(crate) struct Inactive(Mutex<HashMap<Digest, u64>>);

impl Inactive {
    pub(crate) fn add(&self, token: Digest, now_ms: u64) {
        let mut tokens = self.lock();
        if tokens.len() >= MOST {
            tokens.retain(|_, until| *until > now_ms);
        }
        // Full of young ones: somebody tries many, and those who come later are asked about.
        if tokens.len() < MOST {
            tokens.insert(token, now_ms + BELIEVED_MS);
        }
    }

    pub(crate) fn has(&self, token: Digest, now_ms: u64) -> bool {
        self.lock().get(&token).is_some_and(|until| *until > now_ms)
    }

    /// Forgets everything: there may be others to ask.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;

    #[test]
    fn believed_for_a_moment_and_never_too_many() {
        let (cache, tokens) = (Cache::new(), Inactive::default());
        let one = cache.digest("one");
        tokens.add(one, 1000);
        assert!(
            tokens.has(one, 10_999) && !tokens.has(one, 11_000) && !tokens.has(cache.digest("two"), 1000)
        );
        for number in 0..10_000 {
            tokens.add(cache.digest(&number.to_string()), 5000);
        }
        assert_eq!(tokens.lock().len(), MOST);
        let late = cache.digest("late");
        tokens.add(late, 20_000);
        assert!(tokens.has(late, 20_001));
        tokens.clear();
        assert!(!tokens.has(late, 20_001));
    }
}

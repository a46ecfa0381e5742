//! [`Cache`]: credentials that were verified lately, found by a hash of their text.
//!
//! The text itself is not kept. The hash is SipHash-1-3 of 128 bits with a random key of the process: nobody outside can make two
//! texts with the same one, and it costs a fraction of what SHA-256 does.
//!
//! There are 256 small maps, each replaced as a whole when something is added, so that a reader takes no lock and writes nothing that
//! others read. Adding copies a map of at most 512 pointers, which is nothing beside the signature that was verified before.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use arc_swap::ArcSwap;
use siphasher::sip128::{Hasher128, SipHasher13};

use crate::credential::Credential;

const SHARDS: usize = 256;
const PER_SHARD: usize = 512;

/// Verified credentials: at most 131,072.
pub(crate) struct Cache {
    key: [u8; 16],
    shards: Box<[Shard]>,
}

type Shard = ArcSwap<HashMap<u128, Arc<Credential>, BuildHasherDefault<Itself>>>;

/// What a credential is found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Digest(u128);

impl Cache {
    pub(crate) fn new() -> Cache {
        let shards = (0..SHARDS).map(|_| Shard::default()).collect();
        Cache { key: tidegate_service::random(), shards }
    }

    pub(crate) fn digest(&self, credential: &str) -> Digest {
        let mut hasher = SipHasher13::new_with_key(&self.key);
        hasher.write(credential.as_bytes());
        Digest(hasher.finish128().as_u128())
    }

    /// The credential with this digest. Whether it is still good is for the caller to see.
    pub(crate) fn get(&self, digest: Digest) -> Option<Arc<Credential>> {
        self.shard(digest).load().get(&digest.0).cloned()
    }

    /// Keeps a credential. A shard that is full loses those that are not good any more, or else any one: whoever it was is verified
    /// again.
    pub(crate) fn insert(&self, digest: Digest, credential: &Arc<Credential>, now_ms: u64) {
        self.shard(digest).rcu(|map| {
            let mut map = HashMap::clone(map);
            if map.len() >= PER_SHARD {
                map.retain(|_, one| one.is_fresh(now_ms));
            }
            if map.len() >= PER_SHARD
                && let Some(victim) = map.keys().next().copied()
            {
                map.remove(&victim);
            }
            map.insert(digest.0, credential.clone());
            map
        });
    }

    pub(crate) fn remove(&self, digest: Digest) {
        let shard = self.shard(digest);
        if shard.load().contains_key(&digest.0) {
            shard.rcu(|map| {
                let mut map = HashMap::clone(map);
                map.remove(&digest.0);
                map
            });
        }
    }

    /// Forgets what is not good any more.
    pub(crate) fn sweep(&self, is_good: impl Fn(&Credential) -> bool) {
        for shard in &self.shards {
            if shard.load().values().any(|one| !is_good(one)) {
                shard.rcu(|map| {
                    let mut map = HashMap::clone(map);
                    map.retain(|_, one| is_good(one));
                    map
                });
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.load().len()).sum()
    }

    fn shard(&self, digest: Digest) -> &Shard {
        // The upper bits: the maps use the lower ones.
        &self.shards[(digest.0 >> 120) as usize % SHARDS]
    }
}

/// The hash of a digest is the digest.
#[derive(Default)]
struct Itself(u64);

impl Hasher for Itself {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, digest: u128) {
        self.0 = digest as u64;
    }
}

#[cfg(test)]
mod tests {
    use tidegate_service::Identity;

    use super::*;
    use crate::credential::{End, Source};
    use crate::issuers::Issuer;
    use crate::verified::Verified;

    fn credential(expires_ms: u64) -> Arc<Credential> {
        let verified = Verified {
            identity: Identity::default(),
            audiences: Vec::new(),
            endpoints: None,
            expires_ms: Some(expires_ms),
            recheck_ms: None,
        };
        Arc::new(Credential::new(verified, Source::Token(Issuer::nobody()), true, 0))
    }

    #[test]
    fn found_by_the_whole_text() {
        let cache = Cache::new();
        let one = credential(10);
        cache.insert(cache.digest("one"), &one, 0);
        assert!(cache.get(cache.digest("one")).is_some_and(|found| Arc::ptr_eq(&found, &one)));
        assert!(cache.get(cache.digest("on")).is_none());
        assert!(cache.get(Cache::new().digest("one")).is_none());
        cache.remove(cache.digest("one"));
        assert_eq!(cache.len(), 0);
    }

    #[test]
    fn never_more_than_there_is_room_for_and_those_that_are_over_go_first() {
        let cache = Cache::new();
        let (old, young) = (credential(10), credential(1000));
        let digests: Vec<Digest> = (0..u128::from(600u32)).map(Digest).collect();
        for digest in &digests[..500] {
            cache.insert(*digest, &old, 0);
        }
        for digest in &digests[500..] {
            cache.insert(*digest, &young, 20);
        }
        assert_eq!(cache.len(), 100);
        for digest in 0..2000 {
            cache.insert(Digest(digest), &young, 20);
        }
        assert_eq!(cache.len(), PER_SHARD);
        assert!(cache.get(Digest(1999)).is_some());
        young.finish(End::Revoked);
        cache.sweep(|one| one.is_fresh(20));
        assert_eq!(cache.len(), 0);
    }
}

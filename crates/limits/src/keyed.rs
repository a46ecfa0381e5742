//! [`KeyedMap`]: something for each tenant, user, tool and so on, for no more of them than there is room for.
//!
//! What is of no more use (a bucket that is full again, a queue with nobody in it) makes room for others. When everything is in use,
//! newcomers share one value for each limit, so that nobody gets past a limit by being many: together they have what one would have alone,
//! until there is room, and whoever finds it begins anew.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ahash::RandomState;
use tokio::time::Instant;

const SHARDS: usize = 64;

/// Whom or what a limit is counted for: which limit, and a keyed hash of the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CounterKey {
    /// The limit, with all that it says: another quota is another limit.
    pub limit: u64,
    /// The limit, and the tenant, user, tool or whatever it is counted for.
    pub subject: u64,
}

impl CounterKey {
    /// Of a keyed hash of whom or what it is counted for. That is secret and spread evenly, so the limit can be added as it is.
    pub(crate) fn new(limit: u64, subject: u64) -> CounterKey {
        CounterKey { limit, subject: subject ^ limit }
    }
}

/// Makes keys: a hash with random keys of the process, so that nobody outside can make two names with the same one. Nothing is trusted to it
/// but who shares a count with whom.
#[derive(Debug)]
pub(crate) struct KeyMaker(RandomState);

impl KeyMaker {
    pub(crate) fn new() -> KeyMaker {
        let [a, b, c, d] = [(); 4].map(|()| u64::from_le_bytes(tidegate_service::random()));
        KeyMaker(RandomState::with_seeds(a, b, c, d))
    }

    /// The hash of some texts, which are told apart by their lengths; what is not there differs from what is empty.
    pub(crate) fn hash<const N: usize>(&self, parts: [Option<&str>; N]) -> u64 {
        self.hash_with(parts, &())
    }

    /// The same, and of something else.
    pub(crate) fn hash_with<const N: usize>(&self, parts: [Option<&str>; N], more: &impl Hash) -> u64 {
        let mut hasher = self.0.build_hasher();
        for part in parts {
            hasher.write_u64(part.map_or(0, |text| text.len() as u64 + 1));
            hasher.write(part.unwrap_or_default().as_bytes());
        }
        more.hash(&mut hasher);
        hasher.finish()
    }
}

/// What was hashed with a key needs no other hash.
#[derive(Default)]
pub(crate) struct Itself(u64);

impl Hasher for Itself {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

pub(crate) type Hashed<V> = HashMap<u64, V, BuildHasherDefault<Itself>>;

/// Something for each key.
#[derive(Debug)]
pub(crate) struct KeyedMap<V> {
    shards: Box<[Mutex<Shard<V>>]>,
    per_shard: usize,
    /// What those share who found no room, by limit.
    shared: Mutex<HashMap<u64, V>>,
}

#[derive(Debug)]
struct Shard<V> {
    map: Hashed<V>,
    /// How many newcomers found no room, one after the other.
    refused: usize,
    /// When somebody last looked for room in vain.
    looked: Option<Instant>,
}

/// Looking for room in a full shard takes time: every so many-th newcomer does, and whoever comes so much later.
const LOOK_EVERY: usize = 64;
const LOOK_AFTER: Duration = Duration::from_millis(100);

impl<V> KeyedMap<V> {
    /// For at most `most` keys.
    pub(crate) fn new(most: usize) -> KeyedMap<V> {
        let shard = || Mutex::new(Shard { map: HashMap::default(), refused: 0, looked: None });
        KeyedMap {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            per_shard: (most / SHARDS).max(1),
            shared: Mutex::default(),
        }
    }

    /// Does something with what a key has. `is_spent` says what is of no more use to anybody.
    pub(crate) fn with<R>(
        &self,
        key: CounterKey,
        is_spent: impl Fn(&V) -> bool,
        make: impl FnOnce() -> V,
        act: impl FnOnce(&mut V) -> R,
    ) -> R {
        let at = (key.subject >> 32) as usize % SHARDS;
        let mut shard = lock(&self.shards[at]);
        let Shard { map, refused, looked } = &mut *shard;
        if let Some(value) = map.get_mut(&key.subject) {
            return act(value);
        }
        if map.len() >= self.per_shard {
            let now = Instant::now();
            let is_time = looked.is_none_or(|looked| now.saturating_duration_since(looked) >= LOOK_AFTER);
            if is_time || refused.is_multiple_of(LOOK_EVERY) {
                map.retain(|_, value| !is_spent(value));
                *looked = Some(now);
            }
            *refused += 1;
        }
        if map.len() < self.per_shard {
            *refused = 0;
            return act(map.entry(key.subject).or_insert_with(make));
        }
        drop(shard);
        let mut shared = lock(&self.shared);
        // There are as many limits as the configuration has, and those of earlier ones.
        if !shared.contains_key(&key.limit) && shared.len() >= self.per_shard {
            shared.retain(|_, value| !is_spent(value));
        }
        act(shared.entry(key.limit).or_insert_with(make))
    }

    /// Looks at everything there is.
    pub(crate) fn for_each(&self, mut look: impl FnMut(&V)) {
        for shard in &self.shards {
            lock(shard).map.values().for_each(&mut look);
        }
        lock(&self.shared).values().for_each(&mut look);
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        let mut count = 0;
        self.for_each(|_| count += 1);
        count
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

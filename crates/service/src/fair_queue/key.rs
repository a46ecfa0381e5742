//! [`FairKey`]: between whom a queue is fair.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::LazyLock;

use crate::principal::Principal;

/// Between whom a queue is fair: tenants, or users. It is a hash with a key of the process, so that it costs no allocation and nobody can
/// choose to be taken for somebody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FairKey(u64);

impl FairKey {
    /// The key of whatever this is.
    pub fn of(what: &(impl Hash + ?Sized)) -> FairKey {
        static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        FairKey(HASHER.hash_one(what))
    }

    /// The tenant of a caller, or the caller where there are no tenants.
    pub fn of_tenant(principal: &Principal) -> FairKey {
        match &principal.tenant {
            Some(tenant) => FairKey::of(&("tenant", tenant)),
            None => FairKey::of(&("user", principal)),
        }
    }

    /// A caller.
    pub fn of_user(principal: &Principal) -> FairKey {
        FairKey::of(&("user", principal))
    }
}

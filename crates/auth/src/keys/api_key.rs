//! [`ApiKey`]: what the file says about a key.

use std::fmt;
use std::sync::Arc;

use super::key_text::KeyHash;

/// One entry of the file. It does not have the key, only its hash.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// Part of the key, and no secret: what tells the keys of a file apart.
    pub id: Arc<str>,
    /// Whose it is: the subject of the principal. A key that was rotated with a grace period has the same name as the new one.
    pub name: Arc<str>,
    /// The tenant of its holder.
    pub tenant: Option<Arc<str>>,
    /// What its holder is.
    pub roles: Vec<Arc<str>>,
    /// What it may be used for; `None` if scopes do not restrict it.
    pub scopes: Option<Vec<Arc<str>>>,
    /// Where it may be used, `default` for the default endpoint; `None` for everywhere.
    pub endpoints: Option<Vec<Arc<str>>>,
    pub(super) hash: KeyHash,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: Option<u64>,
    /// When it ends by itself.
    pub expires_ms: Option<u64>,
    /// When somebody ended it. A key with this is not good any more, whatever the time.
    pub revoked_ms: Option<u64>,
}

/// How a key is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyState {
    /// It opens the door.
    Valid,
    /// Its time is over.
    Expired,
    /// Somebody ended it.
    Revoked,
}

impl ApiKey {
    /// How it is doing at a time.
    pub fn state(&self, now_ms: u64) -> KeyState {
        if self.revoked_ms.is_some() {
            KeyState::Revoked
        } else if self.expires_ms.is_some_and(|end| end <= now_ms) {
            KeyState::Expired
        } else {
            KeyState::Valid
        }
    }

    /// Whether it says the same of its holder as another entry. When it ends may differ.
    pub(super) fn means_the_same(&self, other: &ApiKey) -> bool {
        let lasting = |key: &ApiKey| ApiKey { created_ms: None, expires_ms: None, ..key.clone() };
        lasting(self) == lasting(other)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKey").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

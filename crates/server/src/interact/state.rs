//! Sealing what a call remembers between rounds, and holding what is too large to travel.

use std::collections::HashMap;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use tidegate_protocol::seal::{Binding, digest_of};
use tidegate_protocol::{Error, Symbol};
use tidegate_service::{Call, Principal, epoch_ms};

use super::replay::Memory;
use crate::server::Core;
use crate::text::hex;
use tidegate_service::random;

/// More than this is not worth trying to pack into a state that travels.
const MAX_TRAVEL: usize = 512 * 1024;

/// What a state holds: the memory itself, or where it is.
#[derive(Serialize, Deserialize)]
enum Content<'a> {
    #[serde(rename = "m", borrow)]
    Memory(&'a serde_json::value::RawValue),
    #[serde(rename = "s")]
    Stored(String),
}

/// Seals the memory of a call. Each seal has a fresh nonce, so no two states are alike.
pub(super) fn seal(core: &Core, call: &Call, memory: &Memory) -> Result<String, Error> {
    let unwritable = |error| {
        tracing::error!(%error, "cannot save the state of a call");
        Error::internal()
    };
    let memory = serde_json::value::to_raw_value(memory).map_err(unwritable)?;
    let now = epoch_ms();
    let expires = now + core.settings.state_ttl.as_millis() as u64;
    let (binding, sealer) = (binding(call), core.sealer(call));
    let pack = |content: &Content<'_>| {
        let text = serde_json::to_vec(content).map_err(unwritable)?;
        Ok(sealer.seal(&text, &binding, expires, random()))
    };
    if memory.get().len() <= MAX_TRAVEL
        && let Some(sealed) = pack(&Content::Memory(&memory))?
    {
        return Ok(sealed);
    }
    let id = core.overflow.put(&call.context.principal, memory.get().as_bytes().into(), now, expires)?;
    pack(&Content::Stored(id))?.ok_or_else(Error::internal)
}

/// Opens a state that came back, or refuses it.
pub(super) fn open(core: &Core, call: &Call, sealed: &str) -> Result<Memory, Error> {
    let now = epoch_ms();
    let opened = core.sealer(call).open(sealed, &binding(call), now)?;
    let unreadable = |error: serde_json::Error| {
        // It was sealed by this server or one that shares its key, so a newer or older version of it.
        tracing::warn!(%error, "a request state was written by another version of this server");
        gone()
    };
    match serde_json::from_slice(&opened).map_err(unreadable)? {
        Content::Memory(memory) => serde_json::from_str(memory.get()).map_err(unreadable),
        Content::Stored(id) => {
            let memory = core.overflow.get(&call.context.principal, &id, now).ok_or_else(gone)?;
            serde_json::from_slice(&memory).map_err(unreadable)
        }
    }
}

fn gone() -> Error {
    Error::new(
        Symbol::StateRefused,
        "Invalid params: requestState is no longer known; start again without it",
    )
}

fn binding(call: &Call) -> Binding<'_> {
    call.context.binding(call.method.as_str(), digest_of(&call.params))
}

/// Holds memories that are too large to travel. Bounded, per principal and in all; full is an error for whoever
/// comes, never for whoever is there.
#[derive(Default)]
pub(crate) struct Overflow(Mutex<Shelves>);

#[derive(Default)]
struct Shelves {
    entries: HashMap<String, Entry>,
    bytes: usize,
}

struct Entry {
    owner: Principal,
    memory: Box<[u8]>,
    expires_ms: u64,
}

impl Overflow {
    const MAX_BYTES: usize = 64 * 1024 * 1024;
    const MAX_BYTES_EACH: usize = 8 * 1024 * 1024;

    fn shelves(&self) -> std::sync::MutexGuard<'_, Shelves> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn put(&self, owner: &Principal, memory: Box<[u8]>, now: u64, expires_ms: u64) -> Result<String, Error> {
        let mut shelves = self.shelves();
        let shelves = &mut *shelves;
        shelves.entries.retain(|_, entry| entry.expires_ms >= now);
        shelves.bytes = shelves.entries.values().map(|entry| entry.memory.len()).sum();
        let own: usize = shelves.entries.values().filter(|e| e.owner == *owner).map(|e| e.memory.len()).sum();
        if own + memory.len() > Self::MAX_BYTES_EACH || shelves.bytes + memory.len() > Self::MAX_BYTES {
            let message = "Too much is waiting for answers: finish or let expire other calls first";
            return Err(Error::new(Symbol::RateLimited, message));
        }
        let id = hex(&random::<16>());
        shelves.bytes += memory.len();
        shelves.entries.insert(id.clone(), Entry { owner: owner.clone(), memory, expires_ms });
        Ok(id)
    }

    /// Looking does not take: the same retry may come twice.
    fn get(&self, owner: &Principal, id: &str, now: u64) -> Option<Box<[u8]>> {
        let shelves = self.shelves();
        let entry = shelves.entries.get(id)?;
        (entry.owner == *owner && entry.expires_ms >= now).then(|| entry.memory.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn principal(name: &str) -> Principal {
        Principal::subject(name)
    }

    #[test]
    fn the_overflow_is_bounded_owned_and_forgets() {
        let overflow = Overflow::default();
        let (ann, bob) = (principal("ann"), principal("bob"));
        let id = overflow.put(&ann, vec![1; 5 << 20].into(), 0, 10).unwrap();
        assert!(overflow.get(&ann, &id, 10).is_some());
        assert!(overflow.get(&bob, &id, 10).is_none());
        assert!(overflow.get(&ann, &id, 11).is_none());
        assert!(overflow.put(&ann, vec![1; 5 << 20].into(), 5, 10).is_err(), "too much for one principal");
        assert!(overflow.put(&bob, vec![1; 5 << 20].into(), 5, 10).is_ok());
        assert!(overflow.put(&ann, vec![1; 5 << 20].into(), 11, 20).is_ok(), "what expired makes room");
    }
}

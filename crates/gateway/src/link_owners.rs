//! [`LinkOwners`]: which server last gave an address to whom. Servers link to resources that they list nowhere.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytestring::ByteString;
use tidegate_protocol::seal::Binding;
use tidegate_service::{CallerId, Context, Principal};

use crate::mount::Mount;

/// How many addresses are remembered in all, how long one may be, and how long they may be together.
const MAX: usize = 16 * 1024;
const LONGEST: usize = 8 * 1024;
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// To whom an address was given, and at which endpoint. Nobody is shown what another was given.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Recipient {
    principal: Principal,
    endpoint: Option<Arc<str>>,
    caller: Option<CallerId>,
}

impl Recipient {
    pub(crate) fn of(context: &Context) -> Recipient {
        Recipient {
            principal: context.principal.clone(),
            endpoint: context.endpoint.clone(),
            caller: context.caller,
        }
    }

    /// As [`ContextParts::binding`](tidegate_service::ContextParts::binding), once the context is gone with its call.
    pub(crate) fn binding<'a>(&'a self, method: &'a str, params: [u8; 32]) -> Binding<'a> {
        let endpoint = self.endpoint.as_deref().unwrap_or_default();
        Binding { endpoint, ..self.principal.binding(method, params) }
    }
}

/// Addresses that servers gave to callers, as their servers spell them.
#[derive(Default)]
pub(crate) struct LinkOwners(Mutex<Memory>);

#[derive(Default)]
struct Memory {
    by_uri: HashMap<(Recipient, ByteString), Weak<Mount>>,
    order: VecDeque<(Recipient, ByteString)>,
    /// How long the addresses are together.
    bytes: usize,
}

impl LinkOwners {
    /// A server gave this address to this caller.
    pub(crate) fn note(&self, whom: &Recipient, uri: &str, mount: &Arc<Mount>) {
        if uri.len() > LONGEST {
            return;
        }
        let key = (whom.clone(), ByteString::from(uri));
        let mut memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        memory.insert(key, Arc::downgrade(mount));
    }

    /// The server that last gave this address to this caller.
    pub(crate) fn whose(&self, whom: &Recipient, uri: &str) -> Option<Arc<Mount>> {
        let key = (whom.clone(), ByteString::from(uri));
        let memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        memory.by_uri.get(&key)?.upgrade()
    }
}

impl Memory {
    /// The oldest make room.
    fn insert(&mut self, key: (Recipient, ByteString), mount: Weak<Mount>) {
        let len = key.1.len();
        if self.by_uri.insert(key.clone(), mount).is_some() {
            return;
        }
        self.bytes += len;
        self.order.push_back(key);
        while self.order.len() > MAX || self.bytes > MAX_BYTES {
            let Some(oldest) = self.order.pop_front() else { break };
            self.bytes -= oldest.1.len();
            self.by_uri.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_have_a_bound_in_number_and_in_bytes() {
        let key =
            |n: usize, len: usize| (Recipient::of(&Context::local()), ByteString::from(format!("{n:0len$}")));
        let (mut memory, long) = (Memory::default(), MAX_BYTES / LONGEST);
        for n in 0..2 * long {
            memory.insert(key(n, LONGEST), Weak::new());
            memory.insert(key(n, LONGEST), Weak::new());
        }
        assert_eq!((memory.order.len(), memory.by_uri.len(), memory.bytes), (long, long, MAX_BYTES));
        assert!(
            memory.by_uri.contains_key(&key(2 * long - 1, LONGEST))
                && !memory.by_uri.contains_key(&key(0, LONGEST))
        );
        for n in 0..MAX + 1 {
            memory.insert(key(n, 8), Weak::new());
        }
        assert_eq!((memory.order.len(), memory.by_uri.len(), memory.bytes), (MAX, MAX, MAX * 8));
    }
}

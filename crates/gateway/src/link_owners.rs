//! [`LinkOwners`]: which server last gave an address to whom. Servers link to resources that they list nowhere.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytestring::ByteString;
use tidegate_service::{CallerId, Context, Principal};

use crate::mount::Mount;

/// How many addresses are remembered in all, how long one may be, and how long they may be together.
const MAX: usize = 16 * 1024;
const LONGEST: usize = 8 * 1024;
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// To whom an address was given. Nobody is shown what another was given.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Recipient {
    pub(crate) principal: Principal,
    caller: Option<CallerId>,
}

impl Recipient {
    pub(crate) fn of(context: &Context) -> Recipient {
        Recipient { principal: context.principal.clone(), caller: context.caller }
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
        if memory.by_uri.insert(key.clone(), Arc::downgrade(mount)).is_some() {
            return;
        }
        memory.bytes += uri.len();
        memory.order.push_back(key);
        while memory.order.len() > MAX || memory.bytes > MAX_BYTES {
            let Some(oldest) = memory.order.pop_front() else { break };
            memory.bytes -= oldest.1.len();
            memory.by_uri.remove(&oldest);
        }
    }

    /// The server that last gave this address to this caller.
    pub(crate) fn whose(&self, whom: &Recipient, uri: &str) -> Option<Arc<Mount>> {
        let key = (whom.clone(), ByteString::from(uri));
        let memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        memory.by_uri.get(&key)?.upgrade()
    }
}

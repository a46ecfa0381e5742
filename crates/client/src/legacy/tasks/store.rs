//! [`Tasks`]: the tasks that callers were given, and the seal on what names them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tidegate_protocol::seal::{Sealer, digest};
use tidegate_protocol::{ClientCapabilities, Error, Id, Json, Object, Symbol};
use tidegate_service::{ContextParts, Principal, epoch_ms};

use super::super::parked::Bound;
use super::super::seal::seal;
use super::super::session::UpstreamSession;
use super::live::Live;
use super::shape::{Detail, Shown};
use crate::settings::TaskSettings;
use crate::timer::Timer;

/// In place of a method, for what handles are bound to.
const BOUND: &str = "tasks";

/// The tasks, by a name that only their sealed handle knows.
pub(crate) struct Tasks {
    settings: TaskSettings,
    sealer: Sealer,
    table: Mutex<HashMap<u64, Entry>>,
}

struct Entry {
    live: Arc<Live>,
    owner: Principal,
    /// Ends the task with its time.
    _timer: Timer,
}

impl Tasks {
    pub(crate) fn new(settings: TaskSettings, sealer: Sealer) -> Arc<Tasks> {
        Arc::new(Tasks { settings, sealer, table: Mutex::default() })
    }

    fn table(&self) -> MutexGuard<'_, HashMap<u64, Entry>> {
        self.table.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Whether a caller may have one more task. Nobody else's is thrown out for it, but those that cannot be reached any
    /// more are.
    pub(crate) fn room_for(&self, owner: &Principal) -> Result<(), Error> {
        let gone: Vec<_> = {
            let mut table = self.table();
            let gone: Vec<u64> =
                table.iter().filter(|(_, e)| e.live.is_gone()).map(|(name, _)| *name).collect();
            gone.iter().filter_map(|name| table.remove(name)).collect()
        };
        drop(gone);
        let table = self.table();
        let theirs = table.values().filter(|entry| entry.owner == *owner).count();
        if theirs >= self.settings.per_caller || table.len() >= self.settings.total {
            let what = "Too many tasks are under way. Wait until some of them have ended, or cancel them";
            return Err(Error::new(Symbol::RateLimited, what).unexecuted());
        }
        Ok(())
    }

    /// Gives a task to its caller, under a name of our own that nobody can guess: the server's own id, which it made for
    /// us, may well be `1`.
    pub(crate) fn give_out(
        self: &Arc<Self>,
        session: &Arc<UpstreamSession>,
        (task, id): (&Object, String),
        token: &Id,
        (caller, capabilities): (&Bound, &ClientCapabilities),
    ) -> Result<Json, Error> {
        let ttl = task.get("ttl").and_then(|ms| ms.parse::<f64>().ok()).filter(|ms| *ms >= 0.0);
        let ttl = ttl.map_or(self.settings.max_ttl, |ms| Duration::from_millis(ms.min(1e12) as u64));
        let ttl = ttl.min(self.settings.max_ttl);
        let name = u64::from_le_bytes(tidegate_service::random());
        let expires = epoch_ms() + ttl.as_millis() as u64;
        let handle =
            seal(&self.sealer, &name.to_le_bytes(), &caller.caller_binding(BOUND, digest([])), expires)?;
        let status = task.str("status").unwrap_or_else(|| "working".into());
        let shown = Shown { kind: "task", handle: &handle, status: &status, ttl, detail: Detail::Nothing };
        let json = shown.write(task);
        let live = Live::new(session, id, token, ttl, capabilities.clone());
        let all = Arc::downgrade(self);
        let timer = Timer::after(ttl, move || {
            let expired = all.upgrade().and_then(|all| all.table().remove(&name));
            if let Some(entry) = expired {
                entry.live.give_up();
            }
        });
        self.table().insert(name, Entry { live, owner: caller.principal.clone(), _timer: timer });
        Ok(json)
    }

    /// The task with this handle. Somebody else's does not exist, nor does one that was given out at another endpoint.
    pub(crate) fn find(&self, handle: &str, caller: &ContextParts) -> Result<Arc<Live>, Error> {
        let binding = caller.binding(BOUND, digest([]));
        let name = self.sealer.open(handle, &binding, epoch_ms()).map_err(|_| not_found())?;
        let name = u64::from_le_bytes(name.try_into().map_err(|_| not_found())?);
        self.table().get(&name).map(|entry| entry.live.clone()).ok_or_else(not_found)
    }

    /// The task is gone, with the session that it belonged to.
    pub(crate) fn lost(&self, live: &Arc<Live>) {
        let mut table = self.table();
        let name = table.iter().find(|(_, entry)| Arc::ptr_eq(&entry.live, live)).map(|(name, _)| *name);
        let entry = name.and_then(|name| table.remove(&name));
        drop(table);
        drop(entry);
    }

    /// How many tasks have not ended, as far as anybody knows.
    pub(crate) fn live(&self) -> usize {
        self.table().values().filter(|entry| entry.live.is_live()).count()
    }

    /// Forgets every task.
    pub(crate) fn close(&self) {
        let all = std::mem::take(&mut *self.table());
        drop(all);
    }
}

/// One sentence for every reason, so that a guesser learns nothing.
pub(super) fn not_found() -> Error {
    let what =
        "Task not found: it was never made, has expired, is not yours, or the session it belonged to is over";
    Error::new(Symbol::TaskNotFound, what)
}

//! [`Store`]: all tasks, bounded, each known only to its owner.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tidegate_protocol::{Error, Symbol};
use tidegate_service::{ContextParts, epoch_ms};

use super::task::Task;
use crate::hub::Hub;
use crate::settings::TaskSettings;

/// All tasks of a server.
#[derive(Default)]
pub(crate) struct Store {
    tasks: Mutex<HashMap<String, Arc<Task>>>,
    /// How many bytes the results hold.
    held: Arc<AtomicUsize>,
}

impl Store {
    fn tasks(&self) -> MutexGuard<'_, HashMap<String, Arc<Task>>> {
        self.tasks.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A new task. It can be found before this returns.
    pub(super) fn create(
        &self,
        caller: &ContextParts,
        ttl: Duration,
        settings: &TaskSettings,
        hub: &Arc<Hub>,
    ) -> Result<Arc<Task>, Error> {
        let mut tasks = self.tasks();
        let now = epoch_ms();
        let full = |tasks: &HashMap<String, Arc<Task>>| {
            if tasks.len() >= settings.max_total {
                return Some("The server has too many tasks");
            }
            let own = tasks.values().filter(|task| task.owner == caller.principal).count();
            (own >= settings.max_per_principal).then_some("You have too many tasks")
        };
        // Looking for expired ones is work for all; it is done when there is a need or a chance.
        if full(&tasks).is_some() || tasks.len() % 64 == 63 {
            tasks.retain(|_, task| !task.is_expired(now));
        }
        if let Some(reason) = full(&tasks) {
            let message = format!("{reason}: wait until some have expired");
            return Err(Error::new(Symbol::RateLimited, message));
        }
        let task =
            Arc::new(Task::new(caller, now, ttl, settings.poll_interval, hub.clone(), self.held.clone()));
        tasks.insert(task.id().to_owned(), task.clone());
        Ok(task)
    }

    /// The task with this id, for its owner only.
    pub(crate) fn find(&self, id: &str, caller: &ContextParts) -> Option<Arc<Task>> {
        let mut tasks = self.tasks();
        let task = tasks.get(id).filter(|task| task.is_of(caller))?.clone();
        if task.is_expired(epoch_ms()) {
            tasks.remove(id);
            return None;
        }
        Some(task)
    }

    /// Whether a result of this size can be kept until it is asked for.
    pub(super) fn has_room(&self, bytes: usize, settings: &TaskSettings) -> bool {
        let fits = || self.held.load(Ordering::Relaxed) + bytes <= settings.max_held_bytes;
        if fits() {
            return true;
        }
        let now = epoch_ms();
        self.tasks().retain(|_, task| !task.is_expired(now));
        fits()
    }

    /// Stops everything that still runs.
    pub(crate) fn cancel_all(&self) {
        for task in self.tasks().values() {
            task.end(super::task::Outcome::Cancelled);
            task.cancel.cancel();
        }
    }
}

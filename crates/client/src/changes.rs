//! [`Changes`]: what a server says has changed, and who wants to know.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard};

use tidegate_protocol::Object;
use tidegate_service::{Filter, Notice, Outbox};

use crate::peer::own_log;

/// Called with every change that the server tells, wanted or not: the caches listen here.
type Watcher = Box<dyn Fn(&Notice) + Send + Sync>;
/// Called with log messages that belong to no call.
type Logger = Arc<dyn Fn(&Object) + Send + Sync>;

/// Fans out what a server says has changed.
#[derive(Default)]
pub(crate) struct Changes {
    subscribers: Mutex<Vec<(Filter, Outbox)>>,
    watchers: Mutex<Vec<Watcher>>,
    logger: Mutex<Option<Logger>>,
}

impl Changes {
    fn subscribers(&self) -> MutexGuard<'_, Vec<(Filter, Outbox)>> {
        let mut subscribers = self.subscribers.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        subscribers.retain(|(_, outbox)| !outbox.is_closed() && !outbox.is_abandoned());
        subscribers
    }

    /// Calls `watcher` with every change.
    pub(crate) fn watch(&self, watcher: impl Fn(&Notice) + Send + Sync + 'static) {
        self.watchers.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(Box::new(watcher));
    }

    /// Gives log messages that belong to no call to `logger`.
    pub(crate) fn log_to(&self, logger: Logger) {
        *self.logger.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(logger);
    }

    /// Tells everybody who wants to know.
    pub(crate) fn tell(&self, notice: &Notice) {
        for watcher in self.watchers.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).iter() {
            watcher(notice);
        }
        for (_, outbox) in self.subscribers().iter().filter(|(filter, _)| filter.wants(notice)) {
            outbox.push(notice.clone());
        }
    }

    /// For a while nobody listened to the server: whatever somebody wants to know of may have changed.
    pub(crate) fn gap(&self) {
        for notice in [Notice::ToolsChanged, Notice::PromptsChanged, Notice::ResourcesChanged] {
            for watcher in self.watchers.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).iter() {
                watcher(&notice);
            }
        }
    }

    /// Tells every subscriber that anything may have changed.
    pub(crate) fn tell_everything(&self) {
        for (filter, outbox) in self.subscribers().iter() {
            for notice in filter.everything() {
                outbox.push(notice);
            }
        }
    }

    /// A log message that belongs to no call.
    pub(crate) fn log(&self, server: &str, params: &Object) {
        let logger = self.logger.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
        match logger {
            Some(logger) => logger(params),
            None => own_log(server, params),
        }
    }

    pub(crate) fn subscribe(&self, filter: Filter) -> Outbox {
        let outbox = Outbox::new(256);
        self.subscribers().push((filter, outbox.clone()));
        outbox
    }

    /// The resources that somebody wants to know of.
    pub(crate) fn uris(&self) -> HashSet<String> {
        self.subscribers().iter().flat_map(|(filter, _)| filter.uris.iter().cloned()).collect()
    }

    /// Whether anybody listens.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.subscribers().is_empty()
    }

    /// Ends all subscriptions.
    pub(crate) fn close(&self) {
        for (_, outbox) in self.subscribers().drain(..) {
            outbox.close();
        }
    }
}

//! [`Changes`]: what a server says has changed, and who wants to know.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard};

use tidegate_protocol::Object;
use tidegate_service::{CallerId, Context, Filter, Notice, Outbox, Principal};

use crate::peer::own_log;

/// Called with every change that the server tells, wanted or not: the caches listen here.
type Watcher = Box<dyn Fn(&Notice) + Send + Sync>;
/// Called with log messages that belong to no call.
type Logger = Arc<dyn Fn(&Object) + Send + Sync>;

/// Fans out what a server says has changed.
#[derive(Default)]
pub(crate) struct Changes {
    subscribers: Mutex<Vec<Subscriber>>,
    watchers: Mutex<Vec<Watcher>>,
    logger: Mutex<Option<Logger>>,
}

/// Who a session or a subscription belongs to, where that can be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) caller: Option<CallerId>,
    pub(crate) principal: Principal,
}

impl Owner {
    /// Whoever makes a call; `None` if it could be anybody.
    pub(crate) fn of(context: &Context) -> Option<Owner> {
        let known = context.caller.is_some() || context.principal.subject.is_some();
        known.then(|| Owner { caller: context.caller, principal: context.principal.clone() })
    }
}

struct Subscriber {
    filter: Filter,
    outbox: Outbox,
    owner: Option<Owner>,
}

impl Changes {
    fn subscribers(&self) -> MutexGuard<'_, Vec<Subscriber>> {
        let mut subscribers = self.subscribers.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        subscribers.retain(|one| !one.outbox.is_closed() && !one.outbox.is_abandoned());
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
        for one in self.subscribers().iter().filter(|one| one.filter.wants(notice)) {
            one.outbox.push(notice.clone());
        }
    }

    /// Tells what somebody in particular has subscribed with, whatever they want to know. Returns whether that was
    /// anything.
    pub(crate) fn tell_owner(&self, owner: &Owner, notice: &Notice) -> bool {
        let subscribers = self.subscribers();
        let theirs = subscribers.iter().filter(|one| one.owner.as_ref() == Some(owner));
        theirs.map(|one| one.outbox.push(notice.clone())).fold(false, |heard, taken| heard | taken)
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
        for one in self.subscribers().iter() {
            for notice in one.filter.everything() {
                one.outbox.push(notice);
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

    pub(crate) fn subscribe(&self, filter: Filter, owner: Option<Owner>) -> Outbox {
        let outbox = Outbox::new(256);
        self.subscribers().push(Subscriber { filter, outbox: outbox.clone(), owner });
        outbox
    }

    /// The resources that somebody wants to know of.
    pub(crate) fn uris(&self) -> HashSet<String> {
        self.subscribers().iter().flat_map(|one| one.filter.uris.iter().cloned()).collect()
    }

    /// Whether anybody listens.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.subscribers().is_empty()
    }

    /// Ends all subscriptions.
    pub(crate) fn close(&self) {
        for one in self.subscribers().drain(..) {
            one.outbox.close();
        }
    }
}

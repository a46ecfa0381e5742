//! [`Changes`]: what a server says has changed, and who wants to know.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use tidegate_protocol::Object;
use tidegate_service::{Context, Filter, Notice, Outbox};

use crate::connection::own_log;
use crate::legacy::{ClientIdentity, SessionOwner, SessionSpec};

/// Called with every change that the server tells, wanted or not: the caches listen here.
type Watcher = Box<dyn Fn(&Notice) + Send + Sync>;
/// Called with log messages that belong to no call.
type Logger = Arc<dyn Fn(&Object) + Send + Sync>;
/// Called with log messages that a server sends outside of calls, before anybody else. Returns whether somebody hears them.
pub(crate) type OnSessionLog = Arc<dyn Fn(&Audience, &Object) -> bool + Send + Sync>;

/// Fans out what a server says has changed.
#[derive(Default)]
pub(crate) struct Changes {
    subscribers: Mutex<Vec<Subscriber>>,
    watchers: Mutex<Vec<Watcher>>,
    logger: Mutex<Option<Logger>>,
    on_session_log: OnceLock<OnSessionLog>,
}

struct Subscriber {
    filter: Filter,
    outbox: Outbox,
    /// Who it is, and in whose session it hears.
    spec: SessionSpec,
}

impl Subscriber {
    /// Whether what is said in a session is for its ears.
    fn hears(&self, owner: &SessionOwner) -> bool {
        owner.serves(&self.spec.client)
    }
}

/// Who may hear what a server said in a session outside of any call.
#[derive(Debug, Clone)]
pub struct Audience(SessionOwner);

impl Audience {
    /// Whether whoever makes calls with this context is among them.
    pub fn includes(&self, context: &Context) -> bool {
        // Where all users share a session, nothing says whose it is, unless nobody is known anyway.
        match &self.0 {
            SessionOwner::Everybody => context.principal == Default::default(),
            owner => owner.serves(&ClientIdentity::of(context)),
        }
    }
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

    /// Tells everybody who wants to know what a server has said in a session, if it is theirs.
    pub(crate) fn tell(&self, owner: &SessionOwner, notice: &Notice) {
        for watcher in self.watchers.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).iter() {
            watcher(notice);
        }
        let subscribers = self.subscribers();
        for one in subscribers.iter().filter(|one| one.filter.wants(notice) && one.hears(owner)) {
            one.outbox.push(notice.clone());
        }
    }

    /// Tells what the one client whose session it is has subscribed with, whatever it wants to know. Returns whether that
    /// was anything.
    pub(crate) fn tell_client(&self, owner: &SessionOwner, notice: &Notice) -> bool {
        let Some(client) = owner.client() else { return false };
        let subscribers = self.subscribers();
        let theirs = subscribers.iter().filter(|one| one.spec.client == *client);
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

    /// Tells every subscriber of a session that anything may have changed.
    pub(crate) fn tell_everything(&self, owner: &SessionOwner) {
        for one in self.subscribers().iter().filter(|one| one.hears(owner)) {
            one.outbox.push_missed(one.filter.everything());
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

    /// A log message that a server sends in a session outside of any call.
    pub(crate) fn log_in(&self, server: &str, owner: SessionOwner, params: &Object) {
        if !self.on_session_log.get().is_some_and(|heard| heard(&Audience(owner), params)) {
            self.log(server, params);
        }
    }

    /// Gives log messages that are sent outside of calls to `heard` first.
    pub(crate) fn session_logs_to(&self, heard: OnSessionLog) {
        _ = self.on_session_log.set(heard);
    }

    pub(crate) fn subscribe(&self, filter: Filter, spec: SessionSpec) -> Outbox {
        let outbox = Outbox::new(256);
        self.subscribers().push(Subscriber { filter, outbox: outbox.clone(), spec });
        outbox
    }

    /// The resources that somebody wants to know of in the sessions that `in_session` says.
    pub(crate) fn uris(&self, in_session: impl Fn(&SessionSpec) -> bool) -> HashSet<String> {
        let subscribers = self.subscribers();
        let theirs = subscribers.iter().filter(|one| in_session(&one.spec));
        theirs.flat_map(|one| one.filter.uris.iter().cloned()).collect()
    }

    /// On which terms subscribers hear.
    pub(crate) fn spec(&self) -> Vec<SessionSpec> {
        self.subscribers().iter().map(|one| one.spec.clone()).collect()
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

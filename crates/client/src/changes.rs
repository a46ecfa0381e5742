//! [`Changes`]: what a server says has changed, and who wants to know.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Map, Value};
use tidegate_protocol::{Error, Json, Object};
use tidegate_service::{Notice, Outbox};

use crate::peer::own_log;

/// Called with every change that the server tells, wanted or not: the caches listen here.
type Watcher = Box<dyn Fn(&Notice) + Send + Sync>;
/// Called with log messages that belong to no call.
type Logger = Arc<dyn Fn(&Object) + Send + Sync>;

/// Which changes a subscription is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// The list of tools.
    pub tools: bool,
    /// The list of prompts.
    pub prompts: bool,
    /// The list of resources.
    pub resources: bool,
    /// These resources.
    pub uris: HashSet<String>,
    /// These tasks.
    pub tasks: HashSet<String>,
}

impl Filter {
    /// Every list.
    pub fn lists() -> Filter {
        Filter { tools: true, prompts: true, resources: true, ..Filter::default() }
    }

    /// One more resource.
    pub fn resource(mut self, uri: impl Into<String>) -> Filter {
        self.uris.insert(uri.into());
        self
    }

    /// Reads the parameters of `subscriptions/listen`.
    pub(crate) fn read(params: &Object) -> Result<Filter, Error> {
        let wanted: Map<String, Value> = params
            .json("notifications")
            .and_then(|wanted| wanted.to().ok())
            .ok_or_else(|| Error::invalid_params("\"notifications\" must be an object"))?;
        let on = |name: &str| wanted.get(name).and_then(Value::as_bool).unwrap_or(false);
        let texts = |name: &str| -> HashSet<String> {
            let list = wanted.get(name).and_then(Value::as_array);
            list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Ok(Filter {
            tools: on("toolsListChanged"),
            prompts: on("promptsListChanged"),
            resources: on("resourcesListChanged"),
            uris: texts("resourceSubscriptions"),
            tasks: texts("taskIds"),
        })
    }

    /// As `subscriptions/listen` writes it.
    pub(crate) fn to_json(&self) -> Json {
        let mut all = Map::new();
        for (name, on) in [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ] {
            if on {
                all.insert(name.into(), true.into());
            }
        }
        for (name, texts) in [("resourceSubscriptions", &self.uris), ("taskIds", &self.tasks)] {
            if !texts.is_empty() {
                let mut texts: Vec<_> = texts.iter().cloned().collect();
                texts.sort();
                all.insert(name.into(), texts.into());
            }
        }
        Value::Object(all).into()
    }

    pub(crate) fn wants(&self, notice: &Notice) -> bool {
        match notice {
            Notice::ToolsChanged => self.tools,
            Notice::PromptsChanged => self.prompts,
            Notice::ResourcesChanged => self.resources,
            Notice::ResourceUpdated(uri) => self.uris.contains(&**uri),
            Notice::Task { id, .. } => self.tasks.contains(&**id),
            Notice::Progress(_) | Notice::Log(_) | Notice::CloseStream => false,
        }
    }

    /// Everything that may have happened while nobody listened.
    pub(crate) fn everything(&self) -> Vec<Notice> {
        let lists = [
            (self.tools, Notice::ToolsChanged),
            (self.prompts, Notice::PromptsChanged),
            (self.resources, Notice::ResourcesChanged),
        ];
        let lists = lists.into_iter().filter(|(on, _)| *on).map(|(_, notice)| notice);
        lists.chain(self.uris.iter().map(|uri| Notice::ResourceUpdated(uri.as_str().into()))).collect()
    }
}

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

//! [`ServerHandle`]: looks at a running server and changes it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_service::events::{self, Event, StatisticsDue};
use tidegate_service::{Notice, Principal};

use crate::builder::{BuildError, Offer};
use crate::hub::{self, Watched};
use crate::prompt::Prompt;
use crate::registry::Registry;
use crate::resource::{Resource, ResourceTemplate};
use crate::server::Core;
use crate::tool::Tool;
use tidegate_service::stats::{Health, Stats};

/// A handle on a running server. Clones are the same server.
#[derive(Clone)]
pub struct ServerHandle(Arc<Core>);

impl ServerHandle {
    pub(crate) fn new(core: Arc<Core>) -> ServerHandle {
        ServerHandle(core)
    }

    /// Offers one more tool, or fails if there is one of that name. Clients are told.
    pub fn add_tool(&self, tool: Tool) -> Result<(), BuildError> {
        self.add(Offer::Tool(tool), &Notice::ToolsChanged)
    }

    /// Withdraws a tool; returns whether there was one. Calls that run go on. Clients are told.
    pub fn remove_tool(&self, name: &str) -> bool {
        self.remove(&Notice::ToolsChanged, |registry| {
            registry.aliases.retain(|_, tool| tool != name);
            registry.tools.remove(name)
        })
    }

    /// Offers one more prompt. Clients are told.
    pub fn add_prompt(&self, prompt: Prompt) -> Result<(), BuildError> {
        self.add(Offer::Prompt(prompt), &Notice::PromptsChanged)
    }

    /// Withdraws a prompt; returns whether there was one. Clients are told.
    pub fn remove_prompt(&self, name: &str) -> bool {
        self.remove(&Notice::PromptsChanged, |registry| registry.prompts.remove(name))
    }

    /// Offers one more resource. Clients are told.
    pub fn add_resource(&self, resource: Resource) -> Result<(), BuildError> {
        self.add(Offer::Resource(resource), &Notice::ResourcesChanged)
    }

    /// Withdraws a resource; returns whether there was one. Clients are told.
    pub fn remove_resource(&self, uri: &str) -> bool {
        self.remove(&Notice::ResourcesChanged, |registry| registry.resources.remove(uri))
    }

    /// Offers one more family of resources. Clients are told.
    pub fn add_resource_template(&self, template: ResourceTemplate) -> Result<(), BuildError> {
        self.add(Offer::Template(template), &Notice::ResourcesChanged)
    }

    /// Withdraws a family of resources; returns whether there was one. Clients are told.
    pub fn remove_resource_template(&self, uri_template: &str) -> bool {
        self.remove(&Notice::ResourcesChanged, |registry| registry.templates.remove(uri_template))
    }

    fn add(&self, offer: Offer, change: &Notice) -> Result<(), BuildError> {
        self.change(|registry| registry.add(offer, &self.0.counters))?;
        self.0.hub.tell(change);
        Ok(())
    }

    fn remove(&self, change: &Notice, remove: impl FnOnce(&mut Registry) -> bool) -> bool {
        let removed = self.change(|registry| if remove(registry) { Ok(()) } else { Err(()) }).is_ok();
        if removed {
            self.0.hub.tell(change);
        }
        removed
    }

    /// Makes the next registry from the present one. Changes take turns; readers never wait.
    fn change<E>(&self, change: impl FnOnce(&mut Registry) -> Result<(), E>) -> Result<(), E> {
        let _turn = self.0.changing.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut next = self.0.registry.load().next();
        change(&mut next)?;
        next.settle(self.0.settings.dynamic);
        self.0.registry.store(Arc::new(next));
        Ok(())
    }

    /// Tells clients that the tools have changed, for instance because somebody may see others now.
    pub fn tools_changed(&self) {
        self.0.hub.tell(&Notice::ToolsChanged);
    }

    /// Tells clients that the prompts have changed.
    pub fn prompts_changed(&self) {
        self.0.hub.tell(&Notice::PromptsChanged);
    }

    /// Tells clients that the resources have changed.
    pub fn resources_changed(&self) {
        self.0.hub.tell(&Notice::ResourcesChanged);
    }

    /// Tells those who subscribed to a resource that its contents have changed.
    pub fn resource_updated(&self, uri: &str) {
        self.0.hub.tell(&hub::updated(uri));
    }

    /// The same, told only to those who share `whose` resources: subscribers of the same tenant, or, where there is no
    /// tenant, the same subject. For resources that have one address and other contents for each of them.
    pub fn resource_updated_for(&self, whose: &Principal, uri: &str) {
        self.0.hub.tell_those(&hub::updated(uri), |principal| shares(principal, whose));
    }

    /// Tells those who share `whose` resources that some have come or gone, and nobody else: see
    /// [`ServerHandle::resource_updated_for`] for who that is, and
    /// [`Server::resource_source`](crate::Server::resource_source) for resources that not everybody has.
    pub fn resources_changed_for(&self, whose: &Principal) {
        self.0.hub.tell_those(&Notice::ResourcesChanged, |principal| shares(principal, whose));
    }

    /// What those who share `whose` resources want to know of, for whoever would otherwise have to find out much that
    /// nobody wants to know.
    pub fn watched_by(&self, whose: &Principal) -> Watched {
        self.0.hub.watched(|principal| shares(principal, whose))
    }

    /// A handle that does not keep the server alive, for what the server itself holds.
    pub fn downgrade(&self) -> WeakServerHandle {
        WeakServerHandle(Arc::downgrade(&self.0))
    }

    /// How many subscriptions are open.
    pub fn subscriptions(&self) -> usize {
        self.0.hub.len()
    }

    /// What the server has done so far.
    pub fn stats(&self) -> Stats {
        self.0.counters.snapshot()
    }

    /// The statistics in the form in which they are logged, with breaker and cache where the server has them.
    pub fn report(&self) -> Value {
        let mut report = self.stats().report();
        if let Some(breaker) = &self.0.breaker {
            report["circuitBreaker"] = json!({"state": breaker().as_str()});
        }
        if let Some(cache) = &self.0.cache_stats {
            let cache = cache();
            report["cache"] = json!({"size": cache.size, "itemCount": cache.item_count});
        }
        report
    }

    /// How the server is.
    pub fn health(&self) -> Health {
        Health::judge(self.stats(), self.0.breaker.as_ref().map(|breaker| breaker()), &self.0.thresholds)
    }

    /// Ends subscriptions and tasks. Calls that run go on: whoever drives the transport waits for them or stops them.
    pub fn shut_down(&self) {
        self.0.hub.close();
        self.0.tasks.cancel_all();
    }
}

impl std::fmt::Debug for ServerHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerHandle").field("info", &self.0.info).finish_non_exhaustive()
    }
}

/// Whether somebody shares the resources of another: the same tenant, or, without one, the same subject.
fn shares(principal: &Principal, whose: &Principal) -> bool {
    match whose.tenant {
        Some(_) => principal.tenant == whose.tenant,
        None => principal == whose,
    }
}

/// A handle on a server that may be gone.
#[derive(Clone)]
pub struct WeakServerHandle(Weak<Core>);

impl WeakServerHandle {
    /// The handle, if the server is still there.
    pub fn upgrade(&self) -> Option<ServerHandle> {
        self.0.upgrade().map(ServerHandle)
    }
}

impl std::fmt::Debug for WeakServerHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WeakServerHandle")
    }
}

/// Logs the statistics every `period`, until dropped. Five minutes is usual.
pub async fn log_periodically(handle: ServerHandle, period: Duration) {
    let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + period, period);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        log_statistics(&handle, false);
    }
}

/// Logs the statistics now; `is_final` when nothing comes after that.
pub fn log_statistics(handle: &ServerHandle, is_final: bool) {
    let health = handle.health();
    let due = StatisticsDue { stats: &health.stats, report: &handle.report(), warn: health.warn, is_final };
    events::emit(&Event::StatisticsDue(due));
}

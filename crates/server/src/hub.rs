//! Subscriptions: who wants to know of which changes, and telling them.

use std::sync::{Mutex, MutexGuard};

use bytestring::ByteString;
use serde_json::{Map, Value, json};
use tidegate_protocol::{Capability, Error, Json, Symbol};
use tidegate_service::{Call, Filter, Notice, Outbox, Principal, Reply, Subscription};

use crate::server::Core;

/// How many notifications may wait in one subscription.
const QUEUE: usize = 256;

struct Subscriber {
    principal: Principal,
    filter: Filter,
    outbox: Outbox,
}

impl Subscriber {
    fn is_there(&self) -> bool {
        !self.outbox.is_closed() && !self.outbox.is_abandoned()
    }
}

/// What somebody wants to know of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watched {
    /// The addresses of resources, as those who subscribed to them spell them, in order.
    pub uris: Vec<String>,
    /// Whether anybody wants to know that resources have come or gone.
    pub list: bool,
}

/// Fans changes out to the subscriptions.
#[derive(Default)]
pub(crate) struct Hub(Mutex<State>);

#[derive(Default)]
struct State {
    subscribers: Vec<Subscriber>,
    closed: bool,
}

impl Hub {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Tells everybody who wants to know.
    pub(crate) fn tell(&self, notice: &Notice) {
        self.tell_those(notice, |_| true);
    }

    /// Tells those who want to know and may.
    pub(crate) fn tell_those(&self, notice: &Notice, may: impl Fn(&Principal) -> bool) {
        let mut state = self.state();
        state.subscribers.retain(Subscriber::is_there);
        for subscriber in &state.subscribers {
            if subscriber.filter.wants(notice) && may(&subscriber.principal) {
                subscriber.outbox.push(notice.clone());
            }
        }
    }

    /// Which resources those who may know of them want to know of.
    pub(crate) fn watched(&self, may: impl Fn(&Principal) -> bool) -> Watched {
        let state = self.state();
        let mut watched = Watched::default();
        for subscriber in state.subscribers.iter().filter(|one| may(&one.principal) && one.is_there()) {
            watched.uris.extend(subscriber.filter.uris.iter().cloned());
            watched.list |= subscriber.filter.resources;
        }
        watched.uris.sort_unstable();
        watched.uris.dedup();
        watched
    }

    /// Whether anybody wants to know of a task. A task's state is not worth writing otherwise.
    pub(crate) fn follows(&self, task: &str) -> bool {
        self.state().subscribers.iter().any(|subscriber| subscriber.filter.tasks.contains(task))
    }

    /// Ends all subscriptions, and takes no more.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        for subscriber in state.subscribers.drain(..) {
            subscriber.outbox.close();
        }
    }

    /// How many subscriptions are open.
    pub(crate) fn len(&self) -> usize {
        let mut state = self.state();
        state.subscribers.retain(Subscriber::is_there);
        state.subscribers.len()
    }

    fn subscribe(&self, principal: Principal, filter: Filter, max: usize) -> Result<Outbox, Error> {
        let mut state = self.state();
        if state.closed {
            return Err(Error::new(Symbol::Unavailable, "The server is shutting down"));
        }
        if state.subscribers.len() >= max {
            state.subscribers.retain(Subscriber::is_there);
        }
        if state.subscribers.len() >= max {
            return Err(Error::new(Symbol::RateLimited, "Too many subscriptions are open: close one first"));
        }
        let outbox = Outbox::new(QUEUE);
        state.subscribers.push(Subscriber { principal, filter, outbox: outbox.clone() });
        Ok(outbox)
    }
}

/// `subscriptions/listen`: opens a stream of what is wanted and on offer.
pub(crate) fn listen(core: &Core, call: &Call) -> Result<Reply, Error> {
    let Some(wanted) = call.params.json("notifications").filter(Json::is_object) else {
        return Err(Error::invalid_params("\"notifications\" must be an object"));
    };
    let wanted: Map<String, Value> = wanted.to().map_err(Error::invalid_params)?;
    let has = core.kinds();
    let mut honoured = Map::new();
    let mut honour = |member: &str, on_offer: bool| -> Result<bool, Error> {
        let yes = match wanted.get(member) {
            None => false,
            Some(Value::Bool(yes)) => *yes && on_offer,
            Some(_) => {
                return Err(Error::invalid_params(format_args!(
                    "\"notifications.{member}\" must be a boolean"
                )));
            }
        };
        if yes {
            honoured.insert(member.into(), yes.into());
        }
        Ok(yes)
    };
    let mut filter = Filter {
        tools: honour("toolsListChanged", has.tools)?,
        prompts: honour("promptsListChanged", has.prompts)?,
        resources: honour("resourcesListChanged", has.resources)?,
        ..Filter::default()
    };
    if let Some(mut uris) = strings(&wanted, "resourceSubscriptions")?
        && has.resources
    {
        if let Some(may) = &core.may_watch {
            uris.retain(|uri| may(&call.context.principal, uri));
        }
        honoured.insert("resourceSubscriptions".into(), json!(uris));
        filter.uris = uris.into_iter().collect();
    }
    if let Some(ids) = strings(&wanted, "taskIds")? {
        // SEP-2663, Task Status Notifications.
        if call.context.revision.is_modern() && !call.context.capabilities.has(Capability::Tasks) {
            return Err(Error::missing_capabilities(&[Capability::Tasks]));
        }
        let ids: Vec<String> =
            ids.into_iter().filter(|id| core.tasks.find(id, &call.context).is_some()).collect();
        if has.tasks {
            honoured.insert("taskIds".into(), json!(ids));
            filter.tasks = ids.into_iter().collect();
        }
    }
    let events =
        core.hub.subscribe(call.context.principal.clone(), filter, core.settings.max_subscriptions)?;
    Ok(Reply::Subscription(Subscription { acknowledged: Json::from(Value::Object(honoured)), events }))
}

fn strings(wanted: &Map<String, Value>, member: &str) -> Result<Option<Vec<String>>, Error> {
    match wanted.get(member) {
        None => Ok(None),
        Some(list) => serde_json::from_value(list.clone()).map(Some).map_err(|_| {
            Error::invalid_params(format_args!("\"notifications.{member}\" must be an array of strings"))
        }),
    }
}

/// The notice that a resource changed.
pub(crate) fn updated(uri: &str) -> Notice {
    Notice::ResourceUpdated(ByteString::from(uri))
}

//! [`ClientSession`]: a legacy client after its handshake.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use bytestring::ByteString;
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{
    ClientCapabilities, Error, Id, Json, Level, Method, Notification, Object, Params, Revision, Symbol, meta,
};
use tidegate_service::{Call, Connected, Door, OpenSession, Outbox, Principal};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::changes::ChangeSubscription;
use super::handshake::Hello;
use crate::edge_settings::EdgeSettings;
use crate::in_flight::{InFlight, Turn};
use crate::modern::traced;
use crate::notifications::{NotificationForwarder, is_for_service};
use crate::session_store::{SessionMemory, SessionRecord};

/// What the handshake established, and what has happened since.
pub(crate) struct ClientSession {
    pub(crate) hello: Hello,
    pub(crate) revision: Revision,
    /// Who opened the session. Nobody else may use it.
    pub(crate) principal: Principal,
    /// The endpoint that its calls name.
    endpoint: Option<Arc<str>>,
    /// The session as services know it, open as long as this; none when the client has no session.
    connected: Option<Connected>,
    /// Tells how long the session was open; none when the client has none yet.
    _open: Option<OpenSession>,
    pub(crate) offers: Offers,
    /// Fires when the session ends: everything that runs for it stops.
    pub(crate) ended: CancellationToken,
    /// Counts how often the client has subscribed or unsubscribed. Who feeds a stream watches it.
    pub(crate) subscriptions_changed: watch::Sender<u64>,
    /// Up to which of these changes the stream is fed.
    pub(crate) subscriptions_heard: watch::Sender<u64>,
    in_flight: InFlight,
    notifications: NotificationForwarder,
    changes: Mutex<ChangeSubscription>,
    state: Mutex<State>,
    /// Where level and subscriptions are remembered, if the session can outlive the process.
    record: Option<SessionRecord>,
}

struct State {
    /// What goes on in another process.
    memory: SessionMemory,
    /// Questions that the client has not answered yet, by the id we gave them.
    asked: HashMap<u64, oneshot::Sender<Result<Json, Json>>>,
    next_question: u64,
    tasks: Vec<ByteString>,
    /// Tasks that were done when they began, oldest first.
    done: VecDeque<(ByteString, Json)>,
}

/// Which parts of the protocol the service behind offers, as declared in the handshake.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Offers {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
    pub(crate) logging: bool,
    pub(crate) tasks: bool,
}

impl Offers {
    pub(crate) fn read(capabilities: &Json) -> Offers {
        let Some(all) = Object::of(capabilities) else { return Offers::default() };
        Offers {
            tools: all.has("tools"),
            prompts: all.has("prompts"),
            resources: all.has("resources"),
            logging: all.has("logging"),
            tasks: all.has("tasks"),
        }
    }
}

/// Most resources that one session may subscribe to, the longest address of one, and how long they may be together.
const MAX_SUBSCRIPTIONS: usize = 1024;
const LONGEST_URI: usize = 8 * 1024;
const MAX_SUBSCRIBED_BYTES: usize = 64 * 1024;
/// Most tasks that `tasks/list` remembers for one session.
const MAX_TASKS: usize = 1024;
/// Most results of tasks that were done at once which one session keeps, and how large they may be together.
const MAX_DONE: usize = 64;
const MAX_DONE_BYTES: usize = 4 * 1024 * 1024;

impl ClientSession {
    pub(crate) fn new(
        hello: Hello,
        principal: Principal,
        connected: Option<Connected>,
        offers: Offers,
        edge: &EdgeSettings,
    ) -> ClientSession {
        ClientSession {
            revision: hello.revision,
            hello,
            principal,
            endpoint: edge.endpoint.clone(),
            _open: None,
            connected,
            offers,
            ended: CancellationToken::new(),
            subscriptions_changed: watch::Sender::new(0),
            subscriptions_heard: watch::Sender::new(0),
            in_flight: InFlight::new(edge.max_in_flight),
            notifications: NotificationForwarder::default(),
            changes: Mutex::default(),
            state: Mutex::new(State {
                memory: SessionMemory::default(),
                asked: HashMap::new(),
                next_question: 1,
                tasks: Vec::new(),
                done: VecDeque::new(),
            }),
            record: None,
        }
    }

    /// The same with what it had in another process. What has happened since then nobody knows.
    pub(crate) fn going_on(self, memory: SessionMemory) -> ClientSession {
        self.state().memory = memory;
        self.has_missed_something();
        self
    }

    /// From here on it is a session that somebody has.
    pub(crate) fn opened(mut self) -> ClientSession {
        self._open = Some(OpenSession::of_client());
        self
    }

    /// Remembers level and subscriptions in this place from here on.
    pub(crate) fn remembered(mut self, record: Option<SessionRecord>) -> ClientSession {
        self.record = record;
        self
    }

    /// The session in the store, if it can outlive the process.
    pub(crate) fn record(&self) -> Option<&SessionRecord> {
        self.record.as_ref()
    }

    fn remember(&self) {
        if let Some(record) = &self.record {
            // Under the lock, so that what was last is saved last.
            let state = self.state();
            record.save(state.memory.clone());
        }
    }

    /// The next stream is told that everything may have changed.
    pub(crate) fn has_missed_something(&self) {
        self.changes().miss();
    }

    /// A client that never shook hands and has no session: 2025-03-26 without capabilities.
    pub(crate) fn bare(principal: Principal, edge: &EdgeSettings) -> ClientSession {
        let everything = Offers { tools: true, prompts: true, resources: true, logging: true, tasks: false };
        let revision = Revision::V2025_03_26;
        let hello = Hello { revision, client_info: None, capabilities: ClientCapabilities::none() };
        let client = ClientSession::new(hello, principal, None, everything, edge);
        ClientSession { in_flight: InFlight::new(usize::MAX), ..client }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic happens under the lock.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// What the client hears of changes.
    pub(super) fn changes(&self) -> MutexGuard<'_, ChangeSubscription> {
        self.changes.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Ends the session: everything that runs for it stops.
    pub(crate) fn end(&self) {
        self.ended.cancel();
        self.stop_listening();
    }

    /// Nobody has read a stream for a while: what happens from here on is not kept for the next one.
    pub(crate) fn stop_listening(&self) {
        self.changes().end();
    }

    /// Notes that a request runs. Refuses an id that is in flight already, and more requests than allowed.
    pub(crate) fn begin(&self, id: &Id) -> Result<(Turn, CancellationToken), Error> {
        let token = self.ended.child_token();
        let turn = self.in_flight.begin(id, token.clone())?;
        Ok((turn, token))
    }

    /// Notes that a request has ended.
    pub(crate) fn finish(&self, id: &Id, turn: Turn) {
        self.in_flight.finish(id, turn);
    }

    /// How many requests are in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Takes a notification from the client: what is not about its session is handed over to the service.
    pub(crate) fn notified<D: Door>(&self, door: &D, notification: Notification) {
        if is_for_service(&notification.method) {
            let Notification { method, params } = notification;
            if let Ok(call) = self.call(method, params, self.ended.child_token(), None) {
                self.notifications.forward(door, call);
            }
            return;
        }
        if notification.method == Method::Cancelled
            && let Some(id) = notification.params.json("requestId").and_then(Id::from_json)
            && self.in_flight.cancel(&id)
        {
            let reason = notification.params.str("reason").unwrap_or_default();
            tracing::debug!(%id, %reason, "cancelled by the client");
        }
    }

    /// Takes the client's answer to a question.
    pub(crate) fn answered(&self, id: &Id, answer: Result<Json, Json>) {
        let waiting = id.as_json().parse().ok().and_then(|id: u64| self.state().asked.remove(&id));
        match waiting {
            Some(waiting) => drop(waiting.send(answer)),
            None => tracing::debug!(%id, "ignored a response to an unknown request"),
        }
    }

    /// Gives a question its id and a place for the answer.
    pub(crate) fn ask(&self) -> (u64, oneshot::Receiver<Result<Json, Json>>) {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state();
        let id = state.next_question;
        state.next_question += 1;
        state.asked.insert(id, sender);
        (id, receiver)
    }

    /// Whether the client has been asked something that it has not answered yet.
    pub(crate) fn is_asked(&self) -> bool {
        !self.state().asked.is_empty()
    }

    /// Nobody waits for the answer any more.
    pub(crate) fn forget_question(&self, id: u64) {
        self.state().asked.remove(&id);
    }

    pub(crate) fn set_level(&self, level: Level) {
        self.state().memory.level = level;
        self.remember();
    }

    /// Whether the client wants to hear a log message, by its parameters.
    pub(crate) fn wants_log(&self, params: &Json) -> bool {
        let level = Object::of(params).and_then(|params| params.str("level")?.parse::<Level>().ok());
        self.offers.logging && level.is_some_and(|level| level >= self.state().memory.level)
    }

    pub(crate) fn subscribe(&self, uri: &str) -> Result<(), Error> {
        if uri.len() > LONGEST_URI {
            let what = format_args!("\"uri\" may have at most {LONGEST_URI} bytes");
            return Err(Error::invalid_params(what));
        }
        let mut state = self.state();
        let subscriptions = &mut state.memory.subscriptions;
        if !subscriptions.contains(uri) {
            let bytes: usize = subscriptions.iter().map(|uri| uri.len()).sum();
            let full = |what: String| Err(Error::new(Symbol::RateLimited, what));
            if subscriptions.len() >= MAX_SUBSCRIPTIONS {
                return full(format!(
                    "Too many subscriptions: at most {MAX_SUBSCRIPTIONS} resources per session"
                ));
            }
            if bytes + uri.len() > MAX_SUBSCRIBED_BYTES {
                return full(format!(
                    "Too many subscriptions: the addresses of a session's resources may have at most \
                     {MAX_SUBSCRIBED_BYTES} bytes together"
                ));
            }
            subscriptions.insert(uri.into());
        }
        drop(state);
        self.remember();
        self.subscriptions_changed.send_modify(|changes| *changes += 1);
        Ok(())
    }

    pub(crate) fn unsubscribe(&self, uri: &str) {
        self.state().memory.subscriptions.remove(uri);
        self.remember();
        self.subscriptions_changed.send_modify(|changes| *changes += 1);
    }

    /// Waits until the stream is fed with what the client has subscribed to, so that nothing that happens after its
    /// subscription was confirmed is missed. Without a stream there is nothing to wait for.
    pub(crate) async fn subscriptions_in_force(&self) {
        let wanted = *self.subscriptions_changed.borrow();
        let mut heard = self.subscriptions_heard.subscribe();
        tokio::select! {
            _ = heard.wait_for(|heard| *heard >= wanted) => {}
            () = self.subscriptions_changed.closed() => {}
            () = self.ended.cancelled() => {}
        }
    }

    pub(crate) fn subscribed(&self) -> Vec<ByteString> {
        self.state().memory.subscriptions.iter().cloned().collect()
    }

    /// Remembers a task for `tasks/list`. The oldest is forgotten first.
    pub(crate) fn remember_task(&self, id: ByteString) {
        let mut state = self.state();
        if state.tasks.len() >= MAX_TASKS {
            state.tasks.remove(0);
        }
        state.tasks.push(id);
    }

    /// Keeps a task that was done when it began: the whole task, with its result. Older ones make room for it.
    pub(crate) fn keep_done(&self, id: ByteString, task: Json) -> Result<(), Error> {
        if task.len() > MAX_DONE_BYTES {
            let what = format!(
                "The result has more than the {MAX_DONE_BYTES} bytes that can be kept as a task; \
                 call the tool without one"
            );
            return Err(Error::new(Symbol::TooLarge, what));
        }
        let mut state = self.state();
        // A buffer of its own: what it came in may be larger.
        state.done.push_back((id, Json::trusted(ByteString::from(task.as_str()))));
        let mut bytes: usize = state.done.iter().map(|(_, task)| task.len()).sum();
        while state.done.len() > MAX_DONE || bytes > MAX_DONE_BYTES {
            bytes -= state.done.pop_front().map_or(0, |(_, task)| task.len());
        }
        Ok(())
    }

    /// A task that was done when it began.
    pub(crate) fn done(&self, id: &str) -> Option<Json> {
        self.state().done.iter().find(|(done, _)| *done == id).map(|(_, task)| task.clone())
    }

    pub(crate) fn forget_task(&self, id: &str) {
        self.state().tasks.retain(|t| *t != id);
    }

    pub(crate) fn tasks(&self) -> Vec<ByteString> {
        self.state().tasks.clone()
    }

    /// The modern call that a request of this client is.
    pub(crate) fn call(
        &self,
        method: Method,
        params: Params,
        cancel: CancellationToken,
        outbox: Option<Outbox>,
    ) -> Result<Call, Error> {
        let mut context = traced(params.meta(), self.revision);
        // A session may be used for several clients, and then each request says which one it is for.
        (context.client_info, context.capabilities) = match meta::caller(params.meta())? {
            Some((info, capabilities)) => (info, capabilities.within(&self.hello.capabilities)),
            None => (self.hello.client_info.clone(), self.hello.capabilities.clone()),
        };
        context.log_level = self.offers.logging.then(|| self.state().memory.level);
        context.progress_token = meta::progress_token(params.meta())?;
        context.principal = self.principal.clone();
        context.endpoint = self.endpoint.clone();
        context.caller = self.connected.as_ref().map(Connected::caller);
        context.cancel = cancel;
        context.outbox = outbox;
        context.hops = meta::hops(params.meta());
        Ok(Call::new(method, params, context))
    }

    /// The filter of the one internal subscription that feeds this client.
    pub(crate) fn filter(&self) -> Json {
        let mut w = ObjectWriter::new();
        for (name, offered) in [
            ("toolsListChanged", self.offers.tools),
            ("promptsListChanged", self.offers.prompts),
            ("resourcesListChanged", self.offers.resources),
        ] {
            if offered {
                w.raw(name, "true");
            }
        }
        let uris = self.subscribed();
        if !uris.is_empty() {
            let uris: Vec<&str> = uris.iter().map(|u| &**u).collect();
            w.value("resourceSubscriptions", &uris);
        }
        w.finish()
    }
}

//! [`Peer`]: a connection on which requests, answers, questions and notifications of one server go to and fro.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use tidegate_protocol::{
    Capability, ClientCapabilities, Error, Id, Json, Level, Message, Method, Notification, Object, Request,
    Revision, Symbol, meta,
};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::changes::{Changes, Owner};
use crate::handlers::Handlers;
use crate::ids::Ids;
use crate::inbox::Inbox;
use crate::legacy::Line;
use crate::notices::{notice_of, other_notice};
use crate::related::{Related, task_of};
use crate::ticket::{Event, Sink, Ticket, Tickets};
use crate::wire;

/// A connection with what is in flight on it.
pub(crate) struct Peer {
    pub(crate) desk: Arc<Desk>,
    pub(crate) line: Arc<Line>,
    pub(crate) ids: Arc<Ids>,
}

impl Peer {
    /// Sends a request and gives the ticket for its answer. `write` writes the parameters, given the id.
    pub(crate) fn send(
        &self,
        method: Method,
        sink: Sink,
        room: usize,
        write: impl FnOnce(&mut Vec<u8>, &Id),
    ) -> Result<Arc<Ticket>, Error> {
        let id = self.ids.next();
        let body = wire::request(&id, method.as_str(), room, |out| write(out, &id));
        let ticket = Arc::new(Ticket::new(id, method, sink));
        self.desk.tickets.open(&ticket)?;
        for early in self.desk.early_questions(&ticket) {
            ticket.push(Event::Question(early));
        }
        self.line.request(&ticket, body, &*self.desk);
        Ok(ticket)
    }

    /// Nobody waits for this request any more.
    pub(crate) fn cancel(&self, ticket: &Ticket, why: &str) {
        // An `initialize` may not be cancelled (2025-11-25 cancellation), and what is answered need not be.
        if self.desk.tickets.forget(&ticket.id).is_none() {
            return;
        }
        self.line.give_up(&ticket.id);
        if ticket.method != Method::Initialize {
            self.line.tell_soon(wire::cancelled(&ticket.id, why));
        }
    }

    /// Whether the connection is of any more use.
    pub(crate) fn is_open(&self) -> bool {
        self.desk.tickets.closed().is_none() && self.line.is_open()
    }
}

/// Cancels a request when it is dropped before the answer has come.
pub(crate) struct Waiting<'a> {
    pub(crate) peer: &'a Peer,
    pub(crate) ticket: Arc<Ticket>,
    pub(crate) why: &'static str,
}

impl<'a> Waiting<'a> {
    pub(crate) fn new(peer: &'a Peer, ticket: Arc<Ticket>) -> Waiting<'a> {
        Waiting { peer, ticket, why: "the caller no longer waits" }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.peer.cancel(&self.ticket, self.why);
    }
}

/// Sorts what comes in: answers to their tickets, questions to the call they belong to, changes to who wants to know.
pub(crate) struct Desk {
    pub(crate) name: Arc<str>,
    pub(crate) tickets: Tickets,
    /// The tasks that live on this connection.
    pub(crate) related: Related,
    changes: Arc<Changes>,
    /// Answers questions on the client's behalf; without it they are passed on to the caller.
    pub(crate) handlers: Option<Arc<Handlers>>,
    /// What was declared to the server: nothing else may be asked.
    capabilities: ClientCapabilities,
    /// Whether all calls on this connection are one caller's.
    owned: bool,
    line: OnceLock<Weak<Line>>,
    /// Whose legacy session this is, if it is somebody's.
    owner: OnceLock<Owner>,
    /// Questions that came between the handshake and the first call, which they belong to.
    early: Mutex<Vec<Request>>,
    called: AtomicBool,
    /// Whether the server has asked more than anybody can bear.
    pestered: AtomicBool,
    /// How many questions outside of any call are answered at once.
    outside: Arc<Semaphore>,
    /// Fires when the connection is over.
    pub(crate) over: CancellationToken,
}

/// Most questions outside of any call that are answered at once.
const MAX_OUTSIDE: usize = 16;
/// Most questions that wait for the first call.
const MAX_EARLY: usize = 16;

impl Desk {
    pub(crate) fn new(
        name: Arc<str>,
        changes: Arc<Changes>,
        handlers: Option<Arc<Handlers>>,
        capabilities: ClientCapabilities,
        owned: bool,
        max_in_flight: usize,
    ) -> Arc<Desk> {
        Arc::new(Desk {
            name,
            tickets: Tickets::new(max_in_flight),
            related: Related::default(),
            changes,
            handlers,
            capabilities,
            owned,
            line: OnceLock::new(),
            owner: OnceLock::new(),
            early: Mutex::default(),
            called: AtomicBool::new(false),
            pestered: AtomicBool::new(false),
            outside: Arc::new(Semaphore::new(MAX_OUTSIDE)),
            over: CancellationToken::new(),
        })
    }

    /// From now on this is a session of somebody in particular.
    pub(crate) fn belongs_to(&self, owner: Owner) {
        _ = self.owner.set(owner);
    }

    /// Where answers to questions go.
    pub(crate) fn attach(&self, line: &Arc<Line>) {
        _ = self.line.set(Arc::downgrade(line));
    }

    /// The questions that this, the first call that may be asked something, has to answer.
    fn early_questions(&self, ticket: &Ticket) -> Vec<Request> {
        if !ticket.method.may_ask() || self.called.swap(true, Ordering::Relaxed) {
            return Vec::new();
        }
        std::mem::take(&mut *self.early.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    pub(crate) fn answer(&self, id: &Id, answer: &Result<Json, Error>) {
        if let Some(line) = self.line.get().and_then(Weak::upgrade) {
            line.tell_soon(wire::answer(id, answer, Revision::LATEST_LEGACY));
        }
    }

    fn asked(&self, request: Request, on: Option<&Id>) {
        let needed = match needed(&request.method, &request.params.to_json()) {
            Some(needed) => needed,
            None if request.method == Method::Ping => {
                return self.answer(&request.id, &Ok(Json::empty_object()));
            }
            None => {
                let error = Error::method_not_found(request.method.as_str());
                return self.answer(&request.id, &Err(error));
            }
        };
        if !self.capabilities.has(needed) {
            let what = format!("Method not found: this client did not declare {}", needed.name());
            return self.answer(&request.id, &Err(Error::new(Symbol::MethodNotFound, what)));
        }
        let task = task_of(&request.params);
        let related = task.as_deref().and_then(|task| self.related.asked(task));
        let ticket = related.or_else(|| on.and_then(|id| self.tickets.get(id)));
        let request = match ticket {
            Some(ticket) => match ticket.ask(request) {
                Ok(()) => return,
                Err(request) => request,
            },
            None => request,
        };
        match task {
            // It was made just now, and who made it has not read that yet.
            Some(task) if self.handlers.is_none() => {
                if let Some(oldest) = self.related.keep(task, request) {
                    self.refuse(&oldest);
                }
            }
            _ => self.ask_any(request),
        }
    }

    /// Asks the newest call, for over a pipe nothing says which one a question belongs to. Also for what came to a call
    /// that is over now: it may be about another one.
    pub(crate) fn ask_any(&self, mut request: Request) {
        while let Some(ticket) = self.tickets.newest(|t| t.method.may_ask()) {
            match ticket.ask(request) {
                Ok(()) => return,
                // It was over just now, and is the newest no more.
                Err(back) => request = back,
            }
        }
        let turn = self.outside.clone().try_acquire_owned().ok();
        match (&self.handlers, turn.filter(|_| !self.pestered.load(Ordering::Relaxed))) {
            (Some(handlers), Some(turn)) => {
                // Outside of any call: nobody's clock runs.
                let (handlers, line) = (handlers.clone(), self.line.get().cloned());
                tokio::spawn(async move {
                    let _turn = turn;
                    let answer = handlers.answer(&request.method, request.params.to_json()).await;
                    if let Some(line) = line.and_then(|line| line.upgrade()) {
                        line.tell_soon(wire::answer(&request.id, &answer, Revision::LATEST_LEGACY));
                    }
                });
            }
            _ => self.asked_early(request),
        }
    }

    /// The server does not stop asking: from now on nobody is asked outside of a call.
    pub(crate) fn pestered(&self) {
        self.pestered.store(true, Ordering::Relaxed);
    }

    fn asked_early(&self, request: Request) {
        let mut early = self.early.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if self.owned
            && self.handlers.is_none()
            && !self.called.load(Ordering::Relaxed)
            && early.len() < MAX_EARLY
        {
            return early.push(request);
        }
        drop(early);
        self.refuse(&request);
    }

    fn refuse(&self, request: &Request) {
        let what =
            format!("{} was asked outside of any call, so there is nobody to answer it", request.method);
        self.answer(&request.id, &Err(Error::new(Symbol::InvalidRequest, what)));
    }

    fn notified(&self, notification: Notification, on: Option<&Id>) {
        let Notification { method, params } = &notification;
        match method.as_str() {
            "notifications/progress" => {
                let token = params.json("progressToken").and_then(Id::from_json);
                let ticket =
                    token.and_then(|id| self.tickets.get(&id).or_else(|| self.related.progress(&id)));
                match ticket {
                    Some(ticket) => ticket.progressed(params.object()),
                    None => tracing::trace!(server = %self.name, "progress of no call in flight was dropped"),
                }
            }
            "notifications/message" => self.logged(params.object(), on),
            "notifications/cancelled" => {
                tracing::debug!(server = %self.name, "the server withdrew a question")
            }
            _ => {
                // What a modern server sends on a subscription says so.
                let subscription =
                    params.meta().and_then(|m| m.json(meta::SUBSCRIPTION_ID)).and_then(Id::from_json);
                match subscription.and_then(|id| self.tickets.get(&id)) {
                    Some(ticket) => ticket.push(Event::Notified(notification)),
                    None => match notice_of(&notification) {
                        Some(notice) => self.changes.tell(&notice),
                        None if self.passed_on(&notification, on) => {}
                        None => {
                            tracing::debug!(server = %self.name, %method, "a notification was passed over")
                        }
                    },
                }
            }
        }
    }

    /// What nobody here knows goes to the call on whose stream it came, else to the only call of whoever this connection
    /// belongs to, else to what they have subscribed to. Returns whether somebody heard it.
    fn passed_on(&self, notification: &Notification, on: Option<&Id>) -> bool {
        let Some(notice) = other_notice(notification) else { return false };
        let owner = self.owner.get();
        let ticket = match on {
            Some(id) => self.tickets.get(id),
            None => owner.and_then(|_| self.tickets.only(Ticket::is_heard)),
        };
        ticket.is_some_and(|ticket| ticket.told(&notice))
            || owner.is_some_and(|owner| self.changes.tell_owner(owner, &notice))
    }

    /// A log message goes to a call that it certainly belongs to, else to our own log.
    fn logged(&self, params: &Object, on: Option<&Id>) {
        let ticket = match on {
            Some(id) => self.tickets.get(id),
            None if self.owned => self.tickets.newest(Ticket::wants_logs),
            None => self.tickets.only(Ticket::wants_logs),
        };
        if !ticket.is_some_and(|ticket| ticket.logged(params)) {
            self.changes.log(&self.name, params);
        }
    }
}

impl Inbox for Desk {
    fn message(&self, message: Message, on: Option<&Id>) {
        match message {
            Message::Response(response) => self.tickets.answered(&response.id, Ok(response.result)),
            Message::Failure(failure) => match failure.id.as_ref().or(on) {
                Some(id) => self.tickets.answered(id, Err(failure.error)),
                None => {
                    tracing::warn!(server = %self.name, error = %failure.error, "the server reports an error")
                }
            },
            Message::Notification(notification) => self.notified(notification, on),
            Message::Request(request) => self.asked(request, on),
        }
    }

    fn spoiled(&self, id: Option<&Id>, why: Error) {
        match id {
            Some(id) => self.tickets.lost(id, why),
            None => tracing::warn!(server = %self.name, error = %why, "the server sent something of no use"),
        }
    }

    fn missed(&self) {
        self.changes.gap();
        self.changes.tell_everything();
    }

    fn closed(&self, why: Error, unread: Option<u64>) {
        self.tickets.close(&why, unread);
        self.changes.gap();
        self.over.cancel();
    }
}

/// What a question needs the client to have declared; `None` if it is none that a client knows.
pub(crate) fn needed(method: &Method, params: &Json) -> Option<Capability> {
    let params = || Object::of(params);
    Some(match method {
        Method::RootsList => Capability::Roots,
        Method::SamplingCreate => match params().is_some_and(|p| p.has("tools")) {
            true => Capability::SamplingTools,
            false => Capability::Sampling,
        },
        Method::ElicitCreate => match params().is_some_and(|p| p.str("mode").as_deref() == Some("url")) {
            true => Capability::ElicitUrl,
            false => Capability::ElicitForm,
        },
        _ => return None,
    })
}

/// The level of a log message of a server in our own log.
pub(crate) fn own_log(server: &str, params: &Object) {
    let level = params.str("level").and_then(|l| l.parse::<Level>().ok()).unwrap_or(Level::Info);
    let data = params.get("data").unwrap_or("");
    let data: String = data.chars().take(500).collect();
    if level >= Level::Error {
        tracing::warn!(target: "tidegate::server", server, "{data}");
    } else {
        tracing::debug!(target: "tidegate::server", server, "{data}");
    }
}

//! [`Connection`]: a connection on which requests, answers, questions and notifications of one server go to and fro.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use tidegate_protocol::{
    Capability, ClientCapabilities, Error, Id, Json, Level, Message, Method, Notification, Object, Request,
    Revision, meta,
};
use tokio_util::sync::CancellationToken;

use crate::changes::Changes;
use crate::handlers::Handlers;
use crate::ids::Ids;
use crate::legacy::SessionOwner;
use crate::notices::{notice_of, other_notice};
use crate::questions::UnroutedQuestions;
use crate::task_routes::TaskRoutes;
use crate::ticket::{Event, Sink, Ticket, Tickets};
use crate::transport::{Claim, Inbox, MessageChannel};
use crate::wire;

/// A connection with what is in flight on it.
pub(crate) struct Connection {
    pub(crate) router: Arc<MessageRouter>,
    pub(crate) channel: Arc<dyn MessageChannel>,
    /// The name of the transport.
    pub(crate) transport: &'static str,
    pub(crate) ids: Arc<Ids>,
}

impl Connection {
    /// Sends a request and gives the ticket for its answer. `write` writes the parameters, given the id.
    pub(crate) fn send(
        &self,
        method: Method,
        sink: Sink,
        room: usize,
        write: impl FnOnce(&mut Vec<u8>, &Id),
    ) -> Result<Arc<Ticket>, Error> {
        let id = self.ids.next();
        let body = tidegate_protocol::write::request(&id, method.as_str(), room, |out| write(out, &id));
        let ticket = Arc::new(Ticket::new(id, method, sink));
        self.router.tickets.open(&ticket)?;
        for early in self.router.stray.for_first_call(&ticket) {
            ticket.push(Event::Question(early));
        }
        if let Err(error) = self.channel.request(&ticket, body) {
            self.router.tickets.lost(&ticket.id, error);
        }
        Ok(ticket)
    }

    /// Nobody waits for this request any more.
    pub(crate) fn cancel(&self, ticket: &Ticket, why: &str) {
        // An `initialize` may not be cancelled (2025-11-25 cancellation), and what is answered need not be.
        if self.router.tickets.give_up(&ticket.id).is_none() {
            return;
        }
        self.channel.give_up(&ticket.id);
        if ticket.method != Method::Initialize {
            self.channel.tell_soon(wire::cancelled(&ticket.id, why));
        }
    }

    /// Whether the connection is of any more use.
    pub(crate) fn is_open(&self) -> bool {
        self.router.tickets.closed().is_none() && self.channel.is_open()
    }
}

/// Cancels a request when it is dropped before the answer has come.
pub(crate) struct CancelOnDrop<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) ticket: Arc<Ticket>,
    pub(crate) why: &'static str,
}

impl<'a> CancelOnDrop<'a> {
    pub(crate) fn new(connection: &'a Connection, ticket: Arc<Ticket>) -> CancelOnDrop<'a> {
        CancelOnDrop { connection, ticket, why: "the caller no longer waits" }
    }
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        self.connection.cancel(&self.ticket, self.why);
    }
}

/// Sorts what comes in: answers to their tickets, questions to the call they belong to, changes to who wants to know.
pub(crate) struct MessageRouter {
    pub(crate) name: Arc<str>,
    pub(crate) tickets: Tickets,
    /// The tasks that live on this connection.
    pub(crate) related: TaskRoutes,
    changes: Arc<Changes>,
    /// Answers questions on the client's behalf; without it they are passed on to the caller.
    pub(crate) handlers: Option<Arc<Handlers>>,
    /// What was declared to the server: nothing else may be asked.
    pub(crate) capabilities: ClientCapabilities,
    /// Whose connection it is.
    owner: Mutex<SessionOwner>,
    pub(crate) channel: OnceLock<Weak<dyn MessageChannel>>,
    /// What came to no call, or may not be asked.
    pub(crate) stray: UnroutedQuestions,
    /// Fires when the connection is over.
    pub(crate) over: CancellationToken,
}

impl MessageRouter {
    pub(crate) fn new(
        name: Arc<str>,
        changes: Arc<Changes>,
        handlers: Option<Arc<Handlers>>,
        (owner, capabilities): (SessionOwner, ClientCapabilities),
        ambiguous: Arc<AtomicBool>,
        max_in_flight: usize,
    ) -> Arc<MessageRouter> {
        Arc::new(MessageRouter {
            name,
            tickets: Tickets::new(max_in_flight),
            related: TaskRoutes::default(),
            changes,
            handlers,
            capabilities,
            owner: Mutex::new(owner),
            channel: OnceLock::new(),
            stray: UnroutedQuestions::new(ambiguous),
            over: CancellationToken::new(),
        })
    }

    /// Whose connection it is.
    pub(crate) fn owner(&self) -> SessionOwner {
        self.owner.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// From now on it is somebody else's.
    pub(crate) fn now_of(&self, owner: SessionOwner) {
        *self.owner.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = owner;
    }

    /// Where answers to questions go.
    pub(crate) fn attach(&self, channel: &Arc<dyn MessageChannel>) {
        _ = self.channel.set(Arc::downgrade(channel));
    }

    pub(crate) fn answer(&self, id: &Id, answer: &Result<Json, Error>) {
        if let Some(channel) = self.channel.get().and_then(Weak::upgrade) {
            channel.tell_soon(wire::answer(id, answer, Revision::LATEST_LEGACY));
        }
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
                        Some(notice) => self.changes.tell(&self.owner(), &notice),
                        None if self.passed_on(&notification, on) => {}
                        None => {
                            tracing::debug!(server = %self.name, %method, "ignored a notification")
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
        let owner = self.owner();
        let ticket = match on {
            Some(id) => self.tickets.get(id),
            None if owner == SessionOwner::Everybody => None,
            None => self.tickets.only(Ticket::is_heard),
        };
        ticket.is_some_and(|ticket| ticket.told(&notice)) || self.changes.tell_client(&owner, &notice)
    }

    /// A log message goes to the call on whose stream it came, else to the only one in flight. If that does not want it,
    /// it is for those who hear what is said in this session outside of calls, else for our own log.
    fn logged(&self, params: &Object, on: Option<&Id>) {
        let owner = self.owner();
        let ticket = match on {
            Some(id) => self.tickets.get(id),
            None if matches!(owner, SessionOwner::Own { .. }) => self.tickets.newest(Ticket::wants_logs),
            // A modern server says nothing about calls that do not want to hear it.
            None if owner == SessionOwner::Everybody => {
                self.tickets.only(|ticket| ticket.wants_logs() || ticket.client().is_some())
            }
            None => self.tickets.only(|ticket| ticket.method != Method::Ping),
        };
        match ticket {
            Some(ticket) if ticket.logged(params) => {}
            // It is a call's whose caller does not want it.
            Some(ticket) if on.is_some() || ticket.client().is_some() => self.changes.log(&self.name, params),
            _ => self.changes.log_in(&self.name, owner, params),
        }
    }
}

impl Inbox for MessageRouter {
    fn message(&self, message: Message, on: Option<&Id>) {
        match message {
            Message::Response(response) => self.tickets.answered(&response.id, Ok(response.result)),
            Message::Failure(failure) => match failure.id.as_ref().or(on) {
                Some(id) => self.tickets.answered(id, Err(failure.error)),
                None => {
                    tracing::warn!(server = %self.name, error = %failure.error, "the server reported an error")
                }
            },
            Message::Notification(notification) => self.notified(notification, on),
            Message::Request(request) => self.asked(request, on),
        }
    }

    fn spoiled(&self, id: Option<&Id>, why: Error) {
        match id {
            Some(id) => self.tickets.lost(id, why),
            None => {
                tracing::warn!(server = %self.name, error = %why, "the server sent an unexpected message")
            }
        }
    }

    fn claim(&self, question: &Request) -> Claim {
        self.claim_on(question)
    }

    fn unclear(&self, question: &Request) {
        self.cannot_tell(question);
    }

    fn missed(&self) {
        self.changes.gap();
        self.changes.tell_everything(&self.owner());
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

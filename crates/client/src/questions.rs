//! Whose question it is that a legacy server asks in the middle of a call.
//!
//! It belongs to the task that it names, the call that it names, the call on whose HTTP stream it came, or the only call
//! in flight whose caller declared that it can be asked that. Among several calls of one client it is for the one that
//! was last answered, else for the newest. Between clients nobody guesses.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use tidegate_protocol::{
    Capability, Error, Id, Json, Method, Object, Params, Request, Revision, Symbol, meta,
};
use tokio::sync::Semaphore;

use crate::connection::{MessageRouter, needed};
use crate::legacy::ClientIdentity;
use crate::task_routes::task_of;
use crate::ticket::Ticket;
use crate::transport::Claim;
use crate::wire;

/// Most questions outside of any call that are answered at once.
const MAX_OUTSIDE: usize = 16;
/// Most questions that wait for the first call.
const MAX_EARLY: usize = 16;
/// How often a question is tried to be given to a call; each that ends at this very moment takes one.
const MAX_TRIES: usize = 64;

/// What is known of questions that came to no call.
pub(crate) struct UnroutedQuestions {
    /// Questions that came between the handshake and the first call, which they belong to.
    early: Mutex<Vec<Request>>,
    called: AtomicBool,
    /// Whether the server has asked more than anybody can bear.
    pestered: AtomicBool,
    /// How many questions outside of any call are answered at once.
    outside: Arc<Semaphore>,
    /// Whether the server has asked something that could have been for several clients: on any of its connections.
    ambiguous: Arc<AtomicBool>,
}

impl UnroutedQuestions {
    pub(crate) fn new(ambiguous: Arc<AtomicBool>) -> UnroutedQuestions {
        UnroutedQuestions {
            early: Mutex::default(),
            called: AtomicBool::new(false),
            pestered: AtomicBool::new(false),
            outside: Arc::new(Semaphore::new(MAX_OUTSIDE)),
            ambiguous,
        }
    }

    /// The questions that this, the first call that may be asked something, has to answer.
    pub(crate) fn for_first_call(&self, ticket: &Ticket) -> Vec<Request> {
        if !ticket.method.may_ask() || self.called.swap(true, Ordering::Relaxed) {
            return Vec::new();
        }
        std::mem::take(&mut *self.early.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }
}

impl MessageRouter {
    /// A question of the server, which came on the stream of the call `on`, if it did.
    pub(crate) fn asked(&self, request: Request, on: Option<&Id>) {
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
            return self.answer(&request.id, &Err(undeclared(needed)));
        }
        let task = task_of(&request.params);
        let related = task.as_deref().and_then(|task| self.related.asked(task));
        let named = named_call(&request.params);
        if request.method == Method::RootsList && named.is_none() && self.has_several_clients() {
            // What a server is told in a session it may use for every call in it.
            return self.cannot_tell(&request);
        }
        let ticket = related
            .or_else(|| named.as_ref().and_then(|id| self.tickets.get(id)))
            .or_else(|| on.and_then(|id| self.tickets.get(id)));
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
            // The call that it was certainly about is over, and it is nobody else's.
            _ if named.is_some() || on.is_some() && self.owner().is_shared() => self.refuse(&request),
            _ => self.ask_any(request, None),
        }
    }

    /// Whether calls of several clients are in flight in a session that they share.
    fn has_several_clients(&self) -> bool {
        let first =
            self.tickets.newest(|ticket| ticket.client().is_some()).and_then(|ticket| ticket.client());
        self.owner().is_shared() && first.is_some_and(|client| self.is_used_by_others(&client))
    }

    /// Whether calls of other clients than this one are in flight.
    pub(crate) fn is_used_by_others(&self, client: &ClientIdentity) -> bool {
        self.tickets.newest(|ticket| ticket.client().is_some_and(|other| other != *client)).is_some()
    }

    /// What speaks for a question that every connection was told being for this one.
    pub(crate) fn claim_on(&self, question: &Request) -> Claim {
        let Some(needed) = needed(&question.method, &question.params.to_json()) else {
            return Claim::Nothing;
        };
        let is_known = task_of(&question.params).is_some_and(|task| self.related.asked(&task).is_some())
            || named_call(&question.params).is_some_and(|id| self.tickets.get(&id).is_some());
        let asking = self.tickets.all(|ticket| ticket.method.may_ask());
        match () {
            () if is_known => Claim::Certain,
            () if asking.iter().any(|ticket| ticket.can_be_asked(needed)) => Claim::Able,
            () if asking.is_empty() => Claim::Nothing,
            () => Claim::Unable,
        }
    }

    /// Asks the call that a question is about which names none. With `of`, only calls of that client: it was given to one of
    /// them that is over now, so it may be about another.
    pub(crate) fn ask_any(&self, mut request: Request, of: Option<&ClientIdentity>) {
        let Some(needed) = needed(&request.method, &request.params.to_json()) else { return };
        for _ in 0..MAX_TRIES {
            let theirs = |ticket: &Ticket| of.is_none_or(|client| ticket.client().as_ref() == Some(client));
            let asking = self.tickets.all(|ticket| ticket.method.may_ask() && theirs(ticket));
            let gone = self.tickets.gone();
            let ticket = match choose(&asking, &gone, needed) {
                Choice::Nobody => return self.asked_outside(request),
                Choice::Undeclared => return self.answer(&request.id, &Err(undeclared(needed))),
                Choice::Ambiguous => return self.cannot_tell(&request),
                Choice::Call(ticket) => ticket,
            };
            match ticket.ask(request) {
                Ok(()) => return,
                // It was over just now.
                Err(back) => request = back,
            }
        }
        self.refuse(&request);
    }

    /// A question outside of any call: for the client's own handlers, or for the first call if that is yet to come.
    fn asked_outside(&self, request: Request) {
        let turn = self.stray.outside.clone().try_acquire_owned().ok();
        match (&self.handlers, turn.filter(|_| !self.stray.pestered.load(Ordering::Relaxed))) {
            (Some(handlers), Some(turn)) => {
                // Nobody's clock runs.
                let (handlers, channel) = (handlers.clone(), self.channel.get().cloned());
                tokio::spawn(async move {
                    let _turn = turn;
                    let answer = handlers.answer(&request.method, request.params.to_json()).await;
                    if let Some(channel) = channel.as_ref().and_then(Weak::upgrade) {
                        channel.tell_soon(wire::answer(&request.id, &answer, Revision::LATEST_LEGACY));
                    }
                });
            }
            _ => self.asked_early(request),
        }
    }

    /// The server does not stop asking: from now on nobody is asked outside of a call.
    pub(crate) fn pestered(&self) {
        self.stray.pestered.store(true, Ordering::Relaxed);
    }

    fn asked_early(&self, request: Request) {
        let stray = &self.stray;
        let mut early = stray.early.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if !self.owner().is_shared()
            && self.handlers.is_none()
            && !stray.called.load(Ordering::Relaxed)
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
        tracing::debug!(server = %self.name, "{what}");
        self.answer(&request.id, &Err(Error::new(Symbol::InvalidRequest, what)));
    }

    /// Several clients have calls in flight that could be meant.
    pub(crate) fn cannot_tell(&self, request: &Request) {
        self.stray.ambiguous.store(true, Ordering::Relaxed);
        let method = &request.method;
        tracing::warn!(
            server = %self.name,
            %method,
            "a question of the server was refused: several clients have calls in flight on this connection, and nothing \
             says which of them it is for. From now on calls of different clients that may be asked something take turns \
             at this server; instances = \"per-client\" would give each client its own"
        );
        let what = format!(
            "{method} could be for several clients that share this session, and nothing says for which. Their \
             calls take turns from now on"
        );
        self.answer(&request.id, &Err(Error::new(Symbol::InvalidRequest, what)));
    }
}

enum Choice {
    /// No call is in flight that may be asked anything.
    Nobody,
    /// None whose caller can be asked this, and it is not certain whose question it is.
    Undeclared,
    /// Several, of different clients.
    Ambiguous,
    Call(Arc<Ticket>),
}

/// The call that is asked, of those in flight that may be.
///
/// `gone` are clients whose calls were given up a moment ago: their server may not have heard that yet.
fn choose(asking: &[Arc<Ticket>], gone: &[ClientIdentity], needed: Capability) -> Choice {
    let able: Vec<_> = asking.iter().filter(|ticket| ticket.can_be_asked(needed)).collect();
    let Some(first) = able.first() else {
        return match asking {
            [] => Choice::Nobody,
            // Whoever makes it tells the server what its caller would.
            [only] => Choice::Call(only.clone()),
            _ => Choice::Undeclared,
        };
    };
    let client = first.client();
    // What a caller cannot be asked it is not asked, but between users not even that is left to chance.
    let user = client.as_ref().map(|client| &client.principal);
    let is_others = |ticket: &Arc<Ticket>| ticket.client().as_ref().map(|client| &client.principal) != user;
    if able.iter().any(|ticket| ticket.client() != client)
        || asking.iter().any(is_others)
        || gone.iter().any(|other| Some(other) != client.as_ref())
        // Whoever waits for an answer hardly asks meanwhile, and others could wait for this one.
        || able.iter().all(|ticket| ticket.is_parked()) && asking.iter().any(|ticket| ticket.client() != client)
    {
        return Choice::Ambiguous;
    }
    // Of those that were never answered, the last is the newest.
    let likely = able.iter().max_by_key(|ticket| ticket.last_answered());
    likely.map_or(Choice::Nobody, |ticket| Choice::Call(Arc::clone(ticket)))
}

/// The call that a question says it belongs to: our own legacy edge says so.
pub(crate) fn named_call(params: &Params) -> Option<Id> {
    let hint = params.meta()?.json(meta::INPUT)?;
    Object::of(&hint)?.json("call").and_then(Id::from_json)
}

/// What a client says to a question that it did not declare it could be asked (2025-11-25 client/elicitation, client/roots
/// and client/sampling, Error Handling).
pub(crate) fn undeclared(needed: Capability) -> Error {
    match needed {
        Capability::ElicitForm | Capability::ElicitUrl => {
            let mode = if needed == Capability::ElicitUrl { "url" } else { "form" };
            Error::invalid_params(format_args!("the client did not declare elicitation in {mode} mode"))
        }
        _ => {
            let what = format!("Method not found: the client did not declare {}", needed.name());
            Error::new(Symbol::MethodNotFound, what)
        }
    }
}

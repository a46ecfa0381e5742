//! [`ParkedCalls`]: calls to legacy servers that wait for their caller to answer a question.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use bytestring::ByteString;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use tidegate_protocol::seal::{Binding, Sealer, digest_of};
use tidegate_protocol::{Error, Id, Json, Method, Object, Params, Symbol};
use tidegate_service::events::{self, CallAbandoned, Event};
use tidegate_service::{ContextParts, InputRequired, Principal, Question, Reply, epoch_ms};

use super::seal::seal;
use super::session::UpstreamSession;
use super::tasks::{AsTask, Awaited};
use super::turns::Turn;
use crate::settings::ParkSettings;
use crate::ticket::Ticket;
use crate::timer::Timer;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// What a round of a parked call came to. Like a reply, but it can be given to everybody who asked.
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    Done(Json),
    Asks(InputRequired),
    /// The call goes on as a task, which is the caller's.
    Task(Json),
    Failed(Error),
}

impl From<Outcome> for Reply {
    fn from(outcome: Outcome) -> Reply {
        match outcome {
            Outcome::Done(result) => Reply::Complete(result),
            Outcome::Asks(input) => Reply::InputRequired(input),
            Outcome::Task(task) => Reply::Task(task),
            Outcome::Failed(error) => Reply::Error(error),
        }
    }
}

/// A round that runs. Whoever makes the same retry again joins it.
pub(crate) type RunningRound = Shared<BoxFuture<'static, Outcome>>;

/// A question that the server has asked and nobody has answered yet.
#[derive(Debug, Clone)]
pub(crate) struct OpenQuestion {
    /// The key under which the caller answers.
    pub(crate) key: ByteString,
    /// The id under which the server asked.
    pub(crate) id: Id,
    pub(crate) method: Method,
    pub(crate) params: Json,
    /// Whether the server has said which call it is about.
    pub(crate) names_call: bool,
}

/// A call that waits for answers.
pub(crate) struct ParkedCall {
    pub(crate) session: Arc<UpstreamSession>,
    pub(crate) ticket: Arc<Ticket>,
    /// Counts how often the call has asked.
    pub(crate) round: u32,
    /// Counts what it has asked.
    pub(crate) asked: usize,
    pub(crate) open: Vec<OpenQuestion>,
    /// The call's turn on a session that callers share.
    pub(crate) turn: Option<Arc<Turn>>,
    pub(crate) owner: Principal,
    pub(crate) as_task: AsTask,
    /// The task that the call waits for. It is cancelled with the call.
    pub(crate) task: Option<Awaited>,
    /// Gives the call up when nobody resumes it.
    pub(crate) timer: Option<Timer>,
    /// Fires when a legacy caller no longer wants it: its request was cancelled, or its session is over.
    pub(crate) unwanted: Option<CancellationToken>,
    /// Gives the call up then.
    pub(crate) watch: Option<Watch>,
}

/// Something that is waited for until this is dropped.
pub(crate) struct Watch(JoinHandle<()>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

enum Entry {
    /// Waits for its caller.
    Waiting(Box<ParkedCall>),
    /// Its caller has answered this round, and it goes on.
    Running { round: u32, outcome: WeakShared<BoxFuture<'static, Outcome>>, owner: Principal },
}

/// What a retry finds.
pub(crate) enum Resumable {
    /// The call, to be resumed.
    Waiting(Box<ParkedCall>),
    /// The same retry is under way already.
    Running(RunningRound),
}

/// The calls that wait, and the seal on what names them.
pub(crate) struct ParkedCalls {
    settings: ParkSettings,
    sealer: Sealer,
    calls: Mutex<HashMap<u64, Entry>>,
}

impl ParkedCalls {
    pub(crate) fn new(settings: ParkSettings, sealer: Sealer) -> ParkedCalls {
        ParkedCalls { settings, sealer, calls: Mutex::default() }
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<u64, Entry>> {
        self.calls.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Whether a call of this caller may wait. Nobody else's is thrown out for it.
    fn room_for(&self, owner: &Principal, name: u64) -> Result<(), Error> {
        let mut calls = self.calls();
        if calls.contains_key(&name) {
            return Ok(());
        }
        // A round that was cancelled is over, and nobody has said so.
        calls.retain(
            |_, entry| !matches!(entry, Entry::Running { outcome, .. } if outcome.upgrade().is_none()),
        );
        let theirs = calls.values().filter(|entry| match entry {
            Entry::Waiting(call) => call.owner == *owner,
            Entry::Running { owner: other, .. } => other == owner,
        });
        if theirs.count() >= self.settings.per_caller || calls.len() >= self.settings.total {
            let what =
                "Too many calls wait for an answer to their questions. Answer or give up some of them first";
            return Err(Error::new(Symbol::RateLimited, what));
        }
        Ok(())
    }

    /// Parks a call: what its caller gets, with the questions and the sealed name of the call. On an error the call is
    /// given up.
    pub(crate) fn park(
        self: &Arc<Self>,
        name: Option<u64>,
        mut call: ParkedCall,
        bound: &Bound,
    ) -> Result<InputRequired, Error> {
        let name = name.unwrap_or_else(|| u64::from_le_bytes(tidegate_service::random()));
        let room = self.room_for(&bound.principal, name);
        let state = match room.and_then(|()| self.seal(name, call.round, bound)) {
            Ok(state) => state,
            Err(error) => {
                call.session.connection.cancel(&call.ticket, "too many calls wait");
                self.calls().remove(&name);
                return Err(error);
            }
        };
        let asked = |q: &OpenQuestion| Question {
            key: q.key.clone(),
            method: q.method.clone(),
            params: q.params.clone(),
        };
        let questions = call.open.iter().map(asked).collect();
        call.ticket.keep_for_retry();
        call.timer = Some(self.give_up_later(name, call.round));
        call.watch = call.unwanted.clone().map(|unwanted| self.give_up_when(unwanted, name, call.round));
        self.calls().insert(name, Entry::Waiting(Box::new(call)));
        Ok(InputRequired { questions, state: Some(state.into()), original: None })
    }

    fn seal(&self, name: u64, round: u32, bound: &Bound) -> Result<String, Error> {
        let expires = epoch_ms() + self.settings.time.as_millis() as u64;
        let content = [&name.to_le_bytes()[..], &round.to_le_bytes()].concat();
        seal(&self.sealer, &content, &bound.binding(), expires)
    }

    /// A parked call that nobody resumes in time is cancelled upstream.
    fn give_up_later(self: &Arc<Self>, name: u64, round: u32) -> Timer {
        let parked = Arc::downgrade(self);
        Timer::after(self.settings.time, move || {
            let Some(parked) = parked.upgrade() else { return };
            if let Some(call) = parked.take(name, round) {
                events::emit(&Event::CallAbandoned(CallAbandoned { method: &call.ticket.method }));
                call.session.connection.cancel(&call.ticket, "the questions were not answered in time");
            }
        })
    }

    /// One whose caller no longer wants it is cancelled upstream at once.
    fn give_up_when(self: &Arc<Self>, unwanted: CancellationToken, name: u64, round: u32) -> Watch {
        let parked = Arc::downgrade(self);
        Watch(tokio::spawn(async move {
            unwanted.cancelled().await;
            let Some(parked) = parked.upgrade() else { return };
            if let Some(call) = parked.take(name, round) {
                call.session.connection.cancel(&call.ticket, "the caller no longer waits");
            }
        }))
    }

    /// Takes a call off the list that waits in this round.
    fn take(&self, name: u64, round: u32) -> Option<Box<ParkedCall>> {
        let mut calls = self.calls();
        match calls.get(&name) {
            Some(Entry::Waiting(call)) if call.round == round => {}
            _ => return None,
        }
        match calls.remove(&name) {
            Some(Entry::Waiting(call)) => Some(call),
            _ => None,
        }
    }

    /// Opens the state of a retry. `None` if it is not one of ours.
    fn open(&self, state: &str, bound: &Bound) -> Result<(u64, u32), Error> {
        let content = self.sealer.open(state, &bound.binding(), epoch_ms())?;
        let (name, round) = content.split_at_checked(8).ok_or_else(Error::internal)?;
        let name = u64::from_le_bytes(name.try_into().map_err(|_| Error::internal())?);
        Ok((name, u32::from_le_bytes(round.try_into().map_err(|_| Error::internal())?)))
    }

    /// The call that a retry is about. A waiting one is taken off the list: [`ParkedCalls::resumed`] puts it back.
    pub(crate) fn find(&self, state: &str, bound: &Bound) -> Result<(u64, Resumable), Error> {
        let (name, round) = self.open(state, bound)?;
        let mut calls = self.calls();
        match calls.get(&name) {
            Some(Entry::Running { round: now, outcome, .. }) if *now == round => {
                if let Some(running) = outcome.upgrade() {
                    return Ok((name, Resumable::Running(running)));
                }
            }
            Some(Entry::Waiting(call)) if call.round == round => {
                if let Some(Entry::Waiting(call)) = calls.remove(&name) {
                    return Ok((name, Resumable::Waiting(call)));
                }
            }
            Some(_) => {
                let what = "Invalid params: requestState is of a round that is over; use the latest one";
                return Err(Error::new(Symbol::StateRefused, what));
            }
            None => {}
        }
        let what = "Invalid params: the call that requestState names is over (it ended, was given up, or this process \
                    was restarted). Start again without it";
        Err(Error::new(Symbol::StateRefused, what))
    }

    /// Puts back what [`ParkedCalls::find`] has taken, as it was.
    pub(crate) fn put_back(&self, name: u64, call: Box<ParkedCall>) {
        self.calls().insert(name, Entry::Waiting(call));
    }

    /// A retry goes on under this name.
    pub(crate) fn resumed(&self, name: u64, round: u32, outcome: &RunningRound, owner: Principal) {
        if let Some(outcome) = outcome.downgrade() {
            self.calls().insert(name, Entry::Running { round, outcome, owner });
        }
    }

    /// The call has ended.
    pub(crate) fn ended(&self, name: u64) {
        let mut calls = self.calls();
        if let Some(Entry::Running { .. }) = calls.get(&name) {
            calls.remove(&name);
        }
    }

    /// How many calls wait, or go on after their caller has answered.
    pub(crate) fn len(&self) -> usize {
        self.calls().len()
    }

    /// How many calls wait for their callers.
    pub(crate) fn waiting(&self) -> usize {
        self.calls().values().filter(|entry| matches!(entry, Entry::Waiting(_))).count()
    }

    /// Gives up every call.
    pub(crate) fn close(&self) {
        let all = std::mem::take(&mut *self.calls());
        for (_, entry) in all {
            if let Entry::Waiting(call) = entry {
                call.session.connection.cancel(&call.ticket, "the client is closing");
            }
        }
    }
}

/// What a request state is bound to: who asked what at which endpoint. Most calls never park, so nothing is computed before one does.
#[derive(Debug, Clone)]
pub(crate) struct Bound {
    pub(crate) principal: Principal,
    endpoint: Option<Arc<str>>,
    method: Method,
    params: Params,
}

impl Bound {
    pub(crate) fn new(caller: &ContextParts, method: &Method, params: &Params) -> Bound {
        Bound {
            principal: caller.principal.clone(),
            endpoint: caller.endpoint.clone(),
            method: method.clone(),
            params: params.clone(),
        }
    }

    fn binding(&self) -> Binding<'_> {
        self.caller_binding(self.method.as_str(), digest_of(&self.params))
    }

    /// The same for something else that is given to whoever asked.
    pub(super) fn caller_binding<'a>(&'a self, method: &'a str, params: [u8; 32]) -> Binding<'a> {
        let endpoint = self.endpoint.as_deref().unwrap_or_default();
        Binding { endpoint, ..self.principal.binding(method, params) }
    }
}

/// Whether an answer has the shape of an answer to this question (2026-07-28 schema: `ElicitResult`,
/// `CreateMessageResult`, `ListRootsResult`), and what is wrong with it if not.
pub(crate) fn check_shape(method: &Method, key: &str, answer: &Json) -> Result<(), Error> {
    let wrong = |what: &str| Err(Error::invalid_params(format_args!("the answer to {key:?} {what}")));
    let Some(object) = Object::of(answer) else { return wrong("must be an object") };
    match method {
        Method::ElicitCreate => match object.str("action").as_deref() {
            Some("accept") if object.json("content").is_some_and(|c| !c.is_object()) => {
                wrong("must have an object as \"content\"")
            }
            Some("accept" | "decline" | "cancel") => Ok(()),
            _ => wrong("must have \"action\": accept, decline or cancel"),
        },
        Method::SamplingCreate => {
            let content = object.get("content").is_some_and(|c| c.starts_with(['{', '[']));
            match object.str("role").as_deref() {
                Some("user" | "assistant") if content && object.str("model").is_some() => Ok(()),
                _ => wrong("must have \"role\", \"content\" and \"model\""),
            }
        }
        Method::RootsList => match object.get("roots") {
            Some(roots) if roots.starts_with('[') => Ok(()),
            _ => wrong("must have an array \"roots\""),
        },
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes() {
        let ok = |method: Method, text: &'static str| check_shape(&method, "k", &Json::trusted(text)).is_ok();
        assert!(ok(Method::ElicitCreate, r#"{"action":"accept","content":{}}"#));
        assert!(ok(Method::ElicitCreate, r#"{"action":"decline"}"#));
        assert!(!ok(Method::ElicitCreate, r#"{"action":"maybe"}"#));
        assert!(!ok(Method::ElicitCreate, r#"{"action":"accept","content":"x"}"#));
        assert!(!ok(Method::ElicitCreate, r#""accept""#));
        assert!(ok(Method::SamplingCreate, r#"{"role":"assistant","content":{},"model":"m"}"#));
        assert!(!ok(Method::SamplingCreate, r#"{"content":{}}"#));
        assert!(ok(Method::RootsList, r#"{"roots":[]}"#));
        assert!(!ok(Method::RootsList, r#"{"roots":{}}"#));
    }
}

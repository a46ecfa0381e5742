//! [`Live`]: one task that its caller was given.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::Poll;
use std::time::Duration;

use bytestring::ByteString;
use futures_util::FutureExt;
use tidegate_protocol::{ClientCapabilities, Error, Id, Json, Method, Object, Request, Symbol};
use tidegate_service::Question;

use super::super::owner::ClientIdentity;
use super::super::parked::{OpenQuestion, check_shape};
use super::super::round::{hint, may_ask, opened};
use super::super::session::UpstreamSession;
use super::awaited::{ask_for_result, cancel_soon};
use super::shape::{Detail, Shown, id_params, related, unrelated};
use super::store::not_found;
use crate::settings::ClientSettings;
use crate::ticket::{Event, Sink, Ticket};
use crate::time_budget::TimeBudget;

/// How long to wait for the questions of a task that says it has some.
const QUESTIONS: Duration = Duration::from_millis(500);
/// Most questions of one task that are open at once.
const MAX_OPEN: usize = 64;
/// Most questions of one task in all: its keys are remembered.
const MAX_KEYS: usize = 1024;
/// Most that is read while questions are waited for.
const MAX_EVENTS: usize = 256;
/// How often the result of a task is asked for in one go: the stream on which it comes may be cut off.
const MAX_ASKED: usize = 3;

/// A task. Its session lives as long as it does.
pub(crate) struct Live {
    /// The server's own id.
    id: String,
    ttl: Duration,
    /// What its caller can be asked.
    capabilities: ClientCapabilities,
    session: Mutex<SessionRef>,
    /// What the server asks about the task.
    questions: Arc<Ticket>,
    /// One request about a task at a time.
    work: tokio::sync::Mutex<Work>,
}

/// The session of a task.
enum SessionRef {
    /// Kept open for it.
    Living(Arc<UpstreamSession>),
    /// The task has ended and its caller knows how; the session is kept by whoever else uses it.
    Ended(Weak<UpstreamSession>),
}

#[derive(Default)]
struct Work {
    open: Vec<OpenQuestion>,
    /// Every key ever used: none is used twice (SEP-2663, Task Update Requests).
    keys: HashSet<ByteString>,
    /// `tasks/result`, which waits for the end of the task. Servers ask on its stream.
    result: Option<Arc<Ticket>>,
    /// What it was answered with.
    answer: Option<Result<Json, Json>>,
    /// How many questions come together.
    expected: Option<usize>,
}

impl Live {
    pub(super) fn new(
        session: &Arc<UpstreamSession>,
        id: String,
        token: &Id,
        ttl: Duration,
        capabilities: ClientCapabilities,
    ) -> Arc<Live> {
        let questions = Arc::new(Ticket::new(token.clone(), Method::ToolsCall, Sink::default()));
        session.connection.router.related.follow(&id, token, &questions);
        let session = Mutex::new(SessionRef::Living(session.clone()));
        Arc::new(Live { id, ttl, capabilities, session, questions, work: Default::default() })
    }

    fn session_ref(&self) -> MutexGuard<'_, SessionRef> {
        self.session.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn session(&self) -> Option<Arc<UpstreamSession>> {
        let session = match &*self.session_ref() {
            SessionRef::Living(session) => Some(session.clone()),
            SessionRef::Ended(session) => session.upgrade(),
        };
        session.filter(|session| session.connection.is_open())
    }

    /// Whether it has not ended, as far as anybody knows.
    pub(super) fn is_live(&self) -> bool {
        matches!(&*self.session_ref(), SessionRef::Living(session) if session.connection.is_open())
    }

    /// Whether nobody can reach it any more.
    pub(super) fn is_gone(&self) -> bool {
        self.session().is_none()
    }

    /// Its time is over, and nobody can ask for it any more.
    pub(super) fn give_up(&self) {
        if let SessionRef::Living(session) = &*self.session_ref() {
            cancel_soon(session, &self.id);
        }
    }

    /// `tasks/get`, with everything in it that 2025-11-25 has other methods for.
    pub(super) async fn get(
        &self,
        handle: &str,
        within: &TimeBudget,
        settings: &ClientSettings,
    ) -> Result<Json, Error> {
        let session = self.session().ok_or_else(not_found)?;
        let mut work = self.work.lock().await;
        let task = session.ask(Method::TasksGet, &id_params(&self.id), within).await?;
        session.touch();
        let broken = || Error::new(Symbol::Unavailable, "The server answered tasks/get with no task");
        let task = Object::of(&task).ok_or_else(broken)?;
        let status = task.str("status").ok_or_else(broken)?;
        let (status, detail) = match &*status {
            // The words do not mean the same: a tool that failed is `failed` in the one, and `completed` in the other.
            "completed" | "failed" => match self.result(&mut work, &session, within).await? {
                Ok(result) => ("completed", Detail::Result(unrelated(result))),
                Err(error) => ("failed", Detail::Error(error)),
            },
            "cancelled" => ("cancelled", Detail::Nothing),
            status => {
                self.gather(&mut work, &session);
                if status == "input_required" && work.open.is_empty() {
                    self.wait_for_questions(&mut work, &session, settings.park.settle).await?;
                }
                match work.open.is_empty() {
                    true => ("working", Detail::Nothing),
                    false => ("input_required", Detail::Questions(work.questions())),
                }
            }
        };
        if !matches!(detail, Detail::Questions(_)) && status != "working" {
            self.ended(&mut work, &session);
        }
        Ok(Shown { kind: "complete", handle, status, ttl: self.ttl, detail }.write(&task))
    }

    /// Its caller knows how it ended: nothing has to be kept for it.
    fn ended(&self, work: &mut Work, session: &Arc<UpstreamSession>) {
        session.connection.router.related.forget(&self.id);
        work.open.clear();
        if let Some(result) = work.result.take() {
            session.connection.cancel(&result, "the task has ended");
        }
        *self.session_ref() = SessionRef::Ended(Arc::downgrade(session));
    }

    /// Waits for the result of a task that has ended: what the call would have been answered with.
    async fn result(
        &self,
        work: &mut Work,
        session: &Arc<UpstreamSession>,
        within: &TimeBudget,
    ) -> Result<Result<Json, Json>, Error> {
        for _ in 0..MAX_ASKED {
            let ticket = self.asked_for_result(work, session)?;
            loop {
                if let Some(answer) = work.answer.take() {
                    return Ok(answer);
                }
                match within.within(&self.questions, self.event(Some(&ticket))).await? {
                    Event::Lost(error) if !session.connection.is_open() => return Err(error),
                    Event::Lost(error) if error.symbol() == Symbol::SessionNotFound => return Err(error),
                    Event::Lost(_) => {
                        work.result = None;
                        break;
                    }
                    event => self.take(work, session, event),
                }
            }
        }
        let what = "The server does not send the result of a task that has ended";
        Err(Error::new(Symbol::Unavailable, what))
    }

    /// `tasks/result`, sent if it is not under way.
    fn asked_for_result(&self, work: &mut Work, session: &UpstreamSession) -> Result<Arc<Ticket>, Error> {
        if let Some(ticket) = &work.result {
            return Ok(ticket.clone());
        }
        let ticket = ask_for_result(session, &self.id, Sink::default())?;
        Ok(work.result.insert(ticket).clone())
    }

    /// Gives the server a stream to ask on, and waits a moment for it to do so.
    async fn wait_for_questions(
        &self,
        work: &mut Work,
        session: &Arc<UpstreamSession>,
        settle: Duration,
    ) -> Result<(), Error> {
        let ticket = self.asked_for_result(work, session)?;
        for _ in 0..MAX_EVENTS {
            if work.answer.is_some() || work.expected.is_some_and(|expected| work.open.len() >= expected) {
                break;
            }
            let patience = if work.open.is_empty() { QUESTIONS } else { settle };
            match tokio::time::timeout(patience, self.event(Some(&ticket))).await {
                Ok(Event::Lost(error)) => {
                    work.result = None;
                    // The next who asks tries again, if there is anything left to try.
                    return if error.symbol() == Symbol::SessionNotFound { Err(error) } else { Ok(()) };
                }
                Ok(event) => self.take(work, session, event),
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// Takes whatever has come so far.
    fn gather(&self, work: &mut Work, session: &Arc<UpstreamSession>) {
        let result = work.result.clone();
        while let Some(event) = self.event(result.as_ref()).now_or_never() {
            match event {
                Event::Lost(_) => work.result = None,
                event => self.take(work, session, event),
            }
        }
    }

    async fn event(&self, result: Option<&Arc<Ticket>>) -> Event {
        std::future::poll_fn(|cx| match self.questions.poll_next(cx) {
            Poll::Ready(event) => Poll::Ready(event),
            Poll::Pending => result.map_or(Poll::Pending, |ticket| ticket.poll_next(cx)),
        })
        .await
    }

    fn take(&self, work: &mut Work, session: &UpstreamSession, event: Event) {
        match event {
            Event::Question(question) if may_ask(session, &self.capabilities, &question).is_err() => {}
            Event::Question(question) if work.open.len() < MAX_OPEN && work.keys.len() < MAX_KEYS => {
                work.asked(question)
            }
            Event::Question(question) => {
                let refusal = Error::new(Symbol::RateLimited, "The task asks too much");
                session.connection.router.answer(&question.id, &Err(refusal));
            }
            Event::Answer(answer) => {
                work.result = None;
                work.answer = Some(answer);
            }
            Event::Notified(_) | Event::Lost(_) => {}
        }
    }

    /// `tasks/update`: delivers answers. Those to questions that are not open are ignored; if one does not fit, none is
    /// taken.
    pub(super) async fn update(
        &self,
        mut given: HashMap<String, Json>,
        client: &ClientIdentity,
    ) -> Result<(), Error> {
        let session = self.session().ok_or_else(not_found)?;
        let mut work = self.work.lock().await;
        self.gather(&mut work, &session);
        for question in &work.open {
            if let Some(answer) = given.get(&*question.key) {
                check_shape(&question.method, &question.key, answer)?;
            }
        }
        work.open.retain(|question| match given.remove(&*question.key) {
            Some(answer) => {
                if question.method == Method::RootsList {
                    session.told_roots_of(client);
                }
                session.connection.router.answer(&question.id, &Ok(related(&answer, &self.id)));
                false
            }
            None => true,
        });
        work.expected = None;
        session.touch();
        Ok(())
    }

    /// `tasks/cancel`. SEP-2663 leaves it to the server whether it stops the work; what is asked for is only to be heard.
    pub(super) async fn cancel(&self, within: &TimeBudget) -> Result<(), Error> {
        let session = self.session().ok_or_else(not_found)?;
        if !session.server_info.has_capability("tasks.cancel") {
            tracing::debug!(server = %session.connection.router.name, "the server cannot cancel tasks");
            return Ok(());
        }
        match session.ask(Method::TasksCancel, &id_params(&self.id), within).await {
            // It has ended already.
            Err(error) if error.symbol() == Symbol::InvalidParams => Ok(()),
            cancelled => cancelled.map(drop),
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let Some(session) = self.session() else { return };
        session.connection.router.related.forget(&self.id);
        if let Some(result) = &self.work.get_mut().result {
            session.connection.cancel(result, "nobody asks for the task any more");
        }
        session.touch();
    }
}

impl Work {
    fn asked(&mut self, question: Request) {
        let (key, of) = hint(&question, 0, self.keys.len());
        self.expected = of;
        if let Some(open) = self.open.iter_mut().find(|open| open.key == key) {
            // Asked again, because the stream on which it was asked is gone.
            *open = opened(key, question);
            return;
        }
        let mut chosen = key.clone();
        let mut n = 1;
        while !self.keys.insert(chosen.clone()) {
            n += 1;
            chosen = format!("{key}-{n}").into();
        }
        self.open.push(opened(chosen, question));
    }

    fn questions(&self) -> Json {
        let asked = |q: &OpenQuestion| Question {
            key: q.key.clone(),
            method: q.method.clone(),
            params: q.params.clone(),
        };
        let questions: Vec<_> = self.open.iter().map(asked).collect();
        let mut out = Vec::with_capacity(256);
        Question::write_map(&questions, &mut out);
        Json::from_written(out)
    }
}

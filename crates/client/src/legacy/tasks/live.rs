//! [`Live`]: one task that its caller was given.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::Poll;
use std::time::Duration;

use bytestring::ByteString;
use futures_util::FutureExt;
use tidegate_protocol::{ClientCapabilities, Error, Id, Json, Method, Object, Request, Symbol};
use tidegate_service::Question;

use super::super::lane::Lane;
use super::super::parked::{Open, check_shape};
use super::super::run::{hint, may_ask, opened};
use super::super::whose::ClientIdentity;
use super::awaited::{ask_for_result, cancel_soon};
use super::shape::{Detail, Shown, id_params, related, unrelated};
use super::store::not_found;
use crate::allowance::Allowance;
use crate::options::Options;
use crate::ticket::{Event, Sink, Ticket};

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
    lane: Mutex<Held>,
    /// What the server asks about the task.
    questions: Arc<Ticket>,
    /// One request about a task at a time.
    work: tokio::sync::Mutex<Work>,
}

/// The session of a task.
enum Held {
    /// Kept open for it.
    Living(Arc<Lane>),
    /// The task has ended and its caller knows how; the session is kept by whoever else uses it.
    Ended(Weak<Lane>),
}

#[derive(Default)]
struct Work {
    open: Vec<Open>,
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
        lane: &Arc<Lane>,
        id: String,
        token: &Id,
        ttl: Duration,
        capabilities: ClientCapabilities,
    ) -> Arc<Live> {
        let questions = Arc::new(Ticket::new(token.clone(), Method::ToolsCall, Sink::default()));
        lane.peer.desk.related.follow(&id, token, &questions);
        let lane = Mutex::new(Held::Living(lane.clone()));
        Arc::new(Live { id, ttl, capabilities, lane, questions, work: Default::default() })
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.lane.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn lane(&self) -> Option<Arc<Lane>> {
        let lane = match &*self.held() {
            Held::Living(lane) => Some(lane.clone()),
            Held::Ended(lane) => lane.upgrade(),
        };
        lane.filter(|lane| lane.peer.is_open())
    }

    /// Whether it has not ended, as far as anybody knows.
    pub(super) fn is_live(&self) -> bool {
        matches!(&*self.held(), Held::Living(lane) if lane.peer.is_open())
    }

    /// Whether nobody can reach it any more.
    pub(super) fn is_gone(&self) -> bool {
        self.lane().is_none()
    }

    /// Its time is over, and nobody can ask for it any more.
    pub(super) fn give_up(&self) {
        if let Held::Living(lane) = &*self.held() {
            cancel_soon(lane, &self.id);
        }
    }

    /// `tasks/get`, with everything in it that 2025-11-25 has other methods for.
    pub(super) async fn get(
        &self,
        handle: &str,
        within: &Allowance,
        options: &Options,
    ) -> Result<Json, Error> {
        let lane = self.lane().ok_or_else(not_found)?;
        let mut work = self.work.lock().await;
        let task = lane.ask(Method::TasksGet, &id_params(&self.id), within).await?;
        lane.touch();
        let broken = || Error::new(Symbol::Unavailable, "The server answered tasks/get with no task");
        let task = Object::of(&task).ok_or_else(broken)?;
        let status = task.str("status").ok_or_else(broken)?;
        let (status, detail) = match &*status {
            // The words do not mean the same: a tool that failed is `failed` in the one, and `completed` in the other.
            "completed" | "failed" => match self.result(&mut work, &lane, within).await? {
                Ok(result) => ("completed", Detail::Result(unrelated(result))),
                Err(error) => ("failed", Detail::Error(error)),
            },
            "cancelled" => ("cancelled", Detail::Nothing),
            status => {
                self.gather(&mut work, &lane);
                if status == "input_required" && work.open.is_empty() {
                    self.wait_for_questions(&mut work, &lane, options.park.settle).await?;
                }
                match work.open.is_empty() {
                    true => ("working", Detail::Nothing),
                    false => ("input_required", Detail::Questions(work.questions())),
                }
            }
        };
        if !matches!(detail, Detail::Questions(_)) && status != "working" {
            self.ended(&mut work, &lane);
        }
        Ok(Shown { kind: "complete", handle, status, ttl: self.ttl, detail }.write(&task))
    }

    /// Its caller knows how it ended: nothing has to be kept for it.
    fn ended(&self, work: &mut Work, lane: &Arc<Lane>) {
        lane.peer.desk.related.forget(&self.id);
        work.open.clear();
        if let Some(result) = work.result.take() {
            lane.peer.cancel(&result, "the task has ended");
        }
        *self.held() = Held::Ended(Arc::downgrade(lane));
    }

    /// Waits for the result of a task that has ended: what the call would have been answered with.
    async fn result(
        &self,
        work: &mut Work,
        lane: &Arc<Lane>,
        within: &Allowance,
    ) -> Result<Result<Json, Json>, Error> {
        for _ in 0..MAX_ASKED {
            let ticket = self.asked_for_result(work, lane)?;
            loop {
                if let Some(answer) = work.answer.take() {
                    return Ok(answer);
                }
                match within.within(&self.questions, self.event(Some(&ticket))).await? {
                    Event::Lost(error) if !lane.peer.is_open() => return Err(error),
                    Event::Lost(error) if error.symbol() == Symbol::SessionNotFound => return Err(error),
                    Event::Lost(_) => {
                        work.result = None;
                        break;
                    }
                    event => self.take(work, lane, event),
                }
            }
        }
        let what = "The server does not send the result of a task that has ended";
        Err(Error::new(Symbol::Unavailable, what))
    }

    /// `tasks/result`, sent if it is not under way.
    fn asked_for_result(&self, work: &mut Work, lane: &Lane) -> Result<Arc<Ticket>, Error> {
        if let Some(ticket) = &work.result {
            return Ok(ticket.clone());
        }
        let ticket = ask_for_result(lane, &self.id, Sink::default())?;
        Ok(work.result.insert(ticket).clone())
    }

    /// Gives the server a stream to ask on, and waits a moment for it to do so.
    async fn wait_for_questions(
        &self,
        work: &mut Work,
        lane: &Arc<Lane>,
        settle: Duration,
    ) -> Result<(), Error> {
        let ticket = self.asked_for_result(work, lane)?;
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
                Ok(event) => self.take(work, lane, event),
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// Takes whatever has come so far.
    fn gather(&self, work: &mut Work, lane: &Arc<Lane>) {
        let result = work.result.clone();
        while let Some(event) = self.event(result.as_ref()).now_or_never() {
            match event {
                Event::Lost(_) => work.result = None,
                event => self.take(work, lane, event),
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

    fn take(&self, work: &mut Work, lane: &Lane, event: Event) {
        match event {
            Event::Question(question) if may_ask(lane, &self.capabilities, &question).is_err() => {}
            Event::Question(question) if work.open.len() < MAX_OPEN && work.keys.len() < MAX_KEYS => {
                work.asked(question)
            }
            Event::Question(question) => {
                let refusal = Error::new(Symbol::RateLimited, "The task asks too much");
                lane.peer.desk.answer(&question.id, &Err(refusal));
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
        let lane = self.lane().ok_or_else(not_found)?;
        let mut work = self.work.lock().await;
        self.gather(&mut work, &lane);
        for question in &work.open {
            if let Some(answer) = given.get(&*question.key) {
                check_shape(&question.method, &question.key, answer)?;
            }
        }
        work.open.retain(|question| match given.remove(&*question.key) {
            Some(answer) => {
                if question.method == Method::RootsList {
                    lane.told_roots_of(client);
                }
                lane.peer.desk.answer(&question.id, &Ok(related(&answer, &self.id)));
                false
            }
            None => true,
        });
        work.expected = None;
        lane.touch();
        Ok(())
    }

    /// `tasks/cancel`. SEP-2663 leaves it to the server whether it stops the work; what is asked for is only to be heard.
    pub(super) async fn cancel(&self, within: &Allowance) -> Result<(), Error> {
        let lane = self.lane().ok_or_else(not_found)?;
        if !lane.facts.has_capability("tasks.cancel") {
            tracing::debug!(server = %lane.peer.desk.name, "the server cannot cancel tasks");
            return Ok(());
        }
        match lane.ask(Method::TasksCancel, &id_params(&self.id), within).await {
            // It has ended already.
            Err(error) if error.symbol() == Symbol::InvalidParams => Ok(()),
            cancelled => cancelled.map(drop),
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let Some(lane) = self.lane() else { return };
        lane.peer.desk.related.forget(&self.id);
        if let Some(result) = &self.work.get_mut().result {
            lane.peer.cancel(result, "nobody asks for the task any more");
        }
        lane.touch();
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
        let asked =
            |q: &Open| Question { key: q.key.clone(), method: q.method.clone(), params: q.params.clone() };
        let questions: Vec<_> = self.open.iter().map(asked).collect();
        let mut out = Vec::with_capacity(256);
        Question::write_map(&questions, &mut out);
        Json::from_written(out)
    }
}

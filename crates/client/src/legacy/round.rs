//! [`CallRound`]: one round of a call to a legacy server, up to its result or its questions.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytestring::ByteString;
use tidegate_protocol::{
    Capability, ClientCapabilities, Error, Id, Json, Method, Object, Params, Request, Revision, Symbol, meta,
};
use tidegate_service::{InputRequired, Reply};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::owner::ClientIdentity;
use super::parked::{Bound, OpenQuestion, Outcome, ParkedCall, ParkedCalls, check_shape};
use super::raise;
use super::session::UpstreamSession;
use super::tasks::{AsTask, Awaited, Tasks, created, related, unrelated};
use super::turns::Turn;
use crate::app_error::ErrorProfile;
use crate::connection::{MessageRouter, needed};
use crate::handlers::Handlers;
use crate::questions::{named_call, undeclared};
use crate::rounds;
use crate::settings::ClientSettings;
use crate::task_routes::task_of;
use crate::ticket::{Event, Sink, Ticket};
use crate::time_budget::TimeBudget;
use crate::upstream_error::passed_error;

/// How long to wait before the result of a task is asked for again.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// The answers that a call brings along, by key.
pub(super) fn answers_in(params: &Params) -> HashMap<String, Json> {
    let Some(given) = params.object().object("inputResponses") else { return HashMap::new() };
    let names: Vec<_> = given.members().map(|m| m.name.into_owned()).collect();
    names.into_iter().enumerate().filter_map(|(i, name)| Some((name, given.json_at(i)?))).collect()
}

/// Cancels the call upstream if nobody waits for it any more.
pub(super) struct Guard {
    pub(super) session: Arc<UpstreamSession>,
    pub(super) ticket: Arc<Ticket>,
    pub(super) armed: bool,
    /// The task that the call waits for; the ticket is then that of its result.
    pub(super) task: Option<Awaited>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.armed {
            self.session.connection.cancel(&self.ticket, "the caller no longer waits");
            let client = self.ticket.client();
            for question in self.ticket.abandon() {
                self.session.connection.router.ask_any(question, client.as_ref());
            }
        }
        self.session.touch();
    }
}

/// One round of a call.
pub(super) struct CallRound {
    pub(super) guard: Guard,
    /// Answers that came before their questions.
    pub(super) early_answers: HashMap<String, Json>,
    pub(super) capabilities: ClientCapabilities,
    pub(super) revision: Revision,
    pub(super) method: Method,
    /// Whose error numbers the server uses.
    pub(super) profile: ErrorProfile,
    pub(super) params: Params,
    pub(super) bound: Bound,
    pub(super) budget: TimeBudget,
    pub(super) round: u32,
    /// How many questions the call has asked in all its rounds.
    pub(super) asked: usize,
    pub(super) name: Option<u64>,
    pub(super) turn: Option<Arc<Turn>>,
    pub(super) as_task: AsTask,
    /// Where progress and log messages go.
    pub(super) sink: Sink,
    /// Where tasks are given out.
    pub(super) tasks: Arc<Tasks>,
    /// What the server wanted of the caller that it has not declared.
    pub(super) undeclared: Vec<Capability>,
    /// Fires when a legacy caller no longer wants it.
    pub(super) unwanted: Option<CancellationToken>,
}

/// What an answer means.
enum Answered {
    /// The call is over.
    Over(Outcome),
    /// It has become a task, whose result is waited for.
    Goes,
}

impl CallRound {
    /// The server has answered: with what the call came to, or with a task.
    fn answered(&mut self, answer: Result<Json, Json>) -> Answered {
        let task = match (&answer, &self.guard.task, self.as_task) {
            (Ok(result), None, AsTask::PassedOn | AsTask::Awaited) => created(result),
            _ => None,
        };
        let Some((task, id)) = task else { return Answered::Over(self.finished(answer)) };
        let (session, token) = (&self.guard.session, &self.guard.ticket.id);
        if self.as_task == AsTask::PassedOn {
            let caller = (&self.bound, &self.capabilities);
            return Answered::Over(match self.tasks.give_out(session, (&task, id), token, caller) {
                Ok(task) => Outcome::Task(task),
                Err(error) => Outcome::Failed(error),
            });
        }
        self.guard.task = Some(Awaited::new(session, id, token.clone()));
        match self.ask_for_result() {
            Ok(()) => Answered::Goes,
            Err(error) => Answered::Over(Outcome::Failed(error.begun())),
        }
    }

    fn ask_for_result(&mut self) -> Result<(), Error> {
        let cut_off =
            || Error::new(Symbol::Unavailable, "The result of the task was cut off again and again");
        let task = self.guard.task.as_mut().ok_or_else(Error::internal)?;
        self.guard.ticket = task.ask_for_result(self.sink.clone()).ok_or_else(cut_off)??;
        Ok(())
    }

    /// There will be no answer. If the call waits for a task that goes on, it is asked for again.
    async fn lost(&mut self, error: Error) -> Result<(), Error> {
        if self.guard.task.is_none() {
            return Err(error);
        }
        // What is lost is the question for the result; the task itself goes on.
        let error = error.begun();
        if !self.guard.session.connection.is_open() || error.symbol() != Symbol::Unavailable {
            return Err(error);
        }
        tokio::time::sleep(ASK_AGAIN).await;
        self.ask_for_result().map_err(|_| error)
    }

    /// Delivers an answer to a question.
    fn answer(&self, question: &OpenQuestion, answer: Json) {
        let client = self.sink.caller.as_ref().map(|caller| &caller.client);
        answer_about(&self.guard.session, self.guard.task.as_ref(), question, answer, client);
        self.guard.ticket.was_answered();
    }

    fn finished(&mut self, answer: Result<Json, Json>) -> Outcome {
        let answer = match &mut self.guard.task {
            Some(task) => {
                task.ended = true;
                answer.map(unrelated)
            }
            None => answer,
        };
        match answer {
            Ok(result) => Outcome::Done(raise::result(&self.method, self.revision, result)),
            Err(error) => {
                let questions = raise::url_questions(&error);
                if !questions.is_empty() && self.capabilities.has(Capability::ElicitUrl) {
                    // The retry calls afresh, so there is no state to bring back.
                    return Outcome::Asks(InputRequired { questions, state: None, original: None });
                }
                if self.revision.is_modern() && !self.undeclared.is_empty() {
                    // The server could not do without what it could not ask.
                    return Outcome::Failed(Error::missing_capabilities(&self.undeclared));
                }
                Outcome::Failed(passed_error(self.profile, &self.method, Some(&self.params), &error))
            }
        }
    }

    /// Whether the caller can be asked this. If not, the server is told.
    fn may_ask(&mut self, question: &Request) -> bool {
        match may_ask(&self.guard.session, &self.capabilities, question) {
            Ok(()) => true,
            Err(needed) => {
                self.undeclared.extend(needed.filter(|needed| !self.undeclared.contains(needed)));
                false
            }
        }
    }

    /// Goes on until there is a result, or questions that the caller has to answer.
    pub(super) async fn until_parked(
        &mut self,
        parked: &Arc<ParkedCalls>,
        settings: &ClientSettings,
    ) -> Outcome {
        let mut open: Vec<OpenQuestion> = Vec::new();
        let (router, client) = (self.guard.session.connection.router.clone(), self.guard.ticket.client());
        let mut unanswered = Unanswered { router, client, questions: Vec::new() };
        let mut expected = None;
        loop {
            let event = if open.is_empty() {
                self.budget.next(&self.guard.ticket).await
            } else {
                // One question has come; more may follow at its heels.
                match tokio::time::timeout(settings.park.settle, self.guard.ticket.next()).await {
                    Ok(event) => Ok(event),
                    Err(_) => {
                        unanswered.questions.clear();
                        return self.park(parked, open);
                    }
                }
            };
            match event {
                Err(error) => return Outcome::Failed(error),
                Ok(Event::Lost(error)) => {
                    if let Err(error) = self.lost(error).await {
                        return Outcome::Failed(error);
                    }
                }
                Ok(Event::Answer(answer)) => {
                    if let Answered::Over(outcome) = self.answered(answer) {
                        return outcome;
                    }
                }
                Ok(Event::Notified(_)) => {}
                Ok(Event::Question(question)) => {
                    self.asked += 1;
                    if self.asked > settings.max_questions {
                        unanswered.questions.push(question);
                        unanswered.refuse(settings.max_questions);
                        return Outcome::Failed(rounds::too_many_questions(settings.max_questions));
                    }
                    if !self.may_ask(&question) {
                        continue;
                    }
                    if let (Method::RootsList, Some(caller)) = (&question.method, &self.sink.caller) {
                        // From now on others begin no calls here.
                        self.guard.session.told_roots_of(&caller.client);
                    }
                    let (key, of) = hint(&question, self.round, open.len());
                    if let Some(answer) = self.early_answers.remove(&*key)
                        && check_shape(&question.method, &key, &answer).is_ok()
                    {
                        self.answer(&opened(key, question), answer);
                        // The hint counts questions that were answered in advance, too.
                        expected = of.map(|of| of.saturating_sub(1)).or(expected);
                    } else {
                        expected = expected.or(of);
                        unanswered.questions.push(question.clone());
                        // One that is asked again counts once.
                        open.retain(|open| open.key != key);
                        open.push(opened(key, question));
                    }
                    if expected.is_some_and(|expected| expected > 0 && open.len() >= expected) {
                        unanswered.questions.clear();
                        return self.park(parked, open);
                    }
                }
            }
        }
    }

    fn park(&mut self, parked: &Arc<ParkedCalls>, open: Vec<OpenQuestion>) -> Outcome {
        self.guard.armed = false;
        let call = ParkedCall {
            session: self.guard.session.clone(),
            ticket: self.guard.ticket.clone(),
            round: self.round + 1,
            asked: self.asked,
            open,
            turn: self.turn.take(),
            owner: self.bound.principal.clone(),
            as_task: self.as_task,
            task: self.guard.task.take(),
            timer: None,
            unwanted: self.unwanted.clone(),
            watch: None,
        };
        match parked.park(self.name, call, &self.bound) {
            Ok(asks) => Outcome::Asks(asks),
            Err(error) => Outcome::Failed(error),
        }
    }

    /// Goes on until there is a result; the client's own handlers answer the questions. While they do, no clock runs:
    /// people take their time.
    pub(super) async fn answered_by_handlers(
        &mut self,
        handlers: &Arc<Handlers>,
        max: usize,
    ) -> Result<Reply, Error> {
        let (router, own) = (self.guard.session.connection.router.clone(), self.guard.ticket.id.clone());
        let mut answering = Answering { tasks: JoinSet::new(), router, own };
        let mut asked = 0;
        loop {
            let event = if answering.tasks.is_empty() {
                self.budget.next(&self.guard.ticket).await?
            } else {
                tokio::select! {
                    biased;
                    event = self.guard.ticket.next() => event,
                    Some(_) = answering.tasks.join_next() => {
                        self.budget = self.budget.restarted(Instant::now());
                        continue;
                    }
                }
            };
            match event {
                Event::Lost(error) => self.lost(error).await?,
                Event::Answer(answer) => match self.answered(answer) {
                    Answered::Over(Outcome::Failed(error)) => return Err(error),
                    Answered::Over(outcome) => return Ok(outcome.into()),
                    Answered::Goes => answering.own = self.guard.ticket.id.clone(),
                },
                Event::Notified(_) => {}
                Event::Question(question) => {
                    if asked == max {
                        answering.router.pestered();
                        answering.router.answer(&question.id, &Err(rounds::too_many(max)));
                        return Err(rounds::too_many(max));
                    }
                    asked += 1;
                    if self.may_ask(&question) {
                        let (handlers, router) = (handlers.clone(), answering.router.clone());
                        let task = task_of(&question.params);
                        answering.tasks.spawn(async move {
                            let question = opened(ByteString::new(), question);
                            let answer = handlers.answer(&question.method, question.params).await;
                            let answer = answer.map(|answer| match &task {
                                Some(task) => related(&answer, task),
                                None => answer,
                            });
                            router.answer(&question.id, &answer);
                        });
                    }
                }
            }
        }
    }
}

/// Questions that nobody has been asked yet. If the call is over before that, they were about another one: over a pipe
/// nothing says which.
struct Unanswered {
    router: Arc<MessageRouter>,
    /// Whose call it is.
    client: Option<ClientIdentity>,
    questions: Vec<Request>,
}

impl Unanswered {
    /// The call asks too much: nobody is asked any of this.
    fn refuse(&mut self, max: usize) {
        for question in self.questions.drain(..) {
            self.router.answer(&question.id, &Err(rounds::too_many_questions(max)));
        }
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        for question in self.questions.drain(..) {
            self.router.ask_any(question, self.client.as_ref());
        }
    }
}

/// Questions that the client's handlers are answering. When the call is over they may still be about another one, if
/// there is one.
struct Answering {
    tasks: JoinSet<()>,
    router: Arc<MessageRouter>,
    /// The call.
    own: Id,
}

impl Drop for Answering {
    fn drop(&mut self) {
        if self.router.tickets.newest(|t| t.method.may_ask() && t.id != self.own).is_some() {
            self.tasks.detach_all();
        }
    }
}

/// Refuses a question that this caller cannot be asked, as a client that has not declared it would.
pub(super) fn may_ask(
    session: &UpstreamSession,
    caller: &ClientCapabilities,
    question: &Request,
) -> Result<(), Option<Capability>> {
    let needs = needed(&question.method, &question.params.to_json());
    if needs.is_some_and(|needs| caller.has(needs)) {
        return Ok(());
    }
    let refusal = match needs {
        Some(needs) => undeclared(needs),
        None => Error::method_not_found(question.method.as_str()),
    };
    session.connection.router.answer(&question.id, &Err(refusal));
    Err(needs)
}

/// Delivers a client's answer to a question. One about a task names the task.
pub(super) fn answer_about(
    session: &Arc<UpstreamSession>,
    task: Option<&Awaited>,
    question: &OpenQuestion,
    answer: Json,
    client: Option<&ClientIdentity>,
) {
    if let (Method::RootsList, Some(client)) = (&question.method, client) {
        if !question.names_call && session.connection.router.is_used_by_others(client) {
            // They would be used for the others' calls as well.
            let what = "Calls of other clients are in flight in this session, and roots are one client's";
            return session
                .connection
                .router
                .answer(&question.id, &Err(Error::new(Symbol::InvalidRequest, what)));
        }
        session.told_roots_of(client);
    }
    let answer = match task {
        Some(task) => related(&answer, &task.id),
        None => answer,
    };
    session.connection.router.answer(&question.id, &Ok(answer));
}

pub(super) fn opened(key: ByteString, question: Request) -> OpenQuestion {
    // The hint was for us, and so was the server's name for a task.
    const OURS: [&str; 2] = [meta::INPUT, meta::RELATED_TASK];
    let names_call = named_call(&question.params).is_some();
    let params = match question.params.meta().filter(|m| OURS.iter().any(|name| m.has(name))) {
        Some(own) => match own.without(&OURS) {
            rest if rest.as_str() == "{}" => question.params.without(&["_meta"]),
            rest => question.params.object().with("_meta", &rest),
        },
        None => question.params.to_json(),
    };
    OpenQuestion { key, id: question.id, method: question.method, params, names_call }
}

/// The key of a question and how many come with it: as the hint of our own edge says, or by number.
pub(super) fn hint(question: &Request, round: u32, index: usize) -> (ByteString, Option<usize>) {
    let hint = question.params.meta().and_then(|m| m.json(meta::INPUT)).and_then(|h| Object::of(&h));
    let key = hint.as_ref().and_then(|h| h.str("key").map(|k| ByteString::from(k.as_ref())));
    let of = hint.as_ref().and_then(|h| h.get("of")).and_then(|of| of.parse().ok());
    (key.unwrap_or_else(|| format!("question-{}-{}", round + 1, index + 1).into()), of)
}

//! [`Run`]: one round of a call to a legacy server, up to its result or its questions.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use bytestring::ByteString;
use tidegate_protocol::{
    Capability, ClientCapabilities, Error, Id, Json, Method, Object, Params, Request, Revision, Symbol, meta,
};
use tidegate_service::{InputRequired, Reply};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;

use super::lane::Lane;
use super::parked::{self, Bound, Open, Outcome, Parked, check_shape};
use super::raise;
use crate::allowance::Allowance;
use crate::handlers::Handlers;
use crate::options::Options;
use crate::peer::{Desk, needed};
use crate::rounds;
use crate::ticket::{Event, Ticket};
use crate::upstream_error::upstream_error;

/// The answers that a call brings along, by key.
pub(super) fn held(params: &Params) -> HashMap<String, Json> {
    let Some(given) = params.object().object("inputResponses") else { return HashMap::new() };
    let names: Vec<_> = given.members().map(|m| m.name.into_owned()).collect();
    names.into_iter().enumerate().filter_map(|(i, name)| Some((name, given.json_at(i)?))).collect()
}

/// Cancels the call upstream if nobody waits for it any more.
pub(super) struct Guard {
    pub(super) lane: Arc<Lane>,
    pub(super) ticket: Arc<Ticket>,
    pub(super) armed: bool,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.armed {
            self.lane.peer.cancel(&self.ticket, "the caller no longer waits");
            self.ticket.abandon().into_iter().for_each(|question| self.lane.peer.desk.ask_any(question));
        }
        self.lane.touch();
    }
}

/// One round of a call.
pub(super) struct Run {
    pub(super) guard: Guard,
    /// Answers that came before their questions.
    pub(super) held: HashMap<String, Json>,
    pub(super) capabilities: ClientCapabilities,
    pub(super) revision: Revision,
    pub(super) method: Method,
    pub(super) params: Params,
    pub(super) bound: Bound,
    pub(super) allowance: Allowance,
    pub(super) round: u32,
    pub(super) name: Option<u64>,
    pub(super) turn: Option<OwnedSemaphorePermit>,
}

impl Run {
    fn finished(&self, answer: Result<Json, Json>) -> Outcome {
        match answer {
            Ok(result) => Outcome::Done(raise::result(&self.method, self.revision, result)),
            Err(error) => {
                let questions = raise::url_questions(&error);
                if !questions.is_empty() && self.capabilities.has(Capability::ElicitUrl) {
                    // The retry calls afresh, so there is no state to bring back.
                    return Outcome::Asks(InputRequired { questions, state: None });
                }
                Outcome::Failed(upstream_error(&self.method, Some(&self.params), &error))
            }
        }
    }

    /// Refuses a question that this caller cannot be asked. Returns whether it can.
    fn may_ask(&self, question: &Request) -> bool {
        let needs = needed(&question.method, &question.params.to_json());
        if needs.is_some_and(|needs| self.capabilities.has(needs)) {
            return true;
        }
        let what = format!("{} cannot be asked of this caller", question.method);
        let refusal = Err(Error::new(Symbol::MethodNotFound, what));
        self.guard.lane.peer.desk.answer(&question.id, &refusal);
        false
    }

    /// Goes on until there is a result, or questions that the caller has to answer.
    pub(super) async fn until_parked(&mut self, parked: &Arc<Parked>, options: &Options) -> Outcome {
        let mut open: Vec<Open> = Vec::new();
        let mut unanswered = Unanswered { desk: self.guard.lane.peer.desk.clone(), questions: Vec::new() };
        let mut expected = None;
        loop {
            let event = if open.is_empty() {
                self.allowance.next(&self.guard.ticket).await
            } else {
                // One question has come; more may follow at its heels.
                match tokio::time::timeout(options.park.settle, self.guard.ticket.next()).await {
                    Ok(event) => Ok(event),
                    Err(_) => {
                        unanswered.questions.clear();
                        return self.park(parked, open);
                    }
                }
            };
            match event {
                Err(error) => return Outcome::Failed(error),
                Ok(Event::Lost(error)) => return Outcome::Failed(error),
                Ok(Event::Answer(answer)) => return self.finished(answer),
                Ok(Event::Notified(_)) => {}
                Ok(Event::Question(question)) => {
                    if !self.may_ask(&question) {
                        continue;
                    }
                    let (key, of) = hint(&question, self.round, open.len());
                    if let Some(answer) = self.held.remove(&*key)
                        && check_shape(&question.method, &key, &answer).is_ok()
                    {
                        self.guard.lane.peer.desk.answer(&question.id, &Ok(answer));
                        // The hint counts questions that were answered in advance, too.
                        expected = of.map(|of| of.saturating_sub(1)).or(expected);
                    } else {
                        expected = expected.or(of);
                        unanswered.questions.push(question.clone());
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

    fn park(&mut self, parked: &Arc<Parked>, open: Vec<Open>) -> Outcome {
        self.guard.armed = false;
        let call = parked::Call {
            lane: self.guard.lane.clone(),
            ticket: self.guard.ticket.clone(),
            round: self.round + 1,
            open,
            turn: self.turn.take(),
            owner: self.bound.principal.clone(),
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
        let (desk, own) = (self.guard.lane.peer.desk.clone(), self.guard.ticket.id.clone());
        let mut answering = Answering { tasks: JoinSet::new(), desk, own };
        let mut asked = 0;
        loop {
            let event = if answering.tasks.is_empty() {
                self.allowance.next(&self.guard.ticket).await?
            } else {
                tokio::select! {
                    biased;
                    event = self.guard.ticket.next() => event,
                    Some(_) = answering.tasks.join_next() => {
                        self.allowance = self.allowance.restarted(Instant::now());
                        continue;
                    }
                }
            };
            match event {
                Event::Lost(error) => return Err(error),
                Event::Answer(answer) => match self.finished(answer) {
                    Outcome::Failed(error) => return Err(error),
                    outcome => return Ok(outcome.into()),
                },
                Event::Notified(_) => {}
                Event::Question(question) => {
                    if asked == max {
                        answering.desk.pestered();
                        answering.desk.answer(&question.id, &Err(rounds::too_many(max)));
                        return Err(rounds::too_many(max));
                    }
                    asked += 1;
                    if self.may_ask(&question) {
                        let (handlers, desk) = (handlers.clone(), answering.desk.clone());
                        answering.tasks.spawn(async move {
                            let question = opened(ByteString::new(), question);
                            let answer = handlers.answer(&question.method, question.params).await;
                            desk.answer(&question.id, &answer);
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
    desk: Arc<Desk>,
    questions: Vec<Request>,
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        self.questions.drain(..).for_each(|question| self.desk.ask_any(question));
    }
}

/// Questions that the client's handlers are answering. When the call is over they may still be about another one, if
/// there is one.
struct Answering {
    tasks: JoinSet<()>,
    desk: Arc<Desk>,
    /// The call.
    own: Id,
}

impl Drop for Answering {
    fn drop(&mut self) {
        if self.desk.tickets.newest(|t| t.method.may_ask() && t.id != self.own).is_some() {
            self.tasks.detach_all();
        }
    }
}

fn opened(key: ByteString, question: Request) -> Open {
    // The hint was for us.
    let params = match question.params.meta().filter(|m| m.has(meta::INPUT)) {
        Some(own) if own.len() == 1 => question.params.without(&["_meta"]),
        Some(own) => question.params.with("_meta", &own.without(&[meta::INPUT])),
        None => question.params.to_json(),
    };
    Open { key, id: question.id, method: question.method, params }
}

/// The key of a question and how many come with it: as the hint of our own edge says, or by number.
fn hint(question: &Request, round: u32, index: usize) -> (ByteString, Option<usize>) {
    let hint = question.params.meta().and_then(|m| m.json(meta::INPUT)).and_then(|h| Object::of(&h));
    let key = hint.as_ref().and_then(|h| h.str("key").map(|k| ByteString::from(k.as_ref())));
    let of = hint.as_ref().and_then(|h| h.get("of")).and_then(|of| of.parse().ok());
    (key.unwrap_or_else(|| format!("question-{}-{}", round + 1, index + 1).into()), of)
}

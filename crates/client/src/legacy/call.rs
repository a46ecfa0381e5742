//! Calls to a legacy server: a modern call in, a reply out, and questions in between.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::FutureExt;
use tidegate_protocol::{Error, Json, Method, Revision, Symbol};
use tidegate_service::events::{self, Event, SessionExpired};
use tidegate_service::{Call, CallerId, Context, Filter, Reply, Subscription};

use super::keep;
use super::keep::Listening;
use super::lane::Lane;
use super::lanes::Lanes;
use super::parked::{self, Bound, Found, Outcome, Parked, check_shape};
use super::run::{Guard, Run, answer_about, held};
use super::tasks::{AsTask, Tasks};
use super::turns::{Holder, Turn};
use super::whose::{ClientIdentity, LaneKey, Terms};
use crate::allowance::Allowance;
use crate::cache::ToolCache;
use crate::changes::Changes;
use crate::dial::{Dialer, Reach};
use crate::facts::ServerFacts;
use crate::options::Options;
use crate::ticket::{Caller, Sink};
use crate::wire;

/// Parameters that a legacy server does not get: those of a retry, and of modern callers what they may not say.
const RETRY_AND_TASK: [&str; 3] = ["inputResponses", "requestState", "task"];

/// How often a call moves on to another session because the one it was about to be made in has become another client's.
const MAX_MOVES: usize = 16;

/// A legacy server.
pub(crate) struct Legacy {
    pub(crate) dialer: Arc<Dialer>,
    pub(crate) reach: Reach,
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) parked: Arc<Parked>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) cache: Arc<ToolCache>,
    /// The client itself among the callers.
    pub(crate) own: CallerId,
    pub(crate) changes: Arc<Changes>,
    pub(crate) options: Arc<Options>,
    /// Which sessions are listened to.
    pub(crate) listening: Listening,
}

impl Legacy {
    /// A lane for a call.
    pub(crate) async fn lane(&self, terms: &Terms) -> Result<Arc<Lane>, Error> {
        self.lanes.get(&self.dialer, self.reach, terms).await
    }

    /// The same for a call that has only so much time.
    pub(super) async fn lane_within(&self, terms: &Terms, allowance: &Allowance) -> Result<Arc<Lane>, Error> {
        let lane = tokio::time::timeout_at(allowance.ends(None).into(), self.lane(terms)).await;
        lane.unwrap_or_else(|_| Err(allowance.over().unexecuted()))
    }

    /// What the server says about itself.
    pub(crate) async fn facts(&self, terms: &Terms) -> Result<ServerFacts, Error> {
        Ok(self.lane(terms).await?.facts.clone())
    }

    /// Answers a call.
    pub(crate) async fn call(self: &Arc<Self>, call: &Call, allowance: Allowance) -> Result<Reply, Error> {
        let terms = Terms::of(&call.context, &self.options);
        match call.method {
            Method::Discover => {
                let lane = self.lane_within(&terms, &allowance).await?;
                Ok(Reply::Complete(lane.facts.to_discovery(call.context.revision)))
            }
            Method::Listen => self.listen(call, &terms, &allowance).await,
            Method::TasksGet | Method::TasksUpdate | Method::TasksCancel
                if call.context.caller != Some(self.own) =>
            {
                self.task(call, allowance).await
            }
            _ if call.method.may_ask()
                && self.dialer.handlers.is_none()
                && call.params.str("requestState").is_some() =>
            {
                self.resume(call, allowance).await
            }
            _ => self.start(call, &terms, allowance).await,
        }
    }

    /// Makes a call. A session that the server has forgotten is opened anew, once: nothing was executed.
    async fn start(
        self: &Arc<Self>,
        call: &Call,
        terms: &Terms,
        allowance: Allowance,
    ) -> Result<Reply, Error> {
        let mut expired = false;
        for _ in 0..MAX_MOVES {
            let lane = self.lane_within(terms, &allowance).await?;
            let turn = self.turn(call, terms, &lane, &allowance).await?;
            let reply = self.run(call, terms, turn, lane.clone(), allowance).await;
            match &reply {
                Err(error) | Ok(Reply::Error(error))
                    if error.symbol() == Symbol::SessionNotFound && error.is_unexecuted() =>
                {
                    // Else it has become another client's, and there is another for this one.
                    if lane.key().serves(&terms.client) {
                        if std::mem::replace(&mut expired, true) {
                            return reply;
                        }
                        let expired = SessionExpired { server: &lane.peer.desk.name };
                        events::emit(&Event::SessionExpired(expired));
                        self.lanes.forget(&lane);
                        self.changes.gap();
                    }
                }
                _ => return reply,
            }
        }
        let what = "Every session with the server is in use by other clients. Try again in a moment";
        Err(Error::new(Symbol::RateLimited, what).unexecuted())
    }

    /// Waits for the turn of a call that may be asked something, where it would not be clear who is asked.
    async fn turn(
        &self,
        call: &Call,
        terms: &Terms,
        lane: &Lane,
        allowance: &Allowance,
    ) -> Result<Option<Arc<Turn>>, Error> {
        if !call.method.may_ask() {
            return Ok(None);
        }
        let key = lane.key();
        let ambiguous = self.dialer.ambiguous.load(Ordering::Relaxed) && key.is_shared();
        if !(ambiguous || key == LaneKey::Everybody) || !call.context.capabilities.can_be_asked() {
            return Ok(None);
        }
        let holder = if ambiguous { Holder::client(&terms.client) } else { Holder::user(&terms.client) };
        let turn = tokio::time::timeout_at(allowance.ends(None).into(), lane.turns.take(holder)).await;
        turn.map_err(|_| not_its_turn())?.map(|turn| Some(Arc::new(turn)))
    }

    /// Makes a call in a session. A server that refuses it because it should have been a task, or should not, has not
    /// begun it: it is made the other way.
    async fn run(
        self: &Arc<Self>,
        call: &Call,
        terms: &Terms,
        turn: Option<Arc<Turn>>,
        lane: Arc<Lane>,
        allowance: Allowance,
    ) -> Result<Reply, Error> {
        if self.options.list_tools_first && call.method == Method::ToolsCall {
            lane.list_first(&allowance).await?;
        }
        let as_task = self.plan(call, &lane, &allowance, false).await?;
        let reply = self.run_as(as_task, call, terms, turn.clone(), lane.clone(), allowance).await;
        if call.method == Method::ToolsList && matches!(reply, Ok(Reply::Complete(_))) {
            lane.has_listed();
        }
        let refused = match &reply {
            // 2025-11-25 basic/utilities/tasks, Tool-Level Negotiation and Protocol Errors.
            Err(error) | Ok(Reply::Error(error)) => {
                matches!(error.code(Revision::LATEST_LEGACY), -32601 | -32600)
            }
            Ok(_) => false,
        };
        if !refused || !lane.tasks {
            return reply;
        }
        match self.plan(call, &lane, &allowance, true).await? {
            same if same == as_task => reply,
            other => self.run_as(other, call, terms, turn, lane, allowance).await,
        }
    }

    async fn run_as(
        &self,
        as_task: AsTask,
        call: &Call,
        terms: &Terms,
        turn: Option<Arc<Turn>>,
        lane: Arc<Lane>,
        allowance: Allowance,
    ) -> Result<Reply, Error> {
        if as_task == AsTask::PassedOn {
            self.tasks.room_for(&call.context.principal)?;
        }
        let interactive = call.method.may_ask();
        lane.want_logs(call.context.log_level, &allowance).await;
        if !lane.key().serves(&terms.client) {
            // It has become another client's in the meantime: the call is made in another.
            return Err(
                Error::new(Symbol::SessionNotFound, "The session now belongs to another client").unexecuted()
            );
        }
        let sink = sink(&call.context, &call.method);
        let wants_progress = sink.outbox.is_some() && sink.token.is_some() || self.options.extend_on_progress;
        let params = &call.params;
        let room = params.as_str().len() + 96;
        let modern = call.context.revision.is_modern();
        let ticket = lane.peer.send(call.method.clone(), sink.clone(), room, |out, id| {
            let own = |out: &mut Vec<u8>| {
                if wants_progress {
                    out.extend_from_slice(b"\"progressToken\":");
                    out.extend_from_slice(id.as_json().as_bytes());
                }
                if !matches!(terms.key, LaneKey::Own { .. }) {
                    wire::caller(out, &call.context);
                }
                wire::hops(out, call.context.hops);
            };
            // To a modern caller `task` means nothing, so it has said nothing by it.
            let without = if modern { &RETRY_AND_TASK[..] } else { &RETRY_AND_TASK[..2] };
            wire::params(out, params, without, wire::is_terms, own);
            if as_task != AsTask::No && (modern || !params.has("task")) {
                out.pop();
                wire::comma(out);
                let ttl = self.options.tasks.ttl.as_millis();
                out.extend_from_slice(format!("\"task\":{{\"ttl\":{ttl}}}}}").as_bytes());
            }
        })?;
        match interactive {
            true => lane.called_by(&terms.client),
            false => lane.touch(),
        }
        let mut run = Run {
            held: if interactive { held(params) } else { HashMap::new() },
            guard: Guard { lane, ticket, armed: true, task: None },
            capabilities: call.context.capabilities.clone(),
            revision: call.context.revision,
            method: call.method.clone(),
            profile: self.options.profile,
            params: params.clone(),
            bound: Bound::new(&call.context.principal, &call.method, params),
            allowance,
            round: 0,
            asked: 0,
            name: None,
            turn,
            as_task,
            sink,
            tasks: self.tasks.clone(),
            undeclared: Vec::new(),
            unwanted: (!modern).then(|| call.context.cancel.clone()),
        };
        match &self.dialer.handlers {
            Some(handlers) => run.answered_by_handlers(handlers, self.options.max_rounds).await,
            None => match run.until_parked(&self.parked, &self.options).await {
                Outcome::Failed(error) => Err(error),
                outcome => Ok(outcome.into()),
            },
        }
    }

    /// A retry with answers: delivers them and goes on with the call.
    async fn resume(&self, call: &Call, allowance: Allowance) -> Result<Reply, Error> {
        let context = &call.context;
        let bound = Bound::new(&context.principal, &call.method, &call.params);
        let state = call.params.str("requestState").unwrap_or_default();
        let (name, parked) = match self.parked.find(&state, &bound)? {
            (_, Found::Running(round)) => return Ok(round.await.into()),
            (name, Found::Waiting(parked)) => (name, parked),
        };
        let mut given = held(&call.params);
        for question in &parked.open {
            if let Some(answer) = given.get(&*question.key)
                && let Err(error) = check_shape(&question.method, &question.key, answer)
            {
                self.parked.put_back(name, parked);
                return Err(error);
            }
        }
        let parked::Call { lane, ticket, round, asked, open, turn, owner, as_task, task, unwanted, .. } =
            *parked;
        let (answered, missing): (Vec<_>, Vec<_>) =
            open.into_iter().partition(|q| given.contains_key(&*q.key));
        let client = ClientIdentity::of(context);
        ticket.redirect(sink(context, &call.method));
        lane.called_by(&client);
        for question in &answered {
            // It answers this question and no other that has the same key.
            let answer = given.remove(&*question.key).unwrap_or_else(Json::null);
            answer_about(&lane, task.as_ref(), question, answer, Some(&client));
            ticket.was_answered();
        }
        if !missing.is_empty() {
            // What was not answered is asked again.
            let (round, open, timer, watch) = (round + 1, missing, None, None);
            let call = parked::Call {
                lane,
                ticket,
                round,
                asked,
                open,
                turn,
                owner,
                as_task,
                task,
                timer,
                unwanted,
                watch,
            };
            return Ok(Reply::InputRequired(self.parked.park(Some(name), call, &bound)?));
        }
        let mut run = Run {
            held: given,
            guard: Guard { lane, ticket, armed: true, task },
            capabilities: context.capabilities.clone(),
            revision: context.revision,
            method: call.method.clone(),
            profile: self.options.profile,
            params: call.params.clone(),
            bound,
            allowance,
            round,
            asked,
            name: Some(name),
            turn,
            as_task,
            sink: sink(context, &call.method),
            tasks: self.tasks.clone(),
            undeclared: Vec::new(),
            unwanted,
        };
        let (all, options, owner) = (self.parked.clone(), self.options.clone(), context.principal.clone());
        let parked = self.parked.clone();
        let going_on = async move {
            let outcome = run.until_parked(&parked, &options).await;
            parked.ended(name);
            outcome
        };
        let going_on = going_on.boxed().shared();
        all.resumed(name, round, &going_on, owner);
        Ok(going_on.await.into())
    }

    /// Subscribes on behalf of a caller.
    async fn listen(
        self: &Arc<Self>,
        call: &Call,
        terms: &Terms,
        within: &Allowance,
    ) -> Result<Reply, Error> {
        let mut filter = Filter::read(call.params.object())?;
        let lane = self.lane_within(terms, within).await?;
        let facts = &lane.facts;
        filter.tools &= facts.has_capability("tools");
        filter.prompts &= facts.has_capability("prompts");
        filter.resources &= facts.has_capability("resources");
        if !facts.has_capability("resources.subscribe") {
            filter.uris.clear();
        }
        filter.tasks.clear();
        let acknowledged = filter.to_json();
        let wanted: HashSet<String> = self.wanted_in(&lane.key()).union(&filter.uris).cloned().collect();
        lane.subscribe(wanted, within).await?;
        let events = self.changes.subscribe(filter, terms.clone());
        keep::listening(self, terms);
        Ok(Reply::Subscription(Subscription { acknowledged, events }))
    }

    /// The resources that the subscribers of a session want to know of.
    pub(super) fn wanted_in(&self, session: &LaneKey) -> HashSet<String> {
        self.changes.uris(|terms| self.lanes.key_for(terms) == *session)
    }
}

/// Why a call was not made that waited for its turn.
fn not_its_turn() -> Error {
    let what = "The call was not made: calls of another client to this server, which may be asked something, were not done \
                in time, and such calls take turns. Try again later";
    Error::new(Symbol::RateLimited, what).unexecuted()
}

/// Where progress and log messages of a caller go.
fn sink(context: &Context, method: &Method) -> Sink {
    let caller = method
        .may_ask()
        .then(|| Caller { client: ClientIdentity::of(context), capabilities: context.capabilities.clone() });
    let (outbox, token) = (context.outbox.clone(), context.progress_token.clone());
    Sink { outbox, token, level: context.log_level, caller }
}

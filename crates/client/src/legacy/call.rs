//! Calls to a legacy server: a modern call in, a reply out, and questions in between.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::FutureExt;
use tidegate_protocol::{Error, Json, Method, Revision, Symbol};
use tidegate_service::events::{self, Event, SessionExpired};
use tidegate_service::{Call, CallerId, Context, Filter, Reply, Stage, Subscription, noted};

use super::listening;
use super::listening::Listening;
use super::owner::{ClientIdentity, SessionOwner, SessionSpec};
use super::parked::{Bound, Outcome, ParkedCall, ParkedCalls, Resumable, check_shape};
use super::pool::SessionPool;
use super::round::{CallRound, Guard, answer_about, answers_in};
use super::session::UpstreamSession;
use super::tasks::{AsTask, Tasks};
use super::turns::{Holder, Turn};
use crate::cache::ToolCache;
use crate::changes::Changes;
use crate::dial::Dialer;
use crate::server_info::ServerInfo;
use crate::settings::ClientSettings;
use crate::ticket::{Caller, Sink};
use crate::time_budget::TimeBudget;
use crate::transport::Transport;
use crate::wire;

/// Parameters that a legacy server does not get: those of a retry, and of modern callers what they may not say.
const RETRY_AND_TASK: [&str; 3] = ["inputResponses", "requestState", "task"];

/// How often a call moves on to another session because the one it was about to be made in has become another client's.
const MAX_MOVES: usize = 16;

/// A legacy server.
pub(crate) struct Legacy {
    pub(crate) dialer: Arc<Dialer>,
    pub(crate) transport: Transport,
    pub(crate) sessions: Arc<SessionPool>,
    pub(crate) parked: Arc<ParkedCalls>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) cache: Arc<ToolCache>,
    /// The client itself among the callers.
    pub(crate) own: CallerId,
    pub(crate) changes: Arc<Changes>,
    pub(crate) settings: Arc<ClientSettings>,
    /// Which sessions are listened to.
    pub(crate) listening: Listening,
}

impl Legacy {
    /// A session for a call.
    pub(crate) async fn session(&self, spec: &SessionSpec) -> Result<Arc<UpstreamSession>, Error> {
        self.sessions.get(&self.dialer, &self.transport, spec).await
    }

    /// The same for a call that has only so much time.
    pub(super) async fn session_within(
        &self,
        spec: &SessionSpec,
        budget: &TimeBudget,
    ) -> Result<Arc<UpstreamSession>, Error> {
        let session = noted(Stage::Connection, self.session(spec));
        let session = tokio::time::timeout_at(budget.ends(None).into(), session).await;
        session.unwrap_or_else(|_| Err(budget.over().unexecuted()))
    }

    /// What the server says about itself.
    pub(crate) async fn server_info(&self, spec: &SessionSpec) -> Result<ServerInfo, Error> {
        Ok(self.session(spec).await?.server_info.clone())
    }

    /// Answers a call.
    pub(crate) async fn call(self: &Arc<Self>, call: &Call, budget: TimeBudget) -> Result<Reply, Error> {
        let spec = SessionSpec::of(&call.context, &self.settings);
        match call.method {
            Method::Discover => {
                let session = self.session_within(&spec, &budget).await?;
                Ok(Reply::Complete(session.server_info.to_discovery(call.context.revision)))
            }
            Method::Listen => self.listen(call, &spec, &budget).await,
            Method::TasksGet | Method::TasksUpdate | Method::TasksCancel
                if call.context.caller != Some(self.own) =>
            {
                self.task(call, budget).await
            }
            _ if call.method.may_ask()
                && self.dialer.handlers.is_none()
                && call.params.str("requestState").is_some() =>
            {
                self.resume(call, budget).await
            }
            _ => self.start(call, &spec, budget).await,
        }
    }

    /// Makes a call. A session that the server has forgotten is opened anew, once: nothing was executed.
    async fn start(
        self: &Arc<Self>,
        call: &Call,
        spec: &SessionSpec,
        budget: TimeBudget,
    ) -> Result<Reply, Error> {
        let mut expired = false;
        for _ in 0..MAX_MOVES {
            let session = self.session_within(spec, &budget).await?;
            let turn = self.turn(call, spec, &session, &budget).await?;
            let reply = self.run(call, spec, turn, session.clone(), budget).await;
            match &reply {
                Err(error) | Ok(Reply::Error(error))
                    if error.symbol() == Symbol::SessionNotFound && error.is_unexecuted() =>
                {
                    // Else it has become another client's, and there is another for this one.
                    if session.owner().serves(&spec.client) {
                        if std::mem::replace(&mut expired, true) {
                            return reply;
                        }
                        let expired = SessionExpired { server: &session.connection.router.name };
                        events::emit(&Event::SessionExpired(expired));
                        self.sessions.forget(&session);
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
        spec: &SessionSpec,
        session: &UpstreamSession,
        budget: &TimeBudget,
    ) -> Result<Option<Arc<Turn>>, Error> {
        if !call.method.may_ask() {
            return Ok(None);
        }
        let owner = session.owner();
        let ambiguous = self.dialer.ambiguous.load(Ordering::Relaxed) && owner.is_shared();
        if !(ambiguous || owner == SessionOwner::Everybody) || !call.context.capabilities.can_be_asked() {
            return Ok(None);
        }
        let holder = if ambiguous { Holder::client(&spec.client) } else { Holder::user(&spec.client) };
        let turn = noted(Stage::Turn, session.turns.take(holder));
        let turn = tokio::time::timeout_at(budget.ends(None).into(), turn).await;
        turn.map_err(|_| not_its_turn())?.map(|turn| Some(Arc::new(turn)))
    }

    /// Makes a call in a session. A server that refuses it because it should have been a task, or should not, has not
    /// begun it: it is made the other way.
    async fn run(
        self: &Arc<Self>,
        call: &Call,
        spec: &SessionSpec,
        turn: Option<Arc<Turn>>,
        session: Arc<UpstreamSession>,
        budget: TimeBudget,
    ) -> Result<Reply, Error> {
        if self.settings.list_tools_first && call.method == Method::ToolsCall {
            session.list_first(&budget).await?;
        }
        let as_task = match session.tasks {
            true => self.plan(call, &budget, false).await?,
            false => AsTask::No,
        };
        let reply = self.run_as(as_task, call, spec, turn.clone(), session.clone(), budget).await;
        if call.method == Method::ToolsList && matches!(reply, Ok(Reply::Complete(_))) {
            session.has_listed();
        }
        let refused = match &reply {
            // 2025-11-25 basic/utilities/tasks, Tool-Level Negotiation and Protocol Errors.
            Err(error) | Ok(Reply::Error(error)) => {
                matches!(error.code(Revision::LATEST_LEGACY), -32601 | -32600)
            }
            Ok(_) => false,
        };
        if !refused || !session.tasks {
            return reply;
        }
        match self.plan(call, &budget, true).await? {
            same if same == as_task => reply,
            other => self.run_as(other, call, spec, turn, session, budget).await,
        }
    }

    async fn run_as(
        &self,
        as_task: AsTask,
        call: &Call,
        spec: &SessionSpec,
        turn: Option<Arc<Turn>>,
        session: Arc<UpstreamSession>,
        budget: TimeBudget,
    ) -> Result<Reply, Error> {
        if as_task == AsTask::PassedOn {
            self.tasks.room_for(&call.context.principal)?;
        }
        let interactive = call.method.may_ask();
        session.want_logs(call.context.log_level, &budget).await;
        if !session.owner().serves(&spec.client) {
            // It has become another client's in the meantime: the call is made in another.
            return Err(
                Error::new(Symbol::SessionNotFound, "The session now belongs to another client").unexecuted()
            );
        }
        let sink = sink(&call.context, &call.method);
        let wants_progress =
            sink.outbox.is_some() && sink.token.is_some() || self.settings.extend_on_progress;
        let params = &call.params;
        let room = params.as_str().len() + 96;
        let modern = call.context.revision.is_modern();
        let span = wire::span_of(&call.context);
        let ticket = session.connection.send(call.method.clone(), sink.clone(), room, |out, id| {
            let own = |out: &mut Vec<u8>| {
                if wants_progress {
                    out.extend_from_slice(b"\"progressToken\":");
                    out.extend_from_slice(id.as_json().as_bytes());
                }
                if !matches!(spec.owner, SessionOwner::Own { .. }) {
                    wire::caller(out, &call.context);
                }
                wire::hops(out, call.context.hops);
                wire::traceparent(out, span);
            };
            // To a modern caller `task` means nothing, so it has said nothing by it.
            let without = if modern { &RETRY_AND_TASK[..] } else { &RETRY_AND_TASK[..2] };
            wire::params(out, params, without, wire::is_replaced(span), own);
            if as_task != AsTask::No && (modern || !params.has("task")) {
                out.pop();
                wire::comma(out);
                let ttl = self.settings.tasks.ttl.as_millis();
                out.extend_from_slice(format!("\"task\":{{\"ttl\":{ttl}}}}}").as_bytes());
            }
        })?;
        match interactive {
            true => session.called_by(&spec.client),
            false => session.touch(),
        }
        let mut run = CallRound {
            early_answers: if interactive { answers_in(params) } else { HashMap::new() },
            guard: Guard { session, ticket, armed: true, task: None },
            capabilities: call.context.capabilities.clone(),
            revision: call.context.revision,
            method: call.method.clone(),
            profile: self.settings.profile,
            params: params.clone(),
            bound: Bound::new(&call.context, &call.method, params),
            budget,
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
            Some(handlers) => run.answered_by_handlers(handlers, self.settings.max_rounds).await,
            None => match run.until_parked(&self.parked, &self.settings).await {
                Outcome::Failed(error) => Err(error),
                outcome => Ok(outcome.into()),
            },
        }
    }

    /// A retry with answers: delivers them and goes on with the call.
    async fn resume(&self, call: &Call, budget: TimeBudget) -> Result<Reply, Error> {
        let context = &call.context;
        let bound = Bound::new(context, &call.method, &call.params);
        let state = call.params.str("requestState").unwrap_or_default();
        let (name, parked) = match self.parked.find(&state, &bound)? {
            (_, Resumable::Running(round)) => return Ok(round.await.into()),
            (name, Resumable::Waiting(parked)) => (name, parked),
        };
        let mut given = answers_in(&call.params);
        for question in &parked.open {
            if let Some(answer) = given.get(&*question.key)
                && let Err(error) = check_shape(&question.method, &question.key, answer)
            {
                self.parked.put_back(name, parked);
                return Err(error);
            }
        }
        let ParkedCall { session, ticket, round, asked, open, turn, owner, as_task, task, unwanted, .. } =
            *parked;
        let (answered, missing): (Vec<_>, Vec<_>) =
            open.into_iter().partition(|q| given.contains_key(&*q.key));
        let client = ClientIdentity::of(context);
        ticket.redirect(sink(context, &call.method));
        session.called_by(&client);
        for question in &answered {
            // It answers this question and no other that has the same key.
            let answer = given.remove(&*question.key).unwrap_or_else(Json::null);
            answer_about(&session, task.as_ref(), question, answer, Some(&client));
            ticket.was_answered();
        }
        if !missing.is_empty() {
            // What was not answered is asked again.
            let (round, open, timer, watch) = (round + 1, missing, None, None);
            let call = ParkedCall {
                session,
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
        let mut run = CallRound {
            early_answers: given,
            guard: Guard { session, ticket, armed: true, task },
            capabilities: context.capabilities.clone(),
            revision: context.revision,
            method: call.method.clone(),
            profile: self.settings.profile,
            params: call.params.clone(),
            bound,
            budget,
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
        let (all, settings, owner) = (self.parked.clone(), self.settings.clone(), context.principal.clone());
        let parked = self.parked.clone();
        let going_on = async move {
            let outcome = run.until_parked(&parked, &settings).await;
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
        spec: &SessionSpec,
        within: &TimeBudget,
    ) -> Result<Reply, Error> {
        let mut filter = Filter::read(call.params.object())?;
        let session = self.session_within(spec, within).await?;
        let server_info = &session.server_info;
        filter.tools &= server_info.has_capability("tools");
        filter.prompts &= server_info.has_capability("prompts");
        filter.resources &= server_info.has_capability("resources");
        if !server_info.has_capability("resources.subscribe") {
            filter.uris.clear();
        }
        filter.tasks.clear();
        let acknowledged = filter.to_json();
        let wanted: HashSet<String> = self.wanted_in(&session.owner()).union(&filter.uris).cloned().collect();
        session.subscribe(wanted, within).await?;
        let events = self.changes.subscribe(filter, spec.clone());
        listening::listening(self, spec);
        Ok(Reply::Subscription(Subscription { acknowledged, events }))
    }

    /// The resources that the subscribers of a session want to know of.
    pub(super) fn wanted_in(&self, owner: &SessionOwner) -> HashSet<String> {
        self.changes.uris(|spec| self.sessions.owner_for(spec) == *owner)
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
    Sink { outbox, token, level: context.log_level, caller, span: wire::span_of(context) }
}

//! One legacy request from start to answer.

use std::sync::Arc;
use std::time::Instant;

use tidegate_protocol::result_id::CORRELATION;
use tidegate_protocol::{
    Error, Feature, Id, Json, Level, Limits, Method, Params, Profile, Request, Revision, Symbol, lower, meta,
};
use tidegate_service::events::{self, Event, RequestFailed};
use tidegate_service::trace::{self, Origin, Transport};
use tidegate_service::{Call, CorrelationId, Door, Notice, Outbox, Reply, Tag, tool_failure};
use tokio_util::sync::CancellationToken;

use super::answers::{SoFar, ask_all, with_answers};
use super::client_session::ClientSession;
use super::tasks;
use crate::call_id::CallId;
use crate::edge_settings::EdgeSettings;
use crate::in_flight::Turn;
use crate::modern::correlation;
use crate::required_scopes::required_scopes;
use crate::wire;

/// Where messages that belong to a request go before its response.
pub(crate) trait MessageSink: Send + Sync {
    /// Sends one message. Never waits.
    fn send(&self, message: Vec<u8>);

    /// Whether what is sent arrives. A client that cannot be reached cannot be asked either.
    fn reaches_client(&self) -> bool {
        true
    }

    /// Closes the connection while the request runs on, where the client can come back for the rest.
    fn close_connection(&self) {}
}

/// The response to a request.
pub(crate) struct Response {
    pub(crate) message: Vec<u8>,
    /// The scopes that the request would have needed, if it was refused for want of them.
    pub(crate) required_scopes: Option<Vec<String>>,
}

impl Response {
    fn error(id: &Id, error: &Error, revision: Revision) -> Response {
        Response {
            message: wire::error(Some(id), error, Some(revision)),
            required_scopes: required_scopes(error),
        }
    }
}

/// Answers one request. `None` if it was cancelled: a cancelled request gets no response.
pub(crate) async fn drive<D: Door>(
    door: D,
    client: Arc<ClientSession>,
    request: Request,
    sink: Arc<dyn MessageSink>,
    edge: Arc<EdgeSettings>,
) -> Option<Response> {
    let correlation = correlation(request.params.meta());
    drive_as(correlation, door, client, request, sink, edge).await
}

/// The same under an id that is known already. All calls that are made of the request have it.
pub(crate) async fn drive_as<D: Door>(
    correlation: CorrelationId,
    door: D,
    client: Arc<ClientSession>,
    request: Request,
    sink: Arc<dyn MessageSink>,
    edge: Arc<EdgeSettings>,
) -> Option<Response> {
    let id = request.id.clone();
    let named = CallId::of(&request.method, correlation, &edge);
    let (turn, cancel) = match client.begin(&id) {
        Ok(begun) => begun,
        Err(error) => return Some(Response::error(&id, &error, client.revision)),
    };
    let _running = Running { client: &client, id: &id, turn };
    let run = Run {
        door: &door,
        client: &client,
        sink: &*sink,
        edge: &edge,
        cancel: &cancel,
        asked: SoFar::default(),
        on_behalf: request.params.meta().is_some_and(|meta| meta.has(meta::CALLER)),
        id: &id,
        correlation,
        began: Instant::now(),
    };
    let outcome = tokio::select! {
        biased;
        outcome = run.answer(request) => outcome,
        () = cancel.cancelled() => return None,
    };
    if cancel.is_cancelled() {
        // A service that heard of it first may have answered all the same.
        return None;
    }
    Some(match outcome {
        Ok(result) => Response { message: CallId::result(named, &id, &result), required_scopes: None },
        Err(error) => Response::error(&id, &error, client.revision),
    })
}

/// Takes the request off the list of running ones, however it ends.
struct Running<'a> {
    client: &'a ClientSession,
    id: &'a Id,
    turn: Turn,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.client.finish(self.id, self.turn);
    }
}

/// Everything that answering one request needs.
pub(super) struct Run<'a, D> {
    pub(super) door: &'a D,
    pub(super) client: &'a ClientSession,
    pub(super) sink: &'a dyn MessageSink,
    pub(super) edge: &'a EdgeSettings,
    pub(super) cancel: &'a CancellationToken,
    pub(super) asked: SoFar,
    /// Whether the session is used for several clients.
    pub(super) on_behalf: bool,
    pub(super) id: &'a Id,
    /// Names the request in the log, and every call that is made of it.
    pub(super) correlation: CorrelationId,
    /// When it came.
    began: Instant,
}

impl<D: Door> Run<'_, D> {
    async fn answer(&self, request: Request) -> Result<Json, Error> {
        match &request.method {
            Method::Ping => Ok(Json::empty_object()),
            Method::SetLevel => self.set_level(&request.params),
            // Boxed like everything rare here, so that the common path stays small.
            Method::ResourcesSubscribe => Box::pin(self.subscribe(&request, true)).await,
            Method::ResourcesUnsubscribe => Box::pin(self.subscribe(&request, false)).await,
            Method::TasksGet | Method::TasksCancel | Method::TasksResult | Method::TasksList
                if self.client.revision.allows(Feature::CoreTasks) =>
            {
                Box::pin(tasks::answer(self, request)).await
            }
            Method::Initialize => Err(Error::new(
                Symbol::InvalidRequest,
                "Invalid request: this session is already initialized",
            )),
            // Methods of the other era, which this client's server has never heard of.
            Method::Discover
            | Method::Listen
            | Method::TasksGet
            | Method::TasksCancel
            | Method::TasksUpdate
            | Method::TasksResult
            | Method::TasksList => Err(Error::method_not_found(request.method.as_str())),
            _ => self.call_until_done(request).await,
        }
    }

    fn set_level(&self, params: &Params) -> Result<Json, Error> {
        if !self.client.offers.logging {
            return Err(Error::method_not_found(Method::SetLevel.as_str()));
        }
        let level: Level = params.str("level").and_then(|l| l.parse().ok()).ok_or_else(|| {
            let names = Level::ALL.map(Level::as_str).join(", ");
            Error::invalid_params(format_args!("\"level\" must be one of {names}"))
        })?;
        self.client.set_level(level);
        Ok(Json::empty_object())
    }

    async fn subscribe(&self, request: &Request, on: bool) -> Result<Json, Error> {
        if !self.client.offers.resources {
            return Err(Error::method_not_found(request.method.as_str()));
        }
        let uri =
            request.params.str("uri").ok_or_else(|| Error::invalid_params("\"uri\" must be a string"))?;
        if on {
            self.client.subscribe(&uri)?;
        } else {
            self.client.unsubscribe(&uri);
        }
        self.client.subscriptions_in_force().await;
        Ok(Json::empty_object())
    }

    /// Makes the call, answers its questions through the client, and makes it again until it is done.
    async fn call_until_done(&self, request: Request) -> Result<Json, Error> {
        let Request { method, mut params, .. } = request;
        let wants_task = method == Method::ToolsCall && params.has("task");
        // Who does not offer tasks ignores that they are wanted (2025-11-25 basic/utilities/tasks, Task Support).
        let gets_task =
            wants_task && self.client.offers.tasks && self.client.revision.allows(Feature::CoreTasks);
        let wanted = self.cancel.child_token();
        for _ in 0..self.edge.max_rounds {
            match self.call_while(&wanted, method.clone(), params.clone()).await? {
                Reply::Complete(result) if gets_task => return tasks::done(self.client, &result),
                Reply::Complete(result) => return Ok(lower::result(&method, self.client.revision, result)),
                Reply::Error(error) => return Err(error),
                Reply::Task(task) if wants_task => return tasks::created(self.client, &task),
                Reply::Task(task) => {
                    let result = tasks::wait(self, &task).await;
                    return result.or_else(|error| self.failed(&method, &params, error));
                }
                Reply::InputRequired(input) => match Box::pin(ask_all(self, &input.questions, None)).await {
                    Ok(answers) => params = with_answers(&params, &answers, input.state.as_deref())?,
                    Err(error) => {
                        // What waits for an answer behind the door waits no more.
                        wanted.cancel();
                        return self.failed(&method, &params, error);
                    }
                },
                Reply::Subscription(_) => return Err(Error::internal()),
            }
        }
        let what = format!("The call was stopped after asking {} times", self.edge.max_rounds);
        let error = Error::new(Symbol::Internal, what);
        self.tell_failed(&method, &params, &error);
        Err(self.identified(error))
    }

    /// Tells recorders of a failure that no call has: all that were made have ended.
    fn tell_failed(&self, method: &Method, params: &Params, error: &Error) {
        let name = method.name_param().and_then(|param| params.str(param));
        events::emit(&Event::RequestFailed(RequestFailed {
            correlation: self.correlation,
            method,
            name: name.as_deref(),
            principal: &self.client.principal,
            endpoint: self.edge.endpoint.as_deref(),
            revision: self.client.revision,
            error,
            took: self.began.elapsed(),
        }));
    }

    /// An error of the edge with the id of the request, as those of the calls have it.
    fn identified(&self, error: Error) -> Error {
        match self.edge.call_ids {
            true => error.with_data_member(CORRELATION, &Json::string(self.correlation.as_str())),
            false => error,
        }
    }

    /// How a call ends whose questions were not answered: for a tool with a result that the model can read.
    fn failed(&self, method: &Method, params: &Params, error: Error) -> Result<Json, Error> {
        self.tell_failed(method, params, &error);
        if *method != Method::ToolsCall || !error.in_tool() {
            return Err(self.identified(error));
        }
        let tool = params.str("name").unwrap_or_default();
        let tag = Tag {
            tool: None,
            revision: self.client.revision,
            correlation: self.correlation,
            profile: Profile::Strict,
        };
        // Whether the tool has an output schema is not known here, so there is no structured content.
        Ok(tool_failure(&error, &tool, &tag, false))
    }

    /// Makes one call and passes its notifications on while it runs.
    pub(super) async fn call(&self, method: Method, params: Params) -> Result<Reply, Error> {
        self.call_while(self.cancel, method, params).await
    }

    /// The same, for as long as it is wanted.
    async fn call_while(
        &self,
        wanted: &CancellationToken,
        method: Method,
        params: Params,
    ) -> Result<Reply, Error> {
        let outbox = Outbox::default();
        let mut call: Call = self.client.call(method, params, wanted.clone(), Some(outbox.clone()))?;
        if trace::is_on() {
            // Whoever serves HTTP says so itself.
            let transport = Some(Transport::Pipe);
            let origin = Origin { request: Some(self.id.clone()), transport, ..Origin::default() };
            call.context.origin = Some(Arc::new(origin));
        }
        call.context.correlation = self.correlation;
        let mut reply = std::pin::pin!(self.door.answer(call));
        let reply = loop {
            tokio::select! {
                biased;
                // A closed outbox has nothing more to say; the reply is still to come.
                Some(notice) = outbox.next() => self.pass_on(&notice),
                Ok(reply) = &mut reply => break reply,
            }
        };
        while let Some(notice) = outbox.try_next() {
            self.pass_on(&notice);
        }
        outbox.close();
        Ok(reply)
    }

    fn pass_on(&self, notice: &Notice) {
        if *notice == Notice::CloseStream {
            // An older client may have no event id yet to come back with.
            if self.client.revision.allows(Feature::PolledStreams) {
                self.sink.close_connection();
            }
        } else {
            self.sink.send(notice_for(notice, self.client.revision));
        }
    }
}

/// A notification as `revision` knows it.
pub(super) fn notice_for(notice: &Notice, revision: Revision) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    match notice {
        Notice::Progress(params) => {
            Notice::Progress(lower::notification(notice.method(), revision, params.clone()))
                .write(&mut out, None);
        }
        _ => notice.write(&mut out, None),
    }
    out
}

/// Limits for parameters that this process put together itself.
pub(super) const OWN: Limits = Limits { max_depth: 127, max_bytes: usize::MAX };

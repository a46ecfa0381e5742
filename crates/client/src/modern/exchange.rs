//! One modern request and its answer.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_protocol::{Error, Id, Incoming, Json, Message, Method, Notification, Symbol};
use tidegate_service::Call;

use super::{Modern, ModernRequest, Via};
use crate::cache::ToolTable;
use crate::connection::CancelOnDrop;
use crate::http::{Answered, Body, Events, HttpClient};
use crate::notices::other_notice;
use crate::status;
use crate::ticket::{Event, Sink, Ticket};
use crate::time_budget::TimeBudget;
use crate::tool::Tool;
use crate::transport::{cut_off, garbled};
use crate::upstream_error::upstream_error;

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum ExchangeError {
    /// It failed.
    Error(Error),
    /// The server does not seem to be a modern one any more. Nothing was executed.
    WrongEra(Error),
}

impl From<Error> for ExchangeError {
    fn from(error: Error) -> ExchangeError {
        ExchangeError::Error(error)
    }
}

impl Modern {
    /// Sends a request and waits for its answer: the result, or the server's error object.
    pub(crate) async fn exchange(
        self: &Arc<Self>,
        call: &Call,
        budget: TimeBudget,
    ) -> Result<Result<Json, Json>, ExchangeError> {
        match &self.via {
            Via::Connection(_) => Ok(self.over_pipe(call, budget).await?),
            Via::Http(http) => {
                let ticket = Ticket::new(self.dialer.ids.next(), call.method.clone(), sink(call));
                let tool = self.tool_for_headers(call, &budget).await?;
                // Pinned here, because it is large and would otherwise be moved on the way.
                let http = http.for_caller(&call.context.principal);
                let work = std::pin::pin!(self.over_http(&http, call, tool.as_deref(), &ticket));
                budget.within(&ticket, work).await.map_err(ExchangeError::Error)?
            }
        }
    }

    async fn over_pipe(&self, call: &Call, budget: TimeBudget) -> Result<Result<Json, Json>, Error> {
        let Via::Connection(connection) = &self.via else { return Err(Error::internal()) };
        let request = self.request(call);
        let room = call.params.as_str().len() + 320;
        let ticket = connection
            .send(call.method.clone(), sink(call), room, |out, id| request.write_params(out, id))?;
        let waiting = CancelOnDrop::new(connection, ticket);
        loop {
            match budget.next(&waiting.ticket).await? {
                Event::Answer(answer) => return Ok(answer),
                Event::Lost(error) => return Err(error),
                Event::Notified(_) => {}
                Event::Question(question) => {
                    // 2026-07-28 stdio: a server must not write requests, and a client no responses.
                    tracing::warn!(server = %self.dialer.name, method = %question.method, "a modern server asked in the middle of a call");
                }
            }
        }
    }

    pub(super) fn request<'a>(&'a self, call: &'a Call) -> ModernRequest<'a> {
        ModernRequest { call, settings: &self.dialer.settings, revision: self.server_info.revision }
    }

    /// The definition of the tool that is called, to know which arguments are mirrored into headers. An old one will
    /// do: a server that has changed its mind says so, and then it is fetched again.
    async fn tool_for_headers(
        self: &Arc<Self>,
        call: &Call,
        budget: &TimeBudget,
    ) -> Result<Option<Arc<Tool>>, Error> {
        if call.method != Method::ToolsCall {
            return Ok(None);
        }
        let Some(name) = call.params.str("name") else { return Ok(None) };
        let principal = &call.context.principal;
        let table = match self.cache.stale(principal) {
            Some(table) => table,
            None => match self.list_within(call, budget).await {
                Ok(table) => table,
                // A server whose tools cannot be listed may still let them be called.
                Err(error) if error.symbol() == Symbol::MethodNotFound => return Ok(None),
                Err(error) => return Err(error.unexecuted()),
            },
        };
        match table.get(&name) {
            Some(tool) if tool.headers.is_err() => {
                let what = format!(
                    "Tool {name:?} marks its parameters wrongly (x-mcp-header) and cannot be called over HTTP"
                );
                Err(Error::new(Symbol::ToolNotFound, what).unexecuted())
            }
            found => Ok(found.cloned()),
        }
    }

    /// Fetches the list of tools, within the time of the call that needs it.
    pub(super) async fn list_within(
        self: &Arc<Self>,
        call: &Call,
        budget: &TimeBudget,
    ) -> Result<Arc<ToolTable>, Error> {
        let listed = Box::pin(self.cache.refresh(&call.context.principal, self.fetch(call)));
        let listed = tokio::time::timeout_at(budget.ends(None).into(), listed).await;
        listed.unwrap_or_else(|_| Err(budget.over().unexecuted()))
    }

    async fn over_http(
        &self,
        http: &HttpClient,
        call: &Call,
        tool: Option<&Tool>,
        ticket: &Ticket,
    ) -> Result<Result<Json, Json>, ExchangeError> {
        let request = self.request(call);
        let body = Bytes::from(request.write(&ticket.id));
        let answered = http.post(body, request.headers(tool)).await?;
        if !answered.status.is_success() {
            return self.refused(http, answered);
        }
        match answered.body {
            Body::Json(bytes) => Ok(self.answer_in(bytes, ticket)?),
            Body::Events(events) => Ok(self.answer_on(*events, ticket).await?),
            Body::Empty => Err(Error::new(
                Symbol::Unavailable,
                format!(
                    "The server took the request without answering it (HTTP {})",
                    answered.status.as_u16()
                ),
            )
            .into()),
            Body::Other { content_type, excerpt } => Err(status::not_mcp(&content_type, &excerpt).into()),
        }
    }

    /// A status that says no: with a JSON-RPC error it is the server's answer; a bare 4xx is not how modern servers talk.
    pub(super) fn refused(
        &self,
        http: &HttpClient,
        answered: Answered,
    ) -> Result<Result<Json, Json>, ExchangeError> {
        let limits = &self.dialer.settings.limits;
        let code = answered.status.as_u16();
        let talks = answered.status.is_client_error() && !matches!(code, 401 | 403 | 429);
        if talks && let Some(error) = status::error_in(&answered.body, limits) {
            // A modern server says what is wrong in its own terms. A bare "invalid request" is how legacy servers talk,
            // which miss a session or do not know the version.
            let bare = matches!(status::code_of(&error), Some(-32600 | -32000));
            if code == 400 && bare {
                return Err(ExchangeError::WrongEra(
                    upstream_error(&Method::Discover, None, &error).unexecuted(),
                ));
            }
            return Ok(Err(error));
        }
        let error = status::error(http.url(), &answered, limits);
        Err(if matches!(code, 400 | 404 | 405 | 406 | 410 | 415) {
            ExchangeError::WrongEra(error)
        } else {
            error.into()
        })
    }

    fn answer_in(&self, bytes: Bytes, ticket: &Ticket) -> Result<Result<Json, Json>, Error> {
        match Incoming::parse_bytes(bytes, &self.dialer.settings.limits) {
            Ok(Incoming::One(message)) => answer(message, &ticket.id)
                .map_err(|_| wrong_answer())
                .and_then(|a| a.ok_or_else(wrong_answer)),
            Ok(Incoming::Batch(_)) => Err(wrong_answer()),
            Err(bad) => Err(garbled(&bad.error)),
        }
    }

    async fn answer_on(&self, mut events: Events, ticket: &Ticket) -> Result<Result<Json, Json>, Error> {
        while let Some(event) = events.next().await? {
            if event.data.is_empty() {
                continue;
            }
            match Incoming::parse(event.data, &self.dialer.settings.limits) {
                Ok(Incoming::One(message)) => match answer(message, &ticket.id) {
                    Ok(Some(answer)) => return Ok(answer),
                    Ok(None) => {}
                    Err(notification) => self.notified(&notification, ticket),
                },
                Ok(Incoming::Batch(_)) => {}
                Err(bad) if bad.id.as_ref() == Some(&ticket.id) => return Err(garbled(&bad.error)),
                Err(bad) => {
                    tracing::warn!(server = %self.dialer.name, error = %bad.error, "the server sent an invalid message");
                }
            }
        }
        Err(cut_off())
    }

    /// What comes on the stream of a request belongs to the request.
    fn notified(&self, notification: &Notification, ticket: &Ticket) {
        match notification.method.as_str() {
            "notifications/progress" => ticket.progressed(notification.params.object()),
            "notifications/message" => {
                if !ticket.logged(notification.params.object()) {
                    self.dialer.changes.log(&self.dialer.name, notification.params.object());
                }
            }
            method => {
                let heard = other_notice(notification).is_some_and(|notice| ticket.told(&notice));
                if !heard {
                    tracing::debug!(server = %self.dialer.name, method, "ignored a notification");
                }
            }
        }
    }
}

/// The answer that a message is: to this request (`Ok(Some)`), to nothing that was asked (`Ok(None)`), or a notification.
pub(super) fn answer(message: Message, id: &Id) -> Result<Option<Result<Json, Json>>, Notification> {
    match message {
        Message::Response(response) if response.id == *id => Ok(Some(Ok(response.result))),
        Message::Failure(failure) if failure.id.as_ref().is_none_or(|f| f == id) => {
            Ok(Some(Err(failure.error)))
        }
        Message::Notification(notification) => Err(notification),
        _ => {
            tracing::debug!(%id, "dropped a response to an unknown request");
            Ok(None)
        }
    }
}

fn wrong_answer() -> Error {
    Error::new(Symbol::Unavailable, "The server answered another request than the one it was asked")
}

pub(super) fn sink(call: &Call) -> Sink {
    let context = &call.context;
    Sink {
        outbox: context.outbox.clone(),
        token: context.progress_token.clone(),
        level: context.log_level,
        caller: None,
        // The request itself says so.
        span: None,
    }
}

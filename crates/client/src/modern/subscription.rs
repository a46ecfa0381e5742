//! [`SubscriptionStream`]: the stream of one subscription with a modern server.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_protocol::{Error, Id, Incoming, Json, Limits, Notification};
use tidegate_service::Call;

use super::exchange::{ExchangeError, answer, sink};
use super::{Modern, Via};
use crate::http::{Body, Events};
use crate::status;
use crate::ticket::{Event, Ticket};
use crate::time_budget::TimeBudget;
use crate::transport::cut_off;
use crate::upstream_error::upstream_error;

/// An open subscription. Dropping it ends it.
pub(crate) struct SubscriptionStream {
    pub(crate) modern: Arc<Modern>,
    source: Source,
}

enum Source {
    Pipe(Arc<Ticket>),
    Http { events: Box<Events>, id: Id, limits: Limits },
}

/// What a subscription brings.
#[derive(Debug)]
pub(crate) enum SubscriptionEvent {
    /// Something was told.
    Told(Box<Notification>),
    /// The server ended it properly.
    Ended,
}

impl Modern {
    /// Opens a subscription: the stream, and what the server agreed to tell.
    pub(crate) async fn open_subscription(
        self: &Arc<Self>,
        call: &Call,
        budget: &TimeBudget,
    ) -> Result<(SubscriptionStream, Json), ExchangeError> {
        let request = self.request(call);
        let source = match &self.via {
            Via::Connection(connection) => {
                let room = call.params.as_str().len() + 320;
                let write = |out: &mut Vec<u8>, id: &Id| request.write_params(out, id);
                Source::Pipe(connection.send(call.method.clone(), sink(call), room, write)?)
            }
            Via::Http(http) => {
                let http = &http.for_caller(&call.context.principal);
                let id = self.dialer.ids.next();
                let silent = Ticket::new(id.clone(), call.method.clone(), sink(call));
                let body = Bytes::from(request.write(&id));
                let answered = budget.within(&silent, http.post(body, request.headers(None))).await??;
                if !answered.status.is_success() {
                    return match self.refused(http, answered)? {
                        Err(error) => Err(upstream_error(&call.method, Some(&call.params), &error).into()),
                        Ok(_) => Err(Error::internal().into()),
                    };
                }
                match answered.body {
                    Body::Events(events) => Source::Http { events, id, limits: self.dialer.settings.limits },
                    Body::Json(bytes) => {
                        let error = status::error_in(&Body::Json(bytes), &self.dialer.settings.limits);
                        let error = error.map_or_else(cut_off, |e| upstream_error(&call.method, None, &e));
                        return Err(error.into());
                    }
                    _ => return Err(status::not_mcp("", "").into()),
                }
            }
        };
        let mut stream = SubscriptionStream { modern: self.clone(), source };
        let silent = Ticket::new(Id::from(0), call.method.clone(), Default::default());
        let acknowledged = budget.within(&silent, stream.acknowledged(call)).await??;
        Ok((stream, acknowledged))
    }
}

impl SubscriptionStream {
    /// Waits for the server to say what it will tell.
    async fn acknowledged(&mut self, call: &Call) -> Result<Json, Error> {
        loop {
            match self.next_or_error().await? {
                Ok(SubscriptionEvent::Told(told))
                    if told.method.as_str() == "notifications/subscriptions/acknowledged" =>
                {
                    return Ok(told.params.json("notifications").unwrap_or_else(Json::empty_object));
                }
                Ok(SubscriptionEvent::Told(_)) => {}
                Ok(SubscriptionEvent::Ended) => return Err(cut_off()),
                Err(error) => return Err(upstream_error(&call.method, None, &error)),
            }
        }
    }

    /// The next thing told. An error means that the stream broke.
    pub(crate) async fn next(&mut self) -> Result<SubscriptionEvent, Error> {
        match self.next_or_error().await? {
            Ok(fed) => Ok(fed),
            Err(_) => Ok(SubscriptionEvent::Ended),
        }
    }

    async fn next_or_error(&mut self) -> Result<Result<SubscriptionEvent, Json>, Error> {
        match &mut self.source {
            Source::Pipe(ticket) => loop {
                match ticket.next().await {
                    Event::Notified(notification) => {
                        return Ok(Ok(SubscriptionEvent::Told(Box::new(notification))));
                    }
                    Event::Answer(answer) => return Ok(answer.map(|_| SubscriptionEvent::Ended)),
                    Event::Lost(error) => return Err(error),
                    Event::Question(_) => {}
                }
            },
            Source::Http { events, id, limits } => loop {
                let Some(event) = events.next().await? else { return Err(cut_off()) };
                let Ok(Incoming::One(message)) = Incoming::parse(event.data, limits) else { continue };
                match answer(message, id) {
                    Ok(Some(answer)) => return Ok(answer.map(|_| SubscriptionEvent::Ended)),
                    Ok(None) => {}
                    Err(notification) => return Ok(Ok(SubscriptionEvent::Told(Box::new(notification)))),
                }
            },
        }
    }
}

impl Drop for SubscriptionStream {
    fn drop(&mut self) {
        // Over HTTP the stream closes with its connection.
        if let (Source::Pipe(ticket), Via::Connection(connection)) = (&self.source, &self.modern.via) {
            connection.cancel(ticket, "the subscription is no longer wanted");
        }
    }
}

//! [`Feed`]: the stream of one subscription with a modern server.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_protocol::{Error, Id, Incoming, Json, Limits, Notification};
use tidegate_service::Call;

use super::exchange::{Trouble, answer, sink};
use super::{Link, Modern};
use crate::allowance::Allowance;
use crate::http::{Body, Events};
use crate::legacy::cut_off;
use crate::status;
use crate::ticket::{Event, Ticket};
use crate::upstream_error::upstream_error;

/// An open subscription. Dropping it ends it.
pub(crate) struct Feed {
    pub(crate) modern: Arc<Modern>,
    source: Source,
}

enum Source {
    Pipe(Arc<Ticket>),
    Http { events: Box<Events>, id: Id, limits: Limits },
}

/// What a subscription brings.
#[derive(Debug)]
pub(crate) enum Fed {
    /// Something was told.
    Told(Box<Notification>),
    /// The server ended it properly.
    Ended,
}

impl Modern {
    /// Opens a subscription: the stream, and what the server agreed to tell.
    pub(crate) async fn feed(
        self: &Arc<Self>,
        call: &Call,
        allowance: &Allowance,
    ) -> Result<(Feed, Json), Trouble> {
        let terms = self.terms(call);
        let source = match &self.link {
            Link::Pipe(peer) => {
                let room = call.params.as_str().len() + 320;
                let write = |out: &mut Vec<u8>, id: &Id| terms.write_params(out, id);
                Source::Pipe(peer.send(call.method.clone(), sink(call), room, write)?)
            }
            Link::Http(http) => {
                let http = &http.for_caller(&call.context.principal);
                let id = self.dialer.ids.next();
                let silent = Ticket::new(id.clone(), call.method.clone(), sink(call));
                let body = Bytes::from(terms.write(&id));
                let answered = allowance.within(&silent, http.post(body, terms.headers(None))).await??;
                if !answered.status.is_success() {
                    return match self.refused(http, answered)? {
                        Err(error) => Err(upstream_error(&call.method, Some(&call.params), &error).into()),
                        Ok(_) => Err(Error::internal().into()),
                    };
                }
                match answered.body {
                    Body::Events(events) => {
                        Source::Http { events: Box::new(events), id, limits: self.dialer.options.limits }
                    }
                    Body::Json(bytes) => {
                        let error = status::error_in(&Body::Json(bytes), &self.dialer.options.limits);
                        let error = error.map_or_else(cut_off, |e| upstream_error(&call.method, None, &e));
                        return Err(error.into());
                    }
                    _ => return Err(status::not_mcp("", "").into()),
                }
            }
        };
        let mut feed = Feed { modern: self.clone(), source };
        let silent = Ticket::new(Id::from(0), call.method.clone(), Default::default());
        let acknowledged = allowance.within(&silent, feed.acknowledged(call)).await??;
        Ok((feed, acknowledged))
    }
}

impl Feed {
    /// Waits for the server to say what it will tell.
    async fn acknowledged(&mut self, call: &Call) -> Result<Json, Error> {
        loop {
            match self.next_or_error().await? {
                Ok(Fed::Told(told)) if told.method.as_str() == "notifications/subscriptions/acknowledged" => {
                    return Ok(told.params.json("notifications").unwrap_or_else(Json::empty_object));
                }
                Ok(Fed::Told(_)) => {}
                Ok(Fed::Ended) => return Err(cut_off()),
                Err(error) => return Err(upstream_error(&call.method, None, &error)),
            }
        }
    }

    /// The next thing told. An error means that the stream broke.
    pub(crate) async fn next(&mut self) -> Result<Fed, Error> {
        match self.next_or_error().await? {
            Ok(fed) => Ok(fed),
            Err(_) => Ok(Fed::Ended),
        }
    }

    async fn next_or_error(&mut self) -> Result<Result<Fed, Json>, Error> {
        match &mut self.source {
            Source::Pipe(ticket) => loop {
                match ticket.next().await {
                    Event::Notified(notification) => return Ok(Ok(Fed::Told(Box::new(notification)))),
                    Event::Answer(answer) => return Ok(answer.map(|_| Fed::Ended)),
                    Event::Lost(error) => return Err(error),
                    Event::Question(_) => {}
                }
            },
            Source::Http { events, id, limits } => loop {
                let Some(event) = events.next().await? else { return Err(cut_off()) };
                let Ok(Incoming::One(message)) = Incoming::parse(event.data, limits) else { continue };
                match answer(message, id) {
                    Ok(Some(answer)) => return Ok(answer.map(|_| Fed::Ended)),
                    Ok(None) => {}
                    Err(notification) => return Ok(Ok(Fed::Told(Box::new(notification)))),
                }
            },
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        // Over HTTP the stream closes with its connection.
        if let (Source::Pipe(ticket), Link::Pipe(peer)) = (&self.source, &self.modern.link) {
            peer.cancel(ticket, "the subscription is no longer wanted");
        }
    }
}

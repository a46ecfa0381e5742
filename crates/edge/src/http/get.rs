//! GET and DELETE of legacy sessions: the standalone stream, resumption, and the end.

use std::sync::Arc;

use ::http::Response;
use axum::body::Body;
use bytes::Bytes;
use futures_util::stream::unfold;
use tidegate_protocol::{Error, Feature, Symbol, sse};
use tidegate_service::budget::Budget;
use tidegate_service::usage::NetworkTransport::Tcp;
use tidegate_service::{Door, Identity, Principal};
use tokio_util::sync::CancellationToken;

use super::endpoint::Shared;
use super::events::{EventId, EventLog, Next};
use super::http_headers::HttpHeaders;
use super::respond;
use super::revive::no_session;
use super::sessions::Session;
use super::with_claims::WithClaims;
use crate::legacy::pass_on_changes;
use crate::traffic;

impl<D: Door> Shared<D> {
    pub(super) async fn get(&self, headers: &HttpHeaders<'_>, identity: &Identity) -> Response<Body> {
        if !headers.accepts_events() {
            let what = "Not acceptable: a GET needs Accept: text/event-stream";
            return respond::refused(406, &Error::new(Symbol::InvalidRequest, what));
        }
        if let Err(response) = self.check_legacy_version(&headers.version(), None) {
            return response;
        }
        let session = match self.session(headers, identity, None).await {
            Ok(session) => session,
            Err(response) => return response,
        };
        let Some(last) = headers.last_event else {
            return self.standalone(session, None, identity);
        };
        let last = last.to_str().ok().and_then(EventId::parse);
        if session.is_revived && last.is_some_and(|last| last.epoch != session.streams.epoch) {
            // What that stream still had to say is gone with the process that said it.
            session.client.has_missed_something();
            return self.standalone(session, None, identity);
        }
        // 2025-11-25 transports: only what belongs to that very stream is replayed.
        let resumed = last.filter(|last| last.epoch == session.streams.epoch).and_then(|last| {
            let EventId { number, sent, .. } = last;
            let log =
                if number == 0 { Some(session.streams.standalone()) } else { session.streams.find(number) };
            log.filter(|log| log.can_resume(sent)).map(|log| (log, sent))
        });
        match resumed {
            Some((log, sent)) if log.number == 0 => {
                drop(log);
                self.standalone(session, Some(sent), identity)
            }
            Some((log, sent)) => self.stream(session, log, sent),
            None => {
                let what = "Bad request: nothing is kept for this Last-Event-ID, or no longer";
                respond::refused(400, &Error::new(Symbol::InvalidRequest, what))
            }
        }
    }

    /// The stream for what belongs to no request. A new one takes the place of the one before.
    fn standalone(&self, session: Arc<Session>, resume: Option<u64>, identity: &Identity) -> Response<Body> {
        let log = session.streams.standalone();
        let sent = resume.unwrap_or_else(|| log.sent());
        let reader = log.take_over();
        let (door, client) = (WithClaims::new(&self.door, identity), session.client.clone());
        let feed =
            session.feed(|| tokio::spawn(pass_on_changes(door, client, log.clone(), resume.is_some())));
        let state = Reading::new(session, log, reader, sent, self).with_feed(feed);
        respond::quiet_events(Box::pin(unfold(state, Reading::step)), self.settings.keep_alive)
    }

    /// A stream of one request, from message `sent` on.
    pub(super) fn stream(&self, session: Arc<Session>, log: Arc<EventLog>, sent: u64) -> Response<Body> {
        let reader = log.take_over();
        let state = Reading::new(session, log, reader, sent, self);
        respond::events(Box::pin(unfold(state, Reading::step)), self.settings.keep_alive)
    }

    pub(super) async fn delete(&self, headers: &HttpHeaders<'_>, principal: &Principal) -> Response<Body> {
        let Some(id) = headers.session else { return no_session(headers, None) };
        if !self.sessions.close(id.to_str().unwrap_or_default(), principal).await {
            return no_session(headers, None);
        }
        let mut response = Response::new(Body::empty());
        *response.status_mut() = ::http::StatusCode::NO_CONTENT;
        response
    }
}

/// A connection that reads a stream.
struct Reading {
    session: Arc<Session>,
    log: Arc<EventLog>,
    reader: u64,
    sent: u64,
    primed: bool,
    retry_ms: u64,
    over: bool,
    feed: Option<tokio::task::JoinHandle<()>>,
    /// What belongs to no request ends when the endpoint closes.
    closing: CancellationToken,
}

impl Reading {
    fn new<D>(
        session: Arc<Session>,
        log: Arc<EventLog>,
        reader: u64,
        sent: u64,
        shared: &Shared<D>,
    ) -> Reading {
        session.streams.reader_came();
        // Clients before 2025-11-25 do not expect an event without content.
        let primed = !session.client.revision.allows(Feature::PolledStreams);
        let retry_ms = shared.settings.retry.as_millis() as u64;
        let closing = shared.closing.clone();
        Reading { session, log, reader, sent, primed, retry_ms, over: false, feed: None, closing }
    }

    fn with_feed(mut self, feed: tokio::task::JoinHandle<()>) -> Reading {
        self.feed = Some(feed);
        self
    }

    async fn step(mut self) -> Option<(Bytes, Self)> {
        if self.over {
            return None;
        }
        if !self.primed {
            self.primed = true;
            return Some((self.log.priming_event(self.sent, self.retry_ms), self));
        }
        let next = tokio::select! {
            biased;
            next = std::future::poll_fn(|cx| self.log.poll_next(self.reader, self.sent, cx)) => next,
            () = self.closing.cancelled(), if self.feed.is_some() => Next::End,
        };
        match next {
            Next::Message(n, message) => {
                self.sent = n + 1;
                traffic::sent(Tcp, &message);
                let mut out = Vec::with_capacity(message.len() + 32);
                let id = self.log.event_id(self.sent);
                sse::write_event(&mut out, Some(&id), std::str::from_utf8(&message).unwrap_or_default());
                Some((Budget::of_process().charge_anyway(out.into()), self))
            }
            Next::Close => {
                self.over = true;
                let mut out = Vec::new();
                sse::write_retry(&mut out, self.retry_ms);
                Some((out.into(), self))
            }
            Next::End => None,
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.session.streams.reader_left();
        if let Some(feed) = &self.feed {
            feed.abort();
        }
    }
}

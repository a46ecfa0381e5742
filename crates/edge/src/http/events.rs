//! Resumable streams: what a legacy client's stream has carried, kept within bounds, so that it can come back.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use tidegate_protocol::sse;
use tidegate_service::budget::{Budget, FREE, Hold, Share};
use tidegate_service::random;

use crate::legacy::{MessageSink, Response};

/// How many times more than what is kept for resumption may wait for a first reader.
const UNREAD_FACTOR: usize = 2;
/// How many times more than that all finished streams of a session may take together.
const FINISHED_FACTOR: usize = 8;

/// The messages of one stream, numbered.
pub(super) struct EventLog {
    /// Which life of the session it belongs to, in event ids.
    epoch: u32,
    /// Names the stream in event ids.
    pub(super) number: u64,
    max_bytes: usize,
    /// Whether it ends rather than lose a message that nobody has read yet.
    ends_when_full: bool,
    /// Whom it is counted for.
    share: Share,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    messages: VecDeque<Bytes>,
    /// Number of the first message kept; earlier ones are gone.
    first: u64,
    bytes: usize,
    /// The same, set aside, if it is much.
    hold: Option<Hold>,
    /// How many messages some reader has been given.
    delivered: u64,
    /// No more messages: the response was the last.
    done: bool,
    /// The responses alone, for an answer in JSON. Empty once something else was sent.
    responses: usize,
    /// The scopes that were missing, for an answer in JSON.
    required_scopes: Option<Vec<String>>,
    /// The connection should be closed although the stream goes on.
    close_requested: bool,
    /// Which reader is the current one; an older one ends.
    reader: u64,
    waker: Option<Waker>,
}

/// What a reader should do next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Send this message, with this number.
    Message(u64, Bytes),
    /// Close the connection; the client may come back.
    Close,
    /// The stream is over.
    End,
}

/// The responses with which a stream ends.
pub(super) struct Responses {
    pub(super) messages: Vec<Vec<u8>>,
    /// The scopes that the one request would have needed, if it was refused for want of them.
    pub(super) required_scopes: Option<Vec<String>>,
}

impl Responses {
    /// What there is to say to one request.
    pub(super) fn of_one(response: Option<Response>) -> Responses {
        let (message, required_scopes) = response.map(|r| (r.message, r.required_scopes)).unzip();
        Responses { messages: message.into_iter().collect(), required_scopes: required_scopes.flatten() }
    }
}

/// What decides between JSON and a stream.
pub(super) enum Opening {
    /// Everything that will ever be sent: the responses, and the scopes that were missing.
    Responses(Vec<Bytes>, Option<Vec<String>>),
    /// Something else came first.
    Stream,
}

impl State {
    /// Counts what there is now.
    fn count(&mut self, share: &Share) {
        match &mut self.hold {
            Some(hold) => hold.set(self.bytes),
            None if self.bytes > FREE => {
                let hold = Budget::of_process().hold_anyway(self.bytes);
                self.hold = Some(hold.counted_for(share.clone()));
            }
            None => {}
        }
    }

    fn add(&mut self, message: Vec<u8>) {
        self.bytes += message.len();
        self.messages.push_back(message.into());
    }

    /// Makes room, but keeps the newest `keep` messages. What was delivered goes first; what nobody has read yet goes
    /// only when it is far too much.
    fn trim(&mut self, max: usize, keep: usize) {
        while self.messages.len() > keep
            && (self.bytes > max && self.first < self.delivered || self.bytes > UNREAD_FACTOR * max)
        {
            if let Some(old) = self.messages.pop_front() {
                self.bytes -= old.len();
                self.first += 1;
            }
        }
    }
}

impl EventLog {
    fn new(epoch: u32, number: u64, max_bytes: usize, share: Share) -> Arc<EventLog> {
        Arc::new(EventLog { epoch, number, max_bytes, ends_when_full: false, share, state: Mutex::default() })
    }

    /// A stream that nobody can come back to. Its reader must not miss anything: if it does not keep up, the stream ends.
    pub(super) fn for_one_reader(max_bytes: usize, share: Share) -> Arc<EventLog> {
        let state = Mutex::default();
        Arc::new(EventLog { epoch: 0, number: 1, max_bytes, ends_when_full: true, share, state })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let waker = {
            let mut state = self.state();
            change(&mut state);
            state.count(&self.share);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn push(&self, message: Vec<u8>) {
        self.change(|state| {
            if state.done {
                return;
            }
            state.add(message);
            state.trim(self.max_bytes, 1);
            if self.ends_when_full && state.first > state.delivered {
                tracing::info!("closing a stream whose reader is too slow");
                state.messages.clear();
                state.bytes = 0;
                state.done = true;
            }
        });
    }

    /// Adds the responses and ends the stream.
    pub(super) fn finish(&self, responses: Responses) {
        self.change(|state| {
            state.responses = responses.messages.len();
            state.required_scopes = responses.required_scopes;
            state.done = true;
            for response in responses.messages {
                state.add(response);
            }
            // Responses are never dropped, however large.
            state.trim(self.max_bytes, state.responses);
        });
    }

    /// Ends the stream as it is.
    pub(super) fn end(&self) {
        self.change(|state| state.done = true);
    }

    /// Waits until it is clear whether there is more to send than the responses.
    pub(super) fn poll_opening(&self, cx: &mut Context<'_>) -> Poll<Opening> {
        let mut state = self.state();
        if state.reader > 0 {
            // The client has come for the stream on another connection before this one knew what to say.
            return Poll::Ready(Opening::Responses(Vec::new(), None));
        }
        if state.done && state.messages.len() == state.responses {
            state.responses = 0;
            state.bytes = 0;
            state.hold = None;
            let responses = std::mem::take(&mut state.messages).into();
            return Poll::Ready(Opening::Responses(responses, state.required_scopes.take()));
        }
        if !state.messages.is_empty() || state.close_requested || state.done {
            return Poll::Ready(Opening::Stream);
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Becomes the reader of this stream; an earlier reader ends.
    pub(super) fn take_over(&self) -> u64 {
        let mut reader = 0;
        self.change(|state| {
            // A wish to close was for the connection before this one. If there was none, the call has let go of its
            // stream before anybody read it, and the wish is for this one.
            state.close_requested &= state.reader == 0;
            state.reader += 1;
            reader = state.reader;
        });
        reader
    }

    /// The next message after `sent` messages have been sent.
    pub(super) fn poll_next(&self, reader: u64, sent: u64, cx: &mut Context<'_>) -> Poll<Next> {
        let mut state = self.state();
        if state.reader != reader {
            return Poll::Ready(Next::End);
        }
        let at = sent.max(state.first);
        if let Some(message) = state.messages.get((at - state.first) as usize) {
            let message = message.clone();
            state.delivered = state.delivered.max(at + 1);
            return Poll::Ready(Next::Message(at, message));
        }
        if state.done {
            return Poll::Ready(Next::End);
        }
        if std::mem::take(&mut state.close_requested) {
            return Poll::Ready(Next::Close);
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Whether the messages after the first `sent` are all still here.
    pub(super) fn can_resume(&self, sent: u64) -> bool {
        let state = self.state();
        sent >= state.first && sent <= state.first + state.messages.len() as u64
    }

    /// How many messages were ever put in.
    pub(super) fn sent(&self) -> u64 {
        let state = self.state();
        state.first + state.messages.len() as u64
    }

    /// What a stream takes that is over; `None` while it goes on.
    fn kept_bytes(&self) -> Option<usize> {
        let state = self.state();
        state.done.then_some(state.bytes)
    }

    /// The id of the event that carries message `n`; `n + 1` messages have then been sent.
    pub(super) fn event_id(&self, sent: u64) -> String {
        format!("{:x}-{}-{sent}", self.epoch, self.number)
    }

    /// The event without content that lets the client come back before anything was sent (SEP-1699).
    pub(super) fn priming_event(&self, sent: u64, retry_ms: u64) -> Bytes {
        let mut out = Vec::with_capacity(48);
        sse::write_retry(&mut out, retry_ms);
        sse::write_event(&mut out, Some(&self.event_id(sent)), "");
        out.into()
    }
}

impl MessageSink for EventLog {
    fn send(&self, message: Vec<u8>) {
        self.push(message);
    }

    fn close_connection(&self) {
        self.change(|state| state.close_requested = true);
    }
}

/// What an event id says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventId {
    /// Which life of the session it is of: another one than this has nothing left.
    pub(super) epoch: u32,
    /// The stream.
    pub(super) number: u64,
    /// How many messages had been sent.
    pub(super) sent: u64,
}

impl EventId {
    pub(super) fn parse(id: &str) -> Option<EventId> {
        let mut parts = id.split('-');
        let epoch = u32::from_str_radix(parts.next()?, 16).ok()?;
        let (number, sent) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        parts.next().is_none().then_some(EventId { epoch, number, sent })
    }
}

/// The streams of one session.
pub(super) struct Streams {
    /// For what belongs to no request. It is number 0, lasts as long as the session, and makes room for no other.
    standalone: OnceLock<Arc<EventLog>>,
    /// Tells this life of the session from earlier ones, in other processes.
    pub(super) epoch: u32,
    next: AtomicU64,
    max_kept: usize,
    max_bytes: usize,
    kept: Mutex<VecDeque<Arc<EventLog>>>,
    readers: AtomicU64,
    /// Whom they are counted for.
    share: Share,
}

impl Streams {
    pub(super) fn new(max_kept: usize, max_bytes: usize, share: Share) -> Streams {
        Streams {
            standalone: OnceLock::new(),
            epoch: u32::from_le_bytes(random()),
            next: AtomicU64::new(1),
            max_kept: max_kept.max(1),
            max_bytes,
            kept: Mutex::default(),
            readers: AtomicU64::new(0),
            share,
        }
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<Arc<EventLog>>> {
        self.kept.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A new stream, not yet kept.
    pub(super) fn open(&self) -> Arc<EventLog> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        EventLog::new(self.epoch, number, self.max_bytes, self.share.clone())
    }

    /// Keeps a stream for resumption. The oldest finished one makes room.
    pub(super) fn keep(&self, log: &Arc<EventLog>) {
        let mut kept = self.kept();
        if kept.len() >= self.max_kept {
            let at = kept.iter().position(|l| l.kept_bytes().is_some()).unwrap_or(0);
            kept.remove(at);
        }
        kept.push_back(log.clone());
        self.trim(&mut kept);
    }

    /// Adds the responses of a stream and ends it.
    pub(super) fn finish(&self, log: &EventLog, responses: Responses) {
        log.finish(responses);
        self.trim(&mut self.kept());
    }

    /// Lets go of finished streams, oldest first, until those that are left take no more than one may; the newest is
    /// kept however large it is.
    fn trim(&self, kept: &mut VecDeque<Arc<EventLog>>) {
        let mut total: usize = kept.iter().filter_map(|log| log.kept_bytes()).sum();
        while total > FINISHED_FACTOR * self.max_bytes {
            let mut finished = kept.iter().enumerate().filter_map(|(at, log)| Some((at, log.kept_bytes()?)));
            let (Some((oldest, bytes)), Some(_)) = (finished.next(), finished.next()) else { break };
            total -= bytes;
            kept.remove(oldest);
        }
    }

    /// Lets go of all finished streams.
    pub(super) fn let_go(&self) {
        self.kept().retain(|log| log.kept_bytes().is_none());
    }

    /// Keeps a stream that may be kept already.
    pub(super) fn keep_once(&self, log: &Arc<EventLog>) {
        if self.find(log.number).is_none() {
            self.keep(log);
        }
    }

    /// A stream that was answered in JSON needs no keeping.
    pub(super) fn drop_stream(&self, number: u64) {
        self.kept().retain(|l| l.number != number);
    }

    pub(super) fn find(&self, number: u64) -> Option<Arc<EventLog>> {
        self.kept().iter().find(|l| l.number == number).cloned()
    }

    /// The standalone stream, made when first asked for.
    pub(super) fn standalone(&self) -> Arc<EventLog> {
        let new = || EventLog::new(self.epoch, 0, self.max_bytes, self.share.clone());
        self.standalone.get_or_init(new).clone()
    }

    pub(super) fn has_reader(&self) -> bool {
        self.readers.load(Ordering::Relaxed) > 0
    }

    pub(super) fn reader_came(&self) {
        self.readers.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn reader_left(&self) {
        self.readers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Ends all streams.
    pub(super) fn end(&self) {
        for log in self.kept().drain(..).chain(self.standalone.get().cloned()) {
            log.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(log: &EventLog, reader: u64, sent: u64) -> Option<Next> {
        match log.poll_next(reader, sent, &mut Context::from_waker(Waker::noop())) {
            Poll::Ready(next) => Some(next),
            Poll::Pending => None,
        }
    }

    fn response(text: &str) -> Responses {
        Responses { messages: vec![text.into()], required_scopes: None }
    }

    #[test]
    fn a_reader_that_comes_back_gets_the_rest() {
        let log = EventLog::new(0xab, 3, 1000, Share::default());
        log.send(b"a".to_vec());
        let first = log.take_over();
        assert_eq!(next(&log, first, 0), Some(Next::Message(0, Bytes::from_static(b"a"))));
        assert_eq!(next(&log, first, 1), None);
        log.finish(response("b"));
        let second = log.take_over();
        assert_eq!(next(&log, first, 1), Some(Next::End), "the old reader ends");
        assert_eq!(next(&log, second, 1), Some(Next::Message(1, Bytes::from_static(b"b"))));
        assert_eq!(next(&log, second, 2), Some(Next::End));
        let id = EventId { epoch: 0xab, number: 3, sent: 2 };
        assert_eq!((log.event_id(2).as_str(), EventId::parse(&log.event_id(2))), ("ab-3-2", Some(id)));
        for other in ["", "3-2", "ab-3-2-1", "x-3-2", "ab-3-", "123456789-3-2"] {
            assert_eq!(EventId::parse(other), None, "{other}");
        }
    }

    #[test]
    fn the_store_is_bounded_and_says_what_is_lost() {
        let log = EventLog::new(0, 1, 10, Share::default());
        let reader = log.take_over();
        for n in 0..5 {
            log.send(vec![b'x'; 4]);
            next(&log, reader, n);
        }
        assert!(!log.can_resume(0) && !log.can_resume(2));
        assert!(log.can_resume(3) && log.can_resume(5) && !log.can_resume(6));
    }

    #[test]
    fn closing_the_connection_is_not_the_end() {
        let log = EventLog::new(0, 1, 100, Share::default());
        let reader = log.take_over();
        log.close_connection();
        assert_eq!(next(&log, reader, 0), Some(Next::Close));
        let reader = log.take_over();
        assert_eq!(next(&log, reader, 0), None);
    }

    #[test]
    fn a_stream_can_be_let_go_of_before_anybody_reads_it() {
        let log = EventLog::new(0, 1, 100, Share::default());
        log.close_connection();
        let reader = log.take_over();
        assert_eq!(next(&log, reader, 0), Some(Next::Close));
        // The wish was for the connection that is gone, not for the one that comes back.
        log.close_connection();
        let reader = log.take_over();
        assert_eq!(next(&log, reader, 0), None);
    }

    #[test]
    fn json_if_there_is_nothing_but_responses() {
        let cx = &mut Context::from_waker(Waker::noop());
        let log = EventLog::new(0, 1, 100, Share::default());
        assert!(log.poll_opening(cx).is_pending());
        log.finish(response("r"));
        assert!(matches!(log.poll_opening(cx), Poll::Ready(Opening::Responses(r, None)) if r == ["r"]));
        let log = EventLog::new(0, 1, 100, Share::default());
        log.send(b"n".to_vec());
        log.finish(response("r"));
        assert!(matches!(log.poll_opening(cx), Poll::Ready(Opening::Stream)));
    }
}

//! Requests in flight: [`Ticket`] is one that waits for its answer, [`Tickets`] all of one connection.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::task::AtomicWaker;
use tidegate_protocol::{
    Capability, ClientCapabilities, Error, Id, Json, Level, Method, Object, Request, Symbol,
};
use tidegate_service::trace::TraceContext;
use tidegate_service::{Notice, Outbox};

use crate::legacy::ClientIdentity;

/// What happens to a request that was sent.
#[derive(Debug)]
pub(crate) enum Event {
    /// The server asks something before it goes on (legacy).
    Question(Request),
    /// A notification on the request's own stream that is not progress or a log message.
    Notified(tidegate_protocol::Notification),
    /// The server answered: its result, or its error object.
    Answer(Result<Json, Json>),
    /// There will be no answer.
    Lost(Error),
}

/// Where progress and log messages of a call go.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sink {
    /// Nobody listens if there is none.
    pub(crate) outbox: Option<Outbox>,
    /// The caller's own token.
    pub(crate) token: Option<Json>,
    /// Least severe log message wanted.
    pub(crate) level: Option<Level>,
    /// Who can be asked something about the call; nobody if there is none.
    pub(crate) caller: Option<Caller>,
    /// The span that the request belongs to, if this process takes part in traces.
    pub(crate) span: Option<TraceContext>,
}

/// A caller that a server may have to ask something.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) client: ClientIdentity,
    pub(crate) capabilities: ClientCapabilities,
}

impl Sink {
    /// Tells the caller of progress, under its own token.
    fn progress(&self, params: &Object) {
        if let (Some(outbox), Some(token)) = (&self.outbox, &self.token) {
            outbox.push(Notice::Progress(params.with("progressToken", token)));
        }
    }
}

/// A request that was sent and has no answer yet.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) id: Id,
    pub(crate) method: Method,
    state: Mutex<State>,
    reader: AtomicWaker,
    /// Which byte of all that was sent over the connection is the first of this request; so far nothing of it was sent.
    at: AtomicU64,
    /// When a question of it was last answered, counted in answers; never so far if it is 0.
    answered: AtomicU64,
}

#[derive(Debug)]
struct State {
    events: VecDeque<Event>,
    /// What the questions among them take.
    bytes: usize,
    sink: Sink,
    /// When the last sign of life came.
    alive: Option<Instant>,
    done: bool,
    /// Whether its caller has been asked something and has not come back yet.
    parked: bool,
}

impl State {
    fn pop(&mut self) -> Option<Event> {
        let event = self.events.pop_front();
        if let Some(Event::Question(question)) = &event {
            self.bytes = self.bytes.saturating_sub(question.params.as_str().len());
        }
        event
    }
}

/// What the questions of one request may take that wait for somebody to read them; a single one may be larger.
const MAX_QUESTION_BYTES: usize = 1024 * 1024;

/// Most notifications of one request that wait for somebody to read them.
const MAX_WAITING: usize = 1024;

/// Most notifications of one request that are kept while its caller answers a question.
const MAX_KEPT: usize = 64;

impl Ticket {
    pub(crate) fn new(id: Id, method: Method, sink: Sink) -> Ticket {
        let state =
            State { events: VecDeque::new(), bytes: 0, sink, alive: None, done: false, parked: false };
        let (at, answered) = (AtomicU64::new(u64::MAX), AtomicU64::new(0));
        Ticket { id, method, state: Mutex::new(state), reader: AtomicWaker::new(), at, answered }
    }

    /// A question of it is answered.
    pub(crate) fn was_answered(&self) {
        static ANSWERS: AtomicU64 = AtomicU64::new(1);
        self.answered.store(ANSWERS.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    }

    /// When that last happened, in a number that grows.
    pub(crate) fn last_answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// The span that the request belongs to.
    pub(crate) fn span(&self) -> Option<TraceContext> {
        self.state().sink.span
    }

    /// Whose call it is, if that one can be asked something.
    pub(crate) fn client(&self) -> Option<ClientIdentity> {
        self.state().sink.caller.as_ref().map(|caller| caller.client.clone())
    }

    /// Whether its caller can be asked this.
    pub(crate) fn can_be_asked(&self, needed: Capability) -> bool {
        self.state().sink.caller.as_ref().is_some_and(|caller| caller.capabilities.has(needed))
    }

    /// The request begins with this byte of all that is sent. To be called before anything of it is.
    pub(crate) fn sent_at(&self, byte: u64) {
        self.at.store(byte, Ordering::Release);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Notes what happened. Nothing follows the answer.
    pub(crate) fn push(&self, event: Event) {
        {
            let mut state = self.state();
            let last = matches!(event, Event::Answer(_) | Event::Lost(_));
            if state.done || (!last && state.events.len() >= MAX_WAITING) {
                return;
            }
            state.done = last;
            state.events.push_back(event);
        }
        self.reader.wake();
    }

    /// A question of the server. Comes back if the request is over, or has more questions than can wait.
    pub(crate) fn ask(&self, question: Request) -> Result<(), Request> {
        {
            let mut state = self.state();
            let bytes = state.bytes + question.params.as_str().len();
            let full = state.events.len() >= MAX_WAITING || state.bytes > 0 && bytes > MAX_QUESTION_BYTES;
            if state.done || full {
                return Err(question);
            }
            state.bytes = bytes;
            state.events.push_back(Event::Question(question));
        }
        self.reader.wake();
        Ok(())
    }

    /// Nobody reads any more: the questions that nobody has read.
    pub(crate) fn abandon(&self) -> Vec<Request> {
        let mut state = self.state();
        state.done = true;
        let events = std::mem::take(&mut state.events);
        events
            .into_iter()
            .filter_map(|event| if let Event::Question(q) = event { Some(q) } else { None })
            .collect()
    }

    /// Waits for the next event. There is one reader at a time.
    pub(crate) async fn next(&self) -> Event {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The next event if there is one.
    pub(crate) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Event> {
        if let Some(event) = self.state().pop() {
            return Poll::Ready(event);
        }
        self.reader.register(cx.waker());
        match self.state().pop() {
            Some(event) => Poll::Ready(event),
            None => Poll::Pending,
        }
    }

    /// Between the rounds of a call nobody listens: what is told is kept for the next one.
    pub(crate) fn keep_for_retry(&self) {
        let mut state = self.state();
        state.parked = true;
        if let Some(outbox) = &mut state.sink.outbox {
            *outbox = Outbox::new(MAX_KEPT);
        }
    }

    /// Whether its caller has been asked something and has not come back yet.
    pub(crate) fn is_parked(&self) -> bool {
        self.state().parked
    }

    /// From now on the retry of a parked call hears what is told, and first of all what was kept for it.
    pub(crate) fn redirect(&self, sink: Sink) {
        let mut state = self.state();
        state.parked = false;
        let kept = std::mem::replace(&mut state.sink, sink).outbox;
        for notice in kept.iter().flat_map(|kept| std::iter::from_fn(|| kept.try_next())) {
            match notice {
                Notice::Progress(params) => {
                    Object::of(&params).iter().for_each(|params| state.sink.progress(params))
                }
                other => _ = state.sink.outbox.as_ref().is_some_and(|outbox| outbox.push(other)),
            }
        }
    }

    /// `notifications/progress` for this request: the caller gets it under its own token.
    pub(crate) fn progressed(&self, params: &Object) {
        let mut state = self.state();
        state.alive = Some(Instant::now());
        state.sink.progress(params);
    }

    /// `notifications/message` that belongs to this request. Returns whether its caller wanted it.
    pub(crate) fn logged(&self, params: &Object) -> bool {
        let state = self.state();
        let (Some(outbox), Some(wanted)) = (&state.sink.outbox, state.sink.level) else { return false };
        let level = params.str("level").and_then(|l| l.parse::<Level>().ok());
        if level.is_some_and(|level| level >= wanted) {
            outbox.push(Notice::Log(params.to_json()));
        }
        true
    }

    /// A notification that nobody here knows and that belongs to this request. Returns whether somebody hears it.
    pub(crate) fn told(&self, notice: &Notice) -> bool {
        let outbox = self.state().sink.outbox.clone();
        outbox.is_some_and(|outbox| outbox.push(notice.clone()))
    }

    /// Whether anybody hears what is told.
    pub(crate) fn is_heard(&self) -> bool {
        self.state().sink.outbox.is_some()
    }

    /// Whether the caller wants log messages at all.
    pub(crate) fn wants_logs(&self) -> bool {
        let state = self.state();
        state.sink.outbox.is_some() && state.sink.level.is_some()
    }

    /// When the last sign of life came.
    pub(crate) fn alive(&self) -> Option<Instant> {
        self.state().alive
    }
}

/// The requests of one connection that have no answer yet.
#[derive(Debug)]
pub(crate) struct Tickets {
    table: Mutex<Table>,
    max: usize,
}

#[derive(Debug, Default)]
struct Table {
    open: HashMap<Id, Arc<Ticket>, BuildHasherDefault<Fnv>>,
    /// In the order in which they were sent.
    order: VecDeque<Id>,
    closed: Option<Error>,
    /// Calls that were given up a moment ago, and whose they were: the server may still ask something about them.
    gone: VecDeque<(Id, ClientIdentity, Instant)>,
}

/// How long a server may take to hear that a call was given up, and most calls that this is remembered of.
const HEARD_WITHIN: Duration = Duration::from_secs(10);
const MAX_GONE: usize = 256;

/// FNV-1a: quick, and good enough, because only ids that we made ourselves are in the table.
#[derive(Debug)]
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Tickets {
    pub(crate) fn new(max: usize) -> Tickets {
        Tickets { table: Mutex::default(), max }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Takes a request that is about to be sent.
    pub(crate) fn open(&self, ticket: &Arc<Ticket>) -> Result<(), Error> {
        let mut table = self.table();
        if let Some(why) = &table.closed {
            return Err(why.clone().unexecuted());
        }
        if table.open.len() >= self.max {
            let what = format!("Too many calls to this server are in flight: it may have {}", self.max);
            return Err(Error::new(Symbol::RateLimited, what).unexecuted());
        }
        table.order.push_back(ticket.id.clone());
        table.open.insert(ticket.id.clone(), ticket.clone());
        Ok(())
    }

    /// The request with this id.
    pub(crate) fn get(&self, id: &Id) -> Option<Arc<Ticket>> {
        self.table().open.get(id).cloned()
    }

    /// Takes the request off the table. Returns whether it was there.
    pub(crate) fn forget(&self, id: &Id) -> Option<Arc<Ticket>> {
        let mut table = self.table();
        let ticket = table.open.remove(id)?;
        match table.order.front() {
            Some(first) if first == id => _ = table.order.pop_front(),
            _ => table.order.retain(|other| other != id),
        }
        Some(ticket)
    }

    /// Takes a request off the table that its caller no longer waits for. Returns whether it was there.
    pub(crate) fn give_up(&self, id: &Id) -> Option<Arc<Ticket>> {
        let ticket = self.forget(id)?;
        if let (true, Some(client)) = (ticket.method.may_ask(), ticket.client()) {
            let mut table = self.table();
            if table.gone.len() >= MAX_GONE {
                table.gone.pop_front();
            }
            table.gone.push_back((id.clone(), client, Instant::now()));
        }
        Some(ticket)
    }

    /// Whose calls were given up a moment ago.
    pub(crate) fn gone(&self) -> Vec<ClientIdentity> {
        let mut table = self.table();
        while table.gone.front().is_some_and(|(_, _, since)| since.elapsed() >= HEARD_WITHIN) {
            table.gone.pop_front();
        }
        table.gone.iter().map(|(_, client, _)| client.clone()).collect()
    }

    /// The answer to a request. An answer that nobody waits for, a second one for example, is reported and dropped.
    pub(crate) fn answered(&self, id: &Id, answer: Result<Json, Json>) {
        match self.forget(id) {
            Some(ticket) => ticket.push(Event::Answer(answer)),
            None => {
                tracing::debug!(%id, "dropped a response to an unknown request");
                self.table().gone.retain(|(gone, ..)| gone != id);
            }
        }
    }

    /// A request that will have no answer.
    pub(crate) fn lost(&self, id: &Id, why: Error) {
        if let Some(ticket) = self.forget(id) {
            ticket.push(Event::Lost(why));
        }
    }

    /// Nothing will be answered any more. Requests of which nothing was read (from the byte `unread` on, where that is
    /// known) were not executed.
    pub(crate) fn close(&self, why: &Error, unread: Option<u64>) {
        let open: Vec<_> = {
            let mut table = self.table();
            table.closed.get_or_insert_with(|| why.clone());
            table.order.clear();
            table.open.drain().collect()
        };
        for (_, ticket) in open {
            let not_read = unread.is_some_and(|unread| ticket.at.load(Ordering::Acquire) >= unread);
            let why = why.clone();
            ticket.push(Event::Lost(if not_read { why.unexecuted() } else { why }));
        }
    }

    /// Why nothing will be answered any more, if that is so.
    pub(crate) fn closed(&self) -> Option<Error> {
        self.table().closed.clone()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.table().open.len()
    }

    /// The one request that fits, if there is just one.
    pub(crate) fn only(&self, fits: impl Fn(&Ticket) -> bool) -> Option<Arc<Ticket>> {
        let table = self.table();
        let mut fitting = table.open.values().filter(|ticket| fits(ticket));
        let first = fitting.next()?;
        fitting.next().is_none().then(|| first.clone())
    }

    /// All requests that fit, in the order in which they were sent.
    pub(crate) fn all(&self, fits: impl Fn(&Ticket) -> bool) -> Vec<Arc<Ticket>> {
        let table = self.table();
        table
            .order
            .iter()
            .filter_map(|id| table.open.get(id))
            .filter(|ticket| fits(ticket))
            .cloned()
            .collect()
    }

    /// The latest request that fits.
    pub(crate) fn newest(&self, fits: impl Fn(&Ticket) -> bool) -> Option<Arc<Ticket>> {
        let table = self.table();
        table.order.iter().rev().filter_map(|id| table.open.get(id)).find(|ticket| fits(ticket)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn ticket(n: i64) -> Arc<Ticket> {
        Arc::new(Ticket::new(Id::from(n), Method::ToolsCall, Sink::default()))
    }

    #[test]
    fn one_answer_each_and_nothing_after_it() {
        let tickets = Tickets::new(2);
        let first = ticket(1);
        tickets.open(&first).unwrap();
        tickets.answered(&Id::from(1), Ok(Json::empty_object()));
        tickets.answered(&Id::from(1), Ok(Json::null()));
        tickets.answered(&Id::from(7), Ok(Json::null()));
        first.push(Event::Lost(Error::internal()));
        assert!(matches!(first.next().now_or_never(), Some(Event::Answer(Ok(j))) if j.is_object()));
        assert!(first.next().now_or_never().is_none());
        assert_eq!(tickets.len(), 0);
    }

    #[test]
    fn bounded_and_closed() {
        let tickets = Tickets::new(1);
        let (first, second) = (ticket(1), ticket(2));
        tickets.open(&first).unwrap();
        assert_eq!(tickets.open(&second).unwrap_err().symbol(), Symbol::RateLimited);
        tickets.close(&Error::new(Symbol::Unavailable, "gone"), None);
        assert!(matches!(first.next().now_or_never(), Some(Event::Lost(_))));
        let refused = tickets.open(&second).unwrap_err();
        assert!(refused.is_unexecuted(), "what was never sent was not executed");
    }

    #[test]
    fn what_nobody_has_read_was_not_executed() {
        for (unread, unexecuted) in [
            (None, [false; 3]),
            (Some(0), [true; 3]),
            (Some(40), [false, true, true]),
            (Some(41), [false, false, true]),
        ] {
            let tickets = Tickets::new(8);
            let all = [ticket(1), ticket(2), ticket(3)];
            all.iter().for_each(|ticket| tickets.open(ticket).unwrap());
            all[0].sent_at(0);
            all[1].sent_at(40);
            tickets.close(&Error::new(Symbol::Unavailable, "gone"), unread);
            let lost = all.map(|ticket| match ticket.next().now_or_never() {
                Some(Event::Lost(error)) => error.is_unexecuted(),
                other => panic!("{other:?}"),
            });
            assert_eq!(lost, unexecuted, "{unread:?}");
        }
    }

    #[test]
    fn the_newest_that_fits() {
        let tickets = Tickets::new(8);
        for n in 1..=3 {
            tickets.open(&ticket(n)).unwrap();
        }
        tickets.forget(&Id::from(3));
        assert_eq!(tickets.newest(|_| true).unwrap().id, Id::from(2));
        assert!(tickets.newest(|t| t.method == Method::Ping).is_none());
    }

    #[test]
    fn what_is_told_while_a_question_is_open_is_kept_for_the_retry() {
        let token = |n: u32| Some(Json::trusted(n.to_string()));
        let (first, second) = (Outbox::default(), Outbox::default());
        let of =
            |outbox: &Outbox, n| Sink { outbox: Some(outbox.clone()), token: token(n), ..Sink::default() };
        let ticket = Ticket::new(Id::from(1), Method::ToolsCall, of(&first, 7));
        let told = |n: u32| {
            let params = Json::trusted(format!(r#"{{"progressToken":"x","progress":{n}}}"#));
            ticket.progressed(&Object::of(&params).unwrap());
        };
        told(1);
        ticket.keep_for_retry();
        told(2);
        assert!(ticket.told(&Notice::ToolsChanged));
        ticket.redirect(of(&second, 8));
        told(3);
        let heard = |outbox: &Outbox| std::iter::from_fn(|| outbox.try_next()).collect::<Vec<_>>();
        let progress = |token, n| {
            Notice::Progress(Json::trusted(format!(r#"{{"progressToken":{token},"progress":{n}}}"#)))
        };
        assert_eq!(heard(&first), [progress(7, 1)]);
        assert_eq!(heard(&second), [progress(8, 2), Notice::ToolsChanged, progress(8, 3)]);
        // Who does not listen is not kept anything for.
        let silent = Ticket::new(Id::from(2), Method::ToolsCall, Sink::default());
        silent.keep_for_retry();
        assert!(!silent.is_heard());
    }

    #[test]
    fn progress_comes_under_the_callers_token() {
        let outbox = Outbox::default();
        let sink = Sink { outbox: Some(outbox.clone()), token: Some(Json::trusted("7")), ..Sink::default() };
        let ticket = Ticket::new(Id::from(1), Method::ToolsCall, sink);
        let params = Json::trusted(r#"{"progressToken":"x","progress": 1.0}"#);
        ticket.progressed(&Object::of(&params).unwrap());
        let Some(Notice::Progress(params)) = outbox.try_next() else { panic!() };
        assert_eq!(params.as_str(), r#"{"progressToken":7,"progress": 1.0}"#);
        assert!(ticket.alive().is_some());
    }
}

//! What happens, said once: one record for each call, one type for each other thing, handed to recorders.
//!
//! Whoever notices something [emits](emit) it and knows nothing of who wants to hear it. A [`Recorder`] makes of it what it
//! is for: the [log](LogRecorder) is the first one and always there, statistics are another. An event that nobody wants
//! costs one load.
//!
//! ```
//! use std::sync::Arc;
//! use tidegate_service::events::{self, Event, Kind, Recorder};
//!
//! struct Slow;
//!
//! impl Recorder for Slow {
//!     fn wants(&self, kind: Kind) -> bool {
//!         kind == Kind::CallEnded
//!     }
//!
//!     fn record(&self, event: &Event<'_>) {
//!         if let Event::CallEnded(call) = event && call.duration.as_secs() > 10 {
//!             eprintln!("{} took {:?}", call.method, call.duration);
//!         }
//!     }
//! }
//!
//! events::add(Arc::new(Slow));
//! ```

mod access_line;
mod call;
mod kinds;
mod log;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};

use arc_swap::ArcSwap;

pub use access_line::AccessLine;
pub(crate) use call::Observing;
pub use call::{CallEnded, Outcome};
pub use kinds::{
    AlertChanged, CallAbandoned, CallFailed, CallRetried, CallTimedOut, CallWaited, CircuitChanged,
    EraChanged, HandlerFailed, HandlerPanicked, HostRefused, LoginRefused, LoginsRefused, OfferHidden,
    Operated, PolicyChanged, RequestFailed, ResultTooLarge, ServerCallEnded, ServerConnected, ServerLeft,
    ServerPlace, ServerStateChanged, ServersReady, SessionEnded, SessionExpired, SpanEnded, StatisticsDue,
    ToolFailed,
};
pub use log::{AccessLog, LogRecorder, write_access_log_with};

/// Something that happened.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
#[allow(missing_docs)] // the types say what they are
pub enum Event<'a> {
    CallEnded(&'a CallEnded<'a>),
    CallFailed(CallFailed<'a>),
    CallTimedOut(CallTimedOut<'a>),
    CallRetried(CallRetried<'a>),
    ResultTooLarge(ResultTooLarge),
    HandlerPanicked(HandlerPanicked<'a>),
    ToolFailed(ToolFailed<'a>),
    HandlerFailed(HandlerFailed<'a>),
    CallAbandoned(CallAbandoned<'a>),
    CircuitChanged(CircuitChanged<'a>),
    ServerConnected(ServerConnected<'a>),
    ServerStateChanged(ServerStateChanged<'a>),
    ServerLeft(ServerLeft<'a>),
    SessionExpired(SessionExpired<'a>),
    SessionEnded(SessionEnded<'a>),
    EraChanged(EraChanged<'a>),
    ServersReady(ServersReady<'a>),
    StatisticsDue(StatisticsDue<'a>),
    LoginRefused(LoginRefused<'a>),
    LoginsRefused(LoginsRefused<'a>),
    HostRefused(HostRefused<'a>),
    PolicyChanged(PolicyChanged<'a>),
    AlertChanged(AlertChanged<'a>),
    ServerCallEnded(ServerCallEnded<'a>),
    SpanEnded(SpanEnded<'a>),
    CallWaited(CallWaited),
    OfferHidden(OfferHidden<'a>),
    RequestFailed(RequestFailed<'a>),
    Operated(Operated<'a>),
}

/// Of what kind an event is, for recorders that want only some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)] // named like the events
pub enum Kind {
    CallEnded,
    CallFailed,
    CallTimedOut,
    CallRetried,
    ResultTooLarge,
    HandlerPanicked,
    ToolFailed,
    HandlerFailed,
    CallAbandoned,
    CircuitChanged,
    ServerConnected,
    ServerStateChanged,
    ServerLeft,
    SessionExpired,
    SessionEnded,
    EraChanged,
    ServersReady,
    StatisticsDue,
    LoginRefused,
    LoginsRefused,
    HostRefused,
    PolicyChanged,
    AlertChanged,
    ServerCallEnded,
    SpanEnded,
    CallWaited,
    OfferHidden,
    RequestFailed,
    Operated,
}

impl Kind {
    const ALL: [Kind; 29] = [
        Kind::CallEnded,
        Kind::CallFailed,
        Kind::CallTimedOut,
        Kind::CallRetried,
        Kind::ResultTooLarge,
        Kind::HandlerPanicked,
        Kind::ToolFailed,
        Kind::HandlerFailed,
        Kind::CallAbandoned,
        Kind::CircuitChanged,
        Kind::ServerConnected,
        Kind::ServerStateChanged,
        Kind::ServerLeft,
        Kind::SessionExpired,
        Kind::SessionEnded,
        Kind::EraChanged,
        Kind::ServersReady,
        Kind::StatisticsDue,
        Kind::LoginRefused,
        Kind::LoginsRefused,
        Kind::HostRefused,
        Kind::PolicyChanged,
        Kind::AlertChanged,
        Kind::ServerCallEnded,
        Kind::SpanEnded,
        Kind::CallWaited,
        Kind::OfferHidden,
        Kind::RequestFailed,
        Kind::Operated,
    ];

    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

impl Event<'_> {
    /// Of what kind it is.
    pub fn kind(&self) -> Kind {
        match self {
            Event::CallEnded(_) => Kind::CallEnded,
            Event::CallFailed(_) => Kind::CallFailed,
            Event::CallTimedOut(_) => Kind::CallTimedOut,
            Event::CallRetried(_) => Kind::CallRetried,
            Event::ResultTooLarge(_) => Kind::ResultTooLarge,
            Event::HandlerPanicked(_) => Kind::HandlerPanicked,
            Event::ToolFailed(_) => Kind::ToolFailed,
            Event::HandlerFailed(_) => Kind::HandlerFailed,
            Event::CallAbandoned(_) => Kind::CallAbandoned,
            Event::CircuitChanged(_) => Kind::CircuitChanged,
            Event::ServerConnected(_) => Kind::ServerConnected,
            Event::ServerStateChanged(_) => Kind::ServerStateChanged,
            Event::ServerLeft(_) => Kind::ServerLeft,
            Event::SessionExpired(_) => Kind::SessionExpired,
            Event::SessionEnded(_) => Kind::SessionEnded,
            Event::EraChanged(_) => Kind::EraChanged,
            Event::ServersReady(_) => Kind::ServersReady,
            Event::StatisticsDue(_) => Kind::StatisticsDue,
            Event::LoginRefused(_) => Kind::LoginRefused,
            Event::LoginsRefused(_) => Kind::LoginsRefused,
            Event::HostRefused(_) => Kind::HostRefused,
            Event::PolicyChanged(_) => Kind::PolicyChanged,
            Event::AlertChanged(_) => Kind::AlertChanged,
            Event::ServerCallEnded(_) => Kind::ServerCallEnded,
            Event::SpanEnded(_) => Kind::SpanEnded,
            Event::CallWaited(_) => Kind::CallWaited,
            Event::OfferHidden(_) => Kind::OfferHidden,
            Event::RequestFailed(_) => Kind::RequestFailed,
            Event::Operated(_) => Kind::Operated,
        }
    }
}

/// Makes something of what happens. It is called where things happen, so it must not wait: what takes long goes into a
/// bounded queue.
pub trait Recorder: Send + Sync {
    /// Whether events of this kind are of any interest. If the answer changes, call [`refresh`].
    fn wants(&self, kind: Kind) -> bool;

    /// Takes an event.
    fn record(&self, event: &Event<'_>);

    /// Whether each call is to have a [`Journal`](crate::Journal), in which this recorder notes what happens to it.
    fn keeps_journals(&self) -> bool {
        false
    }
}

/// What any recorder wants, a bit for each kind. Everything at first: the log decides by itself.
static WANTED: AtomicU32 = AtomicU32::new(u32::MAX);

/// Whether any recorder keeps journals.
static JOURNALS: AtomicBool = AtomicBool::new(false);

/// The recorders besides the log. Read without a lock: there is an event for each call.
static RECORDERS: LazyLock<ArcSwap<Vec<Registered>>> = LazyLock::new(ArcSwap::default);

#[derive(Clone)]
struct Registered {
    recorder: Arc<dyn Recorder>,
    /// What it wants, a bit for each kind.
    wanted: u32,
}

impl Registered {
    fn new(recorder: Arc<dyn Recorder>) -> Registered {
        Registered { wanted: wanted(&*recorder), recorder }
    }
}

fn wanted(recorder: &dyn Recorder) -> u32 {
    Kind::ALL.iter().filter(|kind| recorder.wants(**kind)).fold(0, |bits, kind| bits | kind.bit())
}

/// Adds a recorder to those of this process, until it is [removed](remove).
pub fn add(recorder: Arc<dyn Recorder>) {
    let added = [Registered::new(recorder)];
    RECORDERS.rcu(|all| [&all[..], &added].concat());
    refresh();
}

/// Takes a recorder away again.
pub fn remove(recorder: &Arc<dyn Recorder>) {
    let is_other = |other: &&Registered| !Arc::ptr_eq(&other.recorder, recorder);
    RECORDERS.rcu(|all| all.iter().filter(is_other).cloned().collect::<Vec<_>>());
    refresh();
}

/// Asks all recorders again what they want, because that has changed: the log level, for one.
pub fn refresh() {
    RECORDERS
        .rcu(|all| all.iter().map(|one| Registered::new(one.recorder.clone())).collect::<Vec<Registered>>());
    let recorders = RECORDERS.load();
    let all = recorders.iter().fold(wanted(&LogRecorder), |bits, one| bits | one.wanted);
    WANTED.store(all, Ordering::Relaxed);
    JOURNALS.store(recorders.iter().any(|one| one.recorder.keeps_journals()), Ordering::Relaxed);
}

/// Whether calls have journals.
pub(crate) fn keeps_journals() -> bool {
    JOURNALS.load(Ordering::Relaxed)
}

/// Whether anybody wants events of this kind. Who would have to prepare one asks first.
pub fn is_wanted(kind: Kind) -> bool {
    WANTED.load(Ordering::Relaxed) & kind.bit() != 0
}

/// Hands an event to everybody who wants it.
pub fn emit(event: &Event<'_>) {
    let kind = event.kind();
    if !is_wanted(kind) {
        return;
    }
    LogRecorder.record(event);
    for one in RECORDERS.load().iter().filter(|one| one.wanted & kind.bit() != 0) {
        one.recorder.record(event);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    struct Notes(Mutex<Vec<Kind>>);

    impl Recorder for Notes {
        fn wants(&self, kind: Kind) -> bool {
            kind != Kind::ToolFailed
        }

        fn record(&self, event: &Event<'_>) {
            self.0.lock().unwrap().push(event.kind());
        }
    }

    #[test]
    fn recorders_get_what_they_want_while_they_are_there() {
        let notes = Arc::new(Notes(Mutex::default()));
        let recorder: Arc<dyn Recorder> = notes.clone();
        let large = Event::ResultTooLarge(ResultTooLarge { size: 987_654_321, limit: 1 });
        add(recorder.clone());
        emit(&large);
        emit(&Event::ToolFailed(ToolFailed { tool: "t", error: "e" }));
        remove(&recorder);
        emit(&large);
        let noted = notes.0.lock().unwrap();
        assert_eq!(noted.iter().filter(|kind| **kind == Kind::ResultTooLarge).count(), 1);
        assert!(!noted.contains(&Kind::ToolFailed));
    }

    #[test]
    fn each_kind_has_a_bit_of_its_own() {
        let all = Kind::ALL.iter().fold(0, |bits, kind| bits | kind.bit());
        assert_eq!(all.count_ones() as usize, Kind::ALL.len());
    }
}

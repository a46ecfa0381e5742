//! Connections that only take up room are ended: those that never finish a request's headers, and those on which nothing
//! has happened for long.
//!
//! hyper can do some of that with a timer for each request, which costs as much as a good part of a small call. Here each
//! connection keeps a pulse, and one task looks at all of them now and then.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::Instant;

/// What a connection is doing, in a few counters.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    /// Bytes read so far.
    read: AtomicU64,
    /// Bytes that had been read when the last request was answered.
    answered_at: AtomicU64,
    /// Requests that are being answered.
    open: AtomicU32,
    /// Something of an answer is still to be written.
    writing: AtomicBool,
    /// What is being answered is a stream that waits for nothing in particular.
    quiet: AtomicBool,
    /// Whether it is served already: one over TLS shakes hands first.
    served: AtomicBool,
    /// Whether it was told that all connections are to end.
    told: AtomicBool,
    /// Whether something has come that was not read, once it was told.
    unread: AtomicBool,
    /// Whether it ends with the request that it is in.
    ending: AtomicBool,
}

/// What a connection is doing, as far as its end depends on it. Each names where in the stream it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// A request is being answered, or an answer is being sent.
    Busy,
    /// A request is not whole yet. The beginning counts as well: a client that connects and says nothing holds a place.
    Head(u64),
    /// Between requests.
    Idle(u64),
    /// Reading a stream that its client can come back to.
    Quiet,
}

impl Pulse {
    pub(super) fn read(&self, bytes: usize) {
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Something is being written, or everything is.
    pub(super) fn writing(&self, writing: bool) {
        self.writing.store(writing, Ordering::Relaxed);
    }

    /// From now on it is served.
    pub(super) fn is_served(&self) {
        self.served.store(true, Ordering::Relaxed);
    }

    /// It was told that all connections are to end.
    pub(super) fn is_told(&self) {
        self.told.store(true, Ordering::Relaxed);
    }

    /// Whether it was.
    pub(super) fn is_to_end(&self) -> bool {
        self.told.load(Ordering::Relaxed)
    }

    /// Whether something has come that was not read.
    pub(super) fn leaves_unread(&self, unread: bool) {
        self.unread.store(unread, Ordering::Relaxed);
    }

    pub(super) fn has_unread(&self) -> bool {
        self.unread.load(Ordering::Relaxed)
    }

    /// It ends with the request that it is in, if it is in one.
    pub(super) fn is_ending(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    /// Whether something may have come that is still to be answered before the end.
    fn may_have_more(&self) -> bool {
        let is_served = self.served.load(Ordering::Relaxed);
        is_served && (self.has_unread() || !self.ending.load(Ordering::Relaxed))
    }

    fn phase(&self) -> Phase {
        if self.open.load(Ordering::Relaxed) > 0 || self.writing.load(Ordering::Relaxed) {
            return if self.quiet.load(Ordering::Relaxed) { Phase::Quiet } else { Phase::Busy };
        }
        let answered_at = self.answered_at.load(Ordering::Relaxed);
        match answered_at > 0 && self.read.load(Ordering::Relaxed) == answered_at {
            true => Phase::Idle(answered_at),
            false => Phase::Head(answered_at),
        }
    }
}

/// A request whose headers have come: under way until this is dropped, with the last of its answer.
pub(super) struct UnderWay(Arc<Pulse>);

impl UnderWay {
    pub(super) fn new(pulse: &Arc<Pulse>) -> UnderWay {
        pulse.open.fetch_add(1, Ordering::Relaxed);
        UnderWay(pulse.clone())
    }
}

impl UnderWay {
    /// Whether there is none after it on its connection.
    pub(super) fn is_last(&self) -> bool {
        self.0.is_to_end()
    }

    /// The answer is a stream that waits for nothing in particular.
    pub(super) fn is_quiet(&self) {
        self.0.quiet.store(true, Ordering::Relaxed);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let pulse = &self.0;
        pulse.quiet.store(false, Ordering::Relaxed);
        pulse.answered_at.store(pulse.read.load(Ordering::Relaxed), Ordering::Relaxed);
        pulse.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How long a connection may do nothing of use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// For the headers of a request.
    pub(super) head: Duration,
    /// Between requests.
    pub(super) idle: Duration,
}

/// A connection that has not finished its first headers is left alone for this long, even if another waits for its place.
const GRACE: Duration = Duration::from_secs(1);

/// Looks after the connections of one listener.
pub(super) struct Watch {
    connections: Arc<Mutex<Vec<Watched>>>,
    grace: Duration,
}

struct Watched {
    pulse: Weak<Pulse>,
    task: AbortHandle,
    phase: Phase,
    /// When that phase was first seen.
    since: Instant,
}

impl Watched {
    /// What the connection does by now, unless it is gone.
    fn look(&mut self, now: Instant) -> Option<Phase> {
        let phase = self.pulse.upgrade()?.phase();
        if phase != self.phase {
            (self.phase, self.since) = (phase, now);
        }
        Some(phase)
    }
}

impl Watch {
    /// Ends the connections that try anybody's patience.
    pub(super) fn start(patience: Patience) -> Watch {
        let connections = Arc::new(Mutex::new(Vec::new()));
        let weak = Arc::downgrade(&connections);
        let shortest = patience.head.min(patience.idle);
        let pause = (shortest / 4).clamp(Duration::from_millis(10), Duration::from_secs(1));
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(pause).await;
                let Some(connections) = weak.upgrade() else { break };
                look(&connections, patience);
            }
        });
        Watch { connections, grace: GRACE.min(patience.head) }
    }

    fn connections(&self) -> MutexGuard<'_, Vec<Watched>> {
        lock(&self.connections)
    }

    pub(super) fn add(&self, pulse: &Arc<Pulse>, task: AbortHandle) {
        let since = Instant::now();
        let watched = Watched { pulse: Arc::downgrade(pulse), task, phase: Phase::Head(0), since };
        self.connections().push(watched);
    }

    /// Ends the connection that has been idle for longest, else the one that has taken longest over its headers, else the
    /// oldest stream that waits for nothing in particular, so that another can have its place. Those that are in a request
    /// are let be.
    pub(super) fn make_room(&self) {
        let now = Instant::now();
        let mut connections = self.connections();
        connections.retain_mut(|watched| watched.look(now).is_some());
        let idlest = connections
            .iter()
            .enumerate()
            .filter_map(|(at, watched)| match watched.phase {
                Phase::Idle(_) => Some((0, watched.since, at)),
                Phase::Head(_) if now.duration_since(watched.since) >= self.grace => {
                    Some((1, watched.since, at))
                }
                Phase::Quiet if now.duration_since(watched.since) >= self.grace => {
                    Some((2, watched.since, at))
                }
                Phase::Head(_) | Phase::Quiet | Phase::Busy => None,
            })
            .min();
        if let Some((_, _, at)) = idlest {
            tracing::debug!("closing an idle connection to make room for another");
            connections.swap_remove(at).task.abort();
        }
    }

    /// Whether any connection is in a request, or still sends an answer, or has not looked whether there is one more. To be asked at the
    /// end, when all are told.
    pub(super) fn is_busy(&self) -> bool {
        let is_busy = |pulse: Arc<Pulse>| pulse.phase() == Phase::Busy || pulse.may_have_more();
        let busy = |watched: &Watched| watched.pulse.upgrade().is_some_and(is_busy);
        self.connections().iter().any(busy)
    }
}

fn lock(connections: &Mutex<Vec<Watched>>) -> MutexGuard<'_, Vec<Watched>> {
    connections.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Ends those that have done the same useless thing for too long, and forgets those that are gone.
fn look(connections: &Mutex<Vec<Watched>>, patience: Patience) {
    let now = Instant::now();
    lock(connections).retain_mut(|watched| {
        let Some(phase) = watched.look(now) else { return false };
        let lasts = now.duration_since(watched.since);
        let over = match phase {
            Phase::Busy | Phase::Quiet => false,
            Phase::Head(_) => lasts >= patience.head,
            Phase::Idle(_) => lasts >= patience.idle,
        };
        if over {
            tracing::debug!(?phase, ?lasts, "closing an inactive connection");
            watched.task.abort();
        }
        !over
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience { head: Duration::from_secs(30), idle: Duration::from_secs(75) };

    #[test]
    fn what_a_connection_is_doing() {
        let pulse = Arc::new(Pulse::default());
        assert_eq!(pulse.phase(), Phase::Head(0), "it has said nothing yet");
        pulse.read(10);
        assert_eq!(pulse.phase(), Phase::Head(0), "half a header");
        let request = UnderWay::new(&pulse);
        pulse.read(90);
        assert_eq!(pulse.phase(), Phase::Busy, "being answered, however long the body or the answer takes");
        pulse.writing(true);
        drop(request);
        assert_eq!(pulse.phase(), Phase::Busy, "the answer is not out yet");
        pulse.writing(false);
        assert_eq!(pulse.phase(), Phase::Idle(100), "kept alive, between requests");
        pulse.read(1);
        assert_eq!(pulse.phase(), Phase::Head(100), "the next one has begun");
    }

    fn forever() -> tokio::task::JoinHandle<()> {
        tokio::spawn(std::future::pending())
    }

    fn silent() -> Arc<Pulse> {
        Arc::default()
    }

    fn idle() -> Arc<Pulse> {
        let pulse = silent();
        pulse.read(5);
        drop(UnderWay::new(&pulse));
        pulse
    }

    #[tokio::test(start_paused = true)]
    async fn each_phase_has_its_time() {
        let watch = Watch::start(PATIENCE);
        let (silent, idle, busy) = (silent(), idle(), idle());
        let _request = UnderWay::new(&busy);
        let tasks = [&silent, &idle, &busy].map(|pulse| {
            let task = forever();
            watch.add(pulse, task.abort_handle());
            task
        });
        let ended = || tasks.each_ref().map(|task| task.is_finished());
        tokio::time::sleep(Duration::from_secs(29)).await;
        assert_eq!(ended(), [false, false, false]);
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert_eq!(ended(), [true, false, false]);
        tokio::time::sleep(Duration::from_secs(50)).await;
        assert_eq!(ended(), [true, true, false]);
        tokio::time::sleep(Duration::from_secs(1000)).await;
        assert_eq!(ended(), [true, true, false]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_idlest_makes_room() {
        let watch = Watch::start(PATIENCE);
        let (busy, silent, idler, idle) = (idle(), silent(), idle(), idle());
        let _request = UnderWay::new(&busy);
        let mut tasks = Vec::new();
        for pulse in [&busy, &silent, &idler, &idle] {
            let task = forever();
            watch.add(pulse, task.abort_handle());
            tasks.push(task);
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        let mut order = Vec::new();
        for _ in 0..4 {
            watch.make_room();
            tokio::task::yield_now().await;
            order.push(tasks.iter().map(|task| task.is_finished() as u8).collect::<Vec<_>>());
        }
        assert_eq!(order, [[0, 0, 1, 0], [0, 0, 1, 1], [0, 1, 1, 1], [0, 1, 1, 1]], "never the busy one");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_has_just_come_is_let_be() {
        let watch = Watch::start(PATIENCE);
        let (new, task) = (silent(), forever());
        watch.add(&new, task.abort_handle());
        watch.make_room();
        tokio::task::yield_now().await;
        assert!(!task.is_finished());
        task.abort();
    }
}

//! [`Outbox`]: the bounded queue of notifications between a running call (or subscription) and the edge.
//!
//! Pushing never waits. When the reader is slow, progress coalesces to the latest, list changes and updates collapse,
//! and log messages are dropped with a count; replies do not go through here and never drop.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Instant;

use bytestring::ByteString;
use futures_util::task::AtomicWaker;
use tidegate_protocol::json::{ObjectWriter, write_str};
use tidegate_protocol::{Json, Level, Object, meta};

/// One notification on its way to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// `notifications/progress`, with its parameters.
    Progress(Json),
    /// `notifications/message`, with its parameters.
    Log(Json),
    /// `notifications/tools/list_changed`.
    ToolsChanged,
    /// `notifications/prompts/list_changed`.
    PromptsChanged,
    /// `notifications/resources/list_changed`.
    ResourcesChanged,
    /// `notifications/resources/updated`.
    ResourceUpdated(ByteString),
    /// `notifications/tasks` (SEP-2663), with the task object.
    Task {
        /// The task.
        id: ByteString,
        /// Its state.
        task: Json,
    },
    /// A notification that nobody here knows, on its way from a server to whom it concerns.
    Other {
        /// Its name.
        method: ByteString,
        /// Its parameters as they came; `None` if there are none.
        params: Option<Json>,
    },
    /// Not on the wire: asks the edge to close the connection while the call runs on, where the client can come
    /// back for the rest (2025-11-25, SEP-1699). Elsewhere it means nothing.
    CloseStream,
}

impl Notice {
    /// The method on the wire.
    pub fn method(&self) -> &str {
        match self {
            Notice::Progress(_) => "notifications/progress",
            Notice::Log(_) => "notifications/message",
            Notice::ToolsChanged => "notifications/tools/list_changed",
            Notice::PromptsChanged => "notifications/prompts/list_changed",
            Notice::ResourcesChanged => "notifications/resources/list_changed",
            Notice::ResourceUpdated(_) => "notifications/resources/updated",
            Notice::Task { .. } => "notifications/tasks",
            Notice::Other { method, .. } => method,
            Notice::CloseStream => "",
        }
    }

    /// Appends the whole notification. On a modern subscription each carries the subscription's id.
    pub fn write(&self, out: &mut Vec<u8>, subscription: Option<&Json>) {
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":");
        write_str(out, self.method());
        let params = self.params(subscription);
        if let Some(params) = params {
            out.extend_from_slice(b",\"params\":");
            out.extend_from_slice(params.as_str().as_bytes());
        }
        out.push(b'}');
    }

    fn params(&self, subscription: Option<&Json>) -> Option<Json> {
        let own = match self {
            Notice::Progress(params) | Notice::Log(params) | Notice::Task { task: params, .. } => {
                Some(params.clone())
            }
            Notice::Other { params, .. } => params.clone(),
            Notice::ResourceUpdated(uri) => {
                let mut w = ObjectWriter::new();
                w.str("uri", uri);
                Some(w.finish())
            }
            _ => None,
        };
        let Some(id) = subscription else { return own };
        let own = own.and_then(|own| Object::of(&own)).unwrap_or_else(Object::empty);
        let tag = own.object("_meta").unwrap_or_else(Object::empty).with(meta::SUBSCRIPTION_ID, id);
        Some(own.with("_meta", &tag))
    }

    /// How much of it others wrote, at whatever length they liked.
    fn bytes(&self) -> usize {
        match self {
            Notice::Progress(params) | Notice::Log(params) | Notice::Task { task: params, .. } => {
                params.len()
            }
            Notice::Other { params: Some(params), .. } => params.len(),
            _ => 0,
        }
    }

    /// Whether it may be dropped for lack of room: nobody decides anything by it.
    fn is_chatter(&self) -> bool {
        matches!(self, Notice::Log(_) | Notice::Other { .. })
    }

    /// Whether a waiting `other` says nothing that this one does not.
    fn replaces(&self, other: &Notice) -> bool {
        match (self, other) {
            (Notice::Task { id: a, .. }, Notice::Task { id: b, .. }) => a == b,
            (Notice::Progress(_) | Notice::Log(_) | Notice::Other { .. }, _) => false,
            _ => self == other,
        }
    }
}

/// How many bytes of notifications may wait, whatever their number.
const MAX_BYTES: usize = 256 * 1024;

/// A bounded queue of notifications. Clones are handles on the same queue; there is one reader.
#[derive(Clone)]
pub struct Outbox(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    reader: AtomicWaker,
    capacity: usize,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Notice>,
    /// How much of what others wrote waits.
    bytes: usize,
    dropped: u64,
    closed: bool,
    /// Whether something was queued because nobody knows better.
    missed: bool,
    /// When progress was last told.
    progressed: Option<Instant>,
}

impl State {
    fn is_full(&self, capacity: usize, more: usize) -> bool {
        self.queue.len() >= capacity || (self.bytes > 0 && self.bytes + more > MAX_BYTES)
    }

    fn remove(&mut self, at: usize) -> Option<Notice> {
        let notice = self.queue.remove(at)?;
        self.bytes -= notice.bytes();
        Some(notice)
    }
}

impl Default for Outbox {
    fn default() -> Self {
        Self::new(256)
    }
}

impl Outbox {
    /// A queue for at most `capacity` notifications.
    pub fn new(capacity: usize) -> Outbox {
        Outbox(Arc::new(Shared {
            state: Mutex::default(),
            reader: AtomicWaker::new(),
            capacity: capacity.max(4),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic cannot happen while the lock is held; should it, the queue is still whole.
        self.0.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Queues a notification. Never waits; returns whether it was taken.
    pub fn push(&self, notice: Notice) -> bool {
        {
            let mut state = self.state();
            if let Notice::Progress(_) = notice {
                state.progressed = Some(Instant::now());
            }
            if state.closed {
                return false;
            }
            while let Some(at) = state.queue.iter().position(|waiting| notice.replaces(waiting)) {
                state.remove(at);
            }
            let bytes = notice.bytes();
            while state.is_full(self.0.capacity, bytes) {
                let before = state.queue.len();
                if !make_room(&mut state, &notice) {
                    return false;
                }
                if state.queue.len() == before {
                    break;
                }
            }
            state.bytes += bytes;
            state.queue.push_back(notice);
        }
        self.0.reader.wake();
        true
    }

    /// Queues what may have happened while nobody listened. Whoever wants to know that nobody has said so asks
    /// [`Outbox::take_missed`].
    pub fn push_missed(&self, notices: impl IntoIterator<Item = Notice>) {
        for notice in notices {
            self.state().missed = true;
            self.push(notice);
        }
    }

    /// Whether, since this was last asked, something came that may have happened while nobody listened.
    pub fn take_missed(&self) -> bool {
        std::mem::take(&mut self.state().missed)
    }

    /// When progress was last told, whether or not anybody has read it.
    pub fn progressed(&self) -> Option<Instant> {
        self.state().progressed
    }

    /// No more notifications; what waits is still delivered.
    pub fn close(&self) {
        self.state().closed = true;
        self.0.reader.wake();
    }

    /// Whether the queue was closed.
    pub fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// Whether nobody else holds this queue, so that nobody will ever read it.
    pub fn is_abandoned(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Takes the next notification if one waits.
    pub fn try_next(&self) -> Option<Notice> {
        let mut state = self.state();
        if state.dropped > 0 && state.queue.is_empty() {
            let dropped = std::mem::take(&mut state.dropped);
            return Some(dropped_notice(dropped));
        }
        state.remove(0)
    }

    /// Waits for the next notification; `None` once closed and empty.
    pub fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<Notice>> {
        if let Some(notice) = self.try_next() {
            return Poll::Ready(Some(notice));
        }
        self.0.reader.register(cx.waker());
        match self.try_next() {
            Some(notice) => Poll::Ready(Some(notice)),
            None if self.is_closed() => Poll::Ready(None),
            None => Poll::Pending,
        }
    }

    /// Waits for the next notification; `None` once closed and empty.
    pub async fn next(&self) -> Option<Notice> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }
}

impl std::fmt::Debug for Outbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.state();
        write!(f, "Outbox({} waiting, {} dropped)", state.queue.len(), state.dropped)
    }
}

/// Makes room in a full queue for `notice`, by what matters least.
fn make_room(state: &mut State, notice: &Notice) -> bool {
    let oldest = |state: &State, wanted: fn(&Notice) -> bool| state.queue.iter().position(wanted);
    if let Notice::Progress(_) = notice
        && let Some(at) = oldest(state, |n| matches!(n, Notice::Progress(_)))
    {
        state.remove(at);
        return true;
    }
    if let Some(at) = oldest(state, Notice::is_chatter) {
        state.remove(at);
        state.dropped += 1;
        return true;
    }
    if let Some(at) = oldest(state, |n| matches!(n, Notice::Progress(_))) {
        state.remove(at);
        return true;
    }
    if notice.is_chatter() {
        state.dropped += 1;
        return false;
    }
    // Only changes are left. They collapse, so there are never more of them than the client has asked for, and losing
    // one would be silent.
    true
}

fn dropped_notice(count: u64) -> Notice {
    let mut w = ObjectWriter::new();
    w.str("level", Level::Warning.as_str())
        .str("logger", "tidegate")
        .str("data", &format!("{count} log messages were dropped because the client reads too slowly"));
    Notice::Log(w.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(n: u32) -> Notice {
        Notice::Log(Json::trusted(format!("{{\"data\":{n}}}")))
    }

    fn progress(n: u32) -> Notice {
        Notice::Progress(Json::trusted(format!("{{\"progress\":{n}}}")))
    }

    #[test]
    fn changes_collapse_and_nothing_else_does() {
        let outbox = Outbox::new(8);
        for notice in [Notice::ToolsChanged, progress(1), Notice::ToolsChanged, progress(2)] {
            outbox.push(notice);
        }
        let got: Vec<_> = std::iter::from_fn(|| outbox.try_next()).collect();
        assert_eq!(got, [progress(1), Notice::ToolsChanged, progress(2)]);
    }

    #[test]
    fn a_full_queue_keeps_the_latest_progress_and_counts_lost_logs() {
        let outbox = Outbox::new(4);
        for n in 0..10 {
            outbox.push(progress(n));
        }
        assert_eq!(outbox.try_next(), Some(progress(6)));
        let outbox = Outbox::new(4);
        for n in 0..10 {
            outbox.push(log(n));
        }
        let got: Vec<_> = std::iter::from_fn(|| outbox.try_next()).collect();
        assert_eq!(got.len(), 5);
        assert!(matches!(&got[4], Notice::Log(l) if l.as_str().contains("6 log messages were dropped")));
    }

    #[test]
    fn long_ones_give_way_sooner() {
        let long = |n: u32| {
            Notice::Progress(Json::trusted(format!(
                r#"{{"progress":{n},"message":"{}"}}"#,
                "x".repeat(20_000)
            )))
        };
        let outbox = Outbox::new(256);
        (0..100).for_each(|n| _ = outbox.push(long(n)));
        let got: Vec<_> = std::iter::from_fn(|| outbox.try_next()).collect();
        assert!(got.len() <= 13 && got.last() == Some(&long(99)), "{}", got.len());
        (0..300).for_each(|n| _ = outbox.push(progress(n)));
        assert_eq!(std::iter::from_fn(|| outbox.try_next()).count(), 256, "what was taken makes room");
    }

    #[test]
    fn changes_are_never_lost() {
        let outbox = Outbox::new(4);
        outbox.push(log(1));
        outbox.push(Notice::ToolsChanged);
        for n in [0, 1, 2, 3, 4, 0] {
            outbox.push(Notice::ResourceUpdated(format!("r:{n}").into()));
        }
        let got: Vec<_> = std::iter::from_fn(|| outbox.try_next()).collect();
        let updated = |n: u32| Notice::ResourceUpdated(format!("r:{n}").into());
        assert_eq!(
            got[..6],
            [Notice::ToolsChanged, updated(1), updated(2), updated(3), updated(4), updated(0)]
        );
        assert!(matches!(&got[6..], [Notice::Log(_)]), "the lost log message is counted");
    }

    #[test]
    fn what_nobody_knows_passes_untouched_and_gives_way_like_logs() {
        let other = |n: u32| Notice::Other {
            method: "notifications/vendor".into(),
            params: Some(Json::trusted(format!(r#"{{ "n": {n}.0,"_meta":{{"k":1}}}}"#))),
        };
        let written = |notice: &Notice, subscription: Option<&Json>| {
            let mut out = Vec::new();
            notice.write(&mut out, subscription);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            written(&other(1), None),
            r#"{"jsonrpc":"2.0","method":"notifications/vendor","params":{ "n": 1.0,"_meta":{"k":1}}}"#
        );
        let tagged = written(&other(1), Some(&Json::trusted("7")));
        assert!(
            tagged.contains(r#""k":1"#) && tagged.contains(r#""io.modelcontextprotocol/subscriptionId":7"#)
        );
        let bare = Notice::Other { method: "notifications/vendor".into(), params: None };
        assert_eq!(written(&bare, None), r#"{"jsonrpc":"2.0","method":"notifications/vendor"}"#);
        let outbox = Outbox::new(4);
        outbox.push(Notice::ToolsChanged);
        (0..9).for_each(|n| _ = outbox.push(other(n % 2)));
        let got: Vec<_> = std::iter::from_fn(|| outbox.try_next()).collect();
        assert_eq!(got[..4], [Notice::ToolsChanged, other(0), other(1), other(0)]);
        assert!(matches!(&got[4..], [Notice::Log(_)]), "what was lost is counted");
    }

    #[test]
    fn subscription_notices_carry_their_id() {
        let mut out = Vec::new();
        Notice::ResourceUpdated("a:b".into()).write(&mut out, Some(&Json::trusted("\"s\"")));
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b","_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}}"#
        );
    }
}

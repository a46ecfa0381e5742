//! The latest log lines, for whoever asks a running gateway: [`recent`](super::recent) and [`follow`](super::follow).
//!
//! Whoever logs copies a few hundred bytes and goes on; JSON is made of them when somebody asks. They are all that there is: followers
//! have no queues of their own, but a place in these lines, and one that is too slow is told how many it has missed.

mod ring;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{cell::RefCell, collections::VecDeque, fmt};

use serde_json::{Map, Value};
use tidegate_protocol::Json;
use tokio::sync::Notify;
use tracing::{Event, Level};

use super::access::AccessFields;
use super::lines::Around;
use super::{json, terminal};
use ring::{Raw, Ring};

/// How many bytes of lines are usually kept.
pub const RECENT_BYTES: usize = 1 << 20;
/// How long a line is at most, in bytes. Of a longer one, texts are cut.
const LONGEST_LINE: usize = 16 << 10;
/// How much is left of a text in a line that is too long, in bytes.
const LONGEST_TEXT: u16 = 1 << 10;
/// How many bytes are copied at a time: whoever logs meanwhile waits for that.
const AT_ONCE: usize = 64 << 10;

/// A log line: masked, harmless, and one JSON object.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LogLine {
    /// Its number in this process, from 1. The next line has the next number.
    pub number: u64,
    /// When it was logged, in milliseconds since 1970.
    pub time_ms: u64,
    /// How important it is.
    pub level: Level,
    /// Which part of the program it is from, as filters name it.
    pub target: &'static str,
    /// The line as the format `json` has it: `timestamp`, `level`, `target`, `message`, `correlationId`, and so on.
    pub json: Json,
}

impl LogLine {
    fn of(raw: &Raw) -> LogLine {
        let json = match raw.about {
            Some(_) => Json::trusted(String::from_utf8_lossy(&raw.bytes).into_owned()),
            None => AccessFields::unpack(&raw.bytes).json(raw.time_ms),
        };
        let (level, target) =
            raw.about.map_or((Level::INFO, terminal::ACCESS), |about| (*about.level(), about.target()));
        LogLine { number: raw.number, time_ms: raw.time_ms, level, target, json }
    }
}

/// The latest lines. Clones are handles on the same.
#[derive(Clone)]
pub(super) struct Recent(Arc<Shared>);

struct Shared {
    ring: Mutex<Ring>,
    /// Tells followers that there are more.
    more: Notify,
    /// How many there are.
    followers: AtomicUsize,
}

thread_local! {
    /// Where a call is packed.
    static PACKED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Recent {
    pub(super) fn new(bytes: usize) -> Recent {
        let ring = Mutex::new(Ring::new(bytes));
        Recent(Arc::new(Shared { ring, more: Notify::new(), followers: AtomicUsize::new(0) }))
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.0.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the line about an event.
    pub(super) fn keep(&self, event: &Event<'_>, around: &[Around]) {
        let members = json::members(event, around);
        let text = match json::text(members.clone()) {
            text if text.len() > LONGEST_LINE => shortened(members),
            text => text,
        };
        let now = tidegate_service::epoch_ms();
        self.ring().push(now, Some(event.metadata()), text.as_bytes());
        self.tell();
    }

    /// Keeps the line about a call.
    pub(super) fn keep_access(&self, fields: &AccessFields<'_>) {
        let mut packed = PACKED.try_with(RefCell::take).unwrap_or_default();
        packed.clear();
        fields.pack(&mut packed, LONGEST_TEXT);
        let now = tidegate_service::epoch_ms();
        self.ring().push(now, None, &packed);
        self.tell();
        let _ = PACKED.try_with(|kept| kept.replace(packed));
    }

    #[inline]
    fn tell(&self) {
        if self.0.followers.load(Ordering::Relaxed) > 0 {
            self.0.more.notify_waiters();
        }
    }

    /// The lines after this one, the oldest first, but no more than so many; without one, the latest.
    pub(super) fn after(&self, after: Option<u64>, most: usize) -> Vec<LogLine> {
        let (mut next, end) = {
            let ring = self.ring();
            let end = ring.end();
            let latest = || end.saturating_sub(most as u64);
            (ring.place(after).unwrap_or_else(latest).max(ring.first()), end)
        };
        let (mut raw, mut all) = (Vec::new(), Vec::new());
        while next < end && all.len() < most {
            self.ring().read(next, most - all.len(), AT_ONCE, &mut raw);
            let Some(last) = raw.last() else { break };
            next = last.number + 1;
            all.extend(raw.drain(..).map(|raw| LogLine::of(&raw)));
        }
        all
    }

    /// Follows what is logged after this line; without one, from now on.
    pub(super) fn follow(&self, after: Option<u64>) -> Following {
        self.0.followers.fetch_add(1, Ordering::Relaxed);
        let next = {
            let ring = self.ring();
            ring.place(after).unwrap_or(ring.end())
        };
        Following { recent: Some(self.clone()), next, ready: VecDeque::new() }
    }
}

/// What a follower gets.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Followed {
    /// The next line.
    Line(LogLine),
    /// So many lines are gone, because they were not asked for in time.
    Missed(u64),
}

/// Somebody who follows what is logged.
pub struct Following {
    /// `None` where no lines are kept.
    recent: Option<Recent>,
    next: u64,
    /// Lines that were taken already: a few.
    ready: VecDeque<Raw>,
}

/// How many lines a follower takes at a time, and how many bytes.
const TAKEN: (usize, usize) = (64, 16 << 10);

impl Following {
    /// Nobody, where no lines are kept.
    pub(super) fn nothing() -> Following {
        Following { recent: None, next: 0, ready: VecDeque::new() }
    }

    /// The next line, or how many were missed. It waits until there is one; dropping it in between loses nothing.
    pub async fn next(&mut self) -> Followed {
        let Some(recent) = self.recent.clone() else { return std::future::pending().await };
        loop {
            if let Some(raw) = self.ready.pop_front() {
                return Followed::Line(LogLine::of(&raw));
            }
            // Before looking, so that nothing is missed that comes in between.
            let mut more = std::pin::pin!(recent.0.more.notified());
            more.as_mut().enable();
            let mut taken = Vec::new();
            let first = {
                let ring = recent.ring();
                ring.read(self.next, TAKEN.0, TAKEN.1, &mut taken);
                ring.first()
            };
            let missed = first.saturating_sub(self.next);
            self.next = taken.last().map_or(self.next.max(first), |last| last.number + 1);
            self.ready.extend(taken);
            if missed > 0 {
                return Followed::Missed(missed);
            }
            if self.ready.is_empty() {
                more.await;
            }
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        if let Some(recent) = &self.recent {
            recent.0.followers.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for Following {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Following").field("next", &self.next).finish_non_exhaustive()
    }
}

/// The line with its texts cut; if that is not enough, with no others than the message.
fn shortened(mut line: Map<String, Value>) -> String {
    for value in line.values_mut() {
        if let Value::String(text) = value {
            let most = usize::from(LONGEST_TEXT);
            let end = if text.len() > most { "…" } else { "" };
            *text = cut(text, most).to_owned() + end;
        }
    }
    let text = json::text(line.clone());
    if text.len() <= LONGEST_LINE {
        return text;
    }
    line.retain(|name, _| {
        matches!(name.as_str(), "timestamp" | "level" | "target" | "message" | "correlationId")
    });
    json::text(line)
}

/// No more of a text than so many bytes.
pub(super) fn cut(text: &str, most: usize) -> &str {
    let most = most.min(text.len());
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::super::outputs::Outputs;
    use super::super::tests::dispatch;
    use super::*;
    use futures_util::FutureExt;

    /// Lines of which so many bytes are kept.
    fn keeping(bytes: usize) -> (Arc<Outputs>, tracing::Dispatch) {
        let outputs = Arc::new(Outputs::new(std::io::sink(), Format::Pretty, None));
        outputs.keep_recent(bytes);
        (outputs.clone(), dispatch(outputs))
    }

    fn messages(lines: &[LogLine]) -> Vec<String> {
        lines.iter().map(|line| line.json.member_str("message").unwrap().into_owned()).collect()
    }

    #[test]
    fn lines_are_kept_as_objects_whatever_others_wrote() {
        tidegate_service::secrets::register("sk-recent-0001");
        let (outputs, dispatch) = keeping(RECENT_BYTES);
        tracing::dispatcher::with_default(&dispatch, || {
            tracing::warn!(target: "tidegate_edge", server = "a\n\u{9b}b", count = 3, "down: sk-recent-0001");
        });
        let [line] = &outputs.recent().unwrap().after(None, 10)[..] else { panic!() };
        assert_eq!((line.number, line.level, line.target), (1, Level::WARN, "tidegate_edge"));
        assert!(line.time_ms > 1_700_000_000_000);
        let said: Value = serde_json::from_str(line.json.as_str()).unwrap();
        assert_eq!((&said["message"], &said["level"]), (&"down: ***".into(), &"warn".into()));
        assert_eq!((&said["server"], &said["count"]), (&"a\n\u{9b}b".into(), &3.into()));
        assert!(!line.json.as_str().contains(char::is_control), "{line:?}");
    }

    #[test]
    fn the_oldest_lines_go_first_and_numbers_stay() {
        let (outputs, dispatch) = keeping(4 << 10);
        let recent = outputs.recent().unwrap();
        assert!(recent.after(None, 10).is_empty() && recent.after(Some(3), 10).is_empty());
        tracing::dispatcher::with_default(&dispatch, || (1..=100).for_each(|n| tracing::info!("line {n}")));
        let all = recent.after(None, usize::MAX);
        assert!((10..99).contains(&all.len()), "{}", all.len());
        assert_eq!((all.last().unwrap().number, messages(&all).last().unwrap().as_str()), (100, "line 100"));
        let first = all[0].number;
        for (after, most, want) in [
            (None, 2, vec![99, 100]),
            (Some(98), 10, vec![99, 100]),
            (Some(first), 2, vec![first + 1, first + 2]),
            (Some(0), 1, vec![first]),
            (Some(100), 10, vec![]),
            // From another process.
            (Some(101), 1, vec![100]),
            (Some(u64::MAX), 1, vec![100]),
            (None, 0, vec![]),
        ] {
            let numbers: Vec<u64> = recent.after(after, most).iter().map(|line| line.number).collect();
            assert_eq!(numbers, want, "{after:?} {most}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_and_still_an_object() {
        let (outputs, dispatch) = keeping(RECENT_BYTES);
        let (long, worst) = ("ä".repeat(1 << 16), "\u{9b}".repeat(1 << 16));
        tracing::dispatcher::with_default(&dispatch, || {
            tracing::info!(content = long, "long");
            tracing::info!(
                a = worst,
                b = worst,
                c = worst,
                d = worst,
                e = worst,
                f = worst,
                g = worst,
                "worst"
            );
        });
        let lines = outputs.recent().unwrap().after(None, 10);
        for line in &lines {
            assert!(line.json.as_str().len() <= LONGEST_LINE, "{}", line.json.as_str().len());
            assert!(serde_json::from_str::<Value>(line.json.as_str()).is_ok());
        }
        assert_eq!(messages(&lines), ["long", "worst"]);
        assert!(lines[0].json.member_str("content").unwrap().ends_with("ä…"));
    }

    #[test]
    fn what_has_no_room_at_all_is_counted() {
        let (outputs, dispatch) = keeping(16);
        let mut following = outputs.recent().unwrap().follow(None);
        tracing::dispatcher::with_default(&dispatch, || (0..3).for_each(|n| tracing::info!("line {n}")));
        assert!(outputs.recent().unwrap().after(None, 10).is_empty());
        assert!(matches!(following.next().now_or_never(), Some(Followed::Missed(3))));
        assert!(following.next().now_or_never().is_none());
    }

    #[tokio::test]
    async fn whoever_follows_gets_every_line_or_how_many_are_missing() {
        let (outputs, dispatch) = keeping(8 << 10);
        let log = |numbers: std::ops::RangeInclusive<u64>| {
            tracing::dispatcher::with_default(&dispatch, || {
                numbers.for_each(|n| tracing::info!("line {n}"));
            });
        };
        log(1..=1);
        let recent = outputs.recent().unwrap().clone();
        let mut following = recent.follow(None);
        assert!(following.next().now_or_never().is_none(), "there is nothing new");
        let (told, mut tells) = tokio::sync::mpsc::channel(1);
        let follower = tokio::spawn(async move {
            let next = following.next().await;
            told.send(()).await.unwrap();
            (next, following)
        });
        tokio::task::yield_now().await;
        log(2..=2);
        tells.recv().await.unwrap();
        let (next, mut following) = follower.await.unwrap();
        assert!(matches!(next, Followed::Line(line) if line.number == 2));
        log(3..=1000);
        let Followed::Missed(missed) = following.next().await else { panic!() };
        assert!(missed > 900, "{missed}");
        let mut next = 3 + missed;
        while let Some(Followed::Line(line)) = following.next().now_or_never() {
            assert_eq!(line.number, next);
            next += 1;
        }
        assert_eq!(next, 1001);
        let mut resumed = recent.follow(Some(999));
        assert!(matches!(resumed.next().await, Followed::Line(line) if line.number == 1000));
        drop((following, resumed));
        assert_eq!(recent.0.followers.load(Ordering::Relaxed), 0);
    }
}

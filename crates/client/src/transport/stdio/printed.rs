//! [`Printed`]: what of a program's standard error goes to the log. A line that comes again and again is logged once and
//! counted, and a flood is cut short; nothing of that makes the program wait.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How many lines may come at once, and how many a second after that.
const BURST: f64 = 50.0;
const PER_SECOND: f64 = 20.0;
/// How long a line that was logged is counted before its count is told. Twice as long each time, as long as it goes on.
const COUNTED: Duration = Duration::from_secs(10);
const COUNTED_LONGEST: Duration = Duration::from_secs(600);
/// How often it is told that lines were left out.
const LEFT_OUT_EVERY: Duration = Duration::from_secs(1);
/// How many different lines are remembered.
const REMEMBERED: usize = 64;

/// The log of one server's programs: it outlives each of them, because what cannot live says the same at every start.
pub(crate) struct Printed {
    seen: HashMap<String, Seen>,
    allowed: f64,
    refilled: Option<Instant>,
    left_out: u64,
    /// When to say that lines were left out.
    tell_left_out: Option<Instant>,
}

/// A line that was logged.
struct Seen {
    again: u64,
    due: Instant,
    counted: Duration,
}

impl Default for Printed {
    fn default() -> Self {
        Printed { seen: HashMap::new(), allowed: BURST, refilled: None, left_out: 0, tell_left_out: None }
    }
}

impl Printed {
    /// Takes a line. Gives it back if it is to be logged.
    pub(super) fn line(&mut self, line: String, now: Instant) -> Option<String> {
        if line.is_empty() {
            return None;
        }
        if let Some(seen) = self.seen.get_mut(&line) {
            seen.again += 1;
            return None;
        }
        let since =
            self.refilled.replace(now).map_or(Duration::ZERO, |then| now.saturating_duration_since(then));
        self.allowed = (self.allowed + since.as_secs_f64() * PER_SECOND).min(BURST);
        if self.allowed < 1.0 || (self.seen.len() == REMEMBERED && !self.forget_one()) {
            self.left_out += 1;
            self.tell_left_out.get_or_insert(now + LEFT_OUT_EVERY);
            return None;
        }
        self.allowed -= 1.0;
        self.seen.insert(line.clone(), Seen { again: 0, due: now + COUNTED, counted: COUNTED });
        Some(line)
    }

    /// Makes room for another line: that which was not repeated, and whose time is over first.
    fn forget_one(&mut self) -> bool {
        let first = self.seen.iter().filter(|(_, seen)| seen.again == 0).min_by_key(|(_, seen)| seen.due);
        let Some(line) = first.map(|(line, _)| line.clone()) else { return false };
        self.seen.remove(&line).is_some()
    }

    /// When there will be something to tell.
    pub(super) fn due(&self) -> Option<Instant> {
        self.seen.values().map(|seen| seen.due).chain(self.tell_left_out).min()
    }

    /// What there is to tell by now: how often lines came again, and how many were left out.
    pub(super) fn tell(&mut self, now: Instant) -> Vec<String> {
        let mut told = Vec::new();
        self.seen.retain(|line, seen| {
            if seen.due > now {
                return true;
            }
            if seen.again == 0 {
                return false;
            }
            told.push(repeated(line, seen.again));
            seen.counted = (2 * seen.counted).min(COUNTED_LONGEST);
            (seen.again, seen.due) = (0, now + seen.counted);
            true
        });
        if self.tell_left_out.is_some_and(|due| due <= now) {
            self.tell_left_out = None;
            told.push(left_out(std::mem::take(&mut self.left_out)));
        }
        told
    }

    /// What was not told yet.
    pub(super) fn rest(&mut self) -> Vec<String> {
        let again = self.seen.drain().filter(|(_, seen)| seen.again > 0);
        let mut told: Vec<String> = again.map(|(line, seen)| repeated(&line, seen.again)).collect();
        if self.left_out > 0 {
            told.push(left_out(std::mem::take(&mut self.left_out)));
        }
        told
    }
}

fn repeated(line: &str, times: u64) -> String {
    format!("{line} (repeated {times} {})", if times == 1 { "time" } else { "times" })
}

fn left_out(lines: u64) -> String {
    format!("({lines} more lines of standard error were left out)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_again_is_counted() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut printed = Printed::default();
        assert_eq!(printed.line("a".into(), start).as_deref(), Some("a"));
        for _ in 0..57 {
            assert_eq!(printed.line("a".into(), at(1)), None);
        }
        assert!(printed.tell(at(9)).is_empty());
        assert_eq!(printed.due(), Some(at(10)));
        assert_eq!(printed.tell(at(10)), ["a (repeated 57 times)"]);
        assert_eq!(printed.line("a".into(), at(11)), None);
        assert!(printed.tell(at(29)).is_empty());
        assert_eq!(printed.tell(at(30)), ["a (repeated 1 time)"]);
        assert!(printed.tell(at(70)).is_empty());
        assert_eq!(
            printed.line("a".into(), at(71)).as_deref(),
            Some("a"),
            "what was not repeated is forgotten"
        );
        assert_eq!(printed.line("a".into(), at(71)), None);
        assert_eq!(printed.rest(), ["a (repeated 1 time)"]);
    }

    #[test]
    fn a_flood_is_cut_short() {
        let start = Instant::now();
        let mut printed = Printed::default();
        let mut logged = 0;
        for n in 0..100_000u64 {
            let now = start + Duration::from_micros(100 * n);
            logged += usize::from(printed.line(format!("line {n}"), now).is_some());
            logged += printed.tell(now).len();
        }
        assert!((50..=50 + 10 * 22).contains(&logged), "{logged} lines in 10 s");
        assert!(printed.seen.len() <= REMEMBERED);
        let told = printed.rest();
        assert!(told.len() == 1 && told[0].ends_with("were left out)"), "{told:?}");
    }
}

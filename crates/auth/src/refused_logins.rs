//! [`RefusedLogins`]: refusals are told one by one, until there are too many.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tidegate_service::events::{self, Event, LoginRefused, LoginsRefused};

/// For so long refusals are counted together.
const WINDOW_MS: u64 = 10_000;
/// So many of them get a line of their own in the log.
const LINES: u32 = 20;
/// So many addresses are counted, and so many told: those that most came from.
const MOST_ADDRESSES: usize = 1024;
const TOLD_ADDRESSES: usize = 5;

/// Tells of refused logins. All are counted; in the log a flood of them is a few lines and a sum.
#[derive(Debug, Default)]
pub(crate) struct RefusedLogins(Mutex<Window>);

#[derive(Debug, Default)]
struct Window {
    began_ms: u64,
    lines: u32,
    /// Those without a line, by their reasons.
    more: BTreeMap<&'static str, u64>,
    /// And by where they came from.
    addresses: HashMap<IpAddr, u64>,
}

/// What is said of those without a line.
#[derive(Debug, PartialEq, Eq)]
struct Summary {
    count: u64,
    reasons: String,
    addresses: String,
}

impl RefusedLogins {
    /// One was refused. What it was about is only asked for if there is a line for it.
    pub(crate) fn tell(
        &self,
        reason: &'static str,
        endpoint: Option<&str>,
        address: Option<IpAddr>,
        detail: impl FnOnce() -> Option<String>,
        now_ms: u64,
    ) {
        let (is_one_of_many, summary) = self.count(reason, address, now_ms);
        emit(summary);
        let detail = if is_one_of_many { None } else { detail() };
        events::emit(&Event::LoginRefused(LoginRefused {
            reason,
            endpoint,
            address,
            detail: detail.as_deref(),
            is_one_of_many,
        }));
    }

    /// Tells the sum, if a window is over. Called now and then.
    pub(crate) fn tick(&self, now_ms: u64) {
        let summary = self.lock().turn(now_ms);
        emit(summary);
    }

    fn count(&self, reason: &'static str, address: Option<IpAddr>, now_ms: u64) -> (bool, Option<Summary>) {
        let mut window = self.lock();
        let summary = window.turn(now_ms);
        let is_one_of_many = window.lines >= LINES;
        match is_one_of_many {
            true => window.add(reason, address),
            false => window.lines += 1,
        }
        (is_one_of_many, summary)
    }

    fn lock(&self) -> MutexGuard<'_, Window> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Window {
    fn add(&mut self, reason: &'static str, address: Option<IpAddr>) {
        *self.more.entry(reason).or_default() += 1;
        let Some(address) = address else { return };
        if self.addresses.len() < MOST_ADDRESSES || self.addresses.contains_key(&address) {
            *self.addresses.entry(address).or_default() += 1;
        }
    }

    /// Begins anew when it is time, and says what got no line before that.
    fn turn(&mut self, now_ms: u64) -> Option<Summary> {
        if now_ms.saturating_sub(self.began_ms) < WINDOW_MS {
            return None;
        }
        let before = std::mem::replace(self, Window { began_ms: now_ms, ..Window::default() });
        let count = before.more.values().sum();
        if count == 0 {
            return None;
        }
        let mut addresses: Vec<(IpAddr, u64)> = before.addresses.into_iter().collect();
        addresses.sort_unstable_by_key(|(address, count)| (Reverse(*count), *address));
        addresses.truncate(TOLD_ADDRESSES);
        Some(Summary {
            count,
            reasons: counts(&before.more),
            addresses: counts(addresses.iter().map(|(a, n)| (a, n))),
        })
    }
}

/// `expired 12, bad_signature 3`
fn counts<'a, T: Display + 'a>(all: impl IntoIterator<Item = (&'a T, &'a u64)>) -> String {
    let words: Vec<String> = all.into_iter().map(|(what, count)| format!("{what} {count}")).collect();
    words.join(", ")
}

fn emit(summary: Option<Summary>) {
    if let Some(Summary { count, reasons, addresses }) = summary {
        let (reasons, addresses) = (reasons.as_str(), addresses.as_str());
        events::emit(&Event::LoginsRefused(LoginsRefused { count, reasons, addresses }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_a_few_lines_and_a_sum() {
        let logins = RefusedLogins::default();
        let from = |number: usize| Some(IpAddr::from([192, 0, 2, number as u8]));
        let lines = (0..1000).filter(|n| !logins.count("expired", from(n % 8 % 7), 50_000).0).count();
        assert_eq!(lines, 20);
        assert_eq!(logins.count("unknown_key", None, 59_999), (true, None));
        let summary = logins.lock().turn(60_000).unwrap();
        assert_eq!((summary.count, &*summary.reasons), (981, "expired 980, unknown_key 1"));
        let most = "192.0.2.0 245, 192.0.2.4 123, 192.0.2.5 123, 192.0.2.6 123, 192.0.2.1 122";
        assert_eq!(summary.addresses, most);
        // And from the start.
        assert_eq!(logins.count("expired", None, 60_001), (false, None));
        assert_eq!(logins.lock().turn(70_000), None);
    }

    #[test]
    fn a_flood_from_everywhere_is_bounded() {
        let mut window = Window::default();
        for number in 0..5000_u32 {
            window.add("expired", Some(IpAddr::from(number.to_be_bytes())));
        }
        assert_eq!(window.addresses.len(), MOST_ADDRESSES);
        assert_eq!(window.turn(WINDOW_MS).unwrap().count, 5000);
    }
}

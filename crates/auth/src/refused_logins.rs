//! [`RefusedLogins`]: refusals are told one by one, until there are too many.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tidegate_service::events::{self, Event, LoginRefused, LoginsRefused};

/// For so long refusals are counted together.
const WINDOW_MS: u64 = 10_000;
/// So many of them get a line of their own in the log.
const LINES: u32 = 20;

/// Tells of refused logins. All are counted; in the log a flood of them is a few lines and a sum.
#[derive(Debug, Default)]
pub(crate) struct RefusedLogins(Mutex<Window>);

#[derive(Debug, Default)]
struct Window {
    began_ms: u64,
    lines: u32,
    /// Those without a line, by their reasons.
    more: BTreeMap<&'static str, u64>,
}

impl RefusedLogins {
    /// One was refused.
    pub(crate) fn tell(
        &self,
        reason: &'static str,
        endpoint: Option<&str>,
        address: Option<IpAddr>,
        now_ms: u64,
    ) {
        let (is_one_of_many, summary) = self.count(reason, now_ms);
        emit(summary);
        events::emit(&Event::LoginRefused(LoginRefused { reason, endpoint, address, is_one_of_many }));
    }

    /// Tells the sum, if a window is over. Called now and then.
    pub(crate) fn tick(&self, now_ms: u64) {
        let summary = self.lock().turn(now_ms);
        emit(summary);
    }

    fn count(&self, reason: &'static str, now_ms: u64) -> (bool, Option<(u64, String)>) {
        let mut window = self.lock();
        let summary = window.turn(now_ms);
        let is_one_of_many = window.lines >= LINES;
        match is_one_of_many {
            true => *window.more.entry(reason).or_default() += 1,
            false => window.lines += 1,
        }
        (is_one_of_many, summary)
    }

    fn lock(&self) -> MutexGuard<'_, Window> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Window {
    /// Begins anew when it is time, and says what got no line before that.
    fn turn(&mut self, now_ms: u64) -> Option<(u64, String)> {
        if now_ms.saturating_sub(self.began_ms) < WINDOW_MS {
            return None;
        }
        let before = std::mem::replace(self, Window { began_ms: now_ms, ..Window::default() });
        let count = before.more.values().sum();
        let reasons: Vec<String> =
            before.more.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
        (count > 0).then(|| (count, reasons.join(", ")))
    }
}

fn emit(summary: Option<(u64, String)>) {
    if let Some((count, reasons)) = summary {
        events::emit(&Event::LoginsRefused(LoginsRefused { count, reasons: &reasons }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_a_few_lines_and_a_sum() {
        let logins = RefusedLogins::default();
        let lines = (0..1000).filter(|_| !logins.count("expired", 50_000).0).count();
        assert_eq!(lines, 20);
        assert_eq!(logins.count("unknown_key", 59_999), (true, None));
        let summary = Some((981, "expired 980, unknown_key 1".to_owned()));
        assert_eq!(logins.lock().turn(60_000), summary);
        // And from the start.
        assert_eq!(logins.count("expired", 60_001), (false, None));
        assert_eq!(logins.lock().turn(70_000), None);
    }
}

//! [`Allowance`]: how long a call may take.

use std::time::{Duration, Instant};

use tidegate_protocol::{Error, Symbol};

use crate::ticket::{Event, Ticket};

/// How long a call may take: so long, longer while progress comes if that was asked for, and never longer than that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowance {
    /// When it ends without any sign of life.
    until: Instant,
    /// How long one stretch is.
    stretch: Duration,
    /// Whether progress starts a new stretch.
    extend: bool,
    /// When it ends in any case.
    at_most: Instant,
}

impl Allowance {
    pub(crate) fn new(now: Instant, stretch: Duration, extend: bool, at_most: Option<Instant>) -> Allowance {
        let far = now + Duration::from_secs(365 * 24 * 3600);
        let at_most = at_most.unwrap_or(far);
        // The shorter of both is also what the error says.
        let stretch = stretch.min(at_most.saturating_duration_since(now));
        Allowance { until: now + stretch, stretch, extend, at_most }
    }

    /// The same allowance, beginning now.
    pub(crate) fn restarted(&self, now: Instant) -> Allowance {
        Allowance { until: now.checked_add(self.stretch).unwrap_or(self.at_most).min(self.at_most), ..*self }
    }

    /// When the call ends if nothing else happens.
    pub(crate) fn ends(&self, alive: Option<Instant>) -> Instant {
        match alive {
            Some(alive) if self.extend => {
                let later = alive.checked_add(self.stretch).unwrap_or(self.at_most);
                self.until.max(later).min(self.at_most)
            }
            _ => self.until,
        }
    }

    /// Waits for the next event of a request, within the allowance.
    pub(crate) async fn next(&self, ticket: &Ticket) -> Result<Event, Error> {
        self.within(ticket, ticket.next()).await
    }

    /// Waits for something that a request leads to, within the allowance.
    pub(crate) async fn within<T>(&self, ticket: &Ticket, work: impl Future<Output = T>) -> Result<T, Error> {
        let mut work = std::pin::pin!(work);
        let mut end = self.ends(ticket.alive());
        loop {
            match tokio::time::timeout_at(end.into(), work.as_mut()).await {
                Ok(done) => return Ok(done),
                Err(_) => {
                    let later = self.ends(ticket.alive());
                    if later <= end {
                        return Err(self.over());
                    }
                    end = later;
                }
            }
        }
    }

    /// The error of a call whose time is over.
    pub(crate) fn over(&self) -> Error {
        let secs = self.stretch.as_secs_f32();
        let what = format!("The server did not answer within {secs:.1} s, and the call was cancelled");
        Error::new(Symbol::Timeout, what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_extends_when_asked_and_never_beyond_the_end() {
        let now = Instant::now();
        let s = Duration::from_secs;
        let fixed = Allowance::new(now, s(10), false, None);
        assert_eq!(fixed.ends(Some(now + s(9))), now + s(10));
        let extended = Allowance::new(now, s(10), true, Some(now + s(15)));
        assert_eq!(extended.ends(None), now + s(10));
        assert_eq!(extended.ends(Some(now + s(3))), now + s(13));
        assert_eq!(extended.ends(Some(now + s(9))), now + s(15));
        let short = Allowance::new(now, s(10), true, Some(now + s(2)));
        assert_eq!(short.ends(None), now + s(2));
        assert!(short.over().message().contains("within 2.0 s"), "{}", short.over());
        assert!(Allowance::new(now, Duration::MAX, false, None).ends(None) > now);
    }
}

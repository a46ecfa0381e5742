//! [`Governor`]: no more than so many requests per second go to one host. One bucket of tokens for each.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How many requests may go to one host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// How many at once, after a while without any. At least 1.
    pub burst: u32,
    /// How many per second from then on.
    pub per_second: f64,
}

/// Says when the next request to a host may be sent.
#[derive(Debug)]
pub struct Governor {
    rate: Rate,
    most: usize,
    buckets: HashMap<String, Bucket>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// Below zero if there are requests that wait for theirs.
    tokens: f64,
    at: Instant,
}

impl Governor {
    /// This rate for each host. At most `hosts` are remembered.
    pub fn new(rate: Rate, hosts: usize) -> Governor {
        Governor { rate, most: hosts.max(1), buckets: HashMap::new() }
    }

    /// How long the next request to `host` has to wait for its turn. `None` if that is longer than `patience`; then
    /// there is no turn to wait for.
    pub fn take(&mut self, host: &str, now: Instant, patience: Duration) -> Option<Duration> {
        let full = f64::from(self.rate.burst.max(1));
        let tokens = self.buckets.get(host).map_or(full, |bucket| self.filled(bucket, now));
        let wait = match 1.0 - tokens {
            missing if missing > 0.0 => {
                Duration::try_from_secs_f64(missing / self.rate.per_second).unwrap_or(Duration::MAX)
            }
            _ => Duration::ZERO,
        };
        if wait > patience {
            return None;
        }
        if !self.buckets.contains_key(host) {
            self.make_room(now);
        }
        self.buckets.insert(host.to_owned(), Bucket { tokens: tokens - 1.0, at: now });
        Some(wait)
    }

    /// What a bucket holds by now.
    fn filled(&self, bucket: &Bucket, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(bucket.at).as_secs_f64();
        (bucket.tokens + passed * self.rate.per_second).min(f64::from(self.rate.burst.max(1)))
    }

    /// Forgets the host whose bucket is fullest, should there be too many.
    fn make_room(&mut self, now: Instant) {
        if self.buckets.len() < self.most {
            return;
        }
        let fullest =
            self.buckets.iter().max_by(|(_, a), (_, b)| self.filled(a, now).total_cmp(&self.filled(b, now)));
        if let Some(host) = fullest.map(|(host, _)| host.clone()) {
            self.buckets.remove(&host);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_burst_and_then_a_steady_flow() {
        let mut governor = Governor::new(Rate { burst: 2, per_second: 4.0 }, 10);
        let now = Instant::now();
        let mut take = |at: Instant| governor.take("a", at, SECOND);
        assert_eq!(take(now), Some(Duration::ZERO));
        assert_eq!(take(now), Some(Duration::ZERO));
        // Each who waits has a turn of its own.
        assert_eq!(take(now), Some(SECOND / 4));
        assert_eq!(take(now), Some(SECOND / 2));
        assert_eq!(take(now + SECOND / 2), Some(SECOND / 4));
        // After a while all is as before, and not more.
        for wait in [Duration::ZERO, Duration::ZERO, SECOND / 4] {
            assert_eq!(take(now + 60 * SECOND), Some(wait));
        }
    }

    #[test]
    fn who_would_wait_too_long_takes_nobodys_turn() {
        let mut governor = Governor::new(Rate { burst: 1, per_second: 1.0 }, 10);
        let now = Instant::now();
        assert_eq!(governor.take("a", now, Duration::ZERO), Some(Duration::ZERO));
        for _ in 0..3 {
            assert_eq!(governor.take("a", now, SECOND / 2), None);
        }
        assert_eq!(governor.take("a", now, SECOND), Some(SECOND));
        assert_eq!(governor.take("b", now, Duration::ZERO), Some(Duration::ZERO));
        let mut never = Governor::new(Rate { burst: 0, per_second: 0.0 }, 10);
        assert_eq!(never.take("a", now, SECOND), Some(Duration::ZERO));
        assert_eq!(never.take("a", now, SECOND), None);
    }

    #[test]
    fn few_hosts_are_remembered_and_the_busy_ones_longest() {
        let mut governor = Governor::new(Rate { burst: 2, per_second: 1.0 }, 2);
        let now = Instant::now();
        for host in ["busy", "busy", "quiet", "new"] {
            governor.take(host, now, SECOND);
        }
        assert_eq!(governor.buckets.len(), 2);
        assert!(governor.buckets.contains_key("busy") && governor.buckets.contains_key("new"));
    }
}

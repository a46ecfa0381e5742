//! The load generator: one thread, one poll loop, prepared bytes out and as little parsing as possible on the way in,
//! so that the servers and not the client are measured.

pub(crate) mod http;
pub(crate) mod response;
pub(crate) mod session;
pub(crate) mod stdio;

use std::time::{Duration, Instant};

use anyhow::Result;
use tidegate_benches_common::percentile;

/// A server that says nothing for this long has failed. Generous, because servers also run under callgrind.
pub(crate) const STALLED: Duration = Duration::from_secs(30);

/// One answer in this many is checked in full during a run; all others only by status and framing.
pub(crate) const SPOT_CHECK: u64 = 1024;

/// Something that sends requests to one server; may be run repeatedly.
pub(crate) trait Load: Send {
    fn run(&mut self, until: Until) -> Result<Sample>;
}

/// Every run ends by itself, by time or by count, whichever comes first.
#[derive(Clone, Copy)]
pub(crate) struct Until {
    pub(crate) elapsed: Duration,
    pub(crate) requests: u64,
}

impl Until {
    pub(crate) fn elapsed(elapsed: Duration) -> Self {
        Self { elapsed, requests: 5_000_000 }
    }

    /// Bounded in time as well, far beyond what such a run should take.
    pub(crate) fn requests(requests: u64) -> Self {
        Self { elapsed: Duration::from_secs(120), requests }
    }
}

/// What one run saw.
pub(crate) struct Sample {
    pub(crate) requests: u64,
    pub(crate) elapsed: Duration,
    /// In nanoseconds, ascending.
    pub(crate) latencies: Vec<u32>,
}

impl Sample {
    pub(crate) fn per_second(&self) -> f64 {
        self.requests as f64 / self.elapsed.as_secs_f64()
    }

    /// The latency that this share of the requests stayed below.
    pub(crate) fn percentile(&self, share: f64) -> Duration {
        Duration::from_nanos(percentile(&self.latencies, share).into())
    }
}

/// Counts and times the requests of one run.
struct Meter {
    until: Until,
    started: Instant,
    sent: u64,
    latencies: Vec<u32>,
}

impl Meter {
    fn start(until: Until) -> Self {
        Self { until, started: Instant::now(), sent: 0, latencies: Vec::with_capacity(1 << 17) }
    }

    /// Whether one more request may go out; the run is over when not, and all that went out are answered.
    fn may_send(&mut self, now: Instant) -> bool {
        let more = self.sent < self.until.requests && now - self.started < self.until.elapsed;
        self.sent += u64::from(more);
        more
    }

    fn answered(&mut self, sent_at: Instant, now: Instant) {
        self.latencies.push((now - sent_at).as_nanos().min(u32::MAX.into()) as u32);
    }

    fn all_answered(&self) -> bool {
        self.latencies.len() as u64 == self.sent
    }

    fn finish(mut self) -> Sample {
        let elapsed = self.started.elapsed();
        self.latencies.sort_unstable();
        Sample { requests: self.latencies.len() as u64, elapsed, latencies: self.latencies }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_and_latency_of_a_sample() {
        let sample =
            Sample { requests: 100, elapsed: Duration::from_secs(2), latencies: (1..=100).collect() };
        assert_eq!(sample.percentile(0.5), Duration::from_nanos(51));
        assert!((sample.per_second() - 50.0).abs() < f64::EPSILON);
    }
}

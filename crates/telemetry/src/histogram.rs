//! [`Histogram`]: how long things took, in buckets.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The upper bounds of the buckets, in seconds, as OpenTelemetry's conventions for MCP have them. One more has the rest.
pub const BOUNDS: [f64; 14] =
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// The same in microseconds.
const BOUNDS_US: [u64; BOUNDS.len()] = {
    let (mut bounds, mut at) = ([0; BOUNDS.len()], 0);
    while at < bounds.len() {
        bounds[at] = (BOUNDS[at] * 1e6) as u64;
        at += 1;
    }
    bounds
};

/// How long things took. Nothing on the way of a call waits for it.
#[derive(Debug, Default)]
pub struct Histogram {
    counts: [AtomicU64; BOUNDS.len() + 1],
    sum_us: AtomicU64,
}

impl Histogram {
    /// One more took so long.
    pub fn record(&self, duration: Duration) {
        let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_US.iter().position(|bound| us <= *bound).unwrap_or(BOUNDS.len());
        self.counts[bucket].fetch_add(1, Relaxed);
        self.sum_us.fetch_add(us, Relaxed);
    }

    /// How many there were in each bucket, and how many seconds they took together.
    pub fn snapshot(&self) -> ([u64; BOUNDS.len() + 1], f64) {
        let counts = self.counts.each_ref().map(|count| count.load(Relaxed));
        (counts, self.sum_us.load(Relaxed) as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_bucket() {
        let histogram = Histogram::default();
        for ms in [0, 10, 11, 20, 300_000, 300_001] {
            histogram.record(Duration::from_millis(ms));
        }
        let (counts, sum) = histogram.snapshot();
        assert_eq!((counts[0], counts[1], counts[13], counts[14]), (2, 2, 1, 1));
        assert_eq!((counts.iter().sum::<u64>(), sum), (6, 600.042));
    }
}

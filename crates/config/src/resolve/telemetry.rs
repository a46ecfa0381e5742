//! What is measured.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::Resolver;
use crate::telemetry_settings::{HealthSettings, TelemetryNames, TelemetrySettings};
use crate::written::{self, Size, Telemetry, Time};

/// More would be a way to use up the memory.
const MOST_STORIES: usize = 1 << 30;
/// More would never be reached.
const MOST_CALLS: u64 = 1_000_000;
const HOUR: Duration = Duration::from_secs(3600);
const WINDOW: RangeInclusive<Duration> = Duration::from_secs(1)..=HOUR;
const EVERY: RangeInclusive<Duration> = Duration::from_millis(100)..=HOUR;
const FLOOR: RangeInclusive<Duration> = Duration::ZERO..=HOUR;

impl Resolver<'_> {
    pub(super) fn telemetry(&mut self, telemetry: &Telemetry) -> TelemetrySettings {
        let usual = TelemetrySettings::default();
        let stories = match &telemetry.stories {
            // None are kept.
            Some(Size::Bytes(0)) => 0,
            said => self.size(&["telemetry", "stories"], said.as_ref(), usual.stories),
        };
        if stories > MOST_STORIES {
            self.wrong(&["telemetry", "stories"], "must be at most \"1GiB\"");
        }
        let otlp = telemetry.otlp.as_ref().and_then(|otlp| self.otlp(otlp));
        let names = match telemetry.names {
            None | Some(written::TelemetryNames::OpenTelemetry) => TelemetryNames::OpenTelemetry,
            Some(written::TelemetryNames::Percolate) => TelemetryNames::Percolate,
        };
        let metrics = telemetry.metrics.unwrap_or(usual.metrics);
        TelemetrySettings { metrics, stories, names, health: self.health(&telemetry.health), otlp }
    }

    fn health(&mut self, health: &written::Health) -> HealthSettings {
        let usual = HealthSettings::default();
        let warn = self.per_cent("warn", health.warn, usual.warn);
        let degraded = self.per_cent("degraded", health.degraded, usual.degraded);
        let unhealthy = self.per_cent("unhealthy", health.unhealthy, usual.unhealthy);
        for (field, lower, other, higher) in
            [("degraded", degraded, "warn", warn), ("unhealthy", unhealthy, "degraded", degraded)]
        {
            if lower > higher {
                let sentence = format!("must be at most {other}, which is {higher}, and is {lower}");
                self.wrong(&["telemetry", "health", field], sentence);
            }
        }
        let min_calls = health.min_calls.unwrap_or(usual.min_calls);
        if !(1..=MOST_CALLS).contains(&min_calls) {
            self.wrong(&["telemetry", "health", "min_calls"], format!("must be from 1 to {MOST_CALLS}"));
        }
        let latency_factor = health.latency_factor.unwrap_or(usual.latency_factor);
        if !(latency_factor > 1.0 && latency_factor <= 1000.0) {
            let sentence = "must be more than 1 and at most 1000: how many times as long as before";
            self.wrong(&["telemetry", "health", "latency_factor"], sentence);
        }
        let disk_free = self.size(
            &["telemetry", "health", "disk_free"],
            health.disk_free.as_ref(),
            usual.disk_free as usize,
        );
        HealthSettings {
            warn,
            degraded,
            unhealthy,
            min_calls,
            window: self.period(
                "window",
                health.window.as_ref(),
                usual.window,
                WINDOW,
                "from \"1s\" to \"1h\"",
            ),
            every: self.period(
                "every",
                health.every.as_ref(),
                usual.every,
                EVERY,
                "from \"100ms\" to \"1h\"",
            ),
            latency_factor,
            latency_floor: self.period(
                "latency_floor",
                health.latency_floor.as_ref(),
                usual.latency_floor,
                FLOOR,
                "at most \"1h\"",
            ),
            disk_percent: self.per_cent("disk_percent", health.disk_percent, usual.disk_percent),
            disk_free: disk_free as u64,
            buffer_percent: self.per_cent("buffer_percent", health.buffer_percent, usual.buffer_percent),
        }
    }

    fn per_cent(&mut self, field: &str, said: Option<f64>, usual: f64) -> f64 {
        let share = said.unwrap_or(usual);
        if !(0.0..=100.0).contains(&share) {
            self.wrong(&["telemetry", "health", field], "must be from 0 to 100, in per cent");
            return usual;
        }
        share
    }

    fn period(
        &mut self,
        field: &str,
        said: Option<&Time>,
        usual: Duration,
        within: RangeInclusive<Duration>,
        words: &str,
    ) -> Duration {
        let time = self.time(&["telemetry", "health", field], said, usual);
        if !within.contains(&time) {
            self.wrong(&["telemetry", "health", field], format!("must be {words}"));
        }
        time
    }
}

//! What is measured.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::Resolver;
use crate::story_settings::StorySettings;
use crate::telemetry_settings::{HealthSettings, TelemetryNames, TelemetrySettings};
use crate::written::{self, Size, Telemetry, Time};

/// More would be a way to use up the memory.
const MOST_STORIES: usize = 1 << 30;
/// The same for what is kept of each call.
const MOST_BODY: usize = 64 << 10;
/// How much of arguments and results is kept, if they are to be.
const BODY: usize = 4 << 10;
/// More would never be reached.
const MOST_CALLS: u64 = 1_000_000;
const HOUR: Duration = Duration::from_secs(3600);
const WINDOW: RangeInclusive<Duration> = Duration::from_secs(1)..=HOUR;
const EVERY: RangeInclusive<Duration> = Duration::from_millis(100)..=HOUR;
const FLOOR: RangeInclusive<Duration> = Duration::ZERO..=HOUR;

impl Resolver<'_> {
    pub(super) fn telemetry(&mut self, telemetry: &Telemetry) -> TelemetrySettings {
        let usual = TelemetrySettings::default();
        TelemetrySettings {
            metrics: telemetry.metrics.unwrap_or(usual.metrics),
            stories: self.stories(telemetry),
            call_ids: telemetry.call_ids.unwrap_or(usual.call_ids),
            names: match telemetry.names {
                None | Some(written::TelemetryNames::OpenTelemetry) => TelemetryNames::OpenTelemetry,
                Some(written::TelemetryNames::Percolate) => TelemetryNames::Percolate,
            },
            health: self.health(&telemetry.health),
            otlp: telemetry.otlp.as_ref().and_then(|otlp| self.otlp(otlp)),
        }
    }

    fn stories(&mut self, telemetry: &Telemetry) -> StorySettings {
        let room = match &telemetry.stories {
            // None are kept.
            Some(Size::Bytes(0)) => 0,
            said => self.size(&["telemetry", "stories"], said.as_ref(), StorySettings::default().room),
        };
        if room > MOST_STORIES {
            self.wrong(&["telemetry", "stories"], "must be at most \"1GiB\"");
        }
        let at = ["telemetry", "stories_file"];
        let file = telemetry.stories_file.as_deref().and_then(|path| self.path(&at, path));
        if let Some(path) = &file
            && (path.is_dir() || path.file_name().is_none())
        {
            self.wrong(&at, "must be a file, and is a directory");
        }
        let body = self.size(&["telemetry", "body_size"], telemetry.body_size.as_ref(), BODY);
        if body > MOST_BODY {
            self.wrong(&["telemetry", "body_size"], "must be at most \"64KiB\"");
        }
        let bodies = telemetry.bodies.unwrap_or(false);
        if telemetry.body_size.is_some() && !bodies {
            self.note(
                &["telemetry", "body_size"],
                "has no effect: bodies are not kept without bodies = true.",
            );
        }
        if room == 0 {
            for (field, is_there) in [("stories_file", file.is_some()), ("bodies", bodies)] {
                if is_there {
                    self.note(&["telemetry", field], "has no effect: stories = 0 keeps none.");
                }
            }
        } else if bodies {
            self.note(
                &["telemetry", "bodies"],
                "keeps arguments and results of calls: whoever may ask about calls (page:/api/calls) or read stories_file sees what callers send and get. Switch it off when you are done.",
            );
        }
        StorySettings { room, file, bodies: bodies.then_some(body) }
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

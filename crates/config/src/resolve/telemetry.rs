//! What is measured.

use super::Resolver;
use crate::telemetry_settings::TelemetrySettings;
use crate::written::{Size, Telemetry};

/// More would be a way to use up the memory.
const MOST_STORIES: usize = 1 << 30;

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
        TelemetrySettings { metrics: telemetry.metrics.unwrap_or(usual.metrics), stories, otlp }
    }
}

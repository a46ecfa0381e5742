//! What is measured while the gateway runs: [`TelemetrySettings`], what `[telemetry]` means.

use crate::otlp_settings::OtlpSettings;

/// What is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct TelemetrySettings {
    /// Whether calls are counted and timed.
    pub metrics: bool,
    /// How many bytes of stories of the latest calls are kept; 0 for none.
    pub stories: usize,
    /// Where spans and figures are sent.
    pub otlp: Option<OtlpSettings>,
}

impl Default for TelemetrySettings {
    fn default() -> TelemetrySettings {
        TelemetrySettings { metrics: true, stories: 4 << 20, otlp: None }
    }
}

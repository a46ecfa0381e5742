//! What is measured while the gateway runs: [`TelemetrySettings`], what `[telemetry]` means.

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TelemetrySettings {
    /// Whether calls are counted and timed.
    pub metrics: bool,
}

impl Default for TelemetrySettings {
    fn default() -> TelemetrySettings {
        TelemetrySettings { metrics: true }
    }
}

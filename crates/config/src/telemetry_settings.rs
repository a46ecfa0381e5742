//! What is measured while the gateway runs: [`TelemetrySettings`], what `[telemetry]` means.

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TelemetrySettings {
    /// Whether calls are counted and timed.
    pub metrics: bool,
    /// How many bytes of stories of the latest calls are kept; 0 for none.
    pub stories: usize,
}

impl Default for TelemetrySettings {
    fn default() -> TelemetrySettings {
        TelemetrySettings { metrics: true, stories: 4 << 20 }
    }
}

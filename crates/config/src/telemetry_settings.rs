//! What is measured while the gateway runs: [`TelemetrySettings`], what `[telemetry]` means.

use std::time::Duration;

use crate::otlp_settings::OtlpSettings;
use crate::story_settings::StorySettings;

/// What is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct TelemetrySettings {
    /// Whether calls are counted and timed.
    pub metrics: bool,
    /// What is remembered of the latest calls.
    pub stories: StorySettings,
    /// Where spans and figures are sent.
    pub otlp: Option<OtlpSettings>,
    /// By which names it goes out.
    pub names: TelemetryNames,
    /// How well things must go.
    pub health: HealthSettings,
    /// Whether callers get the id of their call with every answer, and not only with failures.
    pub call_ids: bool,
}

impl Default for TelemetrySettings {
    fn default() -> TelemetrySettings {
        TelemetrySettings {
            metrics: true,
            stories: StorySettings::default(),
            names: TelemetryNames::default(),
            health: HealthSettings::default(),
            otlp: None,
            call_ids: true,
        }
    }
}

/// By which names what is measured and traced goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TelemetryNames {
    /// Those of OpenTelemetry's conventions, and our own where it has none.
    #[default]
    OpenTelemetry,
    /// Those that Percolate has, where it has any.
    Percolate,
}

/// How well things must go, for `/health` and for alerts. Shares are in per cent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HealthSettings {
    /// Below this share of good calls there is an alert.
    pub warn: f64,
    /// Up to and including this share of good calls, the gateway is degraded.
    pub degraded: f64,
    /// Below this share of good calls, it is unhealthy.
    pub unhealthy: f64,
    /// Fewer calls say nothing.
    pub min_calls: u64,
    /// For how long calls are remembered.
    pub window: Duration,
    /// How often it is looked whether there is an alert.
    pub every: Duration,
    /// Calls that take more than this many times as long as before are an alert.
    pub latency_factor: f64,
    /// Unless they take no longer than this on average.
    pub latency_floor: Duration,
    /// This part of the disk must be left where the gateway writes,
    pub disk_percent: f64,
    /// or this many bytes.
    pub disk_free: u64,
    /// Above this share of what may be held of messages there is an alert.
    pub buffer_percent: f64,
}

impl Default for HealthSettings {
    fn default() -> HealthSettings {
        HealthSettings {
            warn: 95.0,
            degraded: 90.0,
            unhealthy: 50.0,
            min_calls: 20,
            window: Duration::from_secs(300),
            every: Duration::from_secs(10),
            latency_factor: 3.0,
            latency_floor: Duration::from_millis(100),
            disk_percent: 5.0,
            disk_free: 100 << 20,
            buffer_percent: 80.0,
        }
    }
}

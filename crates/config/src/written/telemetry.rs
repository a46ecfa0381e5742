//! What is measured while the gateway runs: `[telemetry]`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Otlp, Size, Time};

/// What is measured while it runs.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Telemetry {
    /// Whether calls are counted and timed: /metrics has the figures for Prometheus, and /health judges by them. Default true.
    pub(crate) metrics: Option<bool>,
    /// How many bytes of stories of the latest calls are kept, for tidegate explain: bytes, or a string such as "4MiB". 0 keeps
    /// none. Default "4MiB".
    pub(crate) stories: Option<Size>,
    /// An OpenTelemetry collector that spans of calls and figures are sent to.
    pub(crate) otlp: Option<Otlp>,
    /// A file in which stories are kept, too, so that they outlive the process: a path. It and the one beside it that ends in ".old" have
    /// at most as many bytes as stories says. Only the user who runs the gateway can read them. Default: none.
    pub(crate) stories_file: Option<String>,
    /// Whether stories have the arguments and results of calls, with what looks like a secret masked. For debugging: they may be
    /// confidential. Default false.
    pub(crate) bodies: Option<bool>,
    /// How much of the arguments and of the result of a call a story has: bytes, or a string such as "4KiB". Default "4KiB".
    pub(crate) body_size: Option<Size>,
    /// Whether callers get the id of their call with every answer, and not only with failures: in _meta of results, and in the HTTP header
    /// Tidegate-Correlation-Id. Default true.
    pub(crate) call_ids: Option<bool>,
    /// By which names what is measured and traced goes out: "opentelemetry" for those of OpenTelemetry's conventions, "percolate" for
    /// mcp.tool.duration_ms, mcp.tool.error_rate and mcp.resource.cache_hit_rate. Default "opentelemetry".
    pub(crate) names: Option<TelemetryNames>,
    /// How well things must go for /health and for alerts.
    pub(crate) health: Health,
}

/// By which names what is measured goes out.
#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TelemetryNames {
    #[serde(rename = "opentelemetry")]
    OpenTelemetry,
    Percolate,
}

/// How well things must go.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Health {
    /// Below which share of good calls there is an alert, in per cent. Default 95.
    pub(crate) warn: Option<f64>,
    /// Up to which share of good calls the gateway is degraded, in per cent. Default 90.
    pub(crate) degraded: Option<f64>,
    /// Below which share of good calls the gateway is unhealthy, in per cent. Default 50.
    pub(crate) unhealthy: Option<f64>,
    /// From how many calls on their shares and times say something. Default 20.
    pub(crate) min_calls: Option<u64>,
    /// How long calls are remembered for that, such as "5m". Default "5m".
    pub(crate) window: Option<Time>,
    /// How often it is looked whether there is an alert, such as "10s". Default "10s".
    pub(crate) every: Option<Time>,
    /// How many times as long as before calls must take for an alert. Default 3.
    pub(crate) latency_factor: Option<f64>,
    /// Calls that take no longer on average are quick, whatever they were before. Default "100ms".
    pub(crate) latency_floor: Option<Time>,
    /// Which part of the disk must be left where the gateway writes, in per cent, unless disk_free is left. Default 5.
    pub(crate) disk_percent: Option<f64>,
    /// How many bytes must be left where the gateway writes, unless disk_percent is left: bytes, or a string such as "100MiB". Default
    /// "100MiB".
    pub(crate) disk_free: Option<Size>,
    /// Above which share of max_buffered there is an alert, in per cent. Default 80.
    pub(crate) buffer_percent: Option<f64>,
}

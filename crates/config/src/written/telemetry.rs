//! What is measured while the gateway runs: `[telemetry]`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Otlp, Size};

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
}

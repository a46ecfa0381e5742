//! What is measured while the gateway runs: `[telemetry]`.

use schemars::JsonSchema;
use serde::Deserialize;

/// What is measured while it runs.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Telemetry {
    /// Whether calls are counted and timed: /metrics has the figures for Prometheus, and /health judges by them. Default true.
    pub(crate) metrics: Option<bool>,
}

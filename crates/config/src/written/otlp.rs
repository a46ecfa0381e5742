//! Where spans and figures are sent: `[telemetry.otlp]`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Size, Time};

/// An OpenTelemetry collector that spans and figures are sent to.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Otlp {
    /// Where the collector is: "http://127.0.0.1:4318", or "http://127.0.0.1:4317" for gRPC.
    pub(crate) endpoint: Option<String>,
    /// How it is spoken to. Default "http/protobuf".
    pub(crate) protocol: Option<OtlpProtocol>,
    /// Headers that go with every request, such as { authorization = "Bearer ${TOKEN}" }.
    pub(crate) headers: BTreeMap<String, String>,
    /// Whether spans of calls are sent. Default true.
    pub(crate) traces: Option<bool>,
    /// Whether the figures of /metrics are sent. Default true.
    pub(crate) metrics: Option<bool>,
    /// Which share of the traces that begin here is recorded, from 0 to 1. Of others, those are that their caller records. Default 1.
    pub(crate) sample: Option<f64>,
    /// How often figures are sent. Default "60s".
    pub(crate) interval: Option<Time>,
    /// How long a request to the collector may take. Default "10s".
    pub(crate) timeout: Option<Time>,
    /// How many bytes of spans may wait for the collector; what is more is dropped and counted. Default "4MiB".
    pub(crate) buffer: Option<Size>,
    /// What this gateway is called. Default "tidegate".
    pub(crate) service_name: Option<String>,
    /// What else is said about it, such as { "deployment.environment.name" = "production" }.
    pub(crate) attributes: BTreeMap<String, String>,
}

/// How a collector is spoken to.
#[derive(Deserialize, JsonSchema, Clone, Copy)]
pub(crate) enum OtlpProtocol {
    /// Protocol Buffers in HTTP requests, usually on port 4318.
    #[serde(rename = "http/protobuf")]
    HttpProtobuf,
    /// gRPC, usually on port 4317.
    #[serde(rename = "grpc")]
    Grpc,
}

//! Where spans and figures are sent: [`OtlpSettings`], what `[telemetry.otlp]` means.

use std::collections::BTreeMap;
use std::time::Duration;

use tidegate_service::secrets::Secret;
use url::Url;

/// An OpenTelemetry collector, and what it is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct OtlpSettings {
    /// Where it is.
    pub endpoint: Url,
    /// Whether it is spoken to over gRPC, and not by plain HTTP requests.
    pub grpc: bool,
    /// Headers that go with every request, by name.
    pub headers: BTreeMap<String, Secret>,
    /// Whether spans are sent.
    pub traces: bool,
    /// Whether figures are sent.
    pub metrics: bool,
    /// Which share of the traces that begin here is recorded.
    pub sample: f64,
    /// How often figures are sent.
    pub interval: Duration,
    /// How long a request may take.
    pub timeout: Duration,
    /// How many bytes of spans may wait.
    pub buffer: usize,
    /// Who sends, by name: `service.name` and what else was said.
    pub resource: Vec<(String, String)>,
}

impl OtlpSettings {
    /// How many bytes of spans may wait, if nothing else is said.
    pub(crate) const BUFFER: usize = 4 << 20;
}

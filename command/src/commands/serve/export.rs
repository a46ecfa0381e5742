//! [`Export`]: spans and figures on their way to an OpenTelemetry collector (`[telemetry.otlp]`).

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use tidegate_config::{OtlpSettings, Settings, TelemetryNames};
use tidegate_gateway::Gateway;
use tidegate_service::events::{self, Recorder};
use tidegate_service::{random, trace};
use tidegate_telemetry::{Exporter, ExporterSettings, Figures, Protocol, SpanBuffer, SpanNames, Spans};

use super::monitoring::Monitoring;

/// Sends what is measured and traced, until it ends.
pub(super) struct Export {
    exporter: Exporter,
    recorder: Option<Arc<dyn Recorder>>,
}

impl Export {
    /// Starts to send, if the configuration names a collector. From now on this process takes part in traces.
    pub(super) fn start(settings: &Settings, gateway: &Gateway, monitoring: &Monitoring) -> Option<Export> {
        let otlp = settings.telemetry.otlp.as_ref()?;
        let names = match settings.telemetry.names {
            TelemetryNames::OpenTelemetry => SpanNames::OpenTelemetry,
            TelemetryNames::Percolate => SpanNames::Percolate,
        };
        let spans = otlp.traces.then(|| Arc::new(SpanBuffer::new(otlp.buffer)));
        let recorder = spans.clone().map(|buffer| {
            let offered = gateway.clone();
            let recorder: Arc<dyn Recorder> =
                Arc::new(Spans::new(buffer, names, move |tool| offered.offers_tool(tool)));
            events::add(recorder.clone());
            trace::take_part(otlp.sample);
            recorder
        });
        let figures = otlp.metrics.then(|| {
            let read = monitoring.clone();
            Figures { every: otlp.interval, read: Box::new(move || read.read()) }
        });
        if let Some(buffer) = &spans {
            monitoring.set_spans(buffer.clone());
        }
        let sent = match (otlp.traces, otlp.metrics) {
            (true, true) => "Spans and figures",
            (true, false) => "Spans",
            (false, true) => "Figures",
            (false, false) => "Neither spans nor figures",
        };
        let host = otlp.endpoint.host_str().unwrap_or_default();
        let port = otlp.endpoint.port_or_known_default().unwrap_or_default();
        tracing::info!(target: "tidegate::telemetry", "{sent} are sent to the collector at {host}:{port}");
        let exporter = Exporter::start(&exporter_settings(otlp), spans, figures);
        Some(Export { exporter, recorder })
    }

    /// Sends what is left.
    pub(super) async fn end(self) {
        trace::take_no_part();
        self.recorder.iter().for_each(events::remove);
        self.exporter.end().await;
    }
}

fn exporter_settings(otlp: &OtlpSettings) -> ExporterSettings {
    let mut headers = HeaderMap::new();
    for (name, value) in &otlp.headers {
        // Both were checked with the configuration.
        if let (Ok(name), Ok(mut value)) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value.reveal()))
        {
            value.set_sensitive(true);
            headers.insert(name, value);
        }
    }
    let instance = u128::from_be_bytes(random());
    let own = [
        ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("service.instance.id", format!("{instance:032x}")),
        ("telemetry.sdk.name", "tidegate".to_owned()),
        ("telemetry.sdk.language", "rust".to_owned()),
        ("telemetry.sdk.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("process.pid", std::process::id().to_string()),
    ];
    let is_said = |name: &str| otlp.resource.iter().any(|(said, _)| said == name);
    let own =
        own.into_iter().filter(|(name, _)| !is_said(name)).map(|(name, value)| (name.to_owned(), value));
    ExporterSettings {
        endpoint: otlp.endpoint.clone(),
        protocol: if otlp.grpc { Protocol::Grpc } else { Protocol::HttpProtobuf },
        headers,
        timeout: otlp.timeout.max(Duration::from_millis(1)),
        resource: otlp.resource.iter().cloned().chain(own).collect(),
    }
}

//! Where spans and figures are sent.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use tidegate_service::secrets::Secret;
use url::Url;

use super::Resolver;
use crate::otlp_settings::OtlpSettings;
use crate::written::{Otlp, OtlpProtocol, Time};

pub(crate) const INTERVAL: Duration = Duration::from_secs(60);
pub(crate) const INTERVALS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(3600);
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);
pub(crate) const TIMEOUTS: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(60);
const BUFFERS: RangeInclusive<usize> = 64 << 10..=1 << 30;
/// Where collectors expect gRPC.
const GRPC_PORT: u16 = 4317;
/// How much may be said about the gateway with every request.
const MOST_ATTRIBUTES: usize = 64;
const LONGEST_ATTRIBUTE: usize = 1024;

impl Resolver<'_> {
    pub(super) fn otlp(&mut self, otlp: &Otlp) -> Option<OtlpSettings> {
        let around = ["telemetry", "otlp"];
        let at = |field: &'static str| ["telemetry", "otlp", field];
        let endpoint = match otlp.endpoint.as_deref().map(collector) {
            None => {
                self.required(
                    &around,
                    &["endpoint"],
                    "needs endpoint, where the collector is, such as \"http://127.0.0.1:4318\"",
                );
                None
            }
            Some(Ok(url)) => Some(url),
            Some(Err(sentence)) => {
                self.wrong(&at("endpoint"), sentence);
                None
            }
        };
        let is_open = |url: &Url| url.scheme() == "http" && !crate::urls::is_loopback(url);
        if !otlp.headers.is_empty() && endpoint.as_ref().is_some_and(is_open) {
            self.note(&at("headers"), "are sent without encryption: use an endpoint with https://");
        }
        let is_grpc = matches!(otlp.protocol, Some(OtlpProtocol::Grpc));
        if !is_grpc && endpoint.as_ref().is_some_and(|url| url.port() == Some(GRPC_PORT)) {
            self.note(
                &at("endpoint"),
                "has the port that collectors use for gRPC: set protocol = \"grpc\", or use port 4318",
            );
        }
        let sample = otlp.sample.unwrap_or(1.0);
        if !(0.0..=1.0).contains(&sample) {
            self.wrong(&at("sample"), "must be from 0 to 1: which share of the traces is recorded");
        }
        let buffer = self.size(&at("buffer"), otlp.buffer.as_ref(), OtlpSettings::BUFFER);
        if !BUFFERS.contains(&buffer) {
            self.wrong(&at("buffer"), "must be from \"64KiB\" to \"1GiB\"");
        }
        Some(OtlpSettings {
            grpc: is_grpc,
            headers: self.otlp_headers(&otlp.headers),
            traces: otlp.traces.unwrap_or(true),
            metrics: otlp.metrics.unwrap_or(true),
            sample,
            interval: self.otlp_time(
                "interval",
                otlp.interval.as_ref(),
                INTERVAL,
                INTERVALS,
                "from \"1s\" to \"1h\"",
            ),
            timeout: self.otlp_time(
                "timeout",
                otlp.timeout.as_ref(),
                TIMEOUT,
                TIMEOUTS,
                "from \"100ms\" to \"60s\"",
            ),
            buffer,
            resource: self.resource(otlp),
            endpoint: endpoint?,
        })
    }

    fn otlp_time(
        &mut self,
        field: &'static str,
        said: Option<&Time>,
        usual: Duration,
        within: RangeInclusive<Duration>,
        words: &str,
    ) -> Duration {
        let at = ["telemetry", "otlp", field];
        let time = self.time(&at, said, usual);
        if !within.contains(&time) {
            self.wrong(&at, format!("must be {words}"));
        }
        time
    }

    fn otlp_headers(&mut self, headers: &BTreeMap<String, String>) -> BTreeMap<String, Secret> {
        for (name, value) in headers {
            let at = ["telemetry", "otlp", "headers", name];
            if HeaderName::from_bytes(name.as_bytes()).is_err() {
                self.wrong(&at, "this is not a valid name for an HTTP header");
            }
            if HeaderValue::from_str(value).is_err() {
                self.wrong(&at, "contains characters that are not allowed in a header, such as line breaks");
            }
        }
        headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), Secret::new(value.clone()))).collect()
    }

    /// Who sends.
    fn resource(&mut self, otlp: &Otlp) -> Vec<(String, String)> {
        if otlp.attributes.len() > MOST_ATTRIBUTES {
            self.wrong(&["telemetry", "otlp", "attributes"], format!("must be at most {MOST_ATTRIBUTES}"));
        }
        for (name, value) in &otlp.attributes {
            if name.is_empty() || name.len() + value.len() > LONGEST_ATTRIBUTE {
                let sentence =
                    format!("must have a name, and at most {LONGEST_ATTRIBUTE} characters with it");
                self.wrong(&["telemetry", "otlp", "attributes", name], sentence);
            }
        }
        let name = otlp.service_name.clone().unwrap_or_else(|| "tidegate".to_owned());
        if name.trim().is_empty() || name.len() > LONGEST_ATTRIBUTE {
            self.wrong(
                &["telemetry", "otlp", "service_name"],
                format!("must have 1 to {LONGEST_ATTRIBUTE} characters"),
            );
        }
        let said = otlp.attributes.iter().filter(|(name, _)| *name != "service.name");
        let said = said.map(|(name, value)| (name.clone(), value.clone()));
        [("service.name".to_owned(), name)].into_iter().chain(said).collect()
    }
}

/// The address of a collector. Those of a private network need no encryption. The error is a sentence that does not repeat it.
pub(crate) fn collector(text: &str) -> Result<Url, &'static str> {
    const FORM: &str = "must be the URL of a collector, such as \"http://127.0.0.1:4318\"";
    let url = Url::parse(text.trim()).map_err(|_| FORM)?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(FORM);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not have a user name or a password in it: use headers");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("must not have a query or a fragment");
    }
    if url.path().ends_with("/v1/traces") || url.path().ends_with("/v1/metrics") {
        return Err("must not end with /v1/traces or /v1/metrics: that is added for each kind of data");
    }
    Ok(url)
}

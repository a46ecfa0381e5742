//! What the environment says about a collector: OpenTelemetry's own variables, which hold where the configuration names none.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use tidegate_service::secrets::Secret;

use crate::otlp_settings::OtlpSettings;
use crate::resolve::otlp::{INTERVAL, INTERVALS, TIMEOUT, TIMEOUTS, collector};

impl OtlpSettings {
    /// What `OTEL_EXPORTER_OTLP_ENDPOINT` and the variables around it say; `None` if there is no such variable, or `OTEL_SDK_DISABLED` is
    /// set. One that makes no sense is an error, which names it.
    pub fn from_environment(
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<OtlpSettings>, String> {
        let set =
            |name: &str| variable(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let is = |name: &str, value: &str| set(name).is_some_and(|said| said.eq_ignore_ascii_case(value));
        let Some(endpoint) = set(ENDPOINT).filter(|_| !is("OTEL_SDK_DISABLED", "true")) else {
            return Ok(None);
        };
        let endpoint = collector(&endpoint).map_err(|sentence| format!("{ENDPOINT} {sentence}"))?;
        let grpc = match set(PROTOCOL).as_deref() {
            None | Some("http/protobuf") => false,
            Some("grpc") => true,
            Some(other) => return Err(format!("{PROTOCOL} must be http/protobuf or grpc, not {other:?}")),
        };
        let milliseconds = |name: &str, usual: Duration, within: RangeInclusive<Duration>| match set(name) {
            None => Ok(usual),
            Some(text) => {
                let time = text.parse().ok().map(Duration::from_millis).filter(|time| within.contains(time));
                let (least, most) = (within.start().as_millis(), within.end().as_millis());
                time.ok_or_else(|| {
                    format!("{name} must be a number of milliseconds from {least} to {most}, not {text:?}")
                })
            }
        };
        let headers = pairs(HEADERS, set(HEADERS))?;
        for (name, value) in &headers {
            if HeaderName::from_bytes(name.as_bytes()).is_err() || HeaderValue::from_str(value).is_err() {
                return Err(format!("{HEADERS} has a header that cannot be sent: {name:?}"));
            }
        }
        let secret = |(name, value): (String, String)| (name.to_ascii_lowercase(), Secret::new(value));
        let mut resource = pairs(ATTRIBUTES, set(ATTRIBUTES))?;
        let said = resource.remove("service.name");
        let name = set("OTEL_SERVICE_NAME").or(said).unwrap_or_else(|| "tidegate".to_owned());
        Ok(Some(OtlpSettings {
            endpoint,
            grpc,
            headers: headers.into_iter().map(secret).collect(),
            traces: !is("OTEL_TRACES_EXPORTER", "none"),
            metrics: !is("OTEL_METRICS_EXPORTER", "none"),
            sample: sample(set(SAMPLER), set(SAMPLER_ARGUMENT))?,
            interval: milliseconds("OTEL_METRIC_EXPORT_INTERVAL", INTERVAL, INTERVALS)?,
            timeout: milliseconds("OTEL_EXPORTER_OTLP_TIMEOUT", TIMEOUT, TIMEOUTS)?,
            resource: [("service.name".to_owned(), name)].into_iter().chain(resource).collect(),
            buffer: OtlpSettings::BUFFER,
        }))
    }
}

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";
const SAMPLER: &str = "OTEL_TRACES_SAMPLER";
const SAMPLER_ARGUMENT: &str = "OTEL_TRACES_SAMPLER_ARG";

/// `name=value,name=value`, with what is special in them as in an address.
fn pairs(variable: &str, text: Option<String>) -> Result<BTreeMap<String, String>, String> {
    let text = text.unwrap_or_default();
    let each = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    let plain =
        |text: &str| percent_encoding::percent_decode_str(text.trim()).decode_utf8_lossy().into_owned();
    each.map(|pair| match pair.split_once('=') {
        Some((name, value)) => Ok((plain(name), plain(value))),
        None => Err(format!("{variable} must be a list such as name=value,name=value")),
    })
    .collect()
}

fn sample(sampler: Option<String>, argument: Option<String>) -> Result<f64, String> {
    let share = || match argument.as_deref().unwrap_or("1").parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(format!("{SAMPLER_ARGUMENT} must be a number from 0 to 1")),
    };
    match sampler.as_deref() {
        None | Some("always_on" | "parentbased_always_on") => Ok(1.0),
        Some("always_off" | "parentbased_always_off") => Ok(0.0),
        Some("traceidratio" | "parentbased_traceidratio") => share(),
        Some(other) => Err(format!(
            "{SAMPLER} must be parentbased_always_on, parentbased_always_off or parentbased_traceidratio, not {other:?}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<OtlpSettings>, String> {
        OtlpSettings::from_environment(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn what_the_variables_mean() {
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[(ENDPOINT, "http://localhost:4318"), ("OTEL_SDK_DISABLED", "true")]), Ok(None));
        let plain = read(&[(ENDPOINT, "http://localhost:4318")]).unwrap().unwrap();
        assert!(!plain.grpc && plain.traces && plain.metrics && plain.sample == 1.0);
        assert_eq!(plain.resource, [("service.name".to_owned(), "tidegate".to_owned())]);
        let all = read(&[
            (ENDPOINT, "https://collector.example.com/otlp"),
            (PROTOCOL, "grpc"),
            (HEADERS, "Authorization=Bearer%20abc, x-team=reef"),
            (ATTRIBUTES, "service.name=other,deployment.environment.name=prod"),
            ("OTEL_SERVICE_NAME", "gate"),
            (SAMPLER, "parentbased_traceidratio"),
            (SAMPLER_ARGUMENT, "0.25"),
            ("OTEL_METRICS_EXPORTER", "none"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "2500"),
        ]);
        let all = all.unwrap().unwrap();
        assert!(all.grpc && all.traces && !all.metrics);
        assert_eq!((all.sample, all.timeout), (0.25, Duration::from_millis(2500)));
        assert_eq!(all.headers["authorization"].reveal(), "Bearer abc");
        let resource = [("service.name", "gate"), ("deployment.environment.name", "prod")];
        assert_eq!(all.resource, resource.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (name, value) in [
            (ENDPOINT, "localhost"),
            (ENDPOINT, "http://u:p@localhost:4318"),
            (PROTOCOL, "http/json"),
            (HEADERS, "no"),
            (HEADERS, "a b=c"),
            (ATTRIBUTES, "x"),
            (SAMPLER, "sometimes"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
        ] {
            let endpoint = if name == ENDPOINT { value } else { "http://localhost:4318" };
            let error = read(&[(ENDPOINT, endpoint), (name, value)]).unwrap_err();
            assert!(error.contains(name) && !error.contains("u:p"), "{error}");
        }
    }
}

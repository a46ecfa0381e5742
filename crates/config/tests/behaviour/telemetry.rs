//! What is measured, and how well things must go: what `[telemetry]` means, and what is wrong with one.

use std::time::Duration;

use tidegate_config::{HealthSettings, TelemetryNames, TelemetrySettings};

use crate::{parse, wrong};

fn telemetry(fields: &str) -> TelemetrySettings {
    parse(&format!("[telemetry]\n{fields}")).unwrap().telemetry
}

#[test]
fn what_is_written() {
    assert_eq!(parse("").unwrap().telemetry, TelemetrySettings::default());
    for (names, meant) in
        [("opentelemetry", TelemetryNames::OpenTelemetry), ("percolate", TelemetryNames::Percolate)]
    {
        assert_eq!(telemetry(&format!("names = \"{names}\"")).names, meant);
    }
    let usual = telemetry("[telemetry.health]").health;
    assert_eq!(usual, HealthSettings::default());
    assert_eq!((usual.warn, usual.degraded, usual.unhealthy, usual.min_calls), (95.0, 90.0, 50.0, 20));
    let all = telemetry(
        r#"
        [telemetry.health]
        warn = 99.9
        degraded = 99
        unhealthy = 99
        min_calls = 1
        window = "1m"
        every = "500ms"
        latency_factor = 1.5
        latency_floor = "2s"
        disk_percent = 10
        disk_free = "1GiB"
        buffer_percent = 50
        "#,
    );
    let expected = HealthSettings {
        warn: 99.9,
        degraded: 99.0,
        unhealthy: 99.0,
        min_calls: 1,
        window: Duration::from_secs(60),
        every: Duration::from_millis(500),
        latency_factor: 1.5,
        latency_floor: Duration::from_secs(2),
        disk_percent: 10.0,
        disk_free: 1 << 30,
        buffer_percent: 50.0,
    };
    assert_eq!(all.health, expected);
}

#[test]
fn what_is_wrong() {
    for (fields, sentence) in [
        ("warn = 101", "telemetry.health.warn: must be from 0 to 100, in per cent"),
        ("unhealthy = -1", "telemetry.health.unhealthy: must be from 0 to 100, in per cent"),
        ("warn = nan", "telemetry.health.warn: must be from 0 to 100, in per cent"),
        ("degraded = 96", "telemetry.health.degraded: must be at most warn, which is 95, and is 96"),
        ("warn = 80", "telemetry.health.degraded: must be at most warn, which is 80, and is 90"),
        ("unhealthy = 91", "telemetry.health.unhealthy: must be at most degraded, which is 90, and is 91"),
        ("min_calls = 0", "telemetry.health.min_calls: must be from 1 to 1000000"),
        ("window = \"2h\"", "telemetry.health.window: must be from \"1s\" to \"1h\""),
        ("every = \"1ms\"", "telemetry.health.every: must be from \"100ms\" to \"1h\""),
        ("latency_factor = 1", "telemetry.health.latency_factor: must be more than 1"),
        ("latency_floor = \"2h\"", "telemetry.health.latency_floor: must be at most \"1h\""),
        ("disk_percent = 1000", "telemetry.health.disk_percent: must be from 0 to 100"),
        ("buffer_percent = 1000", "telemetry.health.buffer_percent: must be from 0 to 100"),
        ("disk_free = \"much\"", "telemetry.health.disk_free: must be a number of bytes"),
    ] {
        wrong(&format!("[telemetry.health]\n{fields}"), sentence);
    }
    wrong("[telemetry]\nnames = \"prometheus\"", "opentelemetry");
}

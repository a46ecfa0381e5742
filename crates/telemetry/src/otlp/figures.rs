//! A [`Reading`] as OTLP has it (`opentelemetry/proto/metrics/v1/metrics.proto`).

use super::attribute::text;
use super::protobuf::Message;
use crate::names::{Instrument, Kind};
use crate::reading::{Reading, Sample, Value};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`: everything since the start.
const CUMULATIVE: u64 = 2;

/// Since when is counted and when it was read, in nanoseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) start: u64,
    pub(super) now: u64,
}

/// Writes the fields `metrics` of a `ScopeMetrics`.
pub(super) fn metrics(out: &mut Vec<u8>, reading: &Reading, times: Times) {
    for (instrument, samples) in reading.series() {
        out.message(2, |metric| write_metric(metric, instrument, &samples, times));
    }
}

fn write_metric(metric: &mut Vec<u8>, instrument: &Instrument, samples: &[&Sample], times: Times) {
    metric.text(1, instrument.name);
    metric.text(2, instrument.help);
    metric.text(3, instrument.unit);
    let points = |data: &mut Vec<u8>| {
        for sample in samples {
            data.message(1, |point| write_point(point, instrument, sample, times));
        }
    };
    match instrument.kind {
        Kind::Gauge => metric.message(5, points),
        Kind::Counter => metric.message(7, |sum| {
            points(sum);
            sum.number(2, CUMULATIVE);
            sum.number(3, 1);
        }),
        Kind::Histogram => metric.message(9, |histogram| {
            points(histogram);
            histogram.number(2, CUMULATIVE);
        }),
    }
}

fn write_point(point: &mut Vec<u8>, instrument: &Instrument, sample: &Sample, times: Times) {
    point.fixed64(2, times.start);
    point.fixed64(3, times.now);
    let attributes = match sample.value {
        Value::Whole(value) => {
            point.fixed64(6, value);
            7
        }
        Value::Number(value) => {
            point.double(4, value);
            7
        }
        Value::Histogram { counts, sum } => {
            point.fixed64(4, counts.iter().sum());
            point.double(5, sum);
            point.packed64(6, counts.into_iter());
            point.packed64(7, instrument.bounds().into_iter().map(f64::to_bits));
            9
        }
    };
    for (name, value) in &sample.labels {
        text(point, attributes, name, value);
    }
}

//! Requests to a collector: who says it, and what.

use super::attribute::text;
use super::figures::{self, Times};
use super::protobuf::Message;
use crate::reading::Reading;

/// The conventions by which things are named.
const SCHEMA: &str = "https://opentelemetry.io/schemas/1.40.0";

/// Who sends: a `Resource`.
#[derive(Debug, Clone)]
pub(super) struct Resource(Vec<u8>);

impl Resource {
    pub(super) fn new(attributes: &[(String, String)]) -> Resource {
        let mut out = Vec::new();
        for (name, value) in attributes {
            text(&mut out, 1, name, value);
        }
        Resource(out)
    }

    /// An `ExportTraceServiceRequest` with these spans, which are fields of a `ScopeSpans`.
    pub(super) fn spans(&self, spans: &[u8]) -> Vec<u8> {
        self.request(spans.len(), |scope| scope.extend_from_slice(spans))
    }

    /// An `ExportMetricsServiceRequest`.
    pub(super) fn figures(&self, reading: &Reading, times: Times) -> Vec<u8> {
        self.request(16 << 10, |scope| figures::metrics(scope, reading, times))
    }

    /// Both have the same form: a resource, and what a scope has.
    fn request(&self, room: usize, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::with_capacity(room + self.0.len() + 256);
        out.message(1, |resource| {
            resource.bytes(1, &self.0);
            resource.message(2, |scope| {
                scope.message(1, |name| {
                    name.text(1, "tidegate");
                    name.text(2, env!("CARGO_PKG_VERSION"));
                });
                write(scope);
            });
            resource.text(3, SCHEMA);
        });
        out
    }
}

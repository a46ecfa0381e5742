//! Sending spans and figures to an [OpenTelemetry](https://opentelemetry.io) collector, by OTLP over HTTP or gRPC.
//!
//! Whoever makes a span puts it into the [`SpanBuffer`] and goes on. Tasks of the [`Exporter`] send what is there; a collector that is
//! away, slow or wrong costs spans and never a call.
//!
//! The messages are written by hand (`protobuf.rs`): a few hundred lines, against generated code and a gRPC library that would take longer to
//! build than the rest of this crate. A test has the official definitions read them.

mod attribute;
mod buffer;
mod exporter;
mod figures;
mod protobuf;
mod request;
mod sender;
mod span;

pub use buffer::SpanBuffer;
pub use exporter::{Exporter, ExporterSettings, Figures};
pub use sender::Protocol;
pub(crate) use span::{SpanKind, SpanWriter};

//! What is measured while a gateway runs, and the forms in which others read it.
//!
//! [`Metrics`] is a [recorder](tidegate_service::events): it counts and times what happens. What is merely so at the moment (how many calls
//! wait, which servers answer) is asked for when somebody reads. [`Reading`] is both together, and [`Reading::text`] writes it for Prometheus.
//!
//! [`Stories`] is another: what happened to each of the latest calls, for whoever asks about one.
//!
//! [`Spans`] is a third: it makes spans of calls, which an [`Exporter`] sends to an OpenTelemetry collector, with the figures.
//!
//! Names are in one place (`names.rs`, and `span_names.rs` for spans), and tests pin them. Names that callers make up are never labels, and there is a bound for how many
//! series there are: the rest is counted as `_OTHER`.

mod alerts;
mod family;
mod histogram;
mod metrics;
pub mod names;
mod otlp;
mod percolate;
mod reading;
mod recent;
mod span_names;
mod spans;
mod stories;
mod text;

pub use alerts::{Alert, AlertChange, AlertThresholds, Alerts, Seen};
pub use histogram::{BOUNDS, Histogram};
pub use metrics::Metrics;
pub use otlp::{Exporter, ExporterSettings, Figures, Protocol, SpanBuffer};
pub use reading::{Reading, Sample, Value};
pub use span_names::SpanNames;
pub use spans::Spans;
pub use stories::{Found, Stories, Wanted};
pub use text::Exposition;

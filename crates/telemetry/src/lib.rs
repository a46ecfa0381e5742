//! What is measured while a gateway runs, and the forms in which others read it.
//!
//! [`Metrics`] is a [recorder](tidegate_service::events): it counts and times what happens. What is merely so at the moment (how many calls
//! wait, which servers answer) is asked for when somebody reads. [`Reading`] is both together, and [`Reading::text`] writes it for Prometheus.
//!
//! [`Stories`] is another: what happened to each of the latest calls, for whoever asks about one.
//!
//! Names are in one place (`names.rs`), and a test pins them. Names that callers make up are never labels, and there is a bound for how many
//! series there are: the rest is counted as `_OTHER`.

mod alerts;
mod family;
mod histogram;
mod metrics;
pub mod names;
mod reading;
mod recent;
mod stories;
mod text;

pub use alerts::{Alert, AlertChange, Alerts, Seen};
pub use histogram::{BOUNDS, Histogram};
pub use metrics::Metrics;
pub use reading::{Reading, Sample, Value};
pub use stories::{Stories, Wanted};
pub use text::Exposition;

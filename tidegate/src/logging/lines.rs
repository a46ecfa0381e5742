//! [`Lines`]: makes a line of each event, and hands it to whoever [takes](Outputs) lines, each in the look that it has there.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::json::Fields;
use super::outputs::{Look, Outputs};
use super::{json, plain, terminal};

/// Makes lines of events.
pub(super) struct Lines(pub(super) Arc<Outputs>);

/// A span around an event. There are some only if a filter asks for them.
#[derive(Clone)]
pub(super) struct Around {
    pub(super) name: &'static str,
    /// Without secrets.
    pub(super) fields: Map<String, Value>,
}

thread_local! {
    /// Where a line is made.
    static LINE: RefCell<String> = const { RefCell::new(String::new()) };
}

impl<S> Layer<S> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut around = Around { name: span.name(), fields: Map::new() };
        attributes.record(&mut Fields(&mut around.fields));
        span.extensions_mut().insert(around);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(around) = span.extensions_mut().get_mut::<Around>() {
            values.record(&mut Fields(&mut around.fields));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if is_hushed(event) {
            return;
        }
        let scope = context.event_scope(event).into_iter().flatten();
        // The innermost first.
        let around: Vec<Around> =
            scope.filter_map(|span| span.extensions().get::<Around>().cloned()).collect();
        let mut line = LINE.try_with(RefCell::take).unwrap_or_default();
        self.0.say(event, &around, &mut line);
        let _ = LINE.try_with(|kept| kept.replace(line));
    }
}

/// Makes `out` the line about an event, as it looks somewhere.
pub(super) fn make(out: &mut String, look: Look, event: &Event<'_>, around: &[Around]) {
    out.clear();
    match look {
        Look::Terminal { colours } => terminal::write(out, event, colours),
        Look::Plain => plain::write(out, event, around),
        Look::Json => {
            out.push_str(&json::text(json::members(event, around)));
            out.push('\n');
        }
    }
}

/// Whether the process is ending.
static ENDING: AtomicBool = AtomicBool::new(false);

/// What is expected when everything ends is not worth a line from now on: servers that say goodbye, calls that are
/// cut short, connections that break. Errors still are, and so is everything at debug level.
pub fn hush() {
    ENDING.store(true, Ordering::Relaxed);
}

/// Where such lines come from. The memory is not among them: what it says at its end is about the user's data.
const EXPECTED: [&str; 6] = [
    "tidegate::",
    "tidegate_client",
    "tidegate_command",
    "tidegate_edge",
    "tidegate_gateway",
    "tidegate_service",
];

fn is_hushed(event: &Event<'_>) -> bool {
    let target = event.metadata().target();
    is_quiet()
        && *event.metadata().level() > Level::ERROR
        && target != terminal::STATISTICS
        && EXPECTED.iter().any(|start| target.starts_with(start))
}

/// Whether what is expected is left out.
pub(super) fn is_quiet() -> bool {
    ENDING.load(Ordering::Relaxed) && LevelFilter::current() < LevelFilter::DEBUG
}

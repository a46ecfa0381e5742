//! [`Metrics`]: the recorder that counts and times.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use indexmap::Equivalent;
use tidegate_protocol::{Method, Symbol};
use tidegate_service::Current;
use tidegate_service::events::{CallEnded, Event, Kind, Recorder, ServerCallEnded};
use tidegate_service::layers::BreakerState;

use crate::family::{Family, MOST_HISTOGRAMS};
use crate::histogram::Histogram;
use crate::names::{self, OTHER};
use crate::reading::{LONGEST, Reading, Value};
use crate::recent::Recent;

/// Whether a tool is one that is offered: whoever calls can make up other names.
type IsTool = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// Counts and times what happens.
pub struct Metrics {
    is_tool: IsTool,
    calls: Family<CallLabels, Histogram>,
    server_calls: Family<CallLabels, Histogram>,
    client_sessions: Histogram,
    server_sessions: Family<Label, Histogram>,
    errors: Family<Label, AtomicU64>,
    retries: Family<Label, AtomicU64>,
    logins_refused: Family<Label, AtomicU64>,
    circuits_opened: Family<Label, AtomicU64>,
    hosts_refused: AtomicU64,
    recent: Recent,
}

/// What calls are told apart by. What is not there is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CallLabels {
    method: &'static str,
    tool: Arc<str>,
    server: Arc<str>,
    outcome: &'static str,
}

struct CallLabelsRef<'a> {
    method: &'static str,
    tool: &'a str,
    server: &'a str,
    outcome: &'static str,
}

impl Hash for CallLabels {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let CallLabels { method, tool, server, outcome } = self;
        CallLabelsRef { method, tool, server, outcome }.hash(state);
    }
}

impl Hash for CallLabelsRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.tool.hash(state);
        self.server.hash(state);
        // There are few of these, and most have lengths of their own.
        state.write_usize(self.method.len() << 8 | self.outcome.len());
    }
}

impl Equivalent<CallLabels> for CallLabelsRef<'_> {
    fn equivalent(&self, key: &CallLabels) -> bool {
        let CallLabelsRef { method, tool, server, outcome } = *self;
        // Ours are mostly the very same texts.
        let is_same = |one: &'static str, other: &'static str| std::ptr::eq(one, other) || one == other;
        *tool == *key.tool
            && *server == *key.server
            && is_same(method, key.method)
            && is_same(outcome, key.outcome)
    }
}

impl From<&CallLabelsRef<'_>> for CallLabels {
    fn from(labels: &CallLabelsRef<'_>) -> CallLabels {
        let CallLabelsRef { method, tool, server, outcome } = *labels;
        CallLabels { method, tool: tool.into(), server: server.into(), outcome }
    }
}

impl CallLabelsRef<'_> {
    /// Those of the rest, if there are too many.
    fn rest(&self) -> CallLabels {
        let other: Arc<str> = OTHER.into();
        CallLabels { method: self.method, tool: other.clone(), server: other, outcome: self.outcome }
    }
}

/// A label that stands alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Label(Arc<str>);

#[derive(Hash)]
struct LabelRef<'a>(&'a str);

impl Equivalent<Label> for LabelRef<'_> {
    fn equivalent(&self, key: &Label) -> bool {
        *self.0 == *key.0
    }
}

impl From<&LabelRef<'_>> for Label {
    fn from(label: &LabelRef<'_>) -> Label {
        Label(label.0.into())
    }
}

impl Metrics {
    /// Nothing has been measured yet. `is_tool` says whether a tool is offered: other names are no labels. How calls went is remembered for
    /// `window`.
    pub fn new(is_tool: impl Fn(&str) -> bool + Send + Sync + 'static, window: Duration) -> Metrics {
        Metrics {
            is_tool: Box::new(is_tool),
            calls: Family::of_at_most(MOST_HISTOGRAMS),
            server_calls: Family::of_at_most(MOST_HISTOGRAMS),
            client_sessions: Histogram::default(),
            server_sessions: Family::of_at_most(MOST_HISTOGRAMS),
            errors: Family::new(),
            retries: Family::new(),
            logins_refused: Family::new(),
            circuits_opened: Family::new(),
            hosts_refused: AtomicU64::new(0),
            recent: Recent::new(window),
        }
    }

    /// Adds what was measured so far.
    pub fn read(&self, reading: &mut Reading) {
        for (instrument, calls) in
            [(names::OPERATION, &self.calls), (names::CLIENT_OPERATION, &self.server_calls)]
        {
            calls.for_each(|labels, durations| {
                let CallLabels { method, tool, server, outcome } = labels;
                let (counts, sum) = durations.snapshot();
                reading.add(
                    instrument,
                    &[
                        (names::METHOD, method),
                        (names::TOOL, tool),
                        (names::SERVER, server),
                        (names::OUTCOME, outcome),
                    ],
                    Value::Histogram { counts, sum },
                );
            });
        }
        let (counts, sum) = self.client_sessions.snapshot();
        reading.add(names::SERVER_SESSION, &[], Value::Histogram { counts, sum });
        self.server_sessions.for_each(|server, durations| {
            let (counts, sum) = durations.snapshot();
            reading.add(
                names::CLIENT_SESSION,
                &[(names::SERVER, &server.0)],
                Value::Histogram { counts, sum },
            );
        });
        for (instrument, name, family) in [
            (names::ERRORS, names::ERROR, &self.errors),
            (names::RETRIES, names::METHOD, &self.retries),
            (names::LOGINS_REFUSED, names::REASON, &self.logins_refused),
            (names::CIRCUIT_OPENED, names::SERVER, &self.circuits_opened),
        ] {
            family.for_each(|label, count| {
                reading.add(instrument, &[(name, &label.0)], Value::Whole(count.load(Relaxed)));
            });
        }
        reading.add(names::HOSTS_REFUSED, &[], Value::Whole(self.hosts_refused.load(Relaxed)));
    }

    /// Of the calls that ended in the last minutes, how many went well, and how many failed because a server or the gateway was out of
    /// reach: what callers do wrong and what servers answer says nothing about the gateway.
    pub fn recent(&self) -> (u64, u64) {
        self.recent.counts()
    }

    /// How long calls took on average that ended well in the last fifth of these minutes, and before, if there were `enough` of both.
    pub fn latency(&self, enough: u64) -> Option<(Duration, Duration)> {
        self.recent.latency(enough)
    }

    /// A tool as a label.
    fn tool<'a>(&self, name: &'a str) -> &'a str {
        if (self.is_tool)(name) { label(name) } else { OTHER }
    }

    /// Times a call with these labels, as they were found. Those that are known already were made of names that there are; others become labels first.
    fn time(&self, calls: &Family<CallLabels, Histogram>, found: &CallLabelsRef<'_>, took: Duration) {
        if calls.with_known(found, |durations| durations.record(took)) {
            return;
        }
        let tool = if matches!(found.tool, "" | OTHER) { found.tool } else { self.tool(found.tool) };
        let labels = CallLabelsRef { tool, server: label(found.server), ..*found };
        calls.with(&labels, || labels.rest(), |durations| durations.record(took));
    }

    /// One attempt at a server is over. The tool has the name that it has for callers, as in their calls: who makes a name up is the same, too.
    fn server_call_ended(&self, call: &ServerCallEnded<'_>) {
        let record = |tool: &str| {
            let labels = CallLabelsRef {
                method: known(call.method),
                tool,
                server: call.server,
                outcome: call.outcome.as_str(),
            };
            self.time(&self.server_calls, &labels, call.duration);
        };
        if *call.method != Method::ToolsCall {
            return record("");
        }
        let recorded = Current::look(|current| match current.method() {
            Method::ToolsCall => current.name().map(|name| record(&name)),
            _ => None,
        });
        // Whoever gave up a call is not working on it any more.
        if recorded.flatten().is_none() {
            record(OTHER);
        }
    }

    fn call_ended(&self, call: &CallEnded<'_>) {
        let name = match (call.method, call.server) {
            (Method::ToolsCall, Some(_)) => call.name(),
            _ => None,
        };
        let labels = CallLabelsRef {
            method: known(call.method),
            tool: name.unwrap_or_default(),
            server: call.server.unwrap_or_default(),
            outcome: call.outcome.as_str(),
        };
        self.time(&self.calls, &labels, call.duration);
        match call.outcome.is_success() {
            None => {}
            Some(true) => self.recent.count(call.ended, true, call.duration),
            Some(false) => {
                // A server of somebody else may write what it likes, and a tool that fails may be right to do so.
                let symbol = call.error().and_then(|error| Symbol::from_name(&error));
                count(&self.errors, symbol.map_or(OTHER, Symbol::as_str));
                // What a server answers, and what a caller does wrong, says nothing about the gateway.
                let is_out_of_reach = matches!(
                    symbol,
                    Some(Symbol::Unavailable | Symbol::Timeout | Symbol::CircuitOpen | Symbol::Overloaded)
                );
                if is_out_of_reach {
                    self.recent.count(call.ended, false, call.duration);
                }
            }
        }
    }
}

/// A name as a label: cut where it is too long, and nothing of one that could not be told from another when it is written.
fn label(name: &str) -> &str {
    if name.chars().any(char::is_control) {
        return OTHER;
    }
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) if name.len() > LONGEST => &name[..end],
        _ => name,
    }
}

fn known(method: &Method) -> &'static str {
    method.known_name().unwrap_or(OTHER)
}

fn count(family: &Family<Label, AtomicU64>, label: &str) {
    family.with(&LabelRef(label), || Label(OTHER.into()), |count| _ = count.fetch_add(1, Relaxed));
}

impl Recorder for Metrics {
    fn wants(&self, kind: Kind) -> bool {
        matches!(
            kind,
            Kind::CallEnded
                | Kind::ServerCallEnded
                | Kind::CallRetried
                | Kind::LoginRefused
                | Kind::HostRefused
                | Kind::CircuitChanged
                | Kind::SessionEnded
        )
    }

    fn record(&self, event: &Event<'_>) {
        match event {
            Event::CallEnded(call) => self.call_ended(call),
            Event::ServerCallEnded(call) => self.server_call_ended(call),
            Event::CallRetried(it) => count(&self.retries, known(it.method)),
            Event::LoginRefused(it) => count(&self.logins_refused, it.reason),
            Event::HostRefused(_) => _ = self.hosts_refused.fetch_add(1, Relaxed),
            Event::CircuitChanged(it) if it.to == BreakerState::Open => {
                count(&self.circuits_opened, it.breaker)
            }
            Event::SessionEnded(it) => match it.server {
                None => self.client_sessions.record(it.duration),
                Some(server) => self.server_sessions.with(
                    &LabelRef(label(server)),
                    || Label(OTHER.into()),
                    |durations| durations.record(it.duration),
                ),
            },
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_labels() {
        let long = "x".repeat(LONGEST);
        let longer = format!("{long}y");
        let wide = "é".repeat(LONGEST + 1);
        for (name, expected) in [
            ("", ""),
            ("demo_add", "demo_add"),
            (&long, long.as_str()),
            (&longer, long.as_str()),
            (&wide, &wide[..2 * LONGEST]),
            ("a\u{1b}[31m", OTHER),
            ("a\nb", OTHER),
        ] {
            assert_eq!(label(name), expected, "{name:?}");
        }
    }
}

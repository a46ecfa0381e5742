//! The names of everything that is measured, their units and what is said about them.
//!
//! What OpenTelemetry names for MCP has its name; the rest is under `tidegate.`. Prometheus gets the same with underscores, the unit behind it
//! and `_total` behind counters. They are an interface: dashboards and alerts are written against them.

use crate::histogram::BOUNDS;

/// What kind of thing is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It is what it is at the moment.
    Gauge,
    /// How long things took.
    Histogram,
}

/// Something that is measured.
#[derive(Debug, PartialEq, Eq)]
pub struct Instrument {
    /// As OpenTelemetry spells it.
    pub name: &'static str,
    /// In what it is measured, as OpenTelemetry spells it: `s`, `By`, or `{call}` for a number of calls.
    pub unit: &'static str,
    /// What kind of thing it is.
    pub kind: Kind,
    /// What it says.
    pub help: &'static str,
    /// The attributes that it has.
    pub attributes: &'static [&'static str],
}

/// The method of a call.
pub const METHOD: &str = "mcp.method.name";
/// The tool that was called.
pub const TOOL: &str = "gen_ai.tool.name";
/// The server that a call was sent to, by its name in the configuration.
pub const SERVER: &str = "tidegate.server";
/// How a call ended.
pub const OUTCOME: &str = "tidegate.outcome";
/// What failed: the symbol of the error.
pub const ERROR: &str = "error.type";
/// Why something was refused.
pub const REASON: &str = "tidegate.reason";
/// For whom or what something is limited.
pub const SCOPE: &str = "tidegate.scope";
/// How urgent calls are that wait.
pub const PRIORITY: &str = "tidegate.priority";
/// What somebody should look at.
pub const ALERT_NAME: &str = "tidegate.alert.name";
/// What is kept because finding it again takes long.
pub const CACHE: &str = "tidegate.cache";
/// What carries messages: `tcp` for HTTP, `pipe` for standard input and output.
pub const TRANSPORT: &str = "network.transport";
/// The tool that was called, as Percolate has it.
pub const TOOL_OF_PERCOLATE: &str = "mcp.tool.name";
/// The version of the program.
pub const VERSION: &str = "service.version";

/// What stands for names that are not worth a label, or of which there are too many.
pub const OTHER: &str = "_OTHER";

macro_rules! instruments {
    ($($name:ident = $text:literal, $unit:literal, $kind:ident, [$($attribute:ident),*], $help:literal;)*) => {
        $(
            #[doc = $help]
            pub const $name: &Instrument = &Instrument {
                name: $text, unit: $unit, kind: Kind::$kind, help: $help, attributes: &[$($attribute),*],
            };
        )*
        /// All of them.
        pub const ALL: &[&Instrument] = &[$($name),*];
    };
}

instruments! {
    OPERATION = "mcp.server.operation.duration", "s", Histogram, [METHOD, TOOL, SERVER, OUTCOME],
        "How long calls took, from their arrival to their answer";
    CLIENT_OPERATION = "mcp.client.operation.duration", "s", Histogram, [METHOD, TOOL, SERVER, OUTCOME],
        "How long servers took to answer calls";
    SERVER_SESSION = "mcp.server.session.duration", "s", Histogram, [], "How long legacy sessions of clients were open that are over";
    CLIENT_SESSION = "mcp.client.session.duration", "s", Histogram, [SERVER], "How long legacy sessions with servers were open that are over";
    TOOL_DURATION_MS = "mcp.tool.duration_ms", "ms", Histogram, [TOOL_OF_PERCOLATE, SERVER, OUTCOME],
        "How long calls of tools took, in milliseconds";
    TOOL_ERROR_RATE = "mcp.tool.error_rate", "", Gauge, [TOOL_OF_PERCOLATE], "Which share of the calls of a tool has failed, from 0 to 1";
    CACHE_HIT_RATE = "mcp.resource.cache_hit_rate", "", Gauge, [CACHE], "How often a cache had what was looked for, from 0 to 1";
    ERRORS = "tidegate.errors", "{error}", Counter, [ERROR], "Calls that failed, by what failed";
    RETRIES = "tidegate.call.retries", "{call}", Counter, [METHOD], "Calls that were sent to their server again";
    LOGINS_REFUSED = "tidegate.logins.refused", "{request}", Counter, [REASON], "Requests that were refused because of their credentials";
    HOSTS_REFUSED = "tidegate.hosts.refused", "{request}", Counter, [], "Requests that were refused because of their Host or Origin";
    CIRCUIT_OPENED = "tidegate.circuit.opened", "{time}", Counter, [SERVER], "Times that the circuit breaker of a server has opened";
    ALERT = "tidegate.alert", "", Gauge, [ALERT_NAME], "Whether somebody should look: 1, or 0";
    CIRCUIT = "tidegate.circuit.state", "", Gauge, [SERVER], "The circuit breaker of a server: 0 closed, 1 half open, 2 open";
    SERVER_UP = "tidegate.server.up", "", Gauge, [SERVER], "Whether a server answers: 1, or 0";
    SERVER_CALLS = "tidegate.server.calls.running", "{call}", Gauge, [SERVER], "Calls that run at a server";
    SERVER_SESSIONS = "tidegate.server.sessions", "{session}", Gauge, [SERVER], "Legacy sessions that are open with a server";
    SERVER_PROCESSES = "tidegate.server.processes", "{process}", Gauge, [SERVER], "Processes of a server that the gateway has started";
    SERVER_PARKED = "tidegate.server.calls.parked", "{call}", Gauge, [SERVER], "Calls that wait for their callers to answer a question of a server";
    SERVER_SUBSCRIPTIONS = "tidegate.server.subscriptions", "{subscription}", Gauge, [SERVER], "Subscriptions to changes that are open with a server";
    SERVER_TOOLS = "tidegate.server.tools", "{tool}", Gauge, [SERVER], "Tools that are offered of a server";
    CALLS_RUNNING = "tidegate.calls.running", "{call}", Gauge, [], "Calls that have a place in the gateway";
    CALLS_WAITING = "tidegate.calls.waiting", "{call}", Gauge, [PRIORITY], "Calls that wait for a place in the gateway";
    LIMIT_WAITING = "tidegate.limit.calls.waiting", "{call}", Gauge, [SCOPE], "Calls that wait at limits of the configuration";
    RATE_LEFT = "tidegate.limit.rate.left", "1", Gauge, [SCOPE], "What is left of a rate to whoever has used most of one, from 0 to 1";
    PLACES_LEFT = "tidegate.limit.places.left", "1", Gauge, [SCOPE], "Which part of the places is free where most are taken, from 0 to 1";
    SESSIONS = "tidegate.sessions", "{session}", Gauge, [], "Legacy sessions that are open";
    SUBSCRIPTIONS = "tidegate.subscriptions", "{subscription}", Gauge, [], "Subscriptions of callers to changes that are open";
    CACHE_HITS = "tidegate.cache.hits", "{hit}", Counter, [CACHE], "Times that a cache had what was looked for";
    CACHE_MISSES = "tidegate.cache.misses", "{miss}", Counter, [CACHE], "Times that a cache did not have what was looked for";
    RECEIVED = "tidegate.received", "By", Counter, [TRANSPORT], "Bytes of messages that came from clients, without headers and framing";
    SENT = "tidegate.sent", "By", Counter, [TRANSPORT], "Bytes of messages that went to clients, without headers and framing";
    BUFFERED = "tidegate.buffered", "By", Gauge, [], "Bytes of messages that the gateway holds";
    BUFFERED_LIMIT = "tidegate.buffered.limit", "By", Gauge, [], "How many it may hold (max_buffered)";
    SPANS_DROPPED = "tidegate.spans.dropped", "{span}", Counter, [], "Spans that no collector took";
    BUILD = "tidegate.build_info", "", Gauge, [VERSION], "Always 1; the version is a label";
    START = "process.start_time", "s", Gauge, [], "When the process started, in seconds since 1970";
    MEMORY = "process.resident_memory", "By", Gauge, [], "Memory that the process has";
    CPU = "process.cpu", "s", Counter, [], "Time that the process has run on all processors";
    DESCRIPTORS = "process.open_fds", "", Gauge, [], "Open file descriptors of the process";
}

impl Instrument {
    /// The upper bounds of the buckets of a histogram, in its unit.
    pub fn bounds(&self) -> [f64; BOUNDS.len()] {
        let times = if self.unit == "ms" { 1000.0 } else { 1.0 };
        BOUNDS.map(|seconds| seconds * times)
    }

    /// As Prometheus spells it, without what is behind series of counters and histograms.
    pub fn prometheus(&self) -> String {
        let mut name: String =
            self.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        match self.unit {
            "s" => name.push_str("_seconds"),
            "By" => name.push_str("_bytes"),
            "1" => name.push_str("_ratio"),
            _ => {}
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_an_interface() {
        let lines: Vec<String> = ALL
            .iter()
            .map(|one| {
                format!(
                    "{} {:?} {} {:?} {:?}",
                    one.name,
                    one.kind,
                    one.prometheus(),
                    one.unit,
                    one.attributes
                )
            })
            .collect();
        insta::assert_snapshot!(lines.join("\n"));
    }
}

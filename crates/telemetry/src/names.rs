//! The names of everything that is measured, their units and what is said about them.
//!
//! What OpenTelemetry names for MCP has its name; the rest is under `tidegate.`. Prometheus gets the same with underscores, the unit behind it
//! and `_total` behind counters. They are an interface: dashboards and alerts are written against them.

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
    ERRORS = "tidegate.errors", "{error}", Counter, [ERROR], "Calls that failed, by what failed";
    RETRIES = "tidegate.call.retries", "{call}", Counter, [METHOD], "Calls that were sent to their server again";
    LOGINS_REFUSED = "tidegate.logins.refused", "{request}", Counter, [REASON], "Requests that were refused because of their credentials";
    HOSTS_REFUSED = "tidegate.hosts.refused", "{request}", Counter, [], "Requests that were refused because of their Host or Origin";
    CIRCUIT_OPENED = "tidegate.circuit.opened", "{time}", Counter, [SERVER], "Times that the circuit breaker of a server has opened";
    ALERT = "tidegate.alert", "", Gauge, [ALERT_NAME], "Whether somebody should look: 1, or 0";
    CIRCUIT = "tidegate.circuit.state", "", Gauge, [SERVER], "The circuit breaker of a server: 0 closed, 1 half open, 2 open";
    SERVER_UP = "tidegate.server.up", "", Gauge, [SERVER], "Whether a server answers: 1, or 0";
    SERVER_CALLS = "tidegate.server.calls.running", "{call}", Gauge, [SERVER], "Calls that run at a server";
    SERVER_TOOLS = "tidegate.server.tools", "{tool}", Gauge, [SERVER], "Tools that are offered of a server";
    CALLS_RUNNING = "tidegate.calls.running", "{call}", Gauge, [], "Calls that have a place in the gateway";
    CALLS_WAITING = "tidegate.calls.waiting", "{call}", Gauge, [PRIORITY], "Calls that wait for a place in the gateway";
    LIMIT_WAITING = "tidegate.limit.calls.waiting", "{call}", Gauge, [SCOPE], "Calls that wait at limits of the configuration";
    SESSIONS = "tidegate.sessions", "{session}", Gauge, [], "Legacy sessions that are open";
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
    /// As Prometheus spells it, without what is behind series of counters and histograms.
    pub fn prometheus(&self) -> String {
        let mut name: String =
            self.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        match self.unit {
            "s" => name.push_str("_seconds"),
            "By" => name.push_str("_bytes"),
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

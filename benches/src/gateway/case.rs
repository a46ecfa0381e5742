//! What gateways are measured with: what is behind them, the era, how many connections, and how long results are.

use std::fmt;

use crate::case::Payload;
use crate::request::Ask;

use super::door::Door;

/// One line of comparison between gateways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GatewayCase {
    pub(crate) setting: Setting,
    /// Each with one request in flight.
    pub(crate) connections: usize,
    /// Of the result; requests are short.
    pub(crate) payload: Payload,
}

/// What a gateway is started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) upstream: Upstream,
    pub(crate) era: Era,
}

/// How the gateway reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upstream {
    Http,
    Stdio,
}

/// What the load speaks, and the server too where the gateway can be told so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// 2026-07-28, without sessions.
    Modern,
    /// 2025-11-25, with a session on each connection.
    Legacy,
}

impl Setting {
    pub(crate) const ALL: [Self; 4] = [
        Self { upstream: Upstream::Http, era: Era::Modern },
        Self { upstream: Upstream::Stdio, era: Era::Modern },
        Self { upstream: Upstream::Http, era: Era::Legacy },
        Self { upstream: Upstream::Stdio, era: Era::Legacy },
    ];

    /// Its cases. A smoke check makes do with one number of connections.
    pub(crate) fn cases(self, quick: bool) -> Vec<GatewayCase> {
        let connections: &[usize] = if quick { &[16] } else { &[1, 16, 64] };
        let mut cases = Vec::new();
        for payload in [Payload::Small, Payload::Large] {
            for &connections in connections {
                cases.push(GatewayCase { setting: self, connections, payload });
            }
        }
        cases
    }
}

impl GatewayCase {
    /// What is asked for at a door.
    pub(crate) fn ask(self, door: &Door) -> Ask {
        let message = Payload::Small.message();
        let times = self.payload.message().len() / message.len();
        Ask::repeated_echo(door.path, door.tool, &message, times).with_credentials(door.credentials.clone())
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let upstream = match self.upstream {
            Upstream::Http => "http",
            Upstream::Stdio => "stdio",
        };
        let era = match self.era {
            Era::Modern => "modern",
            Era::Legacy => "legacy",
        };
        write!(f, "{upstream} {era}")
    }
}

impl fmt::Display for GatewayCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x{} {}", self.setting, self.connections, self.payload)
    }
}

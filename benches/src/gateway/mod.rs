//! The gateways that are compared: what each of them can, how it is installed and how it is started.

pub(crate) mod case;
pub(crate) mod door;
pub(crate) mod extra;
pub(crate) mod peers;
pub(crate) mod plan;
mod recipe;
pub(crate) mod report;
pub(crate) mod running;
pub(crate) mod wanted;

use std::fmt;

use crate::binaries::{Binaries, Program};
use crate::case::Payload;

use case::{Era, GatewayCase, Setting, Upstream};
use extra::Extra;
use peers::{Peer, Peers};

/// The programs that take part.
#[derive(Clone, Copy)]
pub(crate) struct Kit<'a> {
    pub(crate) binaries: &'a Binaries,
    pub(crate) peers: &'a Peers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gateway {
    /// None: the load goes straight to the server.
    Direct,
    /// Bare hyper that passes requests on.
    FloorProxy,
    /// `tidegate serve`.
    Ours,
    /// The same with something switched on.
    OursWith(Extra),
    /// The same with two tenants that share a slow tool, of which few calls run at once. No row of the table.
    OursWithTenants,
    /// The Rust crate `mcp-proxy`.
    McpProxy,
    /// FastMCP's `create_proxy`.
    FastMcp,
    /// The Python package `mcp-proxy`.
    PythonMcpProxy,
    /// The npm package.
    Supergateway,
}

impl Gateway {
    pub(crate) const ALL: [Self; 21] = [
        Self::Direct,
        Self::FloorProxy,
        Self::Ours,
        Self::OursWith(Extra::Key),
        Self::OursWith(Extra::Token),
        Self::OursWith(Extra::NewTokens),
        Self::OursWith(Extra::Rules),
        Self::OursWith(Extra::Condition),
        Self::OursWith(Extra::Limits),
        Self::OursWith(Extra::Audit),
        Self::OursWith(Extra::AccessLine),
        Self::OursWith(Extra::Metrics),
        Self::OursWith(Extra::Stories),
        Self::OursWith(Extra::FewTraces),
        Self::OursWith(Extra::AllTraces),
        Self::OursWith(Extra::Telemetry),
        Self::OursWith(Extra::Everything),
        Self::McpProxy,
        Self::FastMcp,
        Self::PythonMcpProxy,
        Self::Supergateway,
    ];

    /// What `tidegate serve` does in addition.
    pub(crate) fn extra(self) -> Option<Extra> {
        match self {
            Self::OursWith(extra) => Some(extra),
            _ => None,
        }
    }

    /// What a row of it is called when rows are picked: those of ours have one beginning.
    pub(crate) fn row_name(self, case: GatewayCase) -> String {
        match self.to_string().split_once(", ") {
            Some((ours, how)) => format!("{ours} gateway {case}, {how}"),
            None => format!("{self} gateway {case}"),
        }
    }

    /// The programs of this workspace that it takes, besides the server behind it.
    pub(crate) fn program(self) -> Option<Program> {
        match self {
            Self::FloorProxy => Some(Program::peer("floor-proxy")),
            Self::Ours | Self::OursWith(_) | Self::OursWithTenants => Some(Program::OUR_GATEWAY),
            _ => None,
        }
    }

    /// What has to be installed for it.
    pub(crate) fn peer(self) -> Option<Peer> {
        match self {
            Self::McpProxy => Some(Peer::McpProxy),
            Self::FastMcp => Some(Peer::FastMcp),
            Self::PythonMcpProxy => Some(Peer::PythonMcpProxy),
            Self::Supergateway => Some(Peer::Supergateway),
            Self::Direct | Self::FloorProxy | Self::Ours | Self::OursWith(_) | Self::OursWithTenants => None,
        }
    }

    /// Whether it takes part: some have only pipes behind them, and some do not know 2026-07-28. The slow ones make do
    /// with fewer cases.
    pub(crate) fn takes(self, case: GatewayCase) -> bool {
        let Setting { upstream, era } = case.setting;
        let can = match self {
            Self::Direct | Self::Ours | Self::McpProxy | Self::FastMcp => true,
            Self::FloorProxy => upstream == Upstream::Http,
            // What that costs does not depend on what is behind.
            Self::OursWith(_) => {
                let is_small = case.connections == 16 && case.payload == Payload::Small;
                upstream == Upstream::Http && era == Era::Modern && is_small
            }
            Self::OursWithTenants => false,
            Self::PythonMcpProxy | Self::Supergateway => upstream == Upstream::Stdio && era == Era::Legacy,
        };
        can && (!self.is_slow() || case.payload == Payload::Small || case.connections == 16)
    }

    /// Whether it puts the lists of many servers together, or stands for what would be possible.
    pub(crate) fn lists_many(self) -> bool {
        self.extra().is_none() && !matches!(self, Self::PythonMcpProxy | Self::Supergateway)
    }

    /// Whether it can have ten servers behind it.
    pub(crate) fn mounts_many(self) -> bool {
        matches!(self, Self::Ours | Self::McpProxy | Self::FastMcp)
    }

    /// Whether callgrind can count it: a native program.
    pub(crate) fn is_counted(self) -> bool {
        self.extra().is_some() || matches!(self, Self::FloorProxy | Self::Ours | Self::McpProxy)
    }

    /// Whether it is so slow that one round says enough.
    pub(crate) fn is_slow(self) -> bool {
        matches!(self, Self::FastMcp | Self::PythonMcpProxy | Self::Supergateway)
    }
}

impl fmt::Display for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Direct => "direct",
            Self::FloorProxy => "floor-proxy",
            Self::Ours => "ours",
            Self::OursWith(extra) => extra.row_name(),
            Self::OursWithTenants => "ours, two tenants",
            Self::McpProxy => "mcp-proxy",
            Self::FastMcp => "fastmcp",
            Self::PythonMcpProxy => "mcp-proxy (py)",
            Self::Supergateway => "supergateway",
        })
    }
}

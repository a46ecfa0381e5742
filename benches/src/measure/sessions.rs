//! Resident memory of legacy sessions that were opened and then left alone, without a GET stream.

use anyhow::{Context, Result};
use tidegate_benches_common::core::Core;
use tidegate_benches_common::process;

use crate::binaries::Binaries;
use crate::case::Transport;
use crate::load::session::Blocking;
use crate::server::{Running, Server};

/// What idle sessions cost.
pub(crate) struct Idle {
    pub(crate) server: Server,
    pub(crate) sessions: usize,
    /// Resident bytes before the first session and with all of them open.
    pub(crate) before: u64,
    pub(crate) after: u64,
}

/// `None` for the floor, which has no sessions.
pub(crate) fn measure(binaries: &Binaries, server: Server) -> Result<Option<Idle>> {
    let sessions = match server {
        Server::Floor => return Ok(None),
        Server::Ours => 10_000,
        // Enough to know what one costs, and not more than a peer was perhaps meant to hold.
        Server::Rmcp => 2_000,
    };
    eprintln!("sessions   {server}: opening {sessions}");
    let open = || -> Result<Idle> {
        let running = Running::start(binaries, server, Transport::LegacyHttp, Core::Server, &[])?;
        let mut connection = Blocking::connect(running.addr()?)?;
        let before = process::resident(running.pid())?;
        for n in 0..sessions {
            connection.open_session("/mcp").with_context(|| format!("session {n}"))?;
        }
        Ok(Idle { server, sessions, before, after: process::resident(running.pid())? })
    };
    Ok(Some(open().with_context(|| format!("idle sessions of {server}"))?))
}

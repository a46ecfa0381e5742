//! The clients that are compared, and the server that they call.

mod floor;
pub(crate) mod program;

use std::ffi::OsString;
use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result};
use tidegate_benches_common::core::Core;
use tidegate_benches_common::figures::Figures;

use crate::binaries::{Binaries, Program};
use crate::case::{Case, Transport};
use crate::server::{Running, Server};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// The load generator in place of a client: what kernel and server allow.
    Floor,
    /// This project's client library.
    Ours,
    /// The official SDK.
    Rmcp,
}

impl Client {
    pub(crate) const ALL: [Self; 3] = [Self::Floor, Self::Ours, Self::Rmcp];

    /// `None` for what runs in this process.
    pub(crate) fn program(self) -> Option<Program> {
        match self {
            Self::Floor => None,
            Self::Ours => Some(Program::OUR_CLIENT),
            Self::Rmcp => Some(Program::peer("rmcp-caller")),
        }
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Floor => "floor",
            Self::Ours => "ours",
            Self::Rmcp => "rmcp",
        })
    }
}

/// How long a client calls before what counts begins, and how long then.
#[derive(Clone, Copy)]
pub(crate) struct Stages {
    pub(crate) warm_up: Duration,
    pub(crate) measured: Duration,
}

/// The server that the clients of a case call: always ours.
pub(crate) enum Callee {
    /// One process that all of them reach.
    Listening(Running),
    /// Over pipes every client starts one of its own.
    Started(Vec<OsString>),
}

impl Callee {
    pub(crate) fn start(binaries: &Binaries, transport: Transport) -> Result<Self> {
        if transport != Transport::Stdio {
            let server = Running::start(binaries, Server::Ours, transport, Core::Server, &[])?;
            return Ok(Self::Listening(server));
        }
        let mut words: Vec<OsString> = Core::Server.prefix().into_iter().map(OsString::from).collect();
        words.push(binaries.path(Server::Ours.program())?.to_owned());
        words.push("--stdio".into());
        Ok(Self::Started(words))
    }
}

/// One round of a client.
pub(crate) fn round(
    binaries: &Binaries,
    client: Client,
    case: Case,
    callee: &Callee,
    stages: Stages,
) -> Result<Figures> {
    let figures = match client.program() {
        Some(program) => program::run(binaries, program, case, callee, program::Length::Time(stages), &[]),
        None => floor::round(binaries, case, callee, stages),
    };
    figures.with_context(|| format!("the client {client}, {case}"))
}

//! The servers that are compared: how they are started and stopped.

use std::ffi::OsString;
use std::fmt;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::ValueEnum;
use tidegate_benches_common::core::Core;

use crate::binaries::{Binaries, Program};
use crate::case::{Case, Transport};
use crate::load::Load;
use crate::load::http::HttpLoad;
use crate::load::stdio::StdioLoad;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Server {
    /// Bare hyper that only splits the envelope.
    Floor,
    /// This framework.
    Ours,
    /// The official SDK.
    Rmcp,
}

impl Server {
    pub(crate) const ALL: [Self; 3] = [Self::Floor, Self::Ours, Self::Rmcp];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Ours => "ours",
            Self::Rmcp => "rmcp",
        }
    }

    pub(crate) fn program(self) -> Program {
        match self {
            Self::Floor => Program::FLOOR,
            Self::Ours => Program::OUR_SERVER,
            Self::Rmcp => Program::peer("rmcp-echo"),
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// A server process; killed when dropped.
pub(crate) struct Running {
    child: Child,
    addr: Option<SocketAddr>,
}

impl Running {
    /// Starts the server for this transport, on this core; `wrapper` is a program to run it under.
    pub(crate) fn start(
        binaries: &Binaries,
        server: Server,
        transport: Transport,
        core: Core,
        wrapper: &[OsString],
    ) -> Result<Self> {
        let binary = binaries.path(server.program())?;
        let mut command = match wrapper {
            [program, arguments @ ..] => {
                let mut command = core.command(program);
                command.args(arguments).arg(binary);
                command
            }
            [] => core.command(binary),
        };
        match transport {
            Transport::Stdio => command.arg("--stdio").stdin(Stdio::piped()),
            Transport::ModernHttp | Transport::LegacyHttp => {
                command.args(["--listen", "127.0.0.1:0"]).stdin(Stdio::null())
            }
        };
        // Logs are written as in production, to where nothing has to be drained.
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let child = child.with_context(|| format!("starting {}", binary.display()))?;
        let mut running = Self { child, addr: None };
        if transport != Transport::Stdio {
            running.addr = Some(running.read_address().with_context(|| format!("starting {server}"))?);
        }
        Ok(running)
    }

    /// The servers ask for any free port and say on stdout which they got.
    fn read_address(&mut self) -> Result<SocketAddr> {
        let output = self.child.stdout.take().context("no stdout")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        address_in(&line)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn addr(&self) -> Result<SocketAddr> {
        self.addr.context("a server over stdio has no address")
    }

    /// Connects a load for `case` and checks the first answers.
    pub(crate) fn connect(&mut self, case: Case) -> Result<Box<dyn Load>> {
        if self.addr.is_some() {
            return Ok(Box::new(HttpLoad::connect(self.addr()?, case)?));
        }
        let input = self.child.stdin.take().context("no stdin left")?;
        let output = self.child.stdout.take().context("no stdout left")?;
        Ok(Box::new(StdioLoad::connect(input, output, case)?))
    }

    /// Asks the server to end and waits until it has, so that a profiler around it can write its file.
    pub(crate) fn stop(mut self) -> Result<()> {
        stop(&mut self.child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The address at the end of the first line that a server prints.
pub(crate) fn address_in(line: &str) -> Result<SocketAddr> {
    let addr = line.trim().rsplit(' ').next().unwrap_or_default();
    addr.trim_start_matches("http://")
        .trim_end_matches("/mcp")
        .parse()
        .with_context(|| format!("no address in its first line {line:?}; run it by hand to see why"))
}

/// Asks a process to end and waits until it has.
pub(crate) fn stop(child: &mut Child) -> Result<()> {
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process(pid.context("pid")?, rustix::process::Signal::TERM)?;
    let deadline = Instant::now() + Duration::from_secs(30);
    while child.try_wait()?.is_none() {
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            anyhow::bail!("it did not end within 30 s of SIGTERM");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

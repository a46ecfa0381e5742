//! [`Fronted`]: a gateway that runs, and [`Behind`]: what it stands in front of.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use tidegate_benches_common::core::Core;

use super::case::{Era, GatewayCase, Setting, Upstream};
use super::door::Door;
use super::recipe::{Listens, Recipe};
use super::{Gateway, Kit};
use crate::binaries::{Binaries, Program};
use crate::case::Transport;
use crate::load::Load;
use crate::load::http::HttpLoad;
use crate::load::stdio::StdioLoad;
use crate::request::{Ask, Request};
use crate::server::{self, Running, Server};

/// How long a gateway may take to answer for the first time. Generous, because they also run under callgrind.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a gateway is in front of.
pub(crate) enum Behind {
    /// The echo at an address.
    Http(SocketAddr),
    /// The echo as a child, by its command line.
    Stdio(Vec<String>),
    /// So many servers with forty tools each, at one address.
    Many(SocketAddr, usize),
    /// Ours without any configuration.
    Demonstration,
}

impl Behind {
    pub(super) fn addr(&self) -> Option<SocketAddr> {
        match self {
            Self::Http(addr) | Self::Many(addr, _) => Some(*addr),
            Self::Stdio(_) | Self::Demonstration => None,
        }
    }

    pub(super) fn command(&self) -> Result<&[String]> {
        match self {
            Self::Stdio(words) => Ok(words),
            _ => anyhow::bail!("it has only commands behind it"),
        }
    }

    /// Where the floor has the same by itself.
    pub(super) fn floor_path(&self) -> &'static str {
        if matches!(self, Self::Many(..)) { "/all/mcp" } else { "/mcp" }
    }
}

/// The server behind the gateways of a setting: always the floor, on the load generator's core, so that gateways have
/// theirs for themselves.
pub(crate) struct Upstreams {
    /// Over HTTP there is one for all of them.
    listening: Option<Running>,
    pub(crate) behind: Behind,
}

impl Upstreams {
    pub(crate) fn start(binaries: &Binaries, upstream: Upstream) -> Result<Self> {
        if upstream == Upstream::Stdio {
            let mut words: Vec<String> = Core::Load.prefix().into_iter().map(str::to_owned).collect();
            let floor = binaries.path(Program::FLOOR)?;
            words.push(floor.to_str().context("the target directory is no text")?.to_owned());
            words.push("--stdio".to_owned());
            return Ok(Self { listening: None, behind: Behind::Stdio(words) });
        }
        let floor = Running::start(binaries, Server::Floor, Transport::ModernHttp, Core::Load, &[])?;
        let behind = Behind::Http(floor.addr()?);
        Ok(Self { listening: Some(floor), behind })
    }

    /// None: the gateway brings its own.
    pub(crate) fn demonstration() -> Self {
        Self { listening: None, behind: Behind::Demonstration }
    }

    /// So many servers, which are paths of one.
    pub(crate) fn many(binaries: &Binaries, count: usize) -> Result<Self> {
        let mut one = Self::start(binaries, Upstream::Http)?;
        one.behind = Behind::Many(one.behind.addr().context("no address")?, count);
        Ok(one)
    }
}

/// A gateway process, or the server itself where there is no gateway; killed when dropped.
pub(crate) struct Fronted {
    gateway: Gateway,
    child: Option<Child>,
    /// Kept open, so that nothing that it prints later hurts it.
    output: Option<BufReader<ChildStdout>>,
    door: Option<Door>,
    server: Option<u32>,
    folder: Folder,
}

impl Fronted {
    /// Starts a gateway on this core and waits until it is there; `wrapper` is a program to run it under.
    pub(crate) fn start(
        kit: Kit<'_>,
        gateway: Gateway,
        setting: Setting,
        upstreams: &Upstreams,
        core: Core,
        wrapper: &[OsString],
    ) -> Result<Self> {
        let mut fronted = Self::launch(kit, gateway, setting.era, upstreams, core, wrapper)?;
        if let Some(door) = &fronted.door {
            let ask = Ask::repeated_echo(door.path, door.tool, "hello", 1);
            let ask = ask.with_credentials(door.credentials.clone());
            fronted.first_answer(setting.era, &ask, PATIENCE)?;
        }
        Ok(fronted)
    }

    /// The same without waiting.
    pub(crate) fn launch(
        kit: Kit<'_>,
        gateway: Gateway,
        era: Era,
        upstreams: &Upstreams,
        core: Core,
        wrapper: &[OsString],
    ) -> Result<Self> {
        let folder = Folder::new()?;
        let mut this = Self { gateway, child: None, output: None, door: None, server: None, folder };
        let behind = &upstreams.behind;
        if gateway == Gateway::Direct {
            // Over its pipes the server has room for one load, so each load starts its own.
            if let Some(server) = &upstreams.listening {
                this.door = Some(Door::open(server.addr()?, behind.floor_path()));
                this.server = Some(server.pid());
            }
            return Ok(this);
        }
        let folder = &this.folder.0;
        let recipe = Recipe::of(gateway, era, behind, kit, folder, free_port()?)?;
        let words: Vec<&OsString> = wrapper.iter().chain(&recipe.words).collect();
        let mut command = core.command(words[0]);
        command.args(&words[1..]);
        // Neither logins nor settings of whoever runs this take part.
        command.current_dir(folder).env("HOME", folder);
        for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"] {
            command.env(name, folder.join(name));
        }
        // Logs are written as in production, to where nothing has to be drained.
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command.stdout(match recipe.listens {
            Listens::Announced => Stdio::piped(),
            Listens::At(_) => Stdio::null(),
        });
        let child = command.spawn().with_context(|| format!("starting {}", recipe.words[0].display()))?;
        this.server = Some(child.id());
        this.child = Some(child);
        let addr = match recipe.listens {
            Listens::At(port) => ([127, 0, 0, 1], port).into(),
            Listens::Announced => this.read_address()?,
        };
        let Recipe { path, tool, credentials, .. } = recipe;
        this.door = Some(Door { addr, path, tool, credentials });
        Ok(this)
    }

    fn read_address(&mut self) -> Result<SocketAddr> {
        let output = self.child.as_mut().and_then(|child| child.stdout.take()).context("no stdout")?;
        let mut output = BufReader::new(output);
        let mut line = String::new();
        output.read_line(&mut line)?;
        self.output = Some(output);
        server::address_in(&line)
    }

    pub(crate) fn pid(&self) -> Result<u32> {
        self.server.context("it does not run")
    }

    pub(crate) fn door(&self) -> Result<&Door> {
        self.door.as_ref().context("there is no door")
    }

    /// Asks until the right answer comes, and returns its length.
    pub(crate) fn first_answer(&mut self, era: Era, ask: &Ask, patience: Duration) -> Result<usize> {
        let door = self.door()?.clone();
        door.first_answer(era, ask, self.child.as_mut(), patience)
    }

    /// Connects a load for `case` and checks the first answers.
    pub(crate) fn connect(&mut self, binaries: &Binaries, case: GatewayCase) -> Result<Box<dyn Load>> {
        if let Some(door) = &self.door {
            return self.ask(case.setting.era, case.connections, case.ask(door));
        }
        let mut command = Core::Load.command(binaries.path(Program::FLOOR)?);
        command.arg("--stdio").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        self.end();
        let child = self.child.insert(command.spawn().context("starting the floor")?);
        self.server = Some(child.id());
        let input = child.stdin.take().context("no stdin")?;
        let output = child.stdout.take().context("no stdout")?;
        let ask = case.ask(&Door::open(([127, 0, 0, 1], 0).into(), "/mcp"));
        let request = match case.setting.era {
            Era::Modern => Request::modern_stdio(&ask),
            Era::Legacy => Request::legacy_stdio(&ask),
        };
        Ok(Box::new(StdioLoad::open(input, output, request, case.connections, ask)?))
    }

    /// Connects a load that asks for something.
    pub(crate) fn ask(&self, era: Era, connections: usize, ask: Ask) -> Result<Box<dyn Load>> {
        Ok(Box::new(HttpLoad::open(self.door()?.addr, era == Era::Legacy, connections, ask)?))
    }

    /// Asks it to end and waits until it has, so that a profiler around it can write its file.
    pub(crate) fn stop(mut self) -> Result<()> {
        let mut child = self.child.take().with_context(|| format!("{} has no process", self.gateway))?;
        server::stop(&mut child)
    }

    fn end(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Fronted {
    fn drop(&mut self) {
        self.end();
    }
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// A temporary folder, removed when done with.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("tidegate-bench-{}-{count}.gateway", std::process::id()));
        std::fs::create_dir_all(&path).with_context(|| format!("creating {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

//! The fixtures, `conformance-server` and `conformance-client`: building them; and starting servers, and making sure that
//! they end with us.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::conformance::Era;
use crate::leg::Leg;
use crate::shell;

const STARTS_WITHIN: Duration = Duration::from_secs(20);

/// Builds the fixture for a leg of the suite and returns its path.
pub(crate) fn build(leg: Leg) -> Result<PathBuf> {
    program(&format!("conformance-{}", leg.name()))
}

/// Builds a program of the workspace and returns its path.
pub(crate) fn program(name: &str) -> Result<PathBuf> {
    // No `--package`: that would build its dependencies once more with fewer features.
    shell::check(&mut shell::cargo(&["build", "--quiet", "--all-features", "--bin", name]))?;
    Ok(shell::binaries()?.join(format!("{name}{}", std::env::consts::EXE_SUFFIX)))
}

/// A running server, killed when dropped.
pub(crate) struct Fixture {
    name: String,
    child: Child,
    address: SocketAddr,
}

impl Fixture {
    /// Builds and starts the fixture server.
    pub(crate) fn start(era: Era) -> Result<Self> {
        Fixture::spawn(&build(Leg::Server)?, &["--era".as_ref(), era.name().as_ref()])
    }

    /// Starts a program that takes `--listen`, and waits until it accepts connections. Its output goes to a log file.
    pub(crate) fn spawn(program: &Path, args: &[&OsStr]) -> Result<Self> {
        let dir = shell::conformance_dir()?;
        fs::create_dir_all(&dir)?;
        let name = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let log_path = dir.join(format!("{name}.log"));
        let log = File::create(&log_path).with_context(|| format!("creating {}", log_path.display()))?;

        let address = free_address()?;
        let child = Command::new(program)
            .args(args)
            .args(["--listen", &address.to_string()])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("could not start {}", program.display()))?;
        let mut fixture = Self { name, child, address };
        fixture.wait().with_context(|| format!("its output is in {}", log_path.display()))?;
        Ok(fixture)
    }

    /// The MCP endpoint.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    fn wait(&mut self) -> Result<()> {
        let start = Instant::now();
        while start.elapsed() < STARTS_WITHIN {
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended at once ({status})", self.name);
            }
            if TcpStream::connect_timeout(&self.address, Duration::from_secs(1)).is_ok() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(50));
        }
        bail!("{} did not accept connections within {} seconds", self.name, STARTS_WITHIN.as_secs())
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // Either may fail when the server has ended on its own, which is what we want. A child of a gateway ends with its
        // input.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that was free a moment ago; we cannot ask the server for it, because its output is a log.
fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("looking for a free port")?;
    Ok(listener.local_addr()?)
}

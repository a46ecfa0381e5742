//! The fixtures, `conformance-server` and `conformance-client`: building them; and starting the server, and making
//! sure that it ends with us.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
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
    let name = format!("conformance-{}", leg.name());
    // No `--package`: that would build its dependencies once more with fewer features.
    shell::check(&mut shell::cargo(&["build", "--quiet", "--all-features", "--bin", &name]))?;
    Ok(shell::binaries()?.join(format!("{name}{}", std::env::consts::EXE_SUFFIX)))
}

/// A running fixture server, killed when dropped.
pub(crate) struct Fixture {
    child: Child,
    address: SocketAddr,
}

impl Fixture {
    /// Builds and starts the server, and waits until it accepts connections. Its output goes to a log file.
    pub(crate) fn start(era: Era) -> Result<Self> {
        let program = build(Leg::Server)?;
        let dir = shell::conformance_dir()?;
        fs::create_dir_all(&dir)?;
        let log_path = dir.join("server.log");
        let log = File::create(&log_path).with_context(|| format!("creating {}", log_path.display()))?;

        let address = free_address()?;
        let child = Command::new(&program)
            .args(["--listen", &address.to_string(), "--era", era.name()])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("could not start {}", program.display()))?;
        let mut fixture = Self { child, address };
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
                bail!("conformance-server ended at once ({status})");
            }
            if TcpStream::connect_timeout(&self.address, Duration::from_secs(1)).is_ok() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(50));
        }
        bail!("conformance-server did not accept connections within {} seconds", STARTS_WITHIN.as_secs())
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // Either may fail when the server has ended on its own, which is what we want.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that was free a moment ago; we cannot ask the server for it, because its output is a log.
fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("looking for a free port")?;
    Ok(listener.local_addr()?)
}

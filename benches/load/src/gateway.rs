//! [`Gateway`]: the program under load, with limits on.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

/// How long it may take to start.
const STARTS_WITHIN: Duration = Duration::from_secs(30);

/// A running program, killed when dropped.
pub(crate) struct Gateway {
    child: Child,
    folder: PathBuf,
    pub(crate) address: SocketAddr,
}

impl Gateway {
    /// Starts it for so many connections, with limits of so many calls a second.
    pub(crate) async fn start(program: &Path, connections: usize, limit: u32) -> Result<Gateway> {
        let folder = std::env::temp_dir().join(format!("tidegate-load-{}", std::process::id()));
        std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        let config = format!(
            "state_dir = \"state\"\nmax_connections = {}\n[limits]\ntenant = false\n\
             tool = {{ rate = \"{limit}/s\" }}\nserver = {{ concurrent = 256, queue = 10000, wait = \"30s\" }}\n\
             [servers.demo]\nbuiltin = \"demo\"\n",
            connections + 256
        );
        std::fs::write(folder.join("tidegate.toml"), config).context("writing the configuration")?;
        let file = |name: &str| File::create(folder.join(name)).context("a file for what it says");
        // It runs in a folder of its own.
        let program =
            &program.canonicalize().with_context(|| format!("looking for {}", program.display()))?;
        let child = Command::new(program)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .current_dir(&folder)
            .env("HOME", &folder)
            .env("LOG_LEVEL", "warn")
            .stdin(Stdio::null())
            .stdout(file("out")?)
            .stderr(file("err")?)
            .spawn()
            .with_context(|| format!("could not start {}", program.display()))?;
        let mut gateway = Gateway { child, folder, address: ([127, 0, 0, 1], 0).into() };
        let start = Instant::now();
        while start.elapsed() < STARTS_WITHIN {
            if let Some(status) = gateway.child.try_wait()? {
                bail!("the gateway ended at once ({status}): {}", gateway.said("err"));
            }
            let out = gateway.said("out");
            let url = out.split("http://").nth(1).and_then(|rest| rest.split("/mcp").next());
            if let Some(address) = url.and_then(|url| url.parse().ok()) {
                gateway.address = address;
                return Ok(gateway);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        bail!("the gateway did not say where it is within {STARTS_WITHIN:?}")
    }

    fn said(&self, file: &str) -> String {
        std::fs::read_to_string(self.folder.join(file)).unwrap_or_default()
    }

    /// Where its log is.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join("err")
    }

    /// How many bytes it has in memory; 0 where nobody tells.
    pub(crate) fn memory(&self) -> Result<u64> {
        let Ok(pages) = std::fs::read_to_string(format!("/proc/{}/statm", self.child.id())) else {
            return Ok(0);
        };
        let resident = pages.split_whitespace().nth(1).context("the second number of statm")?;
        Ok(resident.parse::<u64>()? * rustix::param::page_size() as u64)
    }

    /// Tells it to end.
    pub(crate) fn terminate(&self) -> Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).context("a process id")?;
        kill_process(pid, Signal::TERM).context("sending SIGTERM")
    }

    /// Waits for its end.
    pub(crate) async fn ended(&mut self, within: Duration) -> Result<ExitStatus> {
        let start = Instant::now();
        while start.elapsed() < within {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        bail!("the gateway does not end: {}", self.said("err"))
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // Both fail when it has ended, which is what we want.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

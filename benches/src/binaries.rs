//! [`Binaries`]: the release builds of the programs that are measured.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

/// A binary of a package of this workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    package: &'static str,
    binary: &'static str,
}

impl Program {
    pub(crate) const OUR_SERVER: Self = Self { package: "tidegate-benches", binary: "tidegate-echo" };
    pub(crate) const OUR_CLIENT: Self =
        Self { package: "tidegate-benches-caller", binary: "tidegate-caller" };

    pub(crate) const OUR_GATEWAY: Self = Self { package: "tidegate-command", binary: "tidegate" };
    pub(crate) const FLOOR: Self = Self::peer("floor");

    pub(crate) const fn peer(binary: &'static str) -> Self {
        Self { package: "tidegate-benches-peers", binary }
    }
}

/// Where the optimised binaries are.
pub(crate) struct Binaries(Vec<(Program, PathBuf)>);

impl Binaries {
    /// Builds what is asked for as it is packaged. Cargo itself says where it put the result, so that no target directory
    /// has to be guessed.
    pub(crate) fn build(programs: &[Program]) -> Result<Self> {
        let mut found = Vec::new();
        for &program in programs {
            let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
                .current_dir(env!("CARGO_MANIFEST_DIR"))
                .args(["build", "--profile", "dist", "--message-format=json-render-diagnostics"])
                // Allocations are counted by the names of functions.
                .args(["--config", "profile.dist.strip=\"none\""])
                .args(["-p", program.package, "--bin", program.binary])
                .stderr(Stdio::inherit())
                .output()
                .context("running cargo")?;
            anyhow::ensure!(output.status.success(), "building {} failed", program.binary);
            let path = output
                .stdout
                .split(|&byte| byte == b'\n')
                .filter_map(|line| serde_json::from_slice::<Value>(line).ok())
                .filter(|message| message["target"]["name"] == program.binary)
                .find_map(|message| message["executable"].as_str().map(PathBuf::from))
                .with_context(|| format!("cargo did not name the binary {}", program.binary))?;
            found.push((program, path));
        }
        Ok(Self(found))
    }

    pub(crate) fn path(&self, program: Program) -> Result<&OsStr> {
        let found = self.0.iter().find(|(there, _)| *there == program);
        Ok(found.with_context(|| format!("{} was not built", program.binary))?.1.as_os_str())
    }
}

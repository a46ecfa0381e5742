//! The tools that come from npm: the conformance suite and the MCP Inspector, in `target/conformance`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Result;

use crate::packages::{Package, Packages};
use crate::shell;

const SUITE: Package = ("@modelcontextprotocol/conformance", "0.2.0-alpha.12");
const INSPECTOR: Package = ("@modelcontextprotocol/inspector", "2.12.0");

/// What the inspector demands; the suite is content with any 22.
const NODE_AT_LEAST: (u32, u32) = (22, 19);

/// The installed tools.
pub(crate) struct Tools(Packages);

impl Tools {
    /// Installs what is missing and finds the rest.
    pub(crate) fn install() -> Result<Self> {
        Packages::install(shell::conformance_dir()?, &[SUITE, INSPECTOR], NODE_AT_LEAST).map(Self)
    }

    /// A Node.js command.
    pub(crate) fn node(&self) -> Command {
        self.0.node()
    }

    /// The conformance suite's command line.
    pub(crate) fn suite(&self) -> Command {
        self.script(&self.suite_dir().join("dist").join("index.js"))
    }

    /// Where the conformance suite is installed, with its requirement sets.
    pub(crate) fn suite_dir(&self) -> PathBuf {
        self.0.dir().join("node_modules").join(SUITE.0)
    }

    /// The MCP Inspector's command line.
    pub(crate) fn inspector(&self) -> Command {
        let installed = self.0.dir().join("node_modules").join(INSPECTOR.0);
        let mut command = self.script(&installed.join("clients/launcher/build/index.js"));
        // It keeps a catalogue of servers in the home directory; ours is nobody's business there.
        command.arg("--cli").env("HOME", self.0.dir().join("home"));
        command
    }

    fn script(&self, path: &Path) -> Command {
        let mut command = self.node();
        command.arg(path).stdin(Stdio::null());
        command
    }
}

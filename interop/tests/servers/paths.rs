//! Where the servers and clients of others are, and the programs that run them.

use std::path::{Path, PathBuf};

/// `target/interop`, wherever the target directory is.
fn installed() -> PathBuf {
    let built = Path::new(env!("CARGO_BIN_EXE_rmcp-server"));
    built.ancestors().nth(2).expect("binaries are in a target directory").join("interop")
}

fn text(path: PathBuf) -> String {
    assert!(
        path.exists(),
        "{} is not there; `cargo xtask servers` or `cargo xtask agents` sees to that",
        path.display()
    );
    path.to_str().expect("the path of this repository is UTF-8").to_owned()
}

/// Where npm has put its packages.
pub(crate) fn npm() -> PathBuf {
    installed().join("npm")
}

/// A file of an npm package.
pub(crate) fn package(path: &str) -> String {
    text(npm().join("node_modules").join(path))
}

/// Node.js: the one that was installed because the machine's is too old, or the machine's.
pub(crate) fn node() -> String {
    node_of(&npm())
}

fn node_of(packages: &Path) -> String {
    std::fs::read_to_string(packages.join("node.txt")).unwrap_or_else(|_| "node".to_owned())
}

/// Python, with the packages from PyPI.
pub(crate) fn python() -> String {
    text(installed().join("pypi").join("bin").join("python"))
}

/// Python, with version 1 of the official SDK.
pub(crate) fn legacy_python() -> String {
    text(installed().join("pypi-legacy").join("bin").join("python"))
}

/// Python, with OpenTelemetry and a collector.
pub(crate) fn telemetry_python() -> String {
    text(installed().join("telemetry").join("bin").join("python"))
}

/// A file of a package beside it.
pub(crate) fn telemetry_package(path: &str) -> String {
    let versions = std::fs::read_dir(installed().join("telemetry").join("lib")).into_iter().flatten();
    let packages = versions.filter_map(|version| Some(version.ok()?.path().join("site-packages").join(path)));
    text(packages.into_iter().find(|file| file.exists()).unwrap_or_else(|| installed().join(path)))
}

/// Python, with the client of Prometheus.
pub(crate) fn prometheus_python() -> String {
    text(installed().join("prometheus").join("bin").join("python"))
}

/// Where npm or pip has put agents.
pub(crate) fn agents(folder: &str) -> PathBuf {
    installed().join("agents").join(folder)
}

/// The Node.js for the agents from npm in this folder, and a file of a package among them.
pub(crate) fn agent_node(folder: &str, path: &str) -> [String; 2] {
    let packages = agents(folder);
    [node_of(&packages), text(packages.join("node_modules").join(path))]
}

/// Python, with this agent from PyPI.
pub(crate) fn agent_python(agent: &str) -> String {
    text(agents(agent).join("bin").join("python"))
}

/// An agent that we wrote on somebody's framework.
pub(crate) fn agent(path: &str) -> String {
    text(Path::new(env!("CARGO_MANIFEST_DIR")).join("agents").join(path))
}

/// A server that we wrote on somebody's SDK.
pub(crate) fn own(path: &str) -> String {
    text(Path::new(env!("CARGO_MANIFEST_DIR")).join("servers").join(path))
}

/// A client that we wrote on somebody's SDK.
pub(crate) fn client(path: &str) -> String {
    text(Path::new(env!("CARGO_MANIFEST_DIR")).join("clients").join(path))
}

/// A script of the identity provider, or of the browser that goes with it.
pub(crate) fn identity(path: &str) -> String {
    text(Path::new(env!("CARGO_MANIFEST_DIR")).join("identity").join(path))
}

/// Our own program.
pub(crate) fn tidegate() -> String {
    let name = format!("tidegate{}", std::env::consts::EXE_SUFFIX);
    text(Path::new(env!("CARGO_BIN_EXE_rmcp-server")).with_file_name(name))
}

/// Where the servers that listen write what they have to say.
pub(crate) fn log() -> std::fs::File {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("servers.log");
    let opened = std::fs::OpenOptions::new().create(true).append(true).open(path);
    opened.expect("a writable target directory")
}

/// A directory for what a server writes, empty at first.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // It may not be there yet.
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("a writable target directory");
    dir
}

//! What our crates depend on, as Cargo sees it: nothing is compiled for it, and no network is used.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Our crates from the lowest to the highest: each may depend on those in rows above it, and on none beside it.
///
/// This is the picture in ARCHITECTURE.md.
const ROWS: &[&[&str]] = &[
    &["tidegate-protocol"],
    &["tidegate-service"],
    &["tidegate-server", "tidegate-edge", "tidegate-builtin", "tidegate-web", "tidegate-macros"],
    &["tidegate-client"],
    &["tidegate-config", "tidegate-rmcp"],
    &["tidegate-gateway"],
    &["tidegate", "tidegate-demo", "tidegate-memory"],
    &["tidegate-command"],
];

/// What is no part of what anybody uses: tests, tools and benchmarks, which may depend on everything.
const ASIDE: &[&str] = &["xtask", "tidegate-conformance", "tidegate-interop", "tidegate-macros-renamed"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

fn text_of(cargo: &mut Command) -> String {
    let output = cargo.output().expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The packages that a program gets with this one, by their names.
fn brought_by(package: &str, features: &[&str]) -> Vec<String> {
    let tree = ["tree", "--offline", "--package", package, "--edges", "normal,build", "--prefix", "none"];
    let text = text_of(cargo().args(tree).args(["--format", "{p}"]).args(features));
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn no_arrow_goes_up() {
    let text = text_of(cargo().args(["metadata", "--offline", "--no-deps", "--format-version", "1"]));
    let metadata: Value = serde_json::from_str(&text).expect("metadata");
    let row = |name: &str| ROWS.iter().position(|row| row.contains(&name));
    for package in metadata["packages"].as_array().expect("packages") {
        let name = package["name"].as_str().expect("a name");
        let Some(own) = row(name) else {
            let is_aside = ASIDE.contains(&name) || name.starts_with("tidegate-benches");
            assert!(is_aside, "{name} is in no row: say where it belongs, here and in ARCHITECTURE.md");
            continue;
        };
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            // Tests may use what is above.
            if dependency["kind"] == "dev" || dependency["path"].is_null() {
                continue;
            }
            let other = dependency["name"].as_str().expect("a name");
            assert!(
                row(other).is_some_and(|other| other < own),
                "{name} must not depend on {other}, which is beside or above it"
            );
        }
    }
}

#[test]
fn whoever_writes_a_server_gets_neither_a_database_nor_a_command_line() {
    const NEVER: &[&str] = &[
        "clap",
        "clap_builder",
        "indicatif",
        "libsqlite3-sys",
        "mimalloc",
        "postgres",
        "rusqlite",
        "tidegate-command",
        "tidegate-memory",
    ];
    let plain = brought_by("tidegate", &[]);
    assert!(plain.iter().any(|name| name == "tidegate-server"), "{plain:?}");
    for (features, more) in
        [(&[][..], &["tidegate-client", "tidegate-config", "reqwest"][..]), (&["--all-features"], &[])]
    {
        let brought = brought_by("tidegate", features);
        for unwanted in NEVER.iter().chain(more) {
            assert!(
                !brought.iter().any(|name| name == unwanted),
                "{unwanted} with {features:?}: {brought:?}"
            );
        }
    }
}

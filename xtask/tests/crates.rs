//! What our crates depend on, as Cargo sees it: nothing is compiled for it, and no network is used.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

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

/// What a crate of ours depends on, of those that are ours. Without `tidegate-` before their names.
#[derive(Debug, Default, PartialEq, Eq)]
struct Dependencies {
    always: BTreeSet<String>,
    with_features: BTreeSet<String>,
}

/// ARCHITECTURE.md.
fn page() -> String {
    let path = root().join("ARCHITECTURE.md");
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The picture in ARCHITECTURE.md, line by line: `tidegate → protocol server [client]`.
fn picture() -> Vec<(String, Dependencies)> {
    let page = page();
    let (_, rest) =
        page.split_once("\nDependencies point one way").expect("the paragraph about dependencies");
    let block = rest.split("```").nth(1).expect("a picture below it");
    let lines = block.lines().map(str::trim).filter(|line| !line.is_empty());
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    let read = |line: &str| {
        let (name, arrows) = line.split_once('→').unwrap_or((line, ""));
        let (always, features) = arrows.split_once('[').unwrap_or((arrows, ""));
        let with_features = words(features.trim_end().trim_end_matches(']'));
        (name.trim().to_owned(), Dependencies { always: words(always), with_features })
    };
    lines.map(read).collect()
}

/// The same as Cargo knows it. Tests may use what is above, so theirs do not count.
fn manifests() -> BTreeMap<String, Dependencies> {
    let text = text_of(cargo().args(["metadata", "--offline", "--no-deps", "--format-version", "1"]));
    let metadata: Value = serde_json::from_str(&text).expect("metadata");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let short = |name: String| name.strip_prefix("tidegate-").map(str::to_owned).unwrap_or(name);
    let mut all = BTreeMap::new();
    for package in metadata["packages"].as_array().expect("packages") {
        let name = text(&package["name"]);
        if ASIDE.contains(&name.as_str()) || name.starts_with("tidegate-benches") {
            continue;
        }
        let mut found = Dependencies::default();
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            if dependency["kind"] == "dev" || dependency["path"].is_null() {
                continue;
            }
            let kind = match dependency["optional"] == true {
                true => &mut found.with_features,
                false => &mut found.always,
            };
            kind.insert(short(text(&dependency["name"])));
        }
        all.insert(short(name), found);
    }
    all
}

#[test]
fn the_picture_shows_what_depends_on_what() {
    let (picture, manifests) = (picture(), manifests());
    let drawn: BTreeSet<&String> = picture.iter().map(|(name, _)| name).collect();
    assert_eq!(picture.len(), drawn.len(), "a crate is drawn twice in ARCHITECTURE.md");
    let known: BTreeSet<&String> = manifests.keys().collect();
    assert_eq!(drawn, known, "the crates in ARCHITECTURE.md (left), and those there are (right)");
    for (name, dependencies) in &picture {
        assert_eq!(
            dependencies, &manifests[name],
            "{name} in ARCHITECTURE.md (left), and in its manifest (right)"
        );
    }
}

#[test]
fn no_arrow_goes_up() {
    let mut above = BTreeSet::new();
    for (name, Dependencies { always, with_features }) in picture() {
        for other in always.iter().chain(&with_features) {
            assert!(
                above.contains(other),
                "{name} must not depend on {other}, which is not above it in the picture"
            );
        }
        above.insert(name);
    }
}

#[test]
fn who_starts_reading_finds_the_files() {
    let page = page();
    let (_, rest) = page.split_once("\n## Start reading here\n").expect("where to start reading");
    let section = rest.split("\n## ").next().unwrap_or_default();
    let quoted = section.split('`').skip(1).step_by(2);
    let files: Vec<&str> = quoted.filter(|text| text.contains('/') && text.ends_with(".rs")).collect();
    assert!(files.len() >= 5, "{files:?}");
    for file in files {
        assert!(root().join(file).is_file(), "ARCHITECTURE.md: there is no {file}");
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

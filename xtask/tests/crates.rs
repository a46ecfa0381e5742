//! What our crates depend on, as Cargo sees it: nothing is compiled for it, and no network is used.

use std::path::Path;
use std::process::Command;

/// The packages that a program gets with this one, by their names.
fn brought_by(package: &str, features: &[&str]) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(root)
        .args(["tree", "--offline", "--package", package, "--edges", "normal,build", "--prefix", "none"])
        .args(["--format", "{p}"])
        .args(features)
        .output()
        .expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("names");
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
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

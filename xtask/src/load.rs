//! `cargo xtask bench --load`: the gateway under thousands of connections, and its end under load; and the same in short, for the tests.

use std::ffi::OsString;
use std::path::Path;

use anyhow::Result;

use crate::{fixture, shell};

/// The step in the table of all steps.
pub(crate) const STEP: &str = "load, in short";

/// As large as it is to be, with programs as they are given out.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let given = args.iter().any(|arg| arg == "--program" || arg.starts_with("--program="));
    let profile = ["--profile", "dist"];
    let mut load = shell::cargo(&["run"]);
    load.args(profile).args(["--package", "tidegate-benches-load", "--"]);
    if !given {
        shell::check(shell::cargo(&["build"]).args(profile).args(["--bin", "tidegate"]))?;
        let name = format!("tidegate{}", std::env::consts::EXE_SUFFIX);
        load.args(program(&shell::target_dir()?.join("dist").join(name)));
    }
    shell::check(load.args(args.iter().filter(|arg| *arg != "--load")))
}

/// As it is tested: what must hold on any machine.
pub(crate) fn test() -> Result<()> {
    let built = fixture::program("tidegate")?;
    let mut load = shell::cargo(&["run", "--package", "tidegate-benches-load", "--"]);
    load.args(program(&built));
    shell::check(load.args(["--short", "--connections", "500", "--seconds", "5", "--rate", "200"]))
}

fn program(path: &Path) -> [OsString; 2] {
    ["--program".into(), path.into()]
}

/// What this machine lacks for it, if anything.
pub(crate) fn lacks() -> Option<&'static str> {
    (!cfg!(unix)).then_some("no signals that end a process in order")
}

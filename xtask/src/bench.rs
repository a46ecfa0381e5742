//! `cargo xtask bench`: hands over to the benchmark crate, which is no default member because it brings the
//! stacks that we compare ourselves with.

use anyhow::Result;

use crate::shell;

/// Runs the benchmarks with the given arguments.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut command =
        shell::cargo(&["run", "--release", "--package", "tidegate-benches", "--bin", "bench", "--"]);
    command.args(args);
    shell::check(&mut command)
}

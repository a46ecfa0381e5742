//! `cargo xtask bench`: hands over to the benchmark crates, which are no default members because they bring the
//! stacks that we compare ourselves with.

use anyhow::Result;

use crate::packages::{Package, Packages};
use crate::shell;

const SERVER_MEMORY: Package = ("@modelcontextprotocol/server-memory", "2026.8.31");
const NODE_AT_LEAST: (u32, u32) = (20, 0);

/// Runs the benchmarks with the given arguments.
pub(crate) fn run(args: &[String]) -> Result<()> {
    if args.iter().any(|arg| arg == "--quality") {
        return crate::quality::run();
    }
    if args.iter().any(|arg| arg == "--load") {
        return crate::load::run(args);
    }
    if args.iter().any(|arg| arg == "--memory") {
        return memory(args);
    }
    let mut command =
        shell::cargo(&["run", "--profile", "dist", "--package", "tidegate-benches", "--bin", "bench", "--"]);
    command.args(args);
    shell::check(&mut command)
}

/// The memory server at scale, beside `server-memory` where npm is there to install it.
fn memory(args: &[String]) -> Result<()> {
    let mut command =
        shell::cargo(&["run", "--profile", "dist", "--package", "tidegate-benches-memory", "--"]);
    command.args(args.iter().filter(|arg| *arg != "--memory"));
    match Packages::install(shell::target_dir()?.join("bench-memory"), &[SERVER_MEMORY], NODE_AT_LEAST) {
        Ok(installed) => {
            let script = installed.dir().join("node_modules").join(SERVER_MEMORY.0).join("dist/index.js");
            command.arg("--node").arg(installed.node_path()).arg("--server-memory").arg(script);
        }
        Err(why) => println!("without server-memory: {why:#}"),
    }
    shell::check(&mut command)
}

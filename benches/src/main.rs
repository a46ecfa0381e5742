//! `bench`: the floor, this framework and rmcp side by side, in one run and one table.
//!
//! The way of a run: [`server`] builds the three echo servers in release; for each [`case`] (transport, concurrency,
//! payload) all of them are started, checked once, and then loaded in turn, so that noise on a shared machine hits all
//! alike ([`measure::throughput`]). Instructions and allocations come from separate runs under callgrind
//! ([`measure::callgrind`]), the memory of idle sessions from [`measure::sessions`]. [`table`] prints what was seen and
//! [`wanted`] holds it against the figures that the project set itself.
//!
//! Servers are pinned to core 0 and this process, which is the load generator, to core 1.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool whose output is its purpose"
)]

mod args;
mod case;
mod load;
mod measure;
mod pin;
mod request;
mod server;
mod table;
mod wanted;

use anyhow::Result;
use clap::Parser;

use crate::args::Args;
use crate::case::Case;
use crate::measure::{Measured, Results, callgrind, sessions, throughput};
use crate::server::{Binaries, Server};

fn main() -> Result<()> {
    let args = Args::parse();
    let plan = plan(&args);
    anyhow::ensure!(args.sessions || !plan.is_empty(), "nothing left to measure: see --only and --servers");

    let binaries = Binaries::build(&args.servers)?;
    let notes = pin::pin_load_generator();

    let mut results = Results { notes, ..Results::default() };
    if !args.sessions {
        measure_cases(&args, &binaries, &plan, &mut results)?;
    }
    if args.sessions || (args.only.is_none() && !args.quick) {
        for &server in &args.servers {
            if let Some(seen) = sessions::measure(&binaries, server)? {
                results.sessions.push(seen);
            }
        }
    }
    print!("{}", table::render(&results));
    print!("{}", wanted::render(&results));
    Ok(())
}

/// The rows of the table, case by case, with the servers that are measured in each.
fn plan(args: &Args) -> Vec<(Case, Vec<Server>)> {
    Case::all()
        .into_iter()
        .map(|case| {
            let wanted = |server: &Server| match &args.only {
                Some(only) => format!("{} {case}", server.label()).contains(only.as_str()),
                None => true,
            };
            (case, args.servers.iter().copied().filter(wanted).collect::<Vec<_>>())
        })
        .filter(|(_, servers)| !servers.is_empty())
        .collect()
}

fn measure_cases(
    args: &Args,
    binaries: &Binaries,
    plan: &[(Case, Vec<Server>)],
    results: &mut Results,
) -> Result<()> {
    let rounds = args.rounds();
    for (case, servers) in plan {
        eprintln!("load       {case}");
        for (server, load) in throughput::measure(binaries, servers, *case, &rounds)? {
            results.rows.push(Measured { case: *case, server, load, counts: None });
        }
    }
    if args.no_callgrind {
        results.notes.push("instructions and allocations: left out (--no-callgrind)".into());
        return Ok(());
    }
    if let Err(why) = callgrind::available() {
        results.notes.push(format!("instructions and allocations: not measured, {why}"));
        return Ok(());
    }
    for row in &mut results.rows {
        eprintln!("callgrind  {} {}", row.case, row.server.label());
        row.counts = Some(callgrind::measure(binaries, row.server, row.case, args.quick)?);
    }
    Ok(())
}

//! `bench`: the floor, this framework and rmcp side by side, in one run.
//!
//! The way of a run: [`binaries`] builds the programs in release; for each [`case`] (transport, concurrency, payload)
//! all [servers](server) are started, checked once, and then loaded in turn, so that noise on a shared machine hits all
//! alike ([`measure::throughput`]). The [clients](client) are programs too, run in turn against our own server
//! ([`measure::clients`]). [Gateways](gateway) stand in front of the floor ([`measure::gateways`]). Instructions and allocations come from separate runs under callgrind
//! ([`measure::callgrind`]), the memory of idle sessions from [`measure::sessions`]. [`table`] prints what was seen,
//! [`ratios`] compares, and [`wanted`] holds it against the figures that the project set itself.
//!
//! Servers and gateways are pinned to core 0; this process, which is the load generator, the clients, and the servers
//! behind gateways to core 1.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool whose output is its purpose"
)]

mod args;
mod binaries;
mod case;
mod client;
mod credentials;
mod gateway;
mod load;
mod measure;
mod pin;
mod plan;
mod ratios;
mod request;
mod server;
mod table;
mod wanted;

use anyhow::Result;
use clap::Parser;

use crate::args::Args;
use crate::binaries::Binaries;
use crate::gateway::peers::Peers;
use crate::gateway::{Gateway, Kit};
use crate::measure::{
    Measured, Results, callgrind, clients, fairness, gateway_extras, gateways, sessions, throughput,
};
use crate::plan::Plan;

fn main() -> Result<()> {
    let args = Args::parse();
    let plan = Plan::of(&args)?;
    let binaries = Binaries::build(&plan.programs())?;
    let peers = Peers::install(plan.gateways.peers())?;
    let kit = Kit { binaries: &binaries, peers: &peers };

    let mut results = Results { notes: pin::pin_load_generator(), ..Results::default() };
    measure_rates(&args, &binaries, &plan, &mut results)?;
    measure_gateways(&args, kit, &plan, &mut results)?;
    if args.no_callgrind {
        results.notes.push("instructions and allocations: left out (--no-callgrind)".into());
    } else if let Err(why) = callgrind::available() {
        results.notes.push(format!("instructions and allocations: not measured, {why}"));
    } else {
        count(&args, &binaries, &mut results)?;
        count_gateways(&args, kit, &mut results);
    }
    for &server in &plan.sessions {
        if let Some(seen) = sessions::measure(&binaries, server)? {
            results.sessions.push(seen);
        }
    }
    print!("{}", table::render(&results));
    print!("{}", gateway::report::render(&results));
    print!("{}", ratios::render(&results));
    print!("{}", wanted::render(&results));
    Ok(())
}

fn measure_rates(args: &Args, binaries: &Binaries, plan: &Plan, results: &mut Results) -> Result<()> {
    let rounds = args.rounds();
    for (case, servers) in &plan.servers {
        eprintln!("load       {case}");
        for (server, load) in throughput::measure(binaries, servers, *case, &rounds)? {
            results.rows.push(Measured { case: *case, server, load, counts: None });
        }
    }
    for (case, callers) in &plan.clients {
        eprintln!("clients    {case}");
        results.clients.extend(clients::measure(binaries, callers, *case, &rounds)?);
    }
    Ok(())
}

fn measure_gateways(args: &Args, kit: Kit<'_>, plan: &Plan, results: &mut Results) -> Result<()> {
    let (plan, seen, rounds) = (&plan.gateways, &mut results.gateways, args.gateway_rounds());
    for (setting, cases) in &plan.settings {
        seen.rows.extend(gateways::measure(kit, *setting, cases, &rounds)?);
    }
    if !plan.lists.is_empty() {
        eprintln!("gateways   long lists");
        seen.lists = gateway_extras::lists(kit, &plan.lists, &rounds)?;
    }
    if !plan.idle.is_empty() {
        eprintln!("gateways   idle memory");
        seen.idle = gateway_extras::idle(kit, &plan.idle, args.settle())?;
    }
    if !plan.start_up.is_empty() {
        eprintln!("gateways   start-up");
        seen.start_up = gateway_extras::start_up(kit, &plan.start_up, args.starts())?;
    }
    if plan.principals {
        eprintln!("gateways   principals");
        let weighed = gateway_extras::principals(kit, args.settle());
        seen.principals = Some(weighed.map_err(|error| format!("{error:#}")));
    }
    if plan.fairness {
        eprintln!("gateways   fairness");
        let measured = fairness::measure(kit, args.quiet_calls());
        seen.fairness = Some(measured.map_err(|error| format!("{error:#}")));
    }
    Ok(())
}

/// What cannot be counted becomes a note: these are programs of others.
fn count_gateways(args: &Args, kit: Kit<'_>, results: &mut Results) {
    let seen = &mut results.gateways;
    for row in &mut seen.rows {
        let counted = row.seen.is_ok() && row.gateway.is_counted();
        if counted && gateway::wanted::is_counted(row.case, args.quick) {
            eprintln!("callgrind  {} {} gateway", row.case, row.gateway);
            match callgrind::of_gateway(kit, row.gateway, row.case, args.quick) {
                Ok(counts) => row.counts = Some(counts),
                Err(error) => seen.notes.push(format!("{error:#}")),
            }
        }
    }
    // A smoke check does not wait for one that makes each list anew.
    let is_quick = |gateway| gateway != Gateway::McpProxy;
    let counted = |gateway: Gateway| gateway.is_counted() && (is_quick(gateway) || !args.quick);
    for row in seen.lists.iter_mut().filter(|row| row.seen.is_ok() && counted(row.gateway)) {
        eprintln!("callgrind  list {} gateway", row.gateway);
        match callgrind::of_list(kit, row.gateway) {
            Ok(counts) => row.counts = Some(counts),
            Err(error) => seen.notes.push(format!("{error:#}")),
        }
    }
}

fn count(args: &Args, binaries: &Binaries, results: &mut Results) -> Result<()> {
    for row in &mut results.rows {
        eprintln!("callgrind  {} {}", row.case, row.server);
        row.counts = Some(callgrind::of_server(binaries, row.server, row.case, args.quick)?);
    }
    for row in &mut results.clients {
        eprintln!("callgrind  {} {} client", row.case, row.client);
        row.counts = callgrind::of_client(binaries, row.client, row.case, args.quick)?;
    }
    Ok(())
}

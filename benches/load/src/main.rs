//! Load: thousands of connections that call a gateway, some of them slow, with limits on; and its end under all of that.
//!
//! `gateway` starts the program, `connection` is one client, `exchange` is the little HTTP that it speaks, `tally` is what came of it all.
//! What must hold, whatever the machine: every request that was sent before the gateway was told to end has an answer, and every answer that is
//! not good is the refusal of a limit. How long answers take is told and not judged.
#![allow(clippy::print_stdout, reason = "a command-line tool talks on stdout")]

mod connection;
mod descriptors;
mod exchange;
mod gateway;
mod tally;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::connection::{Connection, Pace, Phase};
use crate::gateway::Gateway;
use crate::tally::Tally;

/// A gateway under load
#[derive(Parser)]
struct Arguments {
    /// The program to load
    #[arg(long)]
    program: PathBuf,
    /// How many connections there are
    #[arg(long, default_value_t = 5000)]
    connections: usize,
    /// How many of these send byte by byte and read slowly [default: a tenth]
    #[arg(long)]
    slow: Option<usize>,
    /// How long they call, in seconds
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// How many calls a second there are in all
    #[arg(long, default_value_t = 1000)]
    rate: u32,
    /// How many calls a second the limits allow [default: nine tenths of the rate]
    #[arg(long)]
    limit: Option<u32>,
    /// Do not judge whether memory stays flat: for runs that are too short to tell
    #[arg(long)]
    short: bool,
}

/// How much memory may grow after the first ten seconds: so many bytes, and a part of what there was.
const GROWTH: (u64, u64) = (16 << 20, 10);
/// After how long memory is what it will be.
const SETTLED: Duration = Duration::from_secs(10);
/// How long the end may take before it is no end.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    descriptors::raise(arguments.connections as u64 + 256)?;
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(load(&arguments))
}

async fn load(arguments: &Arguments) -> Result<()> {
    let Arguments { connections, seconds, rate, .. } = *arguments;
    let slow = arguments.slow.unwrap_or(connections / 10).min(connections);
    let limit = arguments.limit.unwrap_or(rate - rate / 10).max(1);
    let mut gateway = Gateway::start(&arguments.program, connections, limit).await?;
    println!(
        "{connections} connections, {slow} of them slow, {rate} calls a second, limited to {limit}, {seconds} s"
    );

    let (phases, phase) = watch::channel(Phase::Steady);
    let tally = Arc::new(Tally::default());
    let mut clients = JoinSet::new();
    let lasts = Duration::from_secs(seconds);
    for number in 0..connections {
        let pace = match number < slow {
            // A few requests each, however long the whole takes, and never so slow that it is a time-out.
            true => Pace::Slow((lasts / 4).min(Duration::from_secs(15))),
            false => {
                Pace::Every(Duration::from_secs_f64((connections - slow) as f64 / f64::from(rate.max(1))))
            }
        };
        let client = Connection::open(gateway.address, number, pace, tally.clone(), phase.clone());
        clients.spawn(client.await.with_context(|| format!("connection {number} of {connections}"))?.run());
    }
    let memory = sample(&gateway, lasts).await?;

    // All at once, and the end in the middle of it.
    phases.send_replace(Phase::Burst);
    tally.until_sent((connections - slow) as u64 / 2).await?;
    let told = Instant::now();
    tally.told_to_end(told);
    gateway.terminate()?;
    let ended = tokio::time::timeout(PATIENCE, async { while clients.join_next().await.is_some() {} }).await;
    ensure!(ended.is_ok(), "connections were still open {PATIENCE:?} after the gateway was told to end");
    let status = gateway.ended(PATIENCE).await?;
    let took = told.elapsed();

    let verdict = tally.print();
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let settled =
        memory.iter().find(|(at, _)| *at >= SETTLED).or(memory.first()).map_or(0, |(_, bytes)| *bytes);
    let last = memory.last().map_or(0, |(_, bytes)| *bytes);
    let most = memory.iter().map(|(_, bytes)| *bytes).max().unwrap_or_default();
    println!(
        "memory: {:.1} MiB after {SETTLED:?}, {:.1} MiB at the end, {:.1} MiB at most",
        mib(settled),
        mib(last),
        mib(most)
    );
    println!("the end: {status} after {:.1} s", took.as_secs_f64());
    verdict?;
    ensure!(
        status.success(),
        "the gateway ended with {status}; what it said is in {}",
        gateway.log().display()
    );
    let flat = settled + GROWTH.0 + settled / GROWTH.1;
    ensure!(
        arguments.short || last <= flat,
        "memory grew from {:.1} MiB to {:.1} MiB",
        mib(settled),
        mib(last)
    );
    println!("fine");
    Ok(())
}

/// Looks at the memory of the gateway every second, for so long.
async fn sample(gateway: &Gateway, lasts: Duration) -> Result<Vec<(Duration, u64)>> {
    let (start, mut samples) = (Instant::now(), Vec::new());
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    while start.elapsed() < lasts {
        ticks.tick().await;
        samples.push((start.elapsed(), gateway.memory()?));
    }
    Ok(samples)
}

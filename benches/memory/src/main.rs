//! `memory-bench`: the memory server at its full size, and beside `server-memory` on as much as that can hold.
//!
//! Both are processes that are asked over stdio by the same client. Ours is this program, told to serve. What ways of
//! searching take on their own is measured in this process, on the file that the server has left.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool whose output is its purpose"
)]

mod alone;
mod client;
mod corpus;
mod measure;
mod server;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;
use tidegate_memory::Store;

use crate::corpus::{Corpus, OBSERVATIONS, RELATIONS};
use crate::measure::{Seen, measure};
use crate::server::Server;

/// Measures the memory server at scale and prints what was seen in one table.
#[derive(Parser)]
#[command(name = "memory-bench")]
struct Args {
    /// A twentieth of the size: shows that everything works.
    #[arg(long)]
    quick: bool,
    /// How many entities the largest memory has.
    #[arg(long)]
    entities: Option<usize>,
    /// The largest memory alone.
    #[arg(long)]
    alone: bool,
    /// Node.js, for `--server-memory`.
    #[arg(long, default_value = "node")]
    node: PathBuf,
    /// The script of `@modelcontextprotocol/server-memory` to compare with.
    #[arg(long)]
    server_memory: Option<PathBuf>,
    /// Where the memories are made, and left for a look; otherwise they are made in a temporary folder, and removed.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// The largest memory is in the folder already: asks it again.
    #[arg(long, requires = "folder", requires = "alone")]
    filled: bool,
    /// Serves this memory over stdio: what the benchmark starts.
    #[arg(long, hide = true)]
    serve: Option<PathBuf>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    if let Some(file) = &args.serve {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(async {
            let memory = tidegate_memory::server(Store::open(file)?);
            tidegate_edge::stdio::serve(memory, tidegate_edge::stdio::Settings::default()).await;
            Ok::<_, anyhow::Error>(())
        })?;
        return Ok(());
    }
    let full = args.entities.unwrap_or(if args.quick { 5_000 } else { 100_000 });
    let folder = args.folder.clone().unwrap_or_else(|| {
        std::env::temp_dir().join(format!("tidegate-memory-bench-{}", std::process::id()))
    });
    let columns = run(&args, full, &folder);
    if args.folder.is_none() {
        let _ = std::fs::remove_dir_all(&folder);
    }
    print(&columns?);
    Ok(())
}

fn run(args: &Args, full: usize, folder: &std::path::Path) -> Result<Vec<(String, Seen)>> {
    let corpus = Corpus::new();
    let mut plan = Vec::new();
    if !args.alone {
        for size in if args.quick { [200, 1_000] } else { [1_000, 5_000] } {
            plan.push((Server::Ours, size));
            if let Some(script) = args.server_memory.clone() {
                plan.push((Server::Official { node: args.node.clone(), script }, size));
            }
        }
    }
    plan.push((Server::Ours, full));
    let mut columns = Vec::new();
    for (server, size) in plan {
        let name = format!("{} {size}", server.label());
        eprintln!("measuring {name}");
        let place = folder.join(name.replace(' ', "-"));
        std::fs::create_dir_all(&place)?;
        let queries = if args.quick { 100 } else { 1_000 };
        let queries = if server.is_ours() { queries } else { queries / 10 };
        let seen =
            measure(&server, &corpus, size, queries, &place, args.filled).with_context(|| name.clone())?;
        columns.push((name, seen));
    }
    Ok(columns)
}

fn print(columns: &[(String, Seen)]) {
    println!(
        "\nColumns are numbers of entities, each with {OBSERVATIONS} observations and {RELATIONS} relations. Times are p50 / p99.\n"
    );
    let Some((_, most)) = columns.iter().max_by_key(|(_, seen)| seen.len()) else { return };
    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    println!("| | {} |", names.join(" | "));
    println!("|---|{}", "---:|".repeat(columns.len()));
    for (what, _) in most {
        let figures = columns.iter().map(|(_, seen)| {
            seen.iter().find(|(name, _)| name == what).map_or("–", |(_, figure)| figure.as_str())
        });
        println!("| {what} | {} |", figures.collect::<Vec<_>>().join(" | "));
    }
}

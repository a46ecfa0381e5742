//! What is measured of one server at one size.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use fastrand::Rng;
use serde_json::{Value, json};
use tidegate_benches_common::process::resident;

use crate::alone;
use crate::client::Client;
use crate::corpus::{Corpus, OBSERVATIONS, RELATIONS};
use crate::server::Server;

/// How many entities are made in one call.
const PER_CALL: usize = 100;
/// How many observations are added in one call.
const ADDED: usize = 20;

/// What was seen, row by row: what it is, and the figure.
pub(crate) type Seen = Vec<(&'static str, String)>;

/// Fills a memory with so many entities and asks it.
pub(crate) fn measure(
    server: &Server,
    corpus: &Corpus,
    entities: usize,
    queries: usize,
    folder: &Path,
    filled: bool,
) -> Result<Seen> {
    let mut seen = Seen::new();
    let mut client = Client::start(server.command(folder)?)?;
    let early = match filled {
        true => 0,
        false => fill(server, &mut client, corpus, entities, &mut seen)?,
    };
    insert(server, &mut client, corpus, entities, filled, &mut seen)?;
    search(&mut client, corpus, entities, queries, &mut seen)?;
    read(server, &mut client, corpus, entities, queries, early, &mut seen)?;
    seen.push(("memory", megabytes(resident(client.pid())?)));
    client.stop()?;
    seen.push(("file", megabytes(size(&server.file(folder))?)));
    start_up(server, corpus, folder, &mut seen)?;
    if server.is_ours() {
        alone::measure(corpus, entities, queries, &server.file(folder), &mut seen)?;
    }
    Ok(seen)
}

/// Creates everything. Returns a moment at which a hundredth was there.
fn fill(
    server: &Server,
    client: &mut Client,
    corpus: &Corpus,
    entities: usize,
    seen: &mut Seen,
) -> Result<u128> {
    let numbers: Vec<usize> = (0..entities).collect();
    let few = (entities / 100).max(1);
    let made =
        |part: &[usize]| json!({"entities": part.iter().map(|n| corpus.entity(*n)).collect::<Vec<_>>()});
    let began = Instant::now();
    client.calls("create_entities", numbers[..few].chunks(PER_CALL).map(made), server.at_once())?;
    let early = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_millis();
    std::thread::sleep(Duration::from_millis(2));
    client.calls("create_entities", numbers[few..].chunks(PER_CALL).map(made), server.at_once())?;
    seen.push(("create: observations/s", rate(entities * OBSERVATIONS, began)));
    let began = Instant::now();
    let related = numbers.chunks(PER_CALL * 3).map(|part| {
        json!({"relations": part.iter().flat_map(|n| corpus.relations(*n, entities)).collect::<Vec<_>>()})
    });
    client.calls("create_relations", related, server.at_once())?;
    seen.push(("create: relations/s", rate(entities * RELATIONS, began)));
    Ok(early)
}

/// Adds observations to what is there, as clients do.
fn insert(
    server: &Server,
    client: &mut Client,
    corpus: &Corpus,
    entities: usize,
    again: bool,
    seen: &mut Seen,
) -> Result<()> {
    // What was added before would not be added again.
    let salt = if again { fastrand::u64(..) } else { 0 };
    // The other writes its whole file for each call.
    let calls = if server.is_ours() { 1_000 } else { 50 };
    for (what, wait, per_entity) in [
        ("add: observations/s, 10 an entity", "add: p50 / p99, 10 an entity", 10),
        ("add: observations/s, 1 an entity", "add: p50 / p99, 1 an entity", 1),
    ] {
        let mut rng = Rng::with_seed(per_entity as u64 ^ salt);
        let added: Vec<Value> = (0..calls)
            .map(|_| {
                let of = |rng: &mut Rng| {
                    let contents: Vec<String> = (0..per_entity).map(|_| corpus.sentence(rng)).collect();
                    json!({"entityName": corpus.name(rng.usize(..entities)), "contents": contents})
                };
                json!({"observations": (0..ADDED / per_entity).map(|_| of(&mut rng)).collect::<Vec<_>>()})
            })
            .collect();
        let began = Instant::now();
        let took = client.calls("add_observations", added.into_iter(), server.at_once())?;
        seen.push((what, rate(calls * ADDED, began)));
        seen.push((wait, times(took)));
    }
    Ok(())
}

fn search(
    client: &mut Client,
    corpus: &Corpus,
    entities: usize,
    queries: usize,
    seen: &mut Seen,
) -> Result<()> {
    let mut rng = Rng::with_seed(3);
    let wanted: Vec<Value> =
        (0..queries).map(|_| json!({"query": corpus.query(&mut rng, entities)})).collect();
    let took = client.calls("search_nodes", wanted.into_iter(), 1)?;
    seen.push(("search_nodes", times(took)));
    Ok(())
}

fn read(
    server: &Server,
    client: &mut Client,
    corpus: &Corpus,
    entities: usize,
    queries: usize,
    early: u128,
    seen: &mut Seen,
) -> Result<()> {
    let mut rng = Rng::with_seed(4);
    let mut name = || corpus.name(rng.usize(..entities));
    let opened: Vec<Value> =
        (0..queries).map(|_| json!({"names": (0..5).map(|_| name()).collect::<Vec<_>>()})).collect();
    seen.push(("open_nodes, 5 names", times(client.calls("open_nodes", opened.into_iter(), 1)?)));
    if !server.is_ours() {
        return Ok(());
    }
    for tool in ["get_relations", "get_entity_history"] {
        let of: Vec<Value> = (0..queries).map(|_| json!({"entityName": name()})).collect();
        seen.push((tool, times(client.calls(tool, of.into_iter(), 1)?)));
    }
    let took = client.call("get_graph_at_time", json!({"timestamp": early as u64}))?.0;
    seen.push(("get_graph_at_time, a hundredth", milliseconds(took)));
    Ok(())
}

/// From nothing to the answer of the first search.
fn start_up(server: &Server, corpus: &Corpus, folder: &Path, seen: &mut Seen) -> Result<()> {
    let mut all = Vec::new();
    for n in 0..5 {
        let began = Instant::now();
        let mut client = Client::start(server.command(folder)?)?;
        client.call("search_nodes", json!({"query": corpus.name(n)}))?;
        all.push(began.elapsed());
        client.stop()?;
    }
    all.sort_unstable();
    seen.push(("start-up and first search", milliseconds(all[all.len() / 2])));
    Ok(())
}

pub(crate) fn rate(count: usize, began: Instant) -> String {
    format!("{:.0}", count as f64 / began.elapsed().as_secs_f64())
}

pub(crate) fn milliseconds(took: Duration) -> String {
    format!("{:.1} ms", took.as_secs_f64() * 1e3)
}

pub(crate) fn times(mut all: Vec<Duration>) -> String {
    all.sort_unstable();
    let at = |share: f64| all.get(((all.len() as f64 * share) as usize).min(all.len().saturating_sub(1)));
    let shown = |share| at(share).map_or(0.0, |took| took.as_secs_f64() * 1e3);
    format!("{:.2} / {:.2} ms", shown(0.5), shown(0.99))
}

pub(crate) fn megabytes(bytes: u64) -> String {
    format!("{:.0} MB", bytes as f64 / 1e6)
}

/// The file, and what belongs to it.
fn size(file: &Path) -> Result<u64> {
    let (folder, name) = (file.parent().context("no folder")?, file.file_name().context("no name")?);
    let mut sum = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(&*name.to_string_lossy()) {
            sum += entry.metadata()?.len();
        }
    }
    Ok(sum)
}

//! How well the memory finds: `cargo xtask bench --quality` brings what this needs and runs it.
//!
//! The memory is filled with the RFCs of Debian's `doc-rfc` packages, each an entity with the text that follows its
//! abstract. Neither the title nor the abstract are in it: they are the questions, and the RFC is the answer. A second
//! set of questions has a typo in one word each. For every way of searching it prints how often the answer is among the
//! first ten (recall@10), the mean of one over its rank (MRR), and how long a search takes.
//!
//! The vectors are those of WordLlama (`l2_supercat_256`, a static model of 256 dimensions), which its Python package holds.

#![allow(clippy::print_stdout, reason = "a command-line tool whose output is its purpose")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Deserialize;
use tidegate_memory::search_benchmark::{SearchBenchmark, SearchMode};
use tidegate_memory::{Embedder, Entity, Store};

/// How much of each RFC is kept, in characters: four observations.
const KEPT: usize = 4 * PIECE;
/// How long an observation is.
const PIECE: usize = 1_500;
/// How many questions are asked.
const ASKED: usize = 400;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// An RFC, with what is asked about it.
struct Rfc {
    name: String,
    title: String,
    abstracts: String,
    text: String,
}

#[derive(Deserialize)]
struct Described {
    doc_id: String,
    title: String,
    #[serde(rename = "abstract", default)]
    about: Option<String>,
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1).map(PathBuf::from);
    let usage = "usage: quality <folder of RFCs> <folder of a model> <folder to work in>";
    let [rfcs, model, work] =
        [arguments.next(), arguments.next(), arguments.next()].map(|path| path.ok_or(usage));
    let (rfcs, model, work) = (rfcs?, model?, work?);
    let began = Instant::now();
    let embedder = Embedder::folder(&model)?;
    println!("model      {} ({:.1} s to load)", embedder.model(), began.elapsed().as_secs_f64());

    let corpus = read(&rfcs)?;
    let file = work.join("quality.db");
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(file.with_extension(format!("db{end}")));
    }
    let memory = SearchBenchmark::new(Store::open(&file)?, "measured", Some(embedder));
    let began = Instant::now();
    for some in corpus.chunks(100) {
        memory.remember(some.iter().map(entity).collect()).await?;
    }
    let stored = began.elapsed();
    memory.ready().await?;
    println!(
        "corpus     {} RFCs with an abstract, {} characters of each; stored in {:.1} s, all vectors there after {:.1} s",
        corpus.len(),
        KEPT,
        stored.as_secs_f64(),
        began.elapsed().as_secs_f64()
    );
    let step = corpus.len().div_ceil(ASKED).max(1);
    let asked: Vec<&Rfc> = corpus.iter().step_by(step).collect();
    println!("questions  {} of each kind, spread over the corpus\n", asked.len());
    println!("{:<28}{:<10}{:>10}{:>8}{:>12}", "questions", "way", "recall@10", "MRR", "per search");
    let sentence = |rfc: &Rfc| first_sentence(&rfc.abstracts);
    for (what, question) in [
        ("titles", &(|rfc: &Rfc| rfc.title.clone()) as &dyn Fn(&Rfc) -> String),
        ("titles with a typo", &|rfc| typo(&rfc.title)),
        ("first sentence of abstract", &sentence),
        ("sentence with a typo", &|rfc| typo(&sentence(rfc))),
    ] {
        for (name, way) in [
            ("lexical", SearchMode::Words),
            ("fuzzy", SearchMode::Fuzzy),
            ("vector", SearchMode::Semantic),
            ("fused", SearchMode::All),
        ] {
            let began = Instant::now();
            let (mut found, mut ranks) = (0, 0.0);
            for rfc in &asked {
                let names = memory.find(way, &question(rfc), 10).await?;
                if let Some(rank) = names.iter().position(|name| *name == rfc.name) {
                    found += 1;
                    ranks += 1.0 / (rank as f64 + 1.0);
                }
            }
            let count = asked.len() as f64;
            println!(
                "{what:<28}{name:<10}{:>10.3}{:>8.3}{:>9.2} ms",
                f64::from(found) / count,
                ranks / count,
                began.elapsed().as_secs_f64() * 1000.0 / count
            );
        }
    }
    Ok(())
}

fn entity(rfc: &Rfc) -> Entity {
    let characters: Vec<char> = rfc.text.chars().collect();
    let observations = characters.chunks(PIECE).map(|piece| piece.iter().collect()).collect();
    Entity { name: rfc.name.clone(), entity_type: "rfc".to_owned(), observations, ..Entity::default() }
}

/// All RFCs of a folder and of those in it that have an abstract, in the order of their numbers.
fn read(folder: &Path) -> Outcome<Vec<Rfc>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            match path.is_dir() {
                true => folders.push(path),
                false => files.push(path),
            }
        }
    }
    let mut found = BTreeMap::new();
    for path in files.iter().filter(|path| path.extension().is_some_and(|ending| ending == "json")) {
        let Ok(described) = serde_json::from_slice::<Described>(&std::fs::read(path)?) else { continue };
        let about = plain(described.about.as_deref().unwrap_or_default());
        let Ok(text) = std::fs::read(path.with_extension("txt")) else { continue };
        let text = body(&String::from_utf8_lossy(&text));
        if about.len() >= 40 && text.len() >= 500 {
            let name = described.doc_id.to_lowercase();
            found.insert(name.clone(), Rfc { name, title: plain(&described.title), abstracts: about, text });
        }
    }
    Ok(found.into_values().collect())
}

/// What follows the abstract and the table of contents, without the lines at the top and bottom of pages.
fn body(text: &str) -> String {
    let start = [
        "\n1.  Introduction",
        "\n1. Introduction",
        "\n1   Introduction",
        "\n1.0 Introduction",
        "\n1  Introduction",
    ]
    .iter()
    .filter_map(|heading| text.find(heading))
    .min();
    let Some(start) = start else { return String::new() };
    let lines = text[start..].lines().filter(|line| {
        let line = line.trim();
        !(line.is_empty() || line.ends_with(']') && line.contains("[Page ") || line.starts_with("RFC "))
    });
    let text = lines.collect::<Vec<_>>().join(" ");
    plain(&text).chars().take(KEPT).collect()
}

fn plain(text: &str) -> String {
    text.replace("[STANDARDS-TRACK]", "").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn first_sentence(text: &str) -> String {
    text.split_inclusive(". ").next().unwrap_or(text).trim().to_owned()
}

/// The same with two letters of its longest word the wrong way round.
fn typo(text: &str) -> String {
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    let longest =
        words.iter_mut().filter(|word| word.chars().all(char::is_alphabetic)).max_by_key(|word| word.len());
    if let Some(word) = longest.filter(|word| word.chars().count() >= 4) {
        let mut letters: Vec<char> = word.chars().collect();
        let middle = letters.len() / 2;
        letters.swap(middle, middle - 1);
        *word = letters.into_iter().collect();
    }
    words.join(" ")
}

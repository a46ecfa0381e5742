//! Ways of searching on their own, in this process: without the protocol, and without reading what was found.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use fastrand::Rng;
use serde_json::json;
use tidegate_benches_common::process::resident;
use tidegate_memory::search_benchmark::{SearchBenchmark, SearchMode};
use tidegate_memory::{Embedder, Store};

use crate::corpus::Corpus;
use crate::measure::{Seen, megabytes, rate, times};

/// How long the vectors are: as those of `potion-base-8M`.
const DIMENSIONS: usize = 256;

/// Asks the memory in a file in each way.
pub(crate) fn measure(
    corpus: &Corpus,
    entities: usize,
    queries: usize,
    file: &Path,
    seen: &mut Seen,
) -> Result<()> {
    let mut rng = Rng::with_seed(5);
    let right: Vec<String> = (0..queries).map(|_| corpus.query(&mut rng, entities)).collect();
    let wrong: Vec<String> = (0..queries).map(|_| corpus.misspelt(&mut rng, entities)).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let memory = SearchBenchmark::new(Store::open(file)?, "default", None);
        ask(&memory, SearchMode::Words, &right, ["by words (in process)", "by words: found something"], seen)
            .await?;
        ask(&memory, SearchMode::Fuzzy, &wrong, ["misspelt (in process)", "misspelt: found something"], seen)
            .await?;
        ask(&memory, SearchMode::All, &right, ["both, fused (in process)", "both: found something"], seen)
            .await?;
        drop(memory);

        let model = file.with_file_name("model");
        write_model(corpus, &model)?;
        let memory = SearchBenchmark::new(Store::open(file)?, "default", Some(Embedder::folder(&model)?));
        let began = Instant::now();
        memory.ready().await?;
        seen.push(("vectors: entities/s", rate(entities, began)));
        // The first question reads all vectors.
        let before = resident(std::process::id())?;
        ask(
            &memory,
            SearchMode::Semantic,
            &right[..1],
            ["vectors: first question", "vectors: first found"],
            seen,
        )
        .await?;
        let after = resident(std::process::id())?;
        seen.push(("vectors: memory", megabytes(after.saturating_sub(before))));
        ask(
            &memory,
            SearchMode::Semantic,
            &right,
            ["by meaning (in process)", "by meaning: found something"],
            seen,
        )
        .await?;
        ask(&memory, SearchMode::All, &right, ["all, fused (in process)", "all: found something"], seen).await
    })
}

async fn ask(
    memory: &SearchBenchmark,
    way: SearchMode,
    queries: &[String],
    [time, some]: [&'static str; 2],
    seen: &mut Seen,
) -> Result<()> {
    let (mut took, mut found) = (Vec::new(), 0);
    for text in queries {
        let began = Instant::now();
        found += usize::from(!memory.find(way, text, 10).await?.is_empty());
        took.push(began.elapsed());
    }
    seen.push((time, times(took)));
    seen.push((some, format!("{found} of {}", queries.len())));
    Ok(())
}

/// A static model that knows the words of the corpus. They mean nothing, but comparing them takes as long.
fn write_model(corpus: &Corpus, folder: &Path) -> Result<()> {
    let mut rng = Rng::with_seed(6);
    let words = corpus.words();
    let vocabulary: serde_json::Map<_, _> =
        words.iter().enumerate().map(|(number, word)| (word.clone(), json!(number))).collect();
    let numbers = (0..words.len() * DIMENSIONS).map(|_| rng.f32() - 0.5);
    let table: Vec<u8> = numbers.flat_map(f32::to_le_bytes).collect();
    let shape = json!({"dtype": "F32", "shape": [words.len(), DIMENSIONS], "data_offsets": [0, table.len()]});
    let head = json!({"embeddings": shape}).to_string();
    let tokenizer = json!({
        "normalizer": {"type": "BertNormalizer"}, "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {"type": "WordLevel", "unk_token": words[0], "vocab": vocabulary},
    });
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("tokenizer.json"), tokenizer.to_string())?;
    std::fs::write(folder.join("config.json"), json!({"normalize": true}).to_string())?;
    let file = [&(head.len() as u64).to_le_bytes(), head.as_bytes(), &table].concat();
    std::fs::write(folder.join("model.safetensors"), file)?;
    Ok(())
}

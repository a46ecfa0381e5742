//! [`Model`]: a model that is a table of vectors, one for each token, as model2vec makes them. A text is the mean of
//! what its words are: it takes microseconds, no other program, and no network.
//!
//! The vectors of the model are kept in memory: `tokens × dimensions × 4` bytes, about 30 MB for `potion-base-8M`.

mod normal;
mod pairs;
mod tensors;
mod tokens;
mod words;

use std::path::Path;

use serde_json::Value;

use crate::error::{Code, Fault, Result};
use tensors::Tensors;
use tokens::Tokens;

/// The files of a static model.
pub const FILES: [&str; 3] = ["config.json", "tokenizer.json", "model.safetensors"];
/// Most dimensions of a vector.
const MAX_DIMENSIONS: usize = 10_000;

/// A table of vectors.
pub(super) struct Model {
    tokens: Tokens,
    table: Vec<f32>,
    pub(super) dimensions: usize,
    weights: Option<Vec<f32>>,
    places: Option<Vec<usize>>,
    normalize: bool,
    /// Its name, and a number by which it differs from others of that name.
    pub(super) name: String,
}

impl Model {
    /// Reads the three files of a folder.
    pub(super) fn open(folder: &Path) -> Result<Model> {
        let read = |name: &str| {
            let file = folder.join(name);
            if std::fs::metadata(&file).is_ok_and(|about| !about.is_file()) {
                return Err(wrong(&file, "it is a directory, a pipe or a device, and not a file"));
            }
            std::fs::read(&file).map_err(|error| wrong(&file, &error.to_string()))
        };
        let [config, tokens, table] = FILES.map(read);
        let (config, tokens, file) = (config?, tokens?, table?);
        let config: Value = serde_json::from_slice(&config)
            .map_err(|error| wrong(&folder.join(FILES[0]), &error.to_string()))?;
        let read = Tokens::read(&tokens).map_err(|reason| wrong(&folder.join(FILES[1]), &reason))?;
        let mut model = Model::read(&file, read).map_err(|reason| wrong(&folder.join(FILES[2]), &reason))?;
        model.normalize = config["normalize"].as_bool().unwrap_or(true);
        let name = folder.file_name().map_or_else(|| "local".into(), |name| name.to_string_lossy());
        model.name = format!("{name}#{:08x}", mark(&[&tokens, &file]));
        Ok(model)
    }

    fn read(file: &[u8], tokens: Tokens) -> Result<Model, String> {
        let tensors = Tensors::read(file)?;
        let mut found = None;
        for name in ["embeddings", "0", "embedding.weight"] {
            found = found.or(tensors.get(name)?);
        }
        let table = found.ok_or("it has no table of embeddings")?;
        let [rows, dimensions] = *table.shape else {
            return Err("its table of embeddings has not two dimensions".to_owned());
        };
        if !(1..=MAX_DIMENSIONS).contains(&dimensions) {
            return Err(format!(
                "its vectors must have 1 to {MAX_DIMENSIONS} dimensions, and have {dimensions}"
            ));
        }
        let weights = tensors.get("weights")?.map(|tensor| tensor.reals());
        let places = match tensors.get("mapping")? {
            Some(tensor) => Some(tensor.places().ok_or("its mapping is not made of whole numbers")?),
            None => None,
        };
        // Checked once, so that no text can lead beyond the tables.
        let highest = tokens.highest();
        let known = places.as_ref().map_or(rows, Vec::len);
        if highest >= known || places.iter().flatten().any(|place| *place >= rows) {
            return Err(format!(
                "it has {known} vectors, and the tokenizer has a token with the number {highest}"
            ));
        }
        if weights.as_ref().is_some_and(|weights| weights.len() <= highest) {
            return Err("it has fewer weights than the tokenizer has tokens".to_owned());
        }
        let table = table.reals();
        Ok(Model { tokens, table, dimensions, weights, places, normalize: true, name: String::new() })
    }

    /// The vector of a text: all 0 if no word of it is known.
    pub(super) fn embed(&self, text: &str) -> Vec<f32> {
        let mut sum = vec![0.0; self.dimensions];
        let tokens = self.tokens.of(text);
        for token in &tokens {
            let place = self.places.as_ref().map_or(*token, |places| places[*token]);
            let weight = self.weights.as_ref().map_or(1.0, |weights| weights[*token]);
            let row = &self.table[place * self.dimensions..(place + 1) * self.dimensions];
            for (sum, number) in sum.iter_mut().zip(row) {
                *sum += number * weight;
            }
        }
        let by = match self.normalize {
            true => sum.iter().map(|number| number * number).sum::<f32>().sqrt(),
            false => tokens.len() as f32,
        };
        if by > 0.0 && by.is_finite() {
            sum.iter_mut().for_each(|number| *number /= by);
        }
        sum
    }
}

fn wrong(file: &Path, reason: &str) -> Fault {
    let what = format!(
        "The embedding model cannot be used: {}: {reason}. A folder with the files of a model2vec model is needed: {}",
        file.display(),
        FILES.join(", ")
    );
    Fault::new(Code::InvalidInput, what)
}

/// A number by which models are told apart: of the sizes and of bytes from everywhere in the files.
fn mark(files: &[&[u8]]) -> u32 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let mut hash = 0x811c_9dc5;
    for file in files {
        hash = file.len().to_le_bytes().into_iter().fold(hash, step);
        hash = file.iter().step_by(file.len() / 65_536 + 1).copied().fold(hash, step);
    }
    hash
}

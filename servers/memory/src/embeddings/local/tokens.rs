//! [`Tokens`]: cuts a text into the tokens that a model has vectors for, as its `tokenizer.json` says.

use std::collections::HashMap;

use serde_json::Value;

use super::normal::{self, Step};
use super::pairs::Pairs;
use super::words::{self, Cut};

/// Longest word that is looked up, in characters.
const MAX_WORD: usize = 100;
/// How much worse an unknown character is than the worst token.
const UNKNOWN: f64 = 10.0;

/// Cuts a text into tokens.
pub(super) struct Tokens {
    steps: Vec<Step>,
    cuts: Vec<Cut>,
    kind: Kind,
    vocabulary: HashMap<Box<str>, (usize, f64)>,
    /// How many characters the longest token has.
    longest: usize,
    /// What stands for a word that is not known: it has no meaning.
    unknown: Option<usize>,
}

/// How words become tokens.
enum Kind {
    /// A word is a token.
    WordLevel,
    /// The longest beginning of a word that is a token, then the longest of the rest.
    WordPiece { prefix: String },
    /// The most likely tokens.
    Unigram { worst: f64 },
    /// Pairs are joined, the most frequent first.
    Bpe(Pairs),
}

impl Tokens {
    pub(super) fn read(file: &[u8]) -> Result<Tokens, String> {
        let mut described: Value = serde_json::from_slice(file).map_err(|error| error.to_string())?;
        let model = described["model"].take();
        let (kind, vocabulary) = match (model["type"].as_str(), &model["vocab"]) {
            (Some("WordLevel"), Value::Object(vocabulary)) => (Kind::WordLevel, numbered(vocabulary)),
            // Older files do not name the type of this one.
            (Some("WordPiece") | None, Value::Object(vocabulary)) => {
                let prefix = model["continuing_subword_prefix"].as_str().unwrap_or("##").to_owned();
                (Kind::WordPiece { prefix }, numbered(vocabulary))
            }
            (Some("Unigram"), Value::Array(vocabulary)) => {
                let vocabulary = scored(vocabulary);
                let worst = vocabulary.values().map(|(_, score)| *score).fold(0.0, f64::min);
                (Kind::Unigram { worst }, vocabulary)
            }
            (Some("BPE"), Value::Object(vocabulary)) => {
                let vocabulary = numbered(vocabulary);
                let pairs = Pairs::read(&model, |token| vocabulary.get(token).map(|(id, _)| *id))?;
                (Kind::Bpe(pairs), vocabulary)
            }
            (other, _) => {
                return Err(format!(
                    "its model {} is not one that can be used: WordPiece, WordLevel, Unigram or BPE",
                    other.unwrap_or("without a type")
                ));
            }
        };
        let unknown = model["unk_token"].as_str().and_then(|token| vocabulary.get(token)).map(|(id, _)| *id);
        let unknown = unknown.or_else(|| model["unk_id"].as_u64().map(|id| id as usize));
        Ok(Tokens {
            steps: normal::steps(&described["normalizer"])?,
            cuts: words::cuts(&described["pre_tokenizer"])?,
            longest: vocabulary.keys().map(|token| token.chars().count()).max().unwrap_or_default(),
            kind,
            vocabulary,
            unknown,
        })
    }

    /// The highest number that a token has.
    pub(super) fn highest(&self) -> usize {
        self.vocabulary.values().map(|(id, _)| *id).max().unwrap_or_default()
    }

    /// The numbers of the tokens of a text, without those that are not known.
    pub(super) fn of(&self, text: &str) -> Vec<usize> {
        let text = self.steps.iter().fold(text.to_owned(), |text, step| step.apply(text));
        let words = self.cuts.iter().fold(vec![text], |words, cut| cut.apply(words));
        let mut tokens = Vec::with_capacity(words.len() * 2);
        for word in &words {
            match &self.kind {
                Kind::WordLevel => tokens.extend(self.find(word)),
                Kind::WordPiece { prefix } => tokens.extend(self.pieces(word, prefix).unwrap_or_default()),
                Kind::Unigram { worst } => self.likely(word, worst - UNKNOWN, &mut tokens),
                Kind::Bpe(pairs) => pairs.of(word, |token| self.find(token), &mut tokens),
            }
        }
        tokens.retain(|token| Some(*token) != self.unknown);
        tokens
    }

    fn find(&self, token: &str) -> Option<usize> {
        self.vocabulary.get(token).map(|(id, _)| *id)
    }

    /// The pieces of a word. None if a part of it is not known.
    fn pieces(&self, word: &str, prefix: &str) -> Option<Vec<usize>> {
        let ends: Vec<usize> = word.char_indices().map(|(at, c)| at + c.len_utf8()).collect();
        if ends.len() > MAX_WORD {
            return None;
        }
        let mut pieces = Vec::new();
        let (mut start, mut first, mut piece) = (0, 0, String::new());
        while first < ends.len() {
            let (id, last) = (first..ends.len().min(first + self.longest)).rev().find_map(|last| {
                piece.clear();
                if start > 0 {
                    piece.push_str(prefix);
                }
                piece.push_str(&word[start..ends[last]]);
                self.find(&piece).map(|id| (id, last))
            })?;
            pieces.push(id);
            (start, first) = (ends[last], last + 1);
        }
        Some(pieces)
    }

    /// The tokens of a word that are most likely together.
    fn likely(&self, word: &str, unknown: f64, tokens: &mut Vec<usize>) {
        let starts: Vec<usize> = word.char_indices().map(|(at, _)| at).chain([word.len()]).collect();
        // For each place in the word: how likely the best way there is, from where it comes, and by which token.
        let mut best = vec![(f64::NEG_INFINITY, 0, None); starts.len()];
        best[0].0 = 0.0;
        for from in 0..starts.len() - 1 {
            let so_far = best[from].0;
            for to in from + 1..=(from + self.longest.max(1)).min(starts.len() - 1) {
                let known = self.vocabulary.get(&word[starts[from]..starts[to]]);
                let step = match known {
                    Some((id, score)) => Some((*score, Some(*id))),
                    None if to == from + 1 => Some((unknown, None)),
                    None => None,
                };
                if let Some((score, id)) = step
                    && so_far + score > best[to].0
                {
                    best[to] = (so_far + score, from, id);
                }
            }
        }
        let (mut at, mut found) = (starts.len() - 1, Vec::new());
        while at > 0 {
            found.extend(best[at].2);
            at = best[at].1;
        }
        tokens.extend(found.into_iter().rev());
    }
}

fn numbered(vocabulary: &serde_json::Map<String, Value>) -> HashMap<Box<str>, (usize, f64)> {
    let numbered =
        |(token, id): (&String, &Value)| Some((token.as_str().into(), (id.as_u64()? as usize, 0.0)));
    vocabulary.iter().filter_map(numbered).collect()
}

fn scored(vocabulary: &[Value]) -> HashMap<Box<str>, (usize, f64)> {
    let scored = |(id, entry): (usize, &Value)| Some((entry[0].as_str()?.into(), (id, entry[1].as_f64()?)));
    vocabulary.iter().enumerate().filter_map(scored).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tokens(described: Value) -> Tokens {
        Tokens::read(described.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn word_pieces_as_bert_cuts_them() {
        let tokens = tokens(json!({
            "normalizer": {"type": "BertNormalizer", "lowercase": true},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                "vocab": {"[UNK]": 0, "un": 1, "##aff": 2, "##able": 3, ",": 4, "cafe": 5, "中": 6, "runn": 7, "##ing": 8}},
        }));
        assert_eq!(tokens.of("UNaffable, Café\t中中"), [1, 2, 3, 4, 5, 6, 6]);
        assert_eq!(tokens.of("running zebra"), [7, 8], "what is not known has no meaning");
        assert_eq!(tokens.of(&"un".repeat(200)), [0; 0]);
        assert_eq!(tokens.of(""), [0; 0]);
    }

    #[test]
    fn the_most_likely_tokens() {
        let tokens = tokens(json!({
            "normalizer": {"type": "Sequence", "normalizers": [{"type": "Precompiled"}, {"type": "Lowercase"}]},
            "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
            "model": {"type": "Unigram", "unk_id": 0,
                "vocab": [["<unk>", 0.0], ["▁", -2.0], ["▁new", -3.0], ["▁ne", -2.9], ["w", -4.0], ["er", -2.5], ["▁newer", -9.0]]},
        }));
        assert_eq!(tokens.of("Newer new"), [2, 5, 2]);
        assert_eq!(tokens.of("new\u{1f600}er"), [2, 5]);
    }

    #[test]
    fn whole_words() {
        let tokens = tokens(json!({
            "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"},
            "model": {"type": "WordLevel", "unk_token": "[UNK]", "vocab": {"[UNK]": 0, "tea": 1, "...": 2}},
        }));
        assert_eq!(tokens.of("Tea... tea-tree"), [1, 2, 1]);
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        for (described, named) in [
            (json!({"model": {"type": "Odd", "vocab": {}}}), "Odd"),
            (
                json!({"model": {"type": "BPE", "vocab": {}, "end_of_word_suffix": "</w>"}}),
                "end_of_word_suffix",
            ),
            (json!({"model": {"vocab": {}}, "normalizer": {"type": "Odd"}}), "Odd"),
            (json!({"model": {"vocab": {}}, "pre_tokenizer": {"type": "ByteLevel"}}), "ByteLevel"),
        ] {
            let refused = Tokens::read(described.to_string().as_bytes()).err().unwrap();
            assert!(refused.contains(named), "{refused}");
        }
    }
}

//! How a text is cut into words, before these are cut into tokens.

use serde_json::Value;

/// One way to cut.
pub(super) enum Cut {
    /// At spaces, and around each mark of punctuation.
    Bert,
    /// Letters and digits together, other marks together.
    Whitespace,
    /// At spaces.
    Spaces,
    /// Around each mark of punctuation.
    Punctuation,
    /// A space becomes a mark that begins the next word.
    Metaspace { mark: char, prefix: bool, split: bool },
}

/// The cuts that a `pre_tokenizer` of tokenizer.json names.
pub(super) fn cuts(described: &Value) -> Result<Vec<Cut>, String> {
    Ok(vec![match described["type"].as_str() {
        None if described.is_null() => return Ok(Vec::new()),
        Some("Sequence") => {
            let parts = described["pretokenizers"].as_array().into_iter().flatten().map(cuts);
            return parts.collect::<Result<Vec<_>, _>>().map(|parts| parts.into_iter().flatten().collect());
        }
        Some("BertPreTokenizer") => Cut::Bert,
        Some("Whitespace") => Cut::Whitespace,
        Some("WhitespaceSplit") => Cut::Spaces,
        Some("Punctuation") => Cut::Punctuation,
        Some("Metaspace") => Cut::Metaspace {
            mark: described["replacement"]
                .as_str()
                .and_then(|mark| mark.chars().next())
                .unwrap_or('\u{2581}'),
            prefix: match described["prepend_scheme"].as_str() {
                Some(scheme) => scheme != "never",
                None => described["add_prefix_space"].as_bool().unwrap_or(true),
            },
            split: described["split"].as_bool().unwrap_or(true),
        },
        other => {
            return Err(format!(
                "its pre_tokenizer {} is not one that can be used",
                other.unwrap_or("without a type")
            ));
        }
    }])
}

impl Cut {
    pub(super) fn apply(&self, words: Vec<String>) -> Vec<String> {
        words.iter().flat_map(|text| self.cut(text)).collect()
    }

    fn cut(&self, text: &str) -> Vec<String> {
        match self {
            Cut::Spaces => text.split_whitespace().map(str::to_owned).collect(),
            Cut::Bert => text
                .split_whitespace()
                .flat_map(|word| runs(word, |c| is_punctuation(c).then_some(c)))
                .collect(),
            Cut::Punctuation => runs(text, |c| is_punctuation(c).then_some(c)),
            Cut::Whitespace => {
                let words = text.split_whitespace().flat_map(|word| {
                    let kind = |c: char| c.is_alphanumeric() || c == '_';
                    let mut cut: Vec<String> = Vec::new();
                    let mut last = None;
                    for c in word.chars() {
                        match cut.last_mut() {
                            Some(run) if last == Some(kind(c)) => run.push(c),
                            _ => cut.push(c.to_string()),
                        }
                        last = Some(kind(c));
                    }
                    cut
                });
                words.collect()
            }
            Cut::Metaspace { mark, prefix, split } => {
                let mut marked: String = text.chars().map(|c| if c == ' ' { *mark } else { c }).collect();
                if *prefix && !marked.is_empty() && !marked.starts_with(*mark) {
                    marked.insert(0, *mark);
                }
                if !split {
                    return vec![marked];
                }
                let mut cut: Vec<String> = Vec::new();
                for c in marked.chars() {
                    match cut.last_mut() {
                        Some(word) if c != *mark => word.push(c),
                        _ => cut.push(c.to_string()),
                    }
                }
                cut
            }
        }
    }
}

/// Cuts around the characters that stand alone.
fn runs(word: &str, alone: impl Fn(char) -> Option<char>) -> Vec<String> {
    let mut cut = Vec::new();
    let mut open = String::new();
    for c in word.chars() {
        match alone(c) {
            Some(c) => {
                if !open.is_empty() {
                    cut.push(std::mem::take(&mut open));
                }
                cut.push(c.to_string());
            }
            None => open.push(c),
        }
    }
    if !open.is_empty() {
        cut.push(open);
    }
    cut
}

/// What BERT takes for punctuation: all of it in ASCII, and the usual blocks beyond.
fn is_punctuation(c: char) -> bool {
    match c {
        c if c.is_ascii() => c.is_ascii_punctuation(),
        '\u{a1}' | '\u{a7}' | '\u{ab}' | '\u{b6}' | '\u{b7}' | '\u{bb}' | '\u{bf}' => true,
        '\u{2010}'..='\u{2027}'
        | '\u{2030}'..='\u{2043}'
        | '\u{2045}'..='\u{2051}'
        | '\u{2053}'..='\u{205e}' => true,
        '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}' | '\u{3014}'..='\u{301f}' | '\u{30fb}' => true,
        '\u{ff01}'..='\u{ff0f}'
        | '\u{ff1a}'..='\u{ff1b}'
        | '\u{ff1f}'
        | '\u{ff3b}'..='\u{ff3d}'
        | '\u{ff5b}'
        | '\u{ff5d}' => true,
        '\u{589}' | '\u{5be}' | '\u{60c}' | '\u{61b}' | '\u{61f}' | '\u{6d4}' | '\u{964}' | '\u{965}' => true,
        _ => false,
    }
}

//! What becomes of a text before it is cut into words: capitals, accents and the like.

use serde_json::Value;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// One thing that is done to a text.
pub(super) enum Step {
    Bert {
        clean: bool,
        chinese: bool,
        accents: bool,
        lower: bool,
    },
    Lower,
    Accents,
    Strip,
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
    Prepend(String),
    Replace(String, String),
    /// Two spaces or more become this.
    Spaces(String),
}

/// The steps that a `normalizer` of tokenizer.json names.
pub(super) fn steps(described: &Value) -> Result<Vec<Step>, String> {
    let on = |name: &str| described[name].as_bool();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(vec![match described["type"].as_str() {
        None if described.is_null() => return Ok(Vec::new()),
        Some("Sequence") => {
            let parts = described["normalizers"].as_array().into_iter().flatten().map(steps);
            return parts.collect::<Result<Vec<_>, _>>().map(|parts| parts.into_iter().flatten().collect());
        }
        Some("BertNormalizer") => {
            let lower = on("lowercase").unwrap_or(true);
            Step::Bert {
                clean: on("clean_text").unwrap_or(true),
                chinese: on("handle_chinese_chars").unwrap_or(true),
                accents: on("strip_accents").unwrap_or(lower),
                lower,
            }
        }
        Some("Lowercase") => Step::Lower,
        Some("StripAccents") => Step::Accents,
        Some("Strip") => Step::Strip,
        Some("NFC") => Step::Nfc,
        Some("NFD") => Step::Nfd,
        // What SentencePiece compiles into its models is this form, but for a few characters.
        Some("NFKC" | "Precompiled") => Step::Nfkc,
        Some("NFKD") => Step::Nfkd,
        Some("Prepend") => Step::Prepend(text(&described["prepend"])),
        Some("Replace") if described["pattern"]["String"].is_string() => {
            Step::Replace(text(&described["pattern"]["String"]), text(&described["content"]))
        }
        // The only pattern that models are known to come with.
        Some("Replace") if described["pattern"]["Regex"] == " {2,}" => {
            Step::Spaces(text(&described["content"]))
        }
        other => {
            return Err(format!(
                "its normalizer {} is not one that can be used",
                other.unwrap_or("without a type")
            ));
        }
    }])
}

impl Step {
    pub(super) fn apply(&self, text: String) -> String {
        match self {
            Step::Bert { clean, chinese, accents, lower } => {
                let mut out = text;
                if *clean {
                    out = out.chars().filter_map(cleaned).collect();
                }
                if *chinese {
                    out = spaced(&out);
                }
                if *accents {
                    out = without_accents(&out);
                }
                if *lower { out.to_lowercase() } else { out }
            }
            Step::Lower => text.to_lowercase(),
            Step::Accents => text.chars().filter(|c| !is_combining_mark(*c)).collect(),
            Step::Strip => text.trim().to_owned(),
            Step::Nfc => text.nfc().collect(),
            Step::Nfd => text.nfd().collect(),
            Step::Nfkc => text.nfkc().collect(),
            Step::Nfkd => text.nfkd().collect(),
            Step::Prepend(what) if text.is_empty() || what.is_empty() => text,
            Step::Prepend(what) => format!("{what}{text}"),
            Step::Replace(from, _) if from.is_empty() => text,
            Step::Replace(from, to) => text.replace(from, to),
            Step::Spaces(to) => {
                let mut out = String::with_capacity(text.len());
                let mut rest = text.as_str();
                while let Some(at) = rest.find("  ") {
                    out.push_str(&rest[..at]);
                    out.push_str(to);
                    rest = rest[at..].trim_start_matches(' ');
                }
                out + rest
            }
        }
    }
}

fn cleaned(c: char) -> Option<char> {
    match c {
        c if c.is_whitespace() => Some(' '),
        '\0' | '\u{fffd}' => None,
        c if c.is_control() => None,
        c => Some(c),
    }
}

/// With spaces around what is Chinese, where each character is a word.
fn spaced(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match u32::from(c) {
            0x4e00..=0x9fff | 0x3400..=0x4dbf | 0x20000..=0x2ceaf | 0xf900..=0xfaff | 0x2f800..=0x2fa1f => {
                out.extend([' ', c, ' ']);
            }
            _ => out.push(c),
        }
    }
    out
}

fn without_accents(text: &str) -> String {
    match text.is_ascii() {
        true => text.to_owned(),
        false => text.nfd().filter(|c| !is_combining_mark(*c)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn step_by_step() {
        for (described, text, wanted) in [
            (json!({"type": "BertNormalizer"}), "Ä\u{0}\tB", "a b"),
            (json!({"type": "BertNormalizer", "lowercase": false}), "Äb", "Äb"),
            (
                json!({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}),
                "a   b c  ",
                "a b c ",
            ),
            (json!({"type": "Replace", "pattern": {"String": "``"}, "content": "\""}), "``a", "\"a"),
            (
                json!({"type": "Sequence", "normalizers": [{"type": "NFKD"}, {"type": "StripAccents"}]}),
                "éﬁ",
                "efi",
            ),
            (json!({"type": "Prepend", "prepend": "_"}), "a", "_a"),
            (json!(null), "A", "A"),
        ] {
            let made = steps(&described).unwrap().iter().fold(text.to_owned(), |text, step| step.apply(text));
            assert_eq!(made, wanted, "{described}");
        }
        assert!(steps(&json!({"type": "Replace", "pattern": {"Regex": "x+"}})).is_err());
    }
}

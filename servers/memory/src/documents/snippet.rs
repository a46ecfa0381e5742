//! [`snippet`]: the part of a text that has most of the words that were asked for.

/// How long a snippet is at most, in characters, without the marks that it was cut.
pub(super) const ROOM: usize = 500;

/// The part of `text`, of at most [`ROOM`] characters, that has most of the words of `query`.
pub(super) fn snippet(text: &str, query: &str) -> String {
    let text = text.trim();
    if text.chars().count() <= ROOM {
        return text.to_owned();
    }
    let mut wanted: Vec<String> = words(query).map(|(_, word)| word.to_lowercase()).collect();
    wanted.sort();
    wanted.dedup();
    // Where a wanted word stands, in bytes, and which.
    let found: Vec<(usize, usize)> = words(text)
        .filter_map(|(at, word)| {
            let word = word.to_lowercase();
            Some((at, wanted.iter().position(|wanted| fits(&word, wanted))?))
        })
        .collect();
    let mut best = (0, 0, 0);
    for (first, (at, _)) in found.iter().enumerate() {
        let within: Vec<usize> = found[first..]
            .iter()
            .take_while(|(other, _)| other - at < ROOM * 4 / 5)
            .map(|(_, which)| *which)
            .collect();
        let mut different = within.clone();
        different.sort_unstable();
        different.dedup();
        let score = (different.len(), within.len());
        if score > (best.0, best.1) {
            best = (score.0, score.1, *at);
        }
    }
    around(text, best.2)
}

/// Whether a word is the one that was wanted, or begins like it.
fn fits(word: &str, wanted: &str) -> bool {
    word == wanted || (wanted.len() > 3 && word.starts_with(wanted))
}

/// [`ROOM`] characters, most of them after `at`.
fn around(text: &str, at: usize) -> String {
    let before = text[..at].char_indices().rev().take(ROOM / 5).last().map_or(0, |(start, _)| start);
    // From the beginning of a word.
    let start = match text[before..at].find(char::is_whitespace) {
        Some(space) if before > 0 => before + space,
        _ => before,
    };
    let rest = text[start..].trim_start();
    let end = rest.char_indices().nth(ROOM).map_or(rest.len(), |(end, _)| end);
    let mut part = &rest[..end];
    if end < rest.len()
        && let Some(space) = part.rfind(char::is_whitespace)
        && space > part.len() / 2
    {
        part = &part[..space];
    }
    let cut = |yes: bool| if yes { "…" } else { "" };
    format!("{}{}{}", cut(start > 0), part.trim_end(), cut(part.len() < rest.len()))
}

/// The words of a text and where they begin.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let start = text.as_ptr() as usize;
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(move |word| (word.as_ptr() as usize - start, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_part_that_has_the_words() {
        let text = format!(
            "{} The lighthouse keeper eats herring. {}",
            "filler words ".repeat(200),
            "after ".repeat(200)
        );
        let found = snippet(&text, "HERRING lighthouse");
        assert!(found.contains("lighthouse keeper eats herring"), "{found}");
        assert!(
            found.starts_with('…') && found.ends_with('…') && found.chars().count() <= ROOM + 2,
            "{found}"
        );
        assert!(snippet(&text, "nothing of it").starts_with("filler"));
        assert_eq!(snippet("  short ", "x"), "short");
    }

    #[test]
    fn never_cuts_a_character() {
        for text in
            ["ü".repeat(3_000), "漢 ".repeat(2_000), format!("{}🦀{}", "é".repeat(1_000), "ß".repeat(1_000))]
        {
            for query in ["ü", "漢", "🦀", "", "\"*"] {
                assert!(snippet(&text, query).chars().count() <= ROOM + 2);
            }
        }
    }
}

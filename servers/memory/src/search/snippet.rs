//! [`snippet`]: the part of a text that has most of the words that were asked for.

use super::Query;

/// How long a snippet is at most, in characters, without the marks that it was cut.
const ROOM: usize = 500;

/// The part of `text`, of at most [`ROOM`] characters, that has most of the words of the question, or of words like these.
pub(crate) fn snippet(text: &str, question: &Query) -> String {
    let text = text.trim();
    if text.chars().count() <= ROOM {
        return text.to_owned();
    }
    let found = question.places(text);
    let (mut best, mut begin) = ((0.0, 0), 0);
    let mut likest = vec![0.0_f64; question.len()];
    for (first, (at, ..)) in found.iter().enumerate() {
        likest.fill(0.0);
        let mut count = 0;
        for (_, which, like) in found[first..].iter().take_while(|(other, ..)| other - at < ROOM * 4 / 5) {
            likest[*which] = likest[*which].max(*like);
            count += 1;
        }
        let score = (likest.iter().sum(), count);
        if score > best {
            (best, begin) = (score, *at);
        }
    }
    around(text, begin)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn snippet(text: &str, query: &str) -> String {
        super::snippet(text, &Query::new(query))
    }

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
        assert!(snippet(&text, "lihgthouse").contains("lighthouse"), "nearly the word");
        assert!(snippet(&text, "nothing of it").starts_with("filler"));
        let text = format!("{}日本の首都です。{}", "あいうえお".repeat(300), "かきくけこ".repeat(300));
        assert!(snippet(&text, "首都").contains("日本の首都です"));
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

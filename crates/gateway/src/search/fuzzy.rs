//! Words that are nearly the same: which of many a misspelled one was meant to be.

use std::collections::HashMap;

/// How many different words a misspelled one may stand for.
const MOST: usize = 8;
/// Least similarity, from 0 to 1: a slip in a short word changes half of its trigrams.
const LEAST: f32 = 0.3;

/// The trigrams of a vocabulary.
#[derive(Debug, Default)]
pub(crate) struct Trigrams {
    words: HashMap<[char; 3], Vec<u32>>,
    /// How many each word has.
    counts: Vec<u32>,
}

impl Trigrams {
    /// The trigrams of words, which are known by their place from then on.
    pub(crate) fn new<'a>(vocabulary: impl Iterator<Item = &'a str>) -> Trigrams {
        let mut all = Trigrams::default();
        for (place, word) in vocabulary.enumerate() {
            let of_word = trigrams(word);
            all.counts.push(of_word.len() as u32);
            for trigram in of_word {
                all.words.entry(trigram).or_default().push(place as u32);
            }
        }
        all
    }

    /// The words that `word` was probably meant to be, by their place, with how alike they are, best first. `spelling`
    /// gives the word at a place, if it counts.
    pub(crate) fn nearest<'a>(
        &self,
        word: &str,
        spelling: impl Fn(u32) -> Option<&'a str>,
    ) -> Vec<(u32, f32)> {
        let of_word = trigrams(word);
        let mut shared: HashMap<u32, u32> = HashMap::new();
        for trigram in &of_word {
            for place in self.words.get(trigram).into_iter().flatten() {
                *shared.entry(*place).or_default() += 1;
            }
        }
        let slips = slips(word);
        let mut near: Vec<(u32, f32)> = shared
            .into_iter()
            .filter_map(|(place, shared)| {
                let alike = 2.0 * shared as f32 / (of_word.len() as f32 + self.counts[place as usize] as f32);
                let distance = (alike >= LEAST).then(|| distance(word, spelling(place)?, slips)).flatten()?;
                // A letter too many is nearer than two, whatever the trigrams say.
                Some((place, alike / (1 + distance) as f32))
            })
            .collect();
        near.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        near.truncate(MOST);
        near
    }
}

/// How many slips are forgiven: in a short word, each letter says much.
fn slips(word: &str) -> usize {
    match word.chars().count() {
        0..=3 => 0,
        4 => 1,
        _ => 2,
    }
}

/// The different trigrams of a word, with marks at its beginning and end.
fn trigrams(word: &str) -> Vec<[char; 3]> {
    let chars: Vec<char> = ['\0', '\0'].into_iter().chain(word.chars()).chain(['\0']).collect();
    let mut all: Vec<[char; 3]> = chars.windows(3).map(|window| [window[0], window[1], window[2]]).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// How many letters must be added, left out, replaced or swapped with their neighbour; `None` if more than `most`.
fn distance(a: &str, b: &str, most: usize) -> Option<usize> {
    if a.chars().count().abs_diff(b.chars().count()) > most {
        return None;
    }
    Some(strsim::osa_distance(a, b)).filter(|distance| *distance <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_counted() {
        for (a, b, want) in [
            ("issu", "issu", Some(0)),
            ("isu", "issu", Some(1)),
            ("cretae", "create", Some(1)),
            ("wether", "weather", Some(1)),
            ("rpeositroy", "repository", Some(2)),
            ("calendar", "colander", None),
            ("größe", "grösse", Some(2)),
            ("", "ab", Some(2)),
            ("", "abc", None),
        ] {
            assert_eq!(distance(a, b, 2), want, "{a} {b}");
        }
    }

    #[test]
    fn the_word_that_was_meant_comes_first() {
        let words = ["weather", "repositori", "issu", "calendar", "issuer", "get"];
        let trigrams = Trigrams::new(words.into_iter());
        let nearest = |word: &str| -> Vec<&str> {
            let near = trigrams.nearest(word, |place| Some(words[place as usize]));
            near.into_iter().map(|(place, _)| words[place as usize]).collect()
        };
        assert_eq!(nearest("waether")[0], "weather");
        assert_eq!(nearest("repositri"), ["repositori"]);
        assert_eq!(nearest("isssu")[0], "issu");
        assert_eq!(nearest("get"), ["get"]);
        assert!(nearest("gte").is_empty(), "short words are not guessed");
        assert!(nearest("xylophon").is_empty());
    }
}

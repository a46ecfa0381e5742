//! [`Query`]: how much of a question a text has, by its words.

use std::collections::BTreeSet;

use super::{spelling, words};

/// From so many letters on a word may be the beginning of another.
const BEGINNING: usize = 3;

/// The words of a question.
#[derive(Debug, Clone)]
pub(crate) struct Query {
    text: String,
    words: Vec<String>,
}

impl Query {
    pub(crate) fn new(text: &str) -> Query {
        Query { text: text.trim().to_lowercase(), words: words::distinct(text) }
    }

    /// How many words there are.
    pub(crate) fn len(&self) -> usize {
        self.words.len()
    }

    /// How much of the question the text has, 0 to 1: the mean over its words of how like each of them is to the word in
    /// the text that is most like it.
    pub(crate) fn share(&self, text: &str) -> f64 {
        if self.words.is_empty() {
            // A question of signs alone.
            let has_it = !self.text.is_empty() && text.to_lowercase().contains(&self.text);
            return f64::from(u8::from(has_it));
        }
        let mut there = BTreeSet::new();
        words::each_word(text, |word| {
            if !there.contains(word) {
                there.insert(word.to_owned());
            }
        });
        let best = |wanted: &String| match there.contains(wanted) {
            true => 1.0,
            false => there.iter().map(|word| self.alike(wanted, word)).fold(0.0, f64::max),
        };
        self.words.iter().map(best).sum::<f64>() / self.words.len() as f64
    }

    /// Each word of the text that is like one of the question: where it begins, which it is like, and how much.
    pub(crate) fn places(&self, text: &str) -> Vec<(usize, usize, f64)> {
        let mut places = Vec::new();
        words::each_word_at(text, |at, word| {
            let like = self.words.iter().map(|wanted| self.alike(wanted, word)).enumerate();
            let best = like.max_by(|(_, a), (_, b)| a.total_cmp(b)).filter(|(_, like)| *like > 0.0);
            places.extend(best.map(|(which, like)| (at, which, like)));
        });
        places
    }

    /// How like a word is to one that was asked for: 1 if it is that, less if it only begins so or is nearly that.
    fn alike(&self, wanted: &str, word: &str) -> f64 {
        if wanted == word {
            return 1.0;
        }
        let begins = || {
            let letters = wanted.chars().count();
            let may_begin = letters >= BEGINNING || self.words.len() == 1;
            match may_begin && word.starts_with(wanted) {
                true => 0.5 + 0.5 * letters as f64 / word.chars().count() as f64,
                false => 0.0,
            }
        };
        spelling::similarity(wanted, word).unwrap_or_default().max(begins())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_between_nothing_and_all() {
        for (question, text, share) in [
            ("green tea", "Ann person\nlikes tea", 0.5),
            ("TEA?", "likes tea", 1.0),
            ("kuber", "Kubernetes", 0.75),
            ("kubernets", "Kubernetes", 0.9),
            ("nodejs", "Node.js", 2.0 / 3.0),
            ("zebra", "Ann likes tea", 0.0),
            ("a tea", "and tea", 0.5),
            ("首都", "日本の首都です", 1.0),
            ("京都", "日本の首都です", 0.0),
            ("😀", "😀 smile", 1.0),
            ("->", "a -> b", 1.0),
            ("", "anything", 0.0),
        ] {
            let found = Query::new(question).share(text);
            assert!((found - share).abs() < 1e-9, "{question} {text}: {found}");
        }
    }

    #[test]
    fn places_are_told_in_bytes() {
        let places = Query::new("tea ann").places("Änn: tea, taa, Ann");
        assert_eq!(places, [(0, 1, 1.0), (6, 0, 1.0), (16, 1, 1.0)]);
    }
}

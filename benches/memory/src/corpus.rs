//! [`Corpus`]: entities that nobody knows, but whose words are spread as words are.
//!
//! A few words are everywhere and most are rare (Zipf's law), so queries meet both. Everything follows from the number
//! of an entity: nothing has to be kept, and every run has the same.

use std::collections::BTreeSet;

use fastrand::Rng;
use serde_json::{Value, json};

/// How many words there are.
const VOCABULARY: usize = 60_000;
/// How many observations an entity has.
pub(crate) const OBSERVATIONS: usize = 10;
/// How many relations an entity has.
pub(crate) const RELATIONS: usize = 3;
const TYPES: [&str; 8] = ["person", "project", "decision", "component", "task", "place", "event", "tool"];
const KINDS: [&str; 4] = ["works_on", "depends_on", "knows", "part_of"];
const SEED: u64 = 20_261_116;

pub(crate) struct Corpus {
    words: Vec<String>,
    /// How often one of the first words is drawn, up to 1 for all of them.
    shares: Vec<f64>,
}

impl Corpus {
    pub(crate) fn new() -> Corpus {
        let mut sum = 0.0;
        let mut shares: Vec<f64> = (0..VOCABULARY)
            .map(|rank| {
                sum += 1.0 / (rank as f64 + 2.7);
                sum
            })
            .collect();
        shares.iter_mut().for_each(|share| *share /= sum);
        Corpus { words: (0..VOCABULARY).map(spelt).collect(), shares }
    }

    /// All words, the frequent ones first.
    pub(crate) fn words(&self) -> &[String] {
        &self.words
    }

    fn word(&self, rng: &mut Rng) -> &str {
        let drawn = rng.f64();
        let rank = self.shares.partition_point(|share| *share < drawn).min(VOCABULARY - 1);
        &self.words[rank]
    }

    /// A sentence about nothing.
    pub(crate) fn sentence(&self, rng: &mut Rng) -> String {
        let words: Vec<&str> = (0..rng.usize(6..19)).map(|_| self.word(rng)).collect();
        words.join(" ")
    }

    pub(crate) fn name(&self, number: usize) -> String {
        let mut rng = Rng::with_seed(SEED ^ number as u64);
        format!("{} {} {number}", self.words[rng.usize(..VOCABULARY)], self.words[rng.usize(..2_000)])
    }

    fn observations(&self, number: usize) -> Vec<String> {
        let mut rng = Rng::with_seed(!SEED ^ number as u64);
        (0..OBSERVATIONS).map(|_| self.sentence(&mut rng)).collect()
    }

    pub(crate) fn entity(&self, number: usize) -> Value {
        let kind = TYPES[number % TYPES.len()];
        json!({"name": self.name(number), "entityType": kind, "observations": self.observations(number)})
    }

    /// The relations from an entity to some of `count`.
    pub(crate) fn relations(&self, number: usize, count: usize) -> Vec<Value> {
        let mut rng = Rng::with_seed(SEED.rotate_left(7) ^ number as u64);
        let from = self.name(number);
        (0..RELATIONS)
            .map(|n| {
                let to = self.name(rng.usize(..count));
                json!({"from": from, "to": to, "relationType": KINDS[n % KINDS.len()]})
            })
            .collect()
    }

    /// A query of two to four words. Each is a word of some entity, so a word is drawn as often as entities have it.
    pub(crate) fn query(&self, rng: &mut Rng, count: usize) -> String {
        let wanted = rng.usize(2..5);
        let mut words = BTreeSet::new();
        while words.len() < wanted {
            let all = self.observations(rng.usize(..count)).join(" ");
            let distinct: BTreeSet<&str> = all.split(' ').collect();
            let chosen = rng.usize(..distinct.len());
            words.extend(distinct.into_iter().nth(chosen).map(str::to_owned));
        }
        let mut words: Vec<String> = words.into_iter().collect();
        rng.shuffle(&mut words);
        words.join(" ")
    }

    /// A query whose longest word is misspelt: two letters exchanged, or one left out.
    pub(crate) fn misspelt(&self, rng: &mut Rng, count: usize) -> String {
        loop {
            let query = self.query(rng, count);
            let Some(longest) = query.split(' ').max_by_key(|word| word.len()).filter(|word| word.len() >= 6)
            else {
                continue;
            };
            let (at, mut letters) = (rng.usize(1..longest.len() - 1), longest.as_bytes().to_vec());
            match rng.bool() {
                true => letters.swap(at, at + 1),
                false => drop(letters.remove(at)),
            }
            return query.replace(longest, &String::from_utf8_lossy(&letters));
        }
    }
}

/// A word that can be pronounced, for each number another.
fn spelt(number: usize) -> String {
    let (consonants, vowels) = (b"bcdfghjklmnprstvz", b"aeiou");
    let (mut rest, mut word) = (number + consonants.len(), String::new());
    while rest > 0 {
        word.push(char::from(consonants[rest % consonants.len()]));
        rest /= consonants.len();
        word.push(char::from(vowels[rest % vowels.len()]));
        rest /= vowels.len();
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_has_the_same_and_words_are_spread() {
        let corpus = Corpus::new();
        assert_eq!(corpus.entity(5), Corpus::new().entity(5));
        assert_ne!(corpus.name(5), corpus.name(6));
        let distinct: BTreeSet<&String> = corpus.words.iter().collect();
        assert_eq!(distinct.len(), VOCABULARY);
        // The most frequent word is on most pages.
        let with = (0..200)
            .filter(|n| corpus.observations(*n).iter().any(|o| o.split(' ').any(|w| w == corpus.words[0])));
        assert!(with.count() > 150);
        let mut rng = Rng::with_seed(1);
        assert!((2..=4).contains(&corpus.query(&mut rng, 100).split(' ').count()));
    }
}

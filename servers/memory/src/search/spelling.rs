//! The vocabulary: all words that were ever indexed, found by what is nearly the same.
//!
//! Words that share trigrams are candidates, and the distance in slips of the pen decides. A slip in a short word spoils
//! all of its trigrams, so short words are also kept without each of their letters: two words that are one slip apart
//! have such a rest in common.

use std::collections::{BTreeSet, HashMap};

use crate::error::Result;
use crate::store::{Change, Value, View};

/// Only words of so many letters are kept: shorter ones are too near to each other, longer ones are no words.
const LETTERS: std::ops::RangeInclusive<usize> = 4..=24;
/// Up to so many letters a word is short.
const SHORT: usize = 6;
/// How many words one trigram leads to, at most.
const PER_GRAM: usize = 2_000;
/// How many candidates are compared letter by letter.
const COMPARED: usize = 60;
/// How many words are nearly the same, at most.
const NEAR: usize = 3;

/// Keeps a word, if it is new.
pub(super) fn learn(change: &mut Change<'_>, word: &str) -> Result<()> {
    let Some(size) = letters(word) else { return Ok(()) };
    let text = [Value::Text(word.into())];
    // Nearly every word is known, and to look for it is cheaper than to try.
    let id = "SELECT id FROM vocabulary WHERE tenant = ?1 AND word = ?2";
    if change.one(id, &text, |row| row.int(0))?.is_some() {
        return Ok(());
    }
    change.run("INSERT INTO vocabulary (tenant, word) VALUES (?1, ?2)", &text)?;
    let Some(id) = change.one(id, &text, |row| row.int(0))? else { return Ok(()) };
    for gram in grams(word) {
        change.run(
            "INSERT INTO trigrams (tenant, gram, size, word) VALUES (?1, ?2, ?3, ?4)",
            &[Value::Text(gram.into()), Value::Int(size as i64), Value::Int(id)],
        )?;
    }
    Ok(())
}

/// The words that are nearly this one, the nearest first, with how alike they are: 1 is the same.
pub(super) fn near(view: &mut View<'_>, word: &str) -> Result<Vec<(String, f64)>> {
    let Some(size) = letters(word) else { return Ok(Vec::new()) };
    let slips = slips(size);
    let sql = format!(
        "SELECT word FROM trigrams WHERE tenant = ?1 AND gram = ?2 AND size BETWEEN ?3 AND ?4 LIMIT {PER_GRAM}"
    );
    let mut shared: HashMap<i64, u32> = HashMap::new();
    for gram in grams(word) {
        // A rest is worth as much as all trigrams.
        let worth = if gram.starts_with('-') { 10 } else { 1 };
        view.each(
            &sql,
            &[
                Value::Text(gram.into()),
                Value::Int((size - slips.min(size)) as i64),
                Value::Int((size + slips) as i64),
            ],
            |row| {
                *shared.entry(row.int(0)?).or_default() += worth;
                Ok(())
            },
        )?;
    }
    let mut candidates: Vec<(u32, i64)> = shared.into_iter().map(|(id, count)| (count, id)).collect();
    candidates.sort_unstable_by(|a, b| b.cmp(a));
    let mut found = Vec::new();
    for (_, id) in candidates.into_iter().take(COMPARED) {
        let sql = "SELECT word FROM vocabulary WHERE tenant = ?1 AND id = ?2";
        let Some(other) = view.one(sql, &[Value::Int(id)], |row| row.text(0))? else { continue };
        if let Some(alike) = similarity(word, &other) {
            found.push((other, alike));
        }
    }
    // Sorting keeps the order of those that are alike: more shared trigrams first.
    found.sort_by(|a, b| b.1.total_cmp(&a.1));
    found.truncate(NEAR);
    Ok(found)
}

/// How alike two words are, if one is nearly the other: 1 would be the same.
pub(super) fn similarity(word: &str, other: &str) -> Option<f64> {
    let (size, other_size) = (letters(word)?, letters(other)?);
    let slips = slips(size);
    // A slip takes one letter away and brings one at most.
    let other_letters = (signature(word) ^ signature(other)).count_ones() as usize;
    if size.abs_diff(other_size) > slips || other_letters > 2 * slips {
        return None;
    }
    // A letter too many, too few, another one, or two exchanged.
    let apart = strsim::osa_distance(word, other);
    (1..=slips).contains(&apart).then(|| 1.0 - apart as f64 / size.max(other_size) as f64)
}

/// How many letters the word has, if it is one that is kept.
fn letters(word: &str) -> Option<usize> {
    let size = word.chars().count();
    (LETTERS.contains(&size) && word.chars().all(char::is_alphabetic)).then_some(size)
}

/// Which letters a word has, as bits.
fn signature(word: &str) -> u64 {
    word.chars().fold(0, |letters, c| letters | 1 << (u32::from(c) % u64::BITS))
}

/// How many slips a word of so many letters may have.
fn slips(letters: usize) -> usize {
    match letters {
        0..=5 => 1,
        6..=9 => 2,
        _ => 3,
    }
}

/// The trigrams of a word with a space at both ends; of a short one also what is left without each letter.
fn grams(word: &str) -> BTreeSet<String> {
    let mut letters: Vec<char> = word.chars().collect();
    let mut grams = BTreeSet::new();
    if letters.len() <= SHORT {
        grams.insert(format!("-{word}"));
        for skipped in 0..letters.len() {
            let rest = letters.iter().enumerate().filter(|(at, _)| *at != skipped).map(|(_, c)| c);
            grams.insert(['-'].iter().chain(rest).collect());
        }
    }
    letters.insert(0, ' ');
    letters.push(' ');
    grams.extend(letters.windows(3).map(|three| three.iter().collect::<String>()));
    grams
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_make_words_less_alike() {
        for (word, other, like) in [
            ("postgers", "postgres", Some(7.0 / 8.0)),
            ("postgres", "postgres", None),
            ("tset", "test", Some(3.0 / 4.0)),
            ("kitten", "sitting", None),
            ("straße", "strasse", Some(5.0 / 7.0)),
        ] {
            assert_eq!(similarity(word, other), like, "{word} {other}");
            assert_eq!(similarity(other, word), like, "{other} {word}");
        }
    }

    #[test]
    fn short_words_share_a_rest() {
        let (one, other) = (grams("tset"), grams("test"));
        assert!(one.intersection(&other).any(|gram| gram.starts_with('-')));
        assert_eq!(grams("postgres").len(), 8);
    }
}

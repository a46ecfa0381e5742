//! [`Terms`]: what is looked for, and which pages may have it.
//!
//! Looking at all pages that have a frequent word would take too long, so only so many are candidates: all pages of the
//! rare words; if every word is frequent, the newest pages that have all of them, or else the newest that have the
//! rarest.

use super::index::{Totals, mark};
use super::words::Finder;
use crate::error::Result;
use crate::store::{Value, View};

/// A word is rare if at most so many pages have it.
const RARE: usize = 1_000;
/// How many pages are looked at for words that are all frequent.
const FREQUENT: usize = 400;
/// Fewer than so many of these are too few.
const ENOUGH: usize = 50;
/// How many words of a query count: of a longer one the first.
pub(super) const WORDS: usize = 48;

/// A word that is looked for.
pub(super) struct Word {
    text: String,
    /// How much it counts: 1, or less if it is only near what was asked for.
    pub(super) share: f64,
    pub(super) finder: Finder,
}

/// A word of the query, or the words that it may stand for.
pub(super) struct Term {
    /// The words.
    pub(super) words: Vec<Word>,
    /// How much it tells that a page has it.
    pub(super) weight: f64,
    /// Its pages, newest first: all of them if it is rare.
    pages: Vec<i64>,
    /// How many pages have it, about.
    count: f64,
}

/// What is looked for.
pub(super) struct Terms {
    /// The words that some page has.
    pub(super) all: Vec<Term>,
    /// Whether there is a word that no page has.
    pub(super) missing: bool,
    pub(super) totals: Totals,
    /// What the index is to be asked besides, so that it gives pages of the right kinds.
    also: String,
}

impl Terms {
    /// Looks each of them up.
    pub(super) fn look_up(
        view: &mut View<'_>,
        words: Vec<Vec<(String, f64)>>,
        kinds: &[i64],
    ) -> Result<Terms> {
        let totals = Totals::of(view, kinds)?;
        let also = match totals.others {
            true => {
                let marks: Vec<String> = kinds.iter().map(|kind| quoted(&mark(*kind))).collect();
                format!(" AND ({})", marks.join(" OR "))
            }
            false => String::new(),
        };
        let mut terms = Terms { all: Vec::new(), missing: false, totals, also };
        if kinds.is_empty() {
            return Ok(terms);
        }
        for words in words {
            let word = |(text, share): (String, f64)| Word { finder: Finder::new(&text), text, share };
            let words: Vec<Word> = words.into_iter().map(word).collect();
            let pages = terms.ask(view, &any_of(&words), RARE + 1)?;
            match pages.is_empty() {
                true => terms.missing = true,
                false => terms.all.push(Term { words, weight: 0.0, pages, count: 0.0 }),
            }
        }
        terms.weigh();
        Ok(terms)
    }

    /// The rarer a word is, the more it tells.
    fn weigh(&mut self) {
        let newest = self.all.iter().filter_map(|term| term.pages.first()).max().copied().unwrap_or_default();
        let pages = self.totals.pages;
        for term in &mut self.all {
            term.count = term.pages.len() as f64;
            if !term.is_rare()
                && let (Some(first), Some(last)) = (term.pages.first(), term.pages.last())
            {
                // As often as among the newest, so often among all.
                term.count *= (newest - self.totals.first) as f64 / (first - last).max(1) as f64;
            }
            let count = term.count.min(pages);
            term.weight = (1.0 + (pages - count + 0.5) / (count + 0.5)).ln();
        }
        self.all.sort_by(|a, b| a.count.total_cmp(&b.count));
    }

    /// The pages that may be among the best, in order.
    pub(super) fn candidates(&self, view: &mut View<'_>) -> Result<Vec<i64>> {
        let mut pages: Vec<i64> = Vec::new();
        for rare in self.all.iter().filter(|term| term.is_rare()) {
            // The rarest has room in any case.
            if pages.len() + rare.pages.len() <= RARE {
                pages.extend(&rare.pages);
            }
        }
        if pages.is_empty() {
            // All words, the two rarest, the rarest.
            let mut counts = vec![self.all.len(), 2, 1];
            counts.retain(|count| *count <= self.all.len() && *count > 0);
            counts.dedup();
            for count in counts {
                if pages.len() >= ENOUGH {
                    break;
                }
                match (count, self.all.first()) {
                    (1, Some(term)) => pages.extend(term.pages.iter().take(FREQUENT)),
                    _ => {
                        let words: Vec<String> =
                            self.all.iter().take(count).map(|term| any_of(&term.words)).collect();
                        pages.extend(self.ask(view, &words.join(" AND "), FREQUENT)?);
                    }
                }
            }
        }
        pages.sort_unstable();
        pages.dedup();
        Ok(pages)
    }

    /// The newest pages that fit an expression of the index.
    fn ask(&self, view: &mut View<'_>, wanted: &str, limit: usize) -> Result<Vec<i64>> {
        let table = view.own_table("words");
        let sql =
            format!("SELECT rowid FROM {table} WHERE {table} MATCH ?1 ORDER BY rowid DESC LIMIT {limit}");
        let mut pages = Vec::new();
        let wanted = format!("{wanted}{}", self.also);
        view.each_of_own(&sql, &[Value::Text(wanted.into())], |row| {
            pages.push(row.int(0)?);
            Ok(())
        })?;
        Ok(pages)
    }
}

impl Term {
    fn is_rare(&self) -> bool {
        self.pages.len() <= RARE
    }
}

/// How many pages have the word, counted up to `most`.
pub(super) fn pages_of(view: &mut View<'_>, word: &str, most: usize) -> Result<usize> {
    let table = view.own_table("words");
    let sql = format!("SELECT rowid FROM {table} WHERE {table} MATCH ?1 LIMIT {most}");
    let mut count = 0;
    view.each_of_own(&sql, &[Value::Text(quoted(word).into())], |_| {
        count += 1;
        Ok(())
    })?;
    Ok(count)
}

/// In quotes a word is a word, whatever the index would take it for.
fn quoted(word: &str) -> String {
    format!("\"{word}\"")
}

fn any_of(words: &[Word]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(&word.text)).collect();
    format!("({})", words.join(" OR "))
}

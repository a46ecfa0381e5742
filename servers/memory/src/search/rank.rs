//! Ranking by BM25: a page fits the better, the rarer the words are that it has, the more often it has them, and the
//! shorter it is.

use super::terms::Terms;
use crate::error::Result;
use crate::pages::Hit;
use crate::store::{Value, View};

/// How soon it does not matter any more how often a word is there, and how much the length of a page matters: the usual
/// constants.
const K1: f64 = 1.2;
const B: f64 = 0.75;

/// A page that was found.
pub(super) struct Ranked {
    pub(super) hit: Hit,
    /// Whether it has every word.
    pub(super) has_all: bool,
}

/// The pages of these kinds that fit best, the best first. The pages `also` are looked at in any case.
pub(super) fn rank(
    view: &mut View<'_>,
    terms: &Terms,
    also: impl Iterator<Item = i64>,
    kinds: &[i64],
) -> Result<Vec<Ranked>> {
    let mut pages = terms.candidates(view)?;
    pages.extend(also);
    pages.sort_unstable();
    pages.dedup();
    let mut found = Vec::new();
    let list = serde_json::Value::from(pages).to_string();
    view.each(
        "SELECT w.page, w.kind, w.owner, w.size, w.words
         FROM json_each(?2) AS wanted CROSS JOIN page_words w ON w.page = wanted.value AND w.tenant = ?1",
        &[Value::Text(list.into())],
        |row| {
            let hit = Hit { page: row.int(0)?, kind: row.int(1)?, owner: row.int(2)?, score: 0.0 };
            if kinds.contains(&hit.kind) {
                let (score, has_all) = fit(terms, row.int(3)? as f64, &row.text(4)?);
                found.push(Ranked { hit: Hit { score, ..hit }, has_all });
            }
            Ok(())
        },
    )?;
    found.retain(|ranked| ranked.hit.score > 0.0);
    // Of pages that fit equally well, the newest.
    found.sort_by(|a, b| b.hit.score.total_cmp(&a.hit.score).then(b.hit.page.cmp(&a.hit.page)));
    Ok(found)
}

/// How well the words of a page fit, and whether all are there.
fn fit(terms: &Terms, size: f64, text: &str) -> (f64, bool) {
    let length = K1 * (1.0 - B + B * size / terms.totals.size);
    let (mut sum, mut has_all) = (0.0, !terms.missing && !terms.all.is_empty());
    for term in &terms.all {
        // Of the words that it may stand for, the one that fits best.
        let best = term.words.iter().map(|word| {
            let count = f64::from(word.finder.count(text));
            term.weight * word.share * count * (K1 + 1.0) / (count + length)
        });
        let best = best.fold(0.0, f64::max);
        has_all &= best > 0.0;
        sum += best;
    }
    (sum, has_all)
}

//! Pages by words that are nearly those of the query.

use super::names::NameMatches;
use super::terms::{Terms, WORDS};
use super::{rank, spelling, words};
use crate::error::Result;
use crate::pages::Hit;
use crate::store::{Dialect, View};

/// A word that so many pages have is not misspelt.
const USUAL: usize = 20;
/// How many words may be misspelt.
const MISSPELT: usize = 8;

/// The pages of these kinds whose words are nearly those of the query, at most `limit`. None if the query has no word
/// that could be misspelt: what has its words is found by [`super::lexical`].
pub(crate) fn fuzzy(view: &mut View<'_>, text: &str, kinds: &[i64], limit: usize) -> Result<Vec<Hit>> {
    if view.dialect() == Dialect::Postgres {
        return super::postgres::fuzzy(view, text, kinds, limit);
    }
    let mut wanted = Vec::new();
    let mut corrected = 0;
    for word in words::distinct(text).into_iter().take(WORDS) {
        let pages = super::terms::pages_of(view, &word, USUAL)?;
        let mut stands_for = Vec::new();
        if pages > 0 {
            stands_for.push((word.clone(), 1.0));
        }
        if pages < USUAL && corrected < MISSPELT {
            let near = spelling::near(view, &word)?;
            corrected += usize::from(!near.is_empty());
            stands_for.extend(near);
        }
        if !stands_for.is_empty() {
            wanted.push(stands_for);
        }
    }
    if corrected == 0 {
        return Ok(Vec::new());
    }
    // A name that is misspelt is found, too, if each of its words stands for one.
    let best = |words: &Vec<(String, f64)>| {
        let of_all = words.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        of_all.map(|(word, _)| word.clone()).unwrap_or_default()
    };
    let name = wanted.iter().map(best).collect::<Vec<String>>().join(" ");
    let names = NameMatches::find(view, &name, kinds)?;
    let terms = Terms::look_up(view, wanted, kinds)?;
    let ranked = rank::rank(view, &terms, names.pages(), kinds)?;
    let mut hits = names.ahead_of(ranked.into_iter().map(|ranked| ranked.hit).collect());
    hits.truncate(limit);
    Ok(hits)
}

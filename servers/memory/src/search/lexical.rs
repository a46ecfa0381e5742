//! Pages by their words.

use super::Hit;
use super::rank::{self, Ranked};
use super::terms::{Terms, WORDS};
use super::words;
use crate::store::{Dialect, Result, View};

/// The pages of these kinds that fit the words best, at most `limit`: first those whose name is the query, then those
/// whose name begins so, then by BM25.
pub(crate) fn lexical(view: &mut View<'_>, text: &str, kinds: &[i64], limit: usize) -> Result<Vec<Hit>> {
    if view.dialect() == Dialect::Postgres {
        return super::postgres::lexical(view, text, kinds, limit);
    }
    Ok(ranked(view, text, kinds)?.into_iter().map(|ranked| ranked.hit).take(limit).collect())
}

/// Only the pages that have every word.
pub(crate) fn with_all_words(
    view: &mut View<'_>,
    text: &str,
    kinds: &[i64],
    limit: usize,
) -> Result<Vec<Hit>> {
    if view.dialect() == Dialect::Postgres {
        return super::postgres::all_words(view, text, kinds, limit);
    }
    let all = ranked(view, text, kinds)?.into_iter().filter(|ranked| ranked.has_all);
    Ok(all.map(|ranked| ranked.hit).take(limit).collect())
}

fn ranked(view: &mut View<'_>, text: &str, kinds: &[i64]) -> Result<Vec<Ranked>> {
    let mut wanted = words::distinct(text);
    wanted.truncate(WORDS);
    let wanted = wanted.into_iter().map(|word| vec![(word, 1.0)]).collect();
    let terms = Terms::look_up(view, wanted, kinds)?;
    rank::rank(view, &terms, &words::name(text), kinds)
}

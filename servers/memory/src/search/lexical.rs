//! Pages by their words.

use super::names::NameMatches;
use super::rank::{self, Ranked};
use super::terms::{Terms, WORDS};
use super::words;
use crate::error::Result;
use crate::pages::Hit;
use crate::store::{Dialect, View};

/// The pages of these kinds that fit the words best, at most `limit`: first those whose name is the query, then those
/// whose name begins so, then by BM25.
pub(crate) fn lexical(view: &mut View<'_>, text: &str, kinds: &[i64], limit: usize) -> Result<Vec<Hit>> {
    let names = NameMatches::find(view, text, kinds)?;
    let mut hits = names.ahead_of(by_words(view, text, &names, kinds, limit)?);
    hits.truncate(limit);
    Ok(hits)
}

/// The pages of these kinds that fit the words best, at most `limit`, whatever their names are. Pages of those that have
/// such names are looked at in any case.
pub(crate) fn by_words(
    view: &mut View<'_>,
    text: &str,
    names: &NameMatches,
    kinds: &[i64],
    limit: usize,
) -> Result<Vec<Hit>> {
    if view.dialect() == Dialect::Postgres {
        return super::postgres::lexical(view, text, kinds, limit);
    }
    Ok(ranked(view, text, names, kinds)?.into_iter().map(|ranked| ranked.hit).take(limit).collect())
}

/// Only the pages that have every word; names count as with [`lexical`].
pub(crate) fn with_all_words(
    view: &mut View<'_>,
    text: &str,
    kinds: &[i64],
    limit: usize,
) -> Result<Vec<Hit>> {
    let names = NameMatches::find(view, text, kinds)?;
    let hits = match view.dialect() {
        Dialect::Postgres => super::postgres::all_words(view, text, kinds, limit)?,
        Dialect::Sqlite => {
            let all = ranked(view, text, &names, kinds)?.into_iter().filter(|ranked| ranked.has_all);
            all.map(|ranked| ranked.hit).collect()
        }
    };
    let mut hits = names.first_among(hits);
    hits.truncate(limit);
    Ok(hits)
}

fn ranked(view: &mut View<'_>, text: &str, names: &NameMatches, kinds: &[i64]) -> Result<Vec<Ranked>> {
    let mut wanted = words::distinct(text);
    wanted.truncate(WORDS);
    let wanted = wanted.into_iter().map(|word| vec![(word, 1.0)]).collect();
    let terms = Terms::look_up(view, wanted, kinds)?;
    rank::rank(view, &terms, names.pages(), kinds)
}

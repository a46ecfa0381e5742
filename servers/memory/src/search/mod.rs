//! Finding pages by what they say: the one search that tools, prompts and agents use.
//!
//! Three ways of finding give a list each, best first, and the lists become one by reciprocal rank: what several of them
//! have near the top comes first. Before all others comes what has the query for its name, and then whose name begins so.
//!
//! [`words`] makes words of texts and queries, [`index`] keeps which words are on which pages, [`terms`] looks up which
//! pages may fit a query, [`rank`] says how well they do, [`names`] whose name it is, [`alike`] how much of it a
//! text has, and [`spelling`] knows all words that were ever used.

mod alike;
mod fuse;
mod fuzzy;
mod index;
mod lexical;
mod names;
pub(crate) mod postgres;
mod rank;
mod signs;
mod spelling;
mod terms;
mod words;

use std::collections::HashMap;

use crate::Recall;
use crate::store::{Memory, Result};

pub(crate) use alike::Question;
use fuse::fuse;
pub(crate) use fuzzy::fuzzy;
pub(crate) use index::{Entries, LATER, Said, TABLES, forget, own_table, page_count, put};
pub(crate) use lexical::{by_words, lexical, with_all_words};
pub(crate) use names::Names;

/// What meaning counts beside words: a small model is often near what is meant, and seldom nearest.
const MEANING: f64 = 0.4;

/// A page that was found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Hit {
    /// What the page belongs to: one of the kinds in [`crate::graph::pages`].
    pub(crate) kind: i64,
    /// The number of the entity, document or agent.
    pub(crate) owner: i64,
    /// The page.
    pub(crate) page: i64,
    /// How well it fits, the best first: comparable within one search only.
    pub(crate) score: f64,
}

/// What was found.
pub(crate) struct Found {
    pub(crate) hits: Vec<Hit>,
    /// Whether meaning was compared, too, and not words alone.
    pub(crate) by_meaning: bool,
    /// How near pages are in meaning, as far as that was compared.
    pub(crate) cosines: HashMap<i64, f64>,
}

/// The pages of these kinds that fit best, at most `limit`: by words, by nearly those words, and by meaning if there is a
/// model for that.
pub(crate) async fn find(
    recall: &Recall,
    memory: &Memory,
    text: &str,
    kinds: &[i64],
    limit: usize,
) -> Result<Found> {
    // More than wanted of each, because what only one of them likes may be liked by none other.
    let wide = (limit * 4).max(50);
    let (query, of) = (text.to_owned(), kinds.to_vec());
    let worded = memory.view(move |view| {
        let names = Names::like(view, &query, &of)?;
        let words = names.first(by_words(view, &query, &names, &of, wide)?);
        Ok((names, words, fuzzy(view, &query, &of, wide)?))
    });
    let (names, words, nearly) = worded.await?;
    let meaning = crate::embed::near(recall, memory, text, kinds, wide).await?;
    let by_meaning = meaning.is_some();
    let meaning = meaning.unwrap_or_default();
    let cosines = meaning.iter().map(|hit| (hit.page, hit.score)).collect();
    let mut hits = names.first(fuse(&[(1.0, words), (1.0, nearly), (MEANING, meaning)]));
    hits.truncate(limit);
    Ok(Found { hits, by_meaning, cosines })
}

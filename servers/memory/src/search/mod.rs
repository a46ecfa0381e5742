//! Finding pages by what they say: the one search that tools, prompts and agents use.
//!
//! Three ways of finding give a list each, best first, and the lists become one by reciprocal rank: what several of them
//! have near the top comes first. Before all others comes what has the query for its name, and then whose name begins so.
//!
//! [`words`] makes words of texts and queries, [`index`] keeps which words are on which pages, [`terms`] looks up which
//! pages may fit a query, [`rank`] says how well they do, [`names`] whose name it is, [`query`] how much of it a
//! text has, and [`spelling`] knows all words that were ever used.

mod characters;
mod fuse;
mod fuzzy;
mod index;
mod lexical;
mod names;
pub(crate) mod postgres;
mod query;
mod rank;
mod snippet;
mod spelling;
mod terms;
mod words;

use std::collections::HashMap;

use crate::embeddings::{Embedder, SemanticIndex, TextOfPage};
use crate::error::Result;
use crate::pages::Hit;
use crate::store::{Memory, Store};

use fuse::fuse;
pub(crate) use fuzzy::fuzzy;
pub(crate) use index::{Entries, IndexText, NAMES_AS_WRITTEN, TABLES, forget, own_table, page_count, put};
pub(crate) use lexical::{by_words, lexical, with_all_words};
pub(crate) use names::NameMatches;
pub(crate) use query::Query;
pub(crate) use snippet::snippet;

/// What meaning counts beside words: a small model is often near what is meant, and seldom nearest.
const MEANING: f64 = 0.4;

/// What was found.
pub(crate) struct SearchResult {
    pub(crate) hits: Vec<Hit>,
    /// Whether meaning was compared, too, and not words alone.
    pub(crate) by_meaning: bool,
    /// How near pages are in meaning, as far as that was compared.
    pub(crate) cosines: HashMap<i64, f64>,
}

/// The one search. Clones are handles on the same.
#[derive(Clone)]
pub(crate) struct SearchEngine {
    /// What finds by meaning, if there is a model for that.
    semantic: Option<SemanticIndex>,
}

impl SearchEngine {
    /// Searches the memories in a store. `text_of` knows what pages say that are to have vectors.
    pub(crate) fn new(store: &Store, embedder: Option<Embedder>, text_of: TextOfPage) -> SearchEngine {
        let index = |embedder| SemanticIndex::new(embedder, store, text_of);
        SearchEngine { semantic: embedder.map(index) }
    }

    /// What finds by meaning, if there is a model for that.
    pub(crate) fn semantic(&self) -> Option<&SemanticIndex> {
        self.semantic.as_ref()
    }

    /// The pages of these kinds that fit best, at most `limit`: by words, by nearly those words, and by meaning if there is
    /// a model for that.
    pub(crate) async fn find(
        &self,
        memory: &Memory,
        text: &str,
        kinds: &[i64],
        limit: usize,
    ) -> Result<SearchResult> {
        // More than wanted of each, because what only one of them likes may be liked by none other.
        let wide = (limit * 4).max(50);
        let (query, of) = (text.to_owned(), kinds.to_vec());
        let worded = memory.view(move |view| {
            let names = NameMatches::find(view, &query, &of)?;
            let words = names.ahead_of(by_words(view, &query, &names, &of, wide)?);
            Ok((names, words, fuzzy(view, &query, &of, wide)?))
        });
        let (names, words, nearly) = worded.await?;
        let meaning = self.near(memory, text, kinds, wide).await?;
        let by_meaning = meaning.is_some();
        let meaning = meaning.unwrap_or_default();
        let cosines = meaning.iter().map(|hit| (hit.page, hit.score)).collect();
        let mut hits = names.ahead_of(fuse(&[(1.0, words), (1.0, nearly), (MEANING, meaning)]));
        hits.truncate(limit);
        Ok(SearchResult { hits, by_meaning, cosines })
    }

    /// The pages of these kinds whose meaning is nearest, at most `limit`, with the cosine as score. `None` if there is no
    /// model to compare with, or if it does not answer: then the words must do.
    pub(crate) async fn near(
        &self,
        memory: &Memory,
        text: &str,
        kinds: &[i64],
        limit: usize,
    ) -> Result<Option<Vec<Hit>>> {
        let Some(semantic) = &self.semantic else { return Ok(None) };
        match semantic.nearest(memory, text, kinds, limit).await {
            Ok(hits) => Ok(Some(hits)),
            Err(fault) if fault.code.is_outside() => {
                tracing::warn!(%fault, "searching by words alone");
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
    }

    /// How many pages wait for a vector.
    pub(crate) async fn pending(&self, memory: &Memory) -> Result<i64> {
        match &self.semantic {
            Some(semantic) => semantic.pending(memory).await,
            None => Ok(0),
        }
    }
}

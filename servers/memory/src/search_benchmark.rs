//! The ways of searching one by one, for the project's own benchmarks of how well and how fast each of them finds.

use std::time::Duration;

use crate::embeddings::Embedder;
use crate::error::Fault;
use crate::graph::entities;
use crate::graph::model::Entity;
use crate::indexing::text_of_page;
use crate::pages::{self, Hit};
use crate::search::{self, SearchEngine};
use crate::store::{Memory, Store};

/// A way of searching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchMode {
    /// By the words of the query.
    Words,
    /// By words that are nearly those.
    Fuzzy,
    /// By meaning.
    Semantic,
    /// By all of these.
    All,
}

/// A memory that is searched in each way.
pub struct SearchBenchmark {
    engine: SearchEngine,
    memory: Memory,
}

impl SearchBenchmark {
    /// A tenant's memory in this store.
    pub fn new(store: Store, tenant: &str, embedder: Option<Embedder>) -> SearchBenchmark {
        SearchBenchmark {
            engine: SearchEngine::new(&store, embedder, text_of_page),
            memory: store.of(tenant),
        }
    }

    /// Keeps entities.
    pub async fn remember(&self, made: Vec<Entity>) -> Result<(), Fault> {
        self.memory.change("remember", |change| entities::create(change, made)).await.map(drop)
    }

    /// Waits until all that is kept can be found by meaning.
    pub async fn ready(&self) -> Result<(), Fault> {
        while self.engine.pending(&self.memory).await? > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// The names of the entities that are found, best first.
    pub async fn find(&self, mode: SearchMode, query: &str, limit: usize) -> Result<Vec<String>, Fault> {
        let kinds = [pages::ENTITY];
        // An entity may have several pages.
        let wide = limit * 5;
        let text = query.to_owned();
        let hits = match mode {
            SearchMode::Words => {
                self.memory.view(move |view| search::lexical(view, &text, &kinds, wide)).await?
            }
            SearchMode::Fuzzy => {
                self.memory.view(move |view| search::fuzzy(view, &text, &kinds, wide)).await?
            }
            SearchMode::Semantic => {
                self.engine.near(&self.memory, query, &kinds, wide).await?.unwrap_or_default()
            }
            SearchMode::All => self.engine.find(&self.memory, query, &kinds, wide).await?.hits,
        };
        self.names(hits, limit).await
    }

    async fn names(&self, hits: Vec<Hit>, limit: usize) -> Result<Vec<String>, Fault> {
        let mut owners: Vec<i64> = Vec::new();
        for hit in hits {
            if !owners.contains(&hit.owner) {
                owners.push(hit.owner);
            }
        }
        owners.truncate(limit);
        self.memory
            .view(move |view| {
                let mut names = Vec::new();
                for owner in owners {
                    names.extend(entities::keyed(view, owner)?.map(|kept| kept.name));
                }
                Ok(names)
            })
            .await
    }
}

//! The ways of searching one by one, for the project's own benchmarks of how well and how fast each of them finds.

use std::sync::Arc;
use std::time::Duration;

use crate::graph::{entities, pages};
use crate::search::{self, Hit};
use crate::{Embedder, Entity, Fault, Memory, Options, Recall, Store, embed};

/// A way of searching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By the words of the query.
    Words,
    /// By words that are nearly those.
    Nearly,
    /// By meaning.
    Meaning,
    /// By all of these.
    All,
}

/// A memory that is searched in each way.
pub struct Measured {
    recall: Recall,
    memory: Memory,
}

impl Measured {
    /// A tenant's memory in this store.
    pub fn new(store: Store, tenant: &str, embedder: Option<Embedder>) -> Measured {
        let meaning = embedder.clone().map(|embedder| embed::Meaning::new(embedder, &store));
        let options = Arc::new(Options { embeddings: embedder, ..Options::default() });
        let memory = store.of(tenant);
        Measured {
            recall: Recall {
                pages: Arc::new(crate::documents::Fetcher::new(&options)),
                store,
                options,
                meaning,
                runs: crate::agents::Runs::default(),
            },
            memory,
        }
    }

    /// Keeps entities.
    pub async fn remember(&self, made: Vec<Entity>) -> Result<(), Fault> {
        self.memory.change("remember", |change| entities::create(change, made)).await.map(drop)
    }

    /// Waits until all that is kept can be found by meaning.
    pub async fn ready(&self) -> Result<(), Fault> {
        while embed::pending(&self.recall, &self.memory).await? > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// The names of the entities that are found, best first.
    pub async fn find(&self, way: Way, query: &str, limit: usize) -> Result<Vec<String>, Fault> {
        let kinds = [pages::ENTITY];
        // An entity may have several pages.
        let wide = limit * 5;
        let text = query.to_owned();
        let hits = match way {
            Way::Words => self.memory.view(move |view| search::lexical(view, &text, &kinds, wide)).await?,
            Way::Nearly => self.memory.view(move |view| search::fuzzy(view, &text, &kinds, wide)).await?,
            Way::Meaning => {
                embed::near(&self.recall, &self.memory, query, &kinds, wide).await?.unwrap_or_default()
            }
            Way::All => search::find(&self.recall, &self.memory, query, &kinds, wide).await?.hits,
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

//! [`SemanticIndex`]: finds by meaning. It has the model, the indexes of those who ask, and the worker behind them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tidegate_service::trace;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::embedder::Embedder;
use super::vector_index::{self, VectorIndex};
use super::vectors::{self, PageVector, PendingPage, TextOfPage};
use super::{pgvector, worker};
use crate::error::{Code, Fault, Result};
use crate::pages::Hit;
use crate::store::{Memory, Store, View};

/// How much memory all indexes may take together, in bytes.
const ROOM: usize = 256 * 1024 * 1024;
/// How many indexes there may be, however small.
const INDEXES: usize = 256;
/// How long to wait for the vector of a question.
const WITHIN: Duration = Duration::from_secs(10);
/// How long nobody asks a service that did not answer.
const PAUSE: Duration = Duration::from_secs(30);
/// How many questions are remembered with their vectors.
const REMEMBERED: usize = 128;
/// What is longer is not remembered, in bytes.
const LONG: usize = 10_000;

/// What is said while a service that failed is not asked.
const PAUSED: &str = "The embedding service failed a moment ago and is not asked again yet";

/// Finds by meaning. Clones are the same.
#[derive(Clone)]
pub(crate) struct SemanticIndex(Arc<SemanticState>);

struct SemanticState {
    embedder: Embedder,
    model: Arc<str>,
    store: Store,
    text_of: TextOfPage,
    indexes: Mutex<HashMap<Arc<str>, CachedIndex>>,
    /// The vectors of questions that were asked lately, and whose questions those were: how quickly one is answered tells
    /// nobody what others have asked.
    asked: Mutex<VecDeque<Question>>,
    failed: Mutex<Option<(Instant, Fault)>>,
    worker: Mutex<Option<JoinHandle<()>>>,
}

/// A question that was asked lately.
struct Question {
    tenant: Arc<str>,
    text: String,
    vector: Arc<[f32]>,
}

/// An index, and when it was last used.
struct CachedIndex {
    index: Arc<RwLock<VectorIndex>>,
    at: Instant,
}

impl SemanticIndex {
    pub(crate) fn new(embedder: Embedder, store: &Store, text_of: TextOfPage) -> SemanticIndex {
        let index = SemanticIndex(Arc::new(SemanticState {
            model: embedder.model().into(),
            embedder,
            store: store.clone(),
            text_of,
            indexes: Mutex::default(),
            asked: Mutex::default(),
            failed: Mutex::default(),
            worker: Mutex::default(),
        }));
        index.start();
        index
    }

    pub(crate) fn model(&self) -> &Arc<str> {
        &self.0.model
    }

    pub(crate) fn embedder(&self) -> &Embedder {
        &self.0.embedder
    }

    /// What pages say.
    pub(crate) fn text_of(&self) -> TextOfPage {
        self.0.text_of
    }

    /// Starts the worker if it does not run. Without a runtime it waits for the first question.
    fn start(&self) {
        let Ok(runtime) = Handle::try_current() else { return };
        let mut worker = lock(&self.0.worker);
        if worker.as_ref().is_none_or(JoinHandle::is_finished) {
            let (store, change_signal) = (self.0.store.clone(), self.0.store.change_signal());
            *worker = Some(runtime.spawn(worker::run(
                store,
                self.0.embedder.clone(),
                self.0.text_of,
                change_signal,
            )));
        }
    }

    /// The pages of these kinds that are nearest, best first, with the cosine as score.
    pub(crate) async fn nearest(
        &self,
        memory: &Memory,
        text: &str,
        kinds: &[i64],
        limit: usize,
    ) -> Result<Vec<Hit>> {
        let attributes = || vec![("tidegate.embedding.model", self.model().to_string())];
        trace::span("search.vector", attributes, self.find_nearest(memory, text, kinds, limit)).await
    }

    async fn find_nearest(
        &self,
        memory: &Memory,
        text: &str,
        kinds: &[i64],
        limit: usize,
    ) -> Result<Vec<Hit>> {
        self.start();
        let query = self.vector(memory.tenant(), text).await?;
        if query.iter().all(|number| *number == 0.0) {
            // No word of it says anything to the model.
            return Ok(Vec::new());
        }
        let count = query.len();
        let (this, tenant, kinds) = (self.clone(), memory.tenant().clone(), kinds.to_vec());
        let (hits, dimensions) = memory
            .view(move |view| {
                let Some(tables) = pgvector::ready(view, this.model())? else {
                    return this.nearest_in_memory(view, &tenant, &query, &kinds, limit);
                };
                // What was needed until the tables were ready is not needed any more.
                lock(&this.0.indexes).remove(&tenant);
                Ok((tables.nearest(view, &query, &kinds, limit)?, tables.dimensions))
            })
            .await?;
        if dimensions != 0 && dimensions != count {
            self.renew(memory).await?;
        }
        Ok(hits)
    }

    /// The same with vectors in the memory of this process. Also returns how many dimensions they have.
    fn nearest_in_memory(
        &self,
        view: &mut View<'_>,
        tenant: &Arc<str>,
        query: &[f32],
        kinds: &[i64],
        limit: usize,
    ) -> Result<(Vec<Hit>, usize)> {
        let (model, index) = (self.model(), self.index(tenant));
        {
            let mut index = index.write().unwrap_or_else(PoisonError::into_inner);
            index.refresh(view, model, ROOM)?;
        }
        self.make_room(&index);
        let index = index.read().unwrap_or_else(PoisonError::into_inner);
        let found = match index.is_full {
            true => vector_index::nearest_in_store(view, model, query, kinds, limit)?,
            false => index.nearest(query, kinds, limit),
        };
        // What another process removed meanwhile with all its traces is not found either.
        let mut hits = Vec::with_capacity(found.len());
        for hit in found {
            if vectors::says_something(view, hit.page)? {
                hits.push(hit);
            }
        }
        Ok((hits, index.dimensions))
    }

    /// How near each of these pages is, as far as they have vectors.
    pub(crate) async fn similar(
        &self,
        memory: &Memory,
        text: &str,
        pages: Vec<i64>,
    ) -> Result<HashMap<i64, f64>> {
        let (query, model) = (self.vector(memory.tenant(), text).await?, self.model().clone());
        memory
            .view(move |view| {
                let mut similar = HashMap::new();
                for page in pages {
                    let vector =
                        vectors::one(view, &model, page)?.filter(|vector| vector.len() == query.len());
                    if let Some(vector) = vector {
                        similar.insert(page, f64::from(vector_index::product(&query, &vector)));
                    }
                }
                Ok(similar)
            })
            .await
    }

    /// Makes all vectors of a tenant anew: the model has other dimensions than it had under the same name.
    async fn renew(&self, memory: &Memory) -> Result<()> {
        tracing::warn!(
            model = &**self.model(),
            "the model has other dimensions than before: all vectors are made anew"
        );
        let model = self.model().clone();
        memory.maintain(move |change| vectors::remove(change, &model)).await?;
        lock(&self.0.indexes).remove(memory.tenant());
        if let Some(worker) = lock(&self.0.worker).take() {
            worker.abort();
        }
        self.start();
        Ok(())
    }

    /// The vector of a tenant's question.
    async fn vector(&self, tenant: &Arc<str>, text: &str) -> Result<Arc<[f32]>> {
        let is_this = |asked: &&Question| asked.tenant == *tenant && asked.text == text;
        let known = lock(&self.0.asked).iter().find(is_this).map(|asked| asked.vector.clone());
        if let Some(vector) = known {
            return Ok(vector);
        }
        if let Some(fault) = self.failed() {
            return Err(fault);
        }
        let made = self.0.embedder.embed(vec![text.to_owned()], WITHIN).await;
        let vector: Arc<[f32]> = match made {
            Ok(mut vectors) => vectors.pop().unwrap_or_default().into(),
            Err(fault) => {
                // What is wrong with this text is nobody else's trouble, and what is said of it nobody else's business.
                if fault.code != Code::InvalidInput {
                    let later = Fault::new(Code::Outside, PAUSED);
                    *lock(&self.0.failed) = Some((Instant::now(), later));
                }
                // Whatever it is about, the question can still be answered by words.
                return Err(Fault { code: Code::Outside, ..fault });
            }
        };
        if text.len() > LONG {
            return Ok(vector);
        }
        let mut asked = lock(&self.0.asked);
        asked.truncate(REMEMBERED - 1);
        let (tenant, text) = (tenant.clone(), text.to_owned());
        asked.push_front(Question { tenant, text, vector: vector.clone() });
        Ok(vector)
    }

    fn index(&self, tenant: &Arc<str>) -> Arc<RwLock<VectorIndex>> {
        let mut indexes = lock(&self.0.indexes);
        let used = indexes
            .entry(tenant.clone())
            .or_insert_with(|| CachedIndex { index: Arc::default(), at: Instant::now() });
        used.at = Instant::now();
        used.index.clone()
    }

    /// Drops the indexes that were not used for longest, until all others have room.
    fn make_room(&self, keep: &Arc<RwLock<VectorIndex>>) {
        let mut indexes = lock(&self.0.indexes);
        loop {
            // One that is being read in right now counts the next time.
            let bytes = |used: &CachedIndex| used.index.try_read().map_or(0, |index| index.bytes());
            let all: usize = indexes.values().map(bytes).sum();
            let others = indexes.iter().filter(|(_, used)| !Arc::ptr_eq(&used.index, keep));
            let oldest = others.min_by_key(|(_, used)| used.at).map(|(tenant, _)| tenant.clone());
            match oldest {
                Some(tenant) if all > ROOM || indexes.len() > INDEXES => _ = indexes.remove(&tenant),
                _ => return,
            }
        }
    }

    /// Whether the database compares the vectors of this memory, and not this process.
    pub(crate) async fn is_in_database(&self, memory: &Memory) -> Result<bool> {
        let model = self.model().clone();
        memory.view(move |view| Ok(pgvector::ready(view, &model)?.is_some())).await
    }

    /// How it stands with the tables by which the database compares vectors, if it does.
    pub(crate) async fn tables(&self, memory: &Memory) -> Result<Option<pgvector::State>> {
        let model = self.model().clone();
        memory.view(move |view| pgvector::state(view, &model)).await
    }

    /// How many pages wait for a vector.
    pub(crate) async fn pending(&self, memory: &Memory) -> Result<i64> {
        let model = self.model().clone();
        memory.view(move |view| vectors::count_pending(view, &model)).await
    }

    /// The vectors of these texts, now.
    pub(crate) async fn make(&self, texts: Vec<PendingPage>, within: Duration) -> Result<Vec<PageVector>> {
        worker::embed(&self.0.embedder, texts, within).await
    }

    /// Why no vector could be made for the last question that was refused one, if that was just now.
    pub(crate) fn failed(&self) -> Option<Fault> {
        lock(&self.0.failed).clone().filter(|(at, _)| at.elapsed() < PAUSE).map(|(_, fault)| fault)
    }

    /// How many vectors are in memory for this tenant, and how many bytes they take.
    pub(crate) fn loaded(&self, memory: &Memory) -> (usize, usize) {
        let index = lock(&self.0.indexes).get(memory.tenant()).map(|used| used.index.clone());
        let size = |index: Arc<RwLock<VectorIndex>>| {
            let index = index.read().unwrap_or_else(PoisonError::into_inner);
            (index.len(), index.bytes())
        };
        index.map(size).unwrap_or_default()
    }
}

impl Drop for SemanticState {
    fn drop(&mut self) {
        if let Some(worker) = lock(&self.worker).take() {
            worker.abort();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

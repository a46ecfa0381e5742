//! The worker: makes vectors in the background of what has none yet, some pages at a time.
//!
//! It holds no list of what is to be done: what is kept says that, so it goes on where it was when it starts again, and
//! several processes can do the same work without harm.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::embedder::{BATCH, Embedder};
use super::pgvector;
use super::vectors::{self, PageVector, PendingPage, TextOfPage};
use crate::error::{Code, Result};
use crate::store::{Memory, Store};

/// How many pages at a time with a local model, which costs nothing but the write.
const LOCAL_BATCH: usize = 256;
/// How long a batch may take.
const WITHIN: Duration = Duration::from_secs(300);
/// How long to sleep if nothing happens: another process may write, too.
const IDLE: Duration = Duration::from_secs(30);
/// How long to wait after a failure; then twice as long each time.
const AFTER_FAILURE: Duration = Duration::from_secs(2);
/// How often that doubles.
const DOUBLINGS: u32 = 7;
/// How many vectors of other models are removed at a time.
const REMOVED: usize = 500;
/// After how many pages the log hears of it.
const TOLD: usize = 1_000;

/// How far the memory of one tenant is.
#[derive(Clone, Copy)]
struct Progress {
    /// The number of the last text that was looked at.
    place: i64,
    /// Whether this goes through all texts, and not only through what is new.
    whole: bool,
    done: usize,
    told: usize,
    failures: u32,
    /// When to go on: not at once after a failure.
    due: Instant,
}

pub(super) async fn run(store: Store, embedder: Embedder, text_of: TextOfPage, change_signal: Arc<Notify>) {
    let model: Arc<str> = embedder.model().into();
    let mut seen = 0;
    // Where each tenant's texts were looked at last, and whose are to be looked at.
    let mut places: HashMap<String, i64> = HashMap::new();
    let mut behind: BTreeMap<String, Progress> = BTreeMap::new();
    loop {
        let now = Instant::now();
        match store.changed_since(seen).await {
            Ok(changed) => {
                for tenant in changed.tenants {
                    let known = places.get(&tenant).copied();
                    behind.entry(tenant).or_insert(Progress {
                        place: known.unwrap_or_default(),
                        whole: known.is_none(),
                        done: 0,
                        told: 0,
                        failures: 0,
                        due: now,
                    });
                }
                seen = changed.last;
            }
            Err(_) if store.is_closed() => return,
            Err(fault) => tracing::warn!(%fault, "vectors cannot be made now"),
        }
        let mut waits = IDLE;
        // Some pages of each in turn, so that nobody waits for all pages of somebody else.
        for (tenant, progress) in std::mem::take(&mut behind) {
            if progress.due > now {
                waits = waits.min(progress.due - now);
                behind.insert(tenant, progress);
                continue;
            }
            waits = Duration::ZERO;
            match step(&store.of(&tenant), &embedder, text_of, &model, progress).await {
                Ok(Some(next)) => _ = behind.insert(tenant, next),
                Ok(None) => _ = places.insert(tenant, progress.place),
                Err(_) if store.is_closed() => return,
                Err(fault) => {
                    let wait = AFTER_FAILURE * 2_u32.pow(progress.failures.min(DOUBLINGS));
                    tracing::warn!(%fault, tenant, ?wait, "vectors cannot be made now");
                    let (failures, due) = (progress.failures + 1, Instant::now() + wait);
                    behind.insert(tenant, Progress { failures, due, ..progress });
                }
            }
        }
        if !waits.is_zero() {
            let _ = tokio::time::timeout(waits, change_signal.notified()).await;
        }
    }
}

/// Makes some vectors for one tenant. Returns from where to go on, unless all is done.
async fn step(
    memory: &Memory,
    embedder: &Embedder,
    text_of: TextOfPage,
    model: &Arc<str>,
    mut progress: Progress,
) -> Result<Option<Progress>> {
    let batch = if embedder.is_local() { LOCAL_BATCH } else { BATCH };
    // What was kept before the database could compare vectors comes first: it waits for no model.
    let name = model.clone();
    if memory.view(move |view| pgvector::is_behind(view, &name)).await? {
        let name = model.clone();
        memory.maintain(move |change| pgvector::follow(change, &name)).await?;
        return Ok(Some(progress));
    }
    let (name, place) = (model.clone(), progress.place);
    let pending = memory.view(move |view| vectors::pending(view, text_of, &name, place, batch)).await?;
    let Some(last) = pending.last() else {
        if progress.done >= TOLD {
            tracing::info!(tenant = &**memory.tenant(), pages = progress.done, %model, "all pages have vectors");
        }
        if !progress.whole {
            return Ok(None);
        }
        // The vectors of a model that is not used any more are of no use.
        let name = model.clone();
        let others = memory.view(move |view| vectors::has_others(view, &name)).await?;
        if others {
            let name = model.clone();
            memory.maintain(move |change| vectors::remove_others(change, &name, REMOVED)).await?;
        }
        return Ok(others.then_some(progress));
    };
    progress.place = last.made;
    progress.done += pending.len();
    progress.failures = 0;
    let vectors = embed(embedder, pending, WITHIN).await?;
    let name = model.clone();
    memory.maintain(move |change| vectors::save(change, &name, &vectors)).await?;
    if progress.done >= progress.told + TOLD {
        progress.told = progress.done;
        tracing::info!(tenant = &**memory.tenant(), pages = progress.done, %model, "making vectors");
    }
    Ok(Some(progress))
}

/// The vectors of these texts. If the service refuses some of them, those of the others.
pub(super) async fn embed(
    embedder: &Embedder,
    pending: Vec<PendingPage>,
    within: Duration,
) -> Result<Vec<PageVector>> {
    let texts = pending.iter().map(|pending| pending.text.clone()).collect();
    match embedder.embed(texts, within).await {
        Ok(vectors) => {
            let made = pending.into_iter().zip(vectors);
            return Ok(made
                .map(|(text, vector)| PageVector { page: text.page, made: text.made, vector })
                .collect());
        }
        Err(fault) if fault.code == Code::InvalidInput => (),
        Err(fault) => return Err(fault),
    }
    // Each goes alone, and what is refused then stays without a vector.
    let (mut made, mut refused, count) = (Vec::new(), None, pending.len());
    for PendingPage { page, made: change, text } in pending {
        match embedder.embed(vec![text], within).await {
            Ok(mut vectors) => {
                made.extend(vectors.pop().map(|vector| PageVector { page, made: change, vector }))
            }
            Err(fault) if fault.code == Code::InvalidInput => {
                tracing::warn!(%fault, page, "a page has no vector");
                refused = Some(fault);
            }
            Err(fault) => return Err(fault),
        }
    }
    match refused {
        // Nothing is to its liking: then it is not about the texts.
        Some(fault) if made.is_empty() && count > 1 => Err(fault),
        _ => Ok(made),
    }
}

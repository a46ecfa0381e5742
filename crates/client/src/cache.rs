//! [`ToolCache`]: the tools of a server, for as long as the list is good.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use tidegate_protocol::{Error, Json, Object, Symbol};
use tidegate_service::Principal;
use tidegate_service::budget::MAX_LISTS;
use tidegate_service::usage::Cache;

use crate::tool::Tool;

/// Most pages of one list.
const MAX_PAGES: usize = 1000;
/// Most callers whose own lists are kept.
const MAX_PRIVATE: usize = 256;

/// Fetches one page: the result of `tools/list` for a cursor.
pub(crate) type Fetch = Arc<dyn Fn(Option<String>) -> BoxFuture<'static, Result<Json, Error>> + Send + Sync>;
type Refresh = Shared<BoxFuture<'static, Result<Arc<ToolTable>, Error>>>;

/// The tools of a list.
#[derive(Debug)]
pub(crate) struct ToolTable {
    pub(crate) tools: Vec<Arc<Tool>>,
    by_name: HashMap<String, usize, RandomState>,
    good_until: Instant,
    /// Good for everybody, not only for who asked.
    shared: bool,
    /// What the definitions take.
    bytes: usize,
}

impl ToolTable {
    /// The tool with this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        self.by_name.get(name).map(|&at| &self.tools[at])
    }

    fn is_fresh(&self, now: Instant) -> bool {
        now < self.good_until
    }
}

/// Lists of tools: one that is good for everybody, and those that are good for one caller only.
pub(crate) struct ToolCache {
    ttl: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    shared: Option<Arc<ToolTable>>,
    private: HashMap<Principal, Arc<ToolTable>>,
    refreshing: HashMap<Principal, Refresh>,
    /// Counts how often everything was thrown away: what was fetched before is not new any more.
    generation: u64,
}

impl State {
    /// Whether one more caller's own list can be kept.
    fn has_room(&self, bytes: usize) -> bool {
        let kept: usize = self.private.values().map(|table| table.bytes).sum();
        self.private.len() < MAX_PRIVATE && kept + bytes <= MAX_LISTS
    }
}

impl ToolCache {
    pub(crate) fn new(ttl: Duration) -> Arc<ToolCache> {
        Arc::new(ToolCache { ttl, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// What is known, whether it is still good or not. Asked for by whoever can live with an old list.
    pub(crate) fn stale(&self, whose: &Principal) -> Option<Arc<ToolTable>> {
        let known = self.known(whose);
        Cache::ToolLists.looked_up(known.is_some());
        known
    }

    fn known(&self, whose: &Principal) -> Option<Arc<ToolTable>> {
        let state = self.state();
        state.private.get(whose).or(state.shared.as_ref()).cloned()
    }

    /// What is known and still good.
    pub(crate) fn fresh(&self, whose: &Principal) -> Option<Arc<ToolTable>> {
        let fresh = self.known(whose).filter(|table| table.is_fresh(Instant::now()));
        Cache::ToolLists.looked_up(fresh.is_some());
        fresh
    }

    /// A list that is good: the known one, or a new one. However many ask at once, it is fetched once.
    pub(crate) async fn get(
        self: &Arc<Self>,
        whose: &Principal,
        fetch: Fetch,
    ) -> Result<Arc<ToolTable>, Error> {
        match self.fresh(whose) {
            Some(table) => Ok(table),
            None => self.refresh(whose, fetch).await,
        }
    }

    /// A new list.
    pub(crate) async fn refresh(
        self: &Arc<Self>,
        whose: &Principal,
        fetch: Fetch,
    ) -> Result<Arc<ToolTable>, Error> {
        let refresh = {
            let mut state = self.state();
            match state.refreshing.get(whose) {
                Some(running) => running.clone(),
                None => {
                    let (cache, key, generation) = (self.clone(), whose.clone(), state.generation);
                    // A task of its own: a caller who gives up does not take the list away from the others.
                    let task = tokio::spawn(async move {
                        let read = read(&*fetch, cache.ttl).await;
                        cache.keep(&key, &read, generation);
                        read
                    });
                    let (cache, key) = (self.clone(), whose.clone());
                    let running = async move {
                        task.await.unwrap_or_else(|_| {
                            let stopped = Err(Error::new(Symbol::Unavailable, "The list was not fetched"));
                            cache.keep(&key, &stopped, generation);
                            stopped
                        })
                    };
                    let running = running.boxed().shared();
                    state.refreshing.insert(whose.clone(), running.clone());
                    running
                }
            }
        };
        refresh.await
    }

    fn keep(&self, whose: &Principal, read: &Result<Arc<ToolTable>, Error>, generation: u64) {
        let mut state = self.state();
        state.refreshing.remove(whose);
        let Ok(table) = read else { return };
        if state.generation != generation {
            return;
        }
        if table.shared {
            state.shared = Some(table.clone());
            state.private.remove(whose);
        } else {
            state.private.remove(whose);
            if !state.has_room(table.bytes) {
                let now = Instant::now();
                state.private.retain(|_, table| table.is_fresh(now));
            }
            if state.has_room(table.bytes) {
                state.private.insert(whose.clone(), table.clone());
            }
        }
    }

    /// Forgets everything: the next who asks gets a new list.
    pub(crate) fn invalidate(&self) {
        let mut state = self.state();
        state.generation += 1;
        state.shared = None;
        state.private.clear();
        // Whoever waits gets what is being fetched; whoever comes later does not.
        state.refreshing.clear();
    }
}

/// Reads all pages of a list.
async fn read(
    fetch: &(dyn Fn(Option<String>) -> BoxFuture<'static, Result<Json, Error>> + Send + Sync),
    ttl: Duration,
) -> Result<Arc<ToolTable>, Error> {
    let mut table = ToolTable {
        tools: Vec::new(),
        by_name: HashMap::default(),
        good_until: Instant::now(),
        shared: true,
        bytes: 0,
    };
    let (mut cursor, mut good_for) = (None, None::<Duration>);
    let mut seen = std::collections::HashSet::new();
    for _ in 0..MAX_PAGES {
        let page = fetch(cursor.clone()).await?;
        let broken = || Error::new(Symbol::Unavailable, "The server's list of tools has no array \"tools\"");
        let page = Object::of(&page).ok_or_else(broken)?;
        for definition in page.json("tools").and_then(|tools| tools.elements()).ok_or_else(broken)? {
            table.add(definition);
        }
        if table.bytes > MAX_LISTS {
            let what = format!("The server's list of tools has more than {MAX_LISTS} bytes");
            return Err(Error::new(Symbol::TooLarge, what));
        }
        // The server's word counts; a list without one is a legacy server's, fetched for nobody in particular.
        if let Some(ms) = page.get("ttlMs").and_then(|ms| ms.parse::<f64>().ok()).filter(|ms| *ms >= 0.0) {
            let said = Duration::from_millis(ms.min(1e12) as u64);
            good_for = Some(good_for.map_or(said, |before| before.min(said)));
        }
        table.shared &= page.str("cacheScope").is_none_or(|scope| scope == "public");
        cursor = page.str("nextCursor").map(|cursor| cursor.into_owned());
        match &cursor {
            None => {
                let now = Instant::now();
                table.good_until = now.checked_add(good_for.unwrap_or(ttl)).unwrap_or(now + ttl);
                return Ok(Arc::new(table));
            }
            Some(next) if !seen.insert(next.clone()) => {
                return Err(Error::new(
                    Symbol::Unavailable,
                    "The server's list of tools repeats a page without end",
                ));
            }
            Some(_) => {}
        }
    }
    let what = format!("The server's list of tools has more than {MAX_PAGES} pages");
    Err(Error::new(Symbol::TooLarge, what))
}

impl ToolTable {
    fn add(&mut self, definition: Json) {
        let Some(tool) = Tool::read(definition) else {
            tracing::warn!("ignored a tool without a name");
            return;
        };
        let at = self.tools.len();
        self.bytes += size_of::<Tool>() + tool.definition().len();
        if self.by_name.insert(tool.name().to_owned(), at).is_some() {
            tracing::warn!(tool = tool.name(), "the server lists a tool twice; the last one is used");
        }
        self.tools.push(Arc::new(tool));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn serves(pages: &'static [&'static str]) -> (Fetch, Arc<AtomicUsize>) {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        let fetch: Fetch = Arc::new(move |cursor| {
            counted.fetch_add(1, Ordering::Relaxed);
            let page = cursor.map_or(0, |c| c.parse::<usize>().unwrap());
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(10)).await;
                Ok(Json::trusted(pages[page]))
            })
        });
        (fetch, count)
    }

    fn ann() -> Principal {
        Principal::subject("ann")
    }

    #[tokio::test]
    async fn one_refresh_however_many_ask() {
        let (fetch, count) =
            serves(&[r#"{"tools":[{"name":"a"}],"nextCursor":"1"}"#, r#"{"tools":[{"name":"b"}]}"#]);
        let cache = ToolCache::new(Duration::from_secs(300));
        let nobody = Principal::default();
        let asking = (0..20).map(|_| cache.get(&nobody, fetch.clone()));
        for table in futures_util::future::join_all(asking).await {
            let table = table.unwrap();
            assert_eq!(table.tools.len(), 2);
            assert!(table.get("b").is_some());
        }
        assert_eq!(count.load(Ordering::Relaxed), 2);
        cache.get(&nobody, fetch.clone()).await.unwrap();
        assert_eq!(count.load(Ordering::Relaxed), 2);
        cache.invalidate();
        assert!(cache.stale(&nobody).is_none());
        cache.get(&nobody, fetch).await.unwrap();
        assert_eq!(count.load(Ordering::Relaxed), 4);
    }

    #[tokio::test]
    async fn the_servers_word_counts() {
        let (fetch, count) = serves(&[r#"{"tools":[{"name":"a"}],"ttlMs":0,"cacheScope":"private"}"#]);
        let cache = ToolCache::new(Duration::from_secs(300));
        cache.get(&ann(), fetch.clone()).await.unwrap();
        cache.get(&ann(), fetch).await.unwrap();
        assert_eq!(count.load(Ordering::Relaxed), 2, "a list that is good for no time is fetched again");
        assert!(cache.stale(&ann()).is_some(), "and served old only to those who ask for it");
        assert!(cache.fresh(&ann()).is_none());
        assert!(cache.stale(&Principal::default()).is_none(), "and never to others");
    }

    #[tokio::test]
    async fn public_lists_are_everybodys() {
        let (fetch, _) = serves(&[r#"{"tools":[],"ttlMs":60000,"cacheScope":"public"}"#]);
        let cache = ToolCache::new(Duration::from_secs(300));
        cache.get(&ann(), fetch).await.unwrap();
        assert!(cache.fresh(&Principal::default()).is_some());
    }

    #[tokio::test]
    async fn endless_lists_end() {
        let (fetch, _) = serves(&[r#"{"tools":[],"nextCursor":"0"}"#]);
        let cache = ToolCache::new(Duration::from_secs(300));
        let error = cache.get(&ann(), fetch).await.unwrap_err();
        assert!(error.message().contains("repeats"), "{error}");
    }
}

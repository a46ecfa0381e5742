//! The change feed: whoever wants to know hears of every change, whichever tool made it, and of what other processes change.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::sql::Value;
use super::view::View;
use super::{Store, StoreState};
use crate::error::Result;

/// How often to look for changes of other processes, if anybody watches.
const LOOK: Duration = Duration::from_secs(1);
/// Who begins to watch hears of what others changed this long before: the last look may have been then.
const BEFORE: i64 = 3_000;
/// How many changes of others are looked at in one go.
const AT_ONCE: usize = 500;
/// How many changes of this process are remembered, not to be told twice.
const OWN: usize = 4_096;

/// Somebody who wants to know of changes.
pub(crate) trait ChangeListener: Send + Sync {
    /// Whether nobody is there any more.
    fn is_gone(&self) -> bool;

    /// Whether anybody wants to know of anything.
    fn is_listening(&self) -> bool;

    /// Whether anybody wants to know of changes of a tenant's memory.
    fn is_interested(&self, tenant: &str) -> bool;

    /// What there is to tell of a change of a tenant's memory, if anybody wants to know of it.
    fn notice(&self, view: &mut View<'_>, tenant: &str, change: i64) -> Result<Option<ChangeNotice>>;

    /// Hears of a change, once it is kept.
    fn tell(&self, tenant: &str, notice: &ChangeNotice);
}

/// What there is to tell of a change.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ChangeNotice {
    /// The addresses of what was touched.
    pub(crate) uris: Vec<String>,
    /// Whether things have come or gone.
    pub(crate) list: bool,
}

/// Who listens, and what they need not hear again.
#[derive(Default)]
pub(super) struct Feed {
    listeners: Mutex<Vec<Arc<dyn ChangeListener>>>,
    /// The numbers of the last changes that this process made.
    own: Mutex<VecDeque<i64>>,
    /// Whether the changes of other processes are looked for.
    looking: AtomicBool,
}

/// What each of those who listen is to hear.
pub(super) type Notices = Vec<(Arc<dyn ChangeListener>, ChangeNotice)>;

impl Feed {
    fn listeners(&self) -> MutexGuard<'_, Vec<Arc<dyn ChangeListener>>> {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| !listener.is_gone());
        listeners
    }

    fn own(&self) -> MutexGuard<'_, VecDeque<i64>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_heard(&self) -> bool {
        self.listeners().iter().any(|listener| listener.is_listening())
    }

    fn is_heard_of(&self, tenant: &str) -> bool {
        let listeners = self.listeners().clone();
        listeners.iter().any(|listener| listener.is_interested(tenant))
    }

    /// What there is to tell of a change to those who want to know.
    pub(super) fn notices(&self, view: &mut View<'_>, tenant: &str, change: i64) -> Result<Notices> {
        let listeners = self.listeners().clone();
        let mut notices = Vec::new();
        for listener in listeners {
            if let Some(notice) = listener.notice(view, tenant, change)? {
                notices.push((listener, notice));
            }
        }
        Ok(notices)
    }

    /// A change of this process is kept.
    pub(super) fn committed(&self, tenant: &str, change: i64, notices: &Notices) {
        let mut own = self.own();
        own.push_back(change);
        if own.len() > OWN {
            own.pop_front();
        }
        drop(own);
        tell(tenant, notices);
    }
}

fn tell(tenant: &str, notices: &Notices) {
    for (listener, notice) in notices {
        listener.tell(tenant, notice);
    }
}

impl Store {
    /// Lets somebody know of every change from now on.
    pub(crate) fn listen(&self, listener: Arc<dyn ChangeListener>) {
        self.0.feed.listeners().push(listener);
    }

    /// Begins to look for what other processes change, unless that was begun before. It ends with the store.
    pub(crate) fn follow_other_processes(&self) {
        if self.0.feed.looking.load(Ordering::Relaxed) {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.0.feed.looking.swap(true, Ordering::Relaxed) {
            return;
        }
        let inner = Arc::downgrade(&self.0);
        runtime.spawn(async move {
            let mut seen = None;
            loop {
                tokio::time::sleep(LOOK).await;
                let Some(store) = inner.upgrade().map(Store).filter(|store| !store.is_closed()) else {
                    return;
                };
                if let Err(fault) = store.poll(&mut seen).await {
                    tracing::debug!(%fault, "what other processes changed cannot be told now");
                }
            }
        });
    }

    /// Tells of the changes after the last one that was seen, without those of this process.
    async fn poll(&self, seen: &mut Option<i64>) -> Result<()> {
        if !self.0.feed.is_heard() {
            *seen = None;
            return Ok(());
        }
        let mut after = match *seen {
            Some(seen) => seen,
            None => self.some_time_ago().await?,
        };
        loop {
            let changes = self.changes_after(after).await?;
            for (change, tenant) in &changes {
                after = *change;
                if !self.0.feed.own().contains(change) {
                    self.tell_of(*change, tenant).await?;
                }
                *seen = Some(after);
            }
            *seen = Some(after);
            if changes.len() < AT_ONCE {
                return Ok(());
            }
        }
    }

    async fn tell_of(&self, change: i64, tenant: &str) -> Result<()> {
        if !self.0.feed.is_heard_of(tenant) {
            return Ok(());
        }
        let (inner, whose): (Arc<StoreState>, Arc<str>) = (self.0.clone(), tenant.into());
        let notices = self.of(tenant).view(move |view| inner.feed.notices(view, &whose, change)).await?;
        tell(tenant, &notices);
        Ok(())
    }

    /// The number of the last change that was made some time ago.
    async fn some_time_ago(&self) -> Result<i64> {
        let then = tidegate_service::epoch_ms() as i64 - BEFORE;
        self.read(move |sql| {
            let (mut old, mut first) = (None, 1);
            let newest = "SELECT id, at FROM changes ORDER BY id DESC LIMIT ?1";
            sql.each(newest, &[Value::Int(OWN as i64)], &mut |row| {
                first = row.int(0)?;
                old = old.or((row.int(1)? < then).then_some(first));
                Ok(())
            })?;
            Ok(old.unwrap_or(first - 1))
        })
        .await
    }

    /// Changes after this one, and whose they are.
    async fn changes_after(&self, after: i64) -> Result<Vec<(i64, String)>> {
        self.read(move |sql| {
            let mut found = Vec::new();
            sql.each(
                "SELECT c.id, t.name FROM changes c JOIN tenants t ON t.id = c.tenant WHERE c.id > ?1
                 ORDER BY c.id LIMIT ?2",
                &[Value::Int(after), Value::Int(AT_ONCE as i64)],
                &mut |row| {
                    found.push((row.int(0)?, row.text(1)?));
                    Ok(())
                },
            )?;
            Ok(found)
        })
        .await
    }
}

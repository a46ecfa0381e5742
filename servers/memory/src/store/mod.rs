//! [`Store`]: where everything is kept, a file of SQLite or a database of a PostgreSQL server. One thread writes, many
//! connections read.
//!
//! Changes that wait at the same moment are committed together, each in a savepoint of its own: a commit costs a wait
//! for the disk, and one wait can serve many callers. A caller hears of a change only when it is on the disk.

mod across;
mod backup;
mod close;
mod expressions;
mod feed;
mod location;
mod maintenance;
#[cfg(feature = "postgres")]
mod postgres;
mod schema;
mod sql;
mod sqlite;
mod tenants;
#[cfg(test)]
pub(crate) mod tests;
mod view;
mod writer;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch::Receiver};

use crate::error::{Fault, Result};

pub use backup::backup;
pub(crate) use expressions::unaccented;
use feed::Feed;
pub(crate) use feed::{ChangeListener, ChangeNotice};
use location::Location;
pub(crate) use schema::{Schema, TABLES};
use sql::Session;
pub(crate) use sql::{Dialect, Row, Sql, Value, prefix_range};
pub use tenants::tenant_key;
pub(crate) use tenants::{DEFAULT_TENANT, TENANT_PREFIX};
pub(crate) use view::{Change, View};
use writer::{Job, atomically};

/// How many changes may wait.
const WAITING: usize = 1024;
/// How many connections read at once.
const READERS: usize = 4;

/// How many tenants there may be, if nothing else is said.
const MOST_TENANTS: usize = 1_000;
/// How many tenants' numbers are remembered.
const REMEMBERED: usize = 1_024;

/// Where everything is kept. Clones are handles on the same.
#[derive(Clone)]
pub struct Store(Arc<StoreState>);

struct StoreState {
    location: Location,
    /// What leads to the thread that writes; nothing does once the store is closed.
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
    /// Has no sender any more when that thread has ended.
    writer: Receiver<()>,
    idle: Mutex<Vec<Box<dyn Session>>>,
    read_permits: Arc<Semaphore>,
    /// The numbers of tenants who called lately.
    tenants: Mutex<HashMap<Arc<str>, i64>>,
    most_tenants: AtomicUsize,
    /// Rung after each change.
    change_signal: Arc<Notify>,
    feed: Feed,
}

impl Store {
    /// Opens a file, which is made if it is not there.
    pub(crate) fn in_file(path: &Path, schema: &'static Schema) -> Result<Store> {
        Store::start(Location::file(path, schema)?)
    }

    /// Uses a database of a PostgreSQL server.
    pub(crate) fn on_server(url: &str, schema: &'static Schema) -> Result<Store> {
        Store::start(Location::server(url, schema)?)
    }

    fn start(location: Location) -> Result<Store> {
        let (jobs, waiting) = mpsc::channel(WAITING);
        let writer = writer::start(location.clone(), waiting)?;
        Ok(Store(Arc::new(StoreState {
            location,
            jobs: Mutex::new(Some(jobs)),
            writer,
            idle: Mutex::default(),
            read_permits: Arc::new(Semaphore::new(READERS)),
            tenants: Mutex::default(),
            most_tenants: AtomicUsize::new(MOST_TENANTS),
            change_signal: Arc::default(),
            feed: Feed::default(),
        })))
    }

    /// Lets so many tenants have a memory here, besides the usual one: 1000 if nothing is said. Those who have one keep it.
    pub fn limit_tenants(&self, most: usize) {
        self.0.most_tenants.store(most, Ordering::Relaxed);
    }

    /// The memory of one tenant.
    pub fn of(&self, tenant: &str) -> Memory {
        Memory { store: self.clone(), tenant: tenant.into(), who: None, named: None }
    }

    /// Runs a job in the writing thread and waits until what it did is on the disk.
    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut dyn Sql) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.write_then(work, |made| made).await
    }

    /// The same, and what `kept` does is done once it is on the disk, whether anybody still waits for it or not.
    async fn write_then<M: Send + 'static, T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut dyn Sql) -> Result<M> + Send + 'static,
        kept: impl FnOnce(M) -> T + Send + 'static,
    ) -> Result<T> {
        let (done, answer) = oneshot::channel();
        let job: Job = Box::new(move |session| {
            let worked = session.map(|session| atomically(session, work));
            Box::new(move |committed: Result<()>| {
                let told = match worked {
                    Some(Ok(made)) => committed.map(|()| kept(made)),
                    // Nothing of it was kept, whatever became of the others.
                    Some(Err(fault)) => Err(fault),
                    None => Err(committed.err().unwrap_or_else(Fault::closed)),
                };
                // Whoever does not wait any more does not hear of it.
                let _ = done.send(told);
            })
        });
        let jobs = self.0.jobs().clone().ok_or_else(Fault::closed)?;
        jobs.send(job).await.map_err(|_| Fault::closed())?;
        drop(jobs);
        answer.await.unwrap_or_else(|_| Err(Fault::closed()))
    }

    /// Reads, at one moment of the store.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut dyn Sql) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let permit = self.0.read_permits.clone().acquire_owned().await.map_err(|_| Fault::closed())?;
        let inner = self.0.clone();
        let read = tokio::task::spawn_blocking(move || {
            // SourceText for as long as something is read, whether anybody still waits for it or not.
            let _permit = permit;
            let known = inner.idle().pop();
            let mut session = match known {
                Some(session) => session,
                None => inner.location.open(false)?,
            };
            // One transaction, so that all queries see the same.
            session.begin_read()?;
            let found = work(&mut *session);
            if session.batch("COMMIT").is_ok() && !inner.read_permits.is_closed() {
                inner.idle().push(session);
            }
            found
        });
        read.await.unwrap_or_else(|error| match error.is_panic() {
            true => Err(Fault::panicked()),
            false => Err(Fault::closed()),
        })
    }

    /// The number of a tenant, who is made if need be.
    async fn tenant(&self, name: &Arc<str>) -> Result<i64> {
        if let Some(id) = self.0.known_tenant(name) {
            return Ok(id);
        }
        let (wanted, most) = (name.clone(), self.0.most_tenants.load(Ordering::Relaxed));
        let schema = self.0.location.schema();
        let id = self.write(move |sql| tenants::tenant(sql, schema, &wanted, most)).await?;
        self.0.remember_tenant(name, id);
        Ok(id)
    }
}

impl StoreState {
    fn jobs(&self) -> MutexGuard<'_, Option<mpsc::Sender<Job>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Box<dyn Session>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tenants(&self) -> MutexGuard<'_, HashMap<Arc<str>, i64>> {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known_tenant(&self, name: &str) -> Option<i64> {
        self.tenants().get(name).copied()
    }

    fn remember_tenant(&self, name: &Arc<str>, id: i64) {
        let mut tenants = self.tenants();
        if tenants.len() >= REMEMBERED {
            tenants.clear();
        }
        tenants.insert(name.clone(), id);
    }
}

/// The memory of one tenant.
#[derive(Clone)]
pub struct Memory {
    store: Store,
    tenant: Arc<str>,
    who: Option<Arc<str>>,
    /// What a caller who is not authenticated called the tenant.
    named: Option<Arc<str>>,
}

impl Memory {
    /// The same memory; what is changed through it is noted as changed by `who`.
    pub fn by(&self, who: &str) -> Memory {
        Memory { who: Some(who.replace('\0', "").into()), ..self.clone() }
    }

    /// The same memory, which a caller who is not authenticated asked for by this name. If there is no such tenant, that
    /// is what is said of a thing that is not found in it.
    pub(crate) fn named_by_caller(&self, name: &str) -> Memory {
        Memory { named: Some(name.into()), ..self.clone() }
    }

    /// Fails if the memory was asked for by the name of a tenant that does not exist.
    pub(crate) async fn exists(&self) -> Result<()> {
        // Whatever is missing in a memory that does not exist is answered with that.
        match self.named {
            Some(_) => self.view(|view| view.is_somebodys()).await,
            None => Ok(()),
        }
    }

    /// Makes a change: all of it, or nothing.
    pub(crate) async fn change<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&mut Change<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let tenant = self.store.tenant(&self.tenant).await?;
        let who = self.who.clone();
        let (inner, whose) = (self.store.0.clone(), self.tenant.clone());
        let feed = inner.clone();
        let work = move |sql: &mut dyn Sql| {
            let mut change = Change::begin(sql, tenant, who.as_deref(), what)?;
            let done = work(&mut change)?;
            let id = change.id;
            Ok((done, id, inner.feed.notices(&mut change, &whose, id)?))
        };
        let whose = self.tenant.clone();
        let kept = move |(done, id, notices)| {
            feed.feed.committed(&whose, id, &notices);
            feed.change_signal.notify_one();
            done
        };
        self.store.write_then(work, kept).await
    }

    /// Reads. Whoever has never kept anything finds nothing, and is not known for having looked.
    pub(crate) async fn view<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut View<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (inner, name, named) = (self.store.0.clone(), self.tenant.clone(), self.named.clone());
        let known = inner.known_tenant(&name);
        let look = move |sql: &mut dyn Sql| {
            let tenant = match known {
                Some(id) => id,
                None => match tenants::find_tenant(sql, &name)? {
                    Some(id) => {
                        inner.remember_tenant(&name, id);
                        id
                    }
                    None => tenants::NOBODY,
                },
            };
            work(&mut View::new(sql, tenant)).map_err(|fault| match named {
                Some(named) if tenant == tenants::NOBODY && fault.code.is_absence() => {
                    Fault::no_tenant(&named)
                }
                _ => fault,
            })
        };
        self.store.read(look).await
    }
}

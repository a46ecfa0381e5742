//! [`Store`]: where everything is kept. One thread writes, many connections read.
//!
//! Changes that wait at the same moment are committed together, each in a savepoint of its own: a commit costs a wait
//! for the disk, and one wait can serve many callers. A caller hears of a change only when it is on the disk.

mod error;
mod schema;
mod sql;
mod sqlite;
mod view;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;
use tokio::sync::{Semaphore, mpsc, oneshot};

pub(crate) use error::Result;
pub use error::{Code, Fault};
pub(crate) use sql::{Row, Value};
pub(crate) use view::{Change, View};

/// How many changes may wait.
const WAITING: usize = 1024;
/// How many are committed together at most.
const TOGETHER: usize = 256;
/// How many connections read at once.
const READERS: usize = 4;

/// Where everything is kept. Clones are handles on the same.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    path: PathBuf,
    jobs: mpsc::Sender<Job>,
    idle: Mutex<Vec<Connection>>,
    places: Semaphore,
    tenants: Mutex<HashMap<String, i64>>,
}

/// Makes a change, if there is a transaction for it, and returns what to do once that is on the disk, or is not.
type Job = Box<dyn FnOnce(Option<&mut Connection>) -> Answer + Send>;
type Answer = Box<dyn FnOnce(Result<()>) + Send>;

impl Store {
    /// Opens the file, which is made if it is not there.
    pub fn open(path: impl AsRef<Path>) -> Result<Store, Fault> {
        let path = path.as_ref().to_owned();
        prepare(&path).map_err(|error| {
            Fault::new(Code::Database, format!("{} cannot be made: {error}", path.display()))
        })?;
        let mut writer = sqlite::open(&path, true)?;
        // Another process may be doing the same.
        writer.execute_batch("BEGIN IMMEDIATE")?;
        match schema::migrate(&mut writer) {
            Ok(()) => writer.execute_batch("COMMIT")?,
            Err(fault) => {
                let _ = writer.execute_batch("ROLLBACK");
                return Err(fault);
            }
        }
        let (jobs, waiting) = mpsc::channel(WAITING);
        std::thread::Builder::new()
            .name("memory-writer".to_owned())
            .spawn(move || write(writer, waiting))
            .map_err(|error| Fault::new(Code::Database, format!("No thread can be started: {error}")))?;
        Ok(Store(Arc::new(Inner {
            path,
            jobs,
            idle: Mutex::default(),
            places: Semaphore::new(READERS),
            tenants: Mutex::default(),
        })))
    }

    /// The memory of one tenant.
    pub fn of(&self, tenant: &str) -> Memory {
        Memory { store: self.clone(), tenant: tenant.into(), who: None }
    }

    /// Runs a job in the writing thread and waits until what it did is on the disk.
    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (done, answer) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            let worked = match connection {
                Some(connection) => sqlite::atomically(connection, work),
                None => Err(closed()),
            };
            Box::new(move |committed: Result<()>| {
                // Whoever does not wait any more does not hear of it.
                let _ = done.send(committed.and(worked));
            })
        });
        self.0.jobs.send(job).await.map_err(|_| closed())?;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Reads, at one moment of the store.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let _place = self.0.places.acquire().await.map_err(|_| closed())?;
        let inner = self.0.clone();
        let read = tokio::task::spawn_blocking(move || {
            let known = inner.idle().pop();
            let mut connection = match known {
                Some(connection) => connection,
                None => sqlite::open(&inner.path, false)?,
            };
            // One transaction, so that all queries see the same.
            connection.execute_batch("BEGIN")?;
            let found = work(&mut connection);
            connection.execute_batch("COMMIT")?;
            inner.idle().push(connection);
            found
        });
        read.await.unwrap_or_else(|_| Err(closed()))
    }

    /// The number of a tenant.
    async fn tenant(&self, name: &str) -> Result<i64> {
        let known = self.0.tenants().get(name).copied();
        if let Some(id) = known {
            return Ok(id);
        }
        let wanted = name.to_owned();
        let id = self.write(move |connection| schema::tenant(connection, &wanted)).await?;
        self.0.tenants().insert(name.to_owned(), id);
        Ok(id)
    }
}

impl Inner {
    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tenants(&self) -> MutexGuard<'_, HashMap<String, i64>> {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the folder and the file, for nobody else to read: a memory is as private as a diary.
fn prepare(path: &Path) -> std::io::Result<()> {
    let mut folders = std::fs::DirBuilder::new();
    folders.recursive(true);
    let mut file = std::fs::OpenOptions::new();
    file.append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
        folders.mode(0o700);
        file.mode(0o600);
    }
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        folders.create(folder)?;
    }
    file.open(path).map(drop)
}

fn closed() -> Fault {
    Fault::new(Code::Database, "The memory is closed")
}

/// The life of the writing thread: it ends when nobody can send jobs any more.
fn write(mut connection: Connection, mut jobs: mpsc::Receiver<Job>) {
    while let Some(first) = jobs.blocking_recv() {
        let mut answers = Vec::new();
        let begun = connection.execute_batch("BEGIN IMMEDIATE").map_err(Fault::from);
        if let Err(fault) = begun {
            answers.push(first(None));
            finish(answers, &Err(fault));
            continue;
        }
        answers.push(first(Some(&mut connection)));
        while answers.len() < TOGETHER
            && let Ok(next) = jobs.try_recv()
        {
            answers.push(next(Some(&mut connection)));
        }
        let committed = connection.execute_batch("COMMIT").map_err(|error| {
            let _ = connection.execute_batch("ROLLBACK");
            Fault::from(error)
        });
        finish(answers, &committed);
    }
}

fn finish(answers: Vec<Answer>, committed: &Result<()>) {
    for answer in answers {
        answer(committed.clone());
    }
}

/// The memory of one tenant.
#[derive(Clone)]
pub struct Memory {
    store: Store,
    tenant: Arc<str>,
    who: Option<Arc<str>>,
}

impl Memory {
    /// The same memory; what is changed through it is noted as changed by `who`.
    pub fn by(&self, who: &str) -> Memory {
        Memory { who: Some(who.into()), ..self.clone() }
    }

    /// Makes a change: all of it, or nothing.
    pub(crate) async fn change<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&mut Change<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let tenant = self.store.tenant(&self.tenant).await?;
        let (who, now) = (self.who.clone(), tidegate_service::epoch_ms() as i64);
        let work = move |connection: &mut Connection| {
            let mut change = Change::begin(connection, tenant, now, who.as_deref(), what)?;
            work(&mut change)
        };
        self.store.write(work).await
    }

    /// Reads.
    pub(crate) async fn view<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut View<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let tenant = self.store.tenant(&self.tenant).await?;
        self.store.read(move |connection| work(&mut View::new(connection, tenant))).await
    }
}

//! [`Watcher`]: tells when a configuration has changed.
//!
//! The system's events only make it quick. What counts is the content of the files, which is looked at every two seconds
//! anyway: on network drives, in containers and where the limit of watches is reached, no event ever comes.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use sha2::{Digest, Sha256};
use tidegate_builtin::Builtins;
use tokio::sync::mpsc;

use crate::config;
use crate::secrets::folder;

/// For how long files must stay as they are before they count as written.
const SETTLE: Duration = Duration::from_millis(200);
/// How often the files are looked at without being told to.
const POLL: Duration = Duration::from_secs(2);
/// After how much unrest a change is told all the same.
const PATIENCE: Duration = Duration::from_secs(5);

/// Tells when a configuration, or a file that it refers to, has changed.
#[derive(Debug)]
pub struct Watcher {
    path: PathBuf,
    /// The configuration and the files that it refers to.
    files: Vec<PathBuf>,
    /// The digest of their contents that was told last.
    told: Vec<u8>,
    events: mpsc::Receiver<()>,
    /// What they are called.
    names: Names,
    /// Watches the folders of the files; `None` where the system cannot.
    folders: Option<RecommendedWatcher>,
    watched: Vec<PathBuf>,
    hangup: Option<Hangup>,
    /// Whether the process got SIGHUP and that was not told yet.
    asked: bool,
}

impl Watcher {
    /// Watches a file from now on. To miss nothing, start before the file is loaded. Must be called inside a runtime of
    /// tokio.
    pub fn start(path: impl Into<PathBuf>) -> Watcher {
        let path = path.into();
        let (tell, events) = mpsc::channel(1);
        let names = Names::default();
        let of_interest = names.clone();
        let folders = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Looking at a file is an event too, and looking is what each event leads to. Others write beside it, some of them
            // all the time: a log, an audit trail.
            if event.is_ok_and(|event| event.kind.is_access() || of_interest.is_written_beside(&event)) {
                return;
            }
            // If one is waiting already, that is enough.
            let _ = tell.try_send(());
        });
        let mut watcher = Watcher {
            files: Vec::new(),
            told: Vec::new(),
            events,
            names,
            folders: folders.inspect_err(|error| tracing::debug!(%error, "no events for files")).ok(),
            watched: Vec::new(),
            hangup: hangup(),
            asked: false,
            path,
        };
        let around = around(&watcher.path);
        watcher.watch(around);
        watcher.told = digest(&watcher.files);
        watcher
    }

    /// Waits until the content of a file has changed or, on Unix, the process got SIGHUP. Changes between two calls are
    /// not lost.
    pub async fn changed(&mut self) {
        loop {
            if self.asked {
                let content = self.content().await;
                self.tell(content).await;
                return;
            }
            tokio::select! {
                () = hung_up(&mut self.hangup) => {
                    // A signal that was taken must not get lost, even if nobody waits for the rest.
                    self.asked = true;
                    continue;
                }
                () = tokio::time::sleep(POLL) => {}
                Some(()) = self.events.recv() => {}
            }
            if self.content().await == self.told {
                continue;
            }
            let content = self.settled().await;
            // An editor may have put everything back.
            if content != self.told {
                self.tell(content).await;
                return;
            }
        }
    }

    /// The content, once nobody writes any more.
    async fn settled(&self) -> Vec<u8> {
        let started = tokio::time::Instant::now();
        let mut content = self.content().await;
        loop {
            tokio::time::sleep(SETTLE).await;
            let now = self.content().await;
            if now == content || started.elapsed() > PATIENCE {
                return now;
            }
            content = now;
        }
    }

    async fn content(&self) -> Vec<u8> {
        let files = self.files.clone();
        tokio::task::spawn_blocking(move || digest(&files)).await.unwrap_or_default()
    }

    /// Remembers what was told. The configuration may refer to other files now; what is in those is told already, too.
    async fn tell(&mut self, content: Vec<u8>) {
        let before = self.files.clone();
        let path = self.path.clone();
        // Reading files may take a while, and there may be a single thread for everything else.
        if let Ok(around) = tokio::task::spawn_blocking(move || around(&path)).await {
            self.watch(around);
        }
        self.told = if self.files == before { content } else { self.content().await };
        self.asked = false;
    }

    /// Watches the folders of files: editors replace files, and a watch on a file goes with it.
    fn watch(&mut self, (files, wanted): (Vec<PathBuf>, Vec<PathBuf>)) {
        self.names.set(&files);
        self.files = files;
        let Some(watcher) = &mut self.folders else { return };
        for gone in self.watched.iter().filter(|old| !wanted.contains(old)) {
            let _ = watcher.unwatch(gone);
        }
        // A folder that cannot be watched, perhaps because it is not there yet, is polled, and tried again next time.
        let watched = |path: &PathBuf| {
            self.watched.contains(path) || watcher.watch(path, RecursiveMode::NonRecursive).is_ok()
        };
        self.watched = wanted.into_iter().filter(watched).collect();
    }
}

/// The names of files, those included that they lead to.
#[derive(Debug, Clone, Default)]
struct Names(Arc<RwLock<HashSet<OsString>>>);

impl Names {
    fn set(&self, files: &[PathBuf]) {
        let real = files.iter().filter_map(|file| std::fs::canonicalize(file).ok());
        let all = files.iter().cloned().chain(real);
        let names = all.filter_map(|file| file.file_name().map(OsString::from)).collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = names;
    }

    /// Whether an event says that something was written into other files. One that comes, goes or changes its name may be what one of
    /// these leads to.
    fn is_written_beside(&self, event: &notify::Event) -> bool {
        if !matches!(event.kind, notify::EventKind::Modify(notify::event::ModifyKind::Data(_))) {
            return false;
        }
        let names = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let is_other = |path: &PathBuf| path.file_name().is_some_and(|name| !names.contains(name));
        !event.paths.is_empty() && event.paths.iter().all(is_other)
    }
}

/// Which files count, and their folders.
fn around(path: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let (_, referred) = config::load(path, &Builtins::default(), &|name| std::env::var(name).ok());
    let files: Vec<PathBuf> = std::iter::once(path.to_owned()).chain(referred).collect();
    let mut folders: Vec<PathBuf> = files.iter().flat_map(|file| folders_of(file)).collect();
    folders.sort();
    folders.dedup();
    (files, folders)
}

/// The folder of a file and, if the file is a link, of what it leads to.
fn folders_of(file: &Path) -> Vec<PathBuf> {
    let real = std::fs::canonicalize(file).ok().and_then(|real| real.parent().map(Path::to_owned));
    std::iter::once(folder(file)).chain(real).collect()
}

/// A digest of the contents of files; one that cannot be read counts as such.
fn digest(files: &[PathBuf]) -> Vec<u8> {
    let mut sum = Sha256::new();
    for file in files {
        // Nothing but a regular file can be read again and again.
        let is_regular = std::fs::metadata(file).is_ok_and(|about| about.is_file());
        match is_regular.then(|| crate::read_file::text(file)) {
            Some(Ok(text)) => {
                sum.update([1]);
                sum.update((text.len() as u64).to_le_bytes());
                sum.update(text.as_bytes());
            }
            Some(Err(_)) => sum.update([2]),
            None => sum.update([3]),
        }
    }
    sum.finalize().to_vec()
}

#[cfg(unix)]
type Hangup = tokio::signal::unix::Signal;
#[cfg(not(unix))]
type Hangup = std::convert::Infallible;

#[cfg(unix)]
fn hangup() -> Option<Hangup> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()).ok()
}

#[cfg(not(unix))]
fn hangup() -> Option<Hangup> {
    None
}

async fn hung_up(signal: &mut Option<Hangup>) {
    match signal {
        #[cfg(unix)]
        Some(signal) => drop(signal.recv().await),
        _ => std::future::pending().await,
    }
}

//! Putting a file in place: as a whole, and one writer after the other.

use std::io::{Error, ErrorKind, Result, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a writer waits for its turn.
const PATIENCE: Duration = Duration::from_secs(5);
/// After which time a turn that was never given back counts as forgotten: whoever had it is dead.
const FORGOTTEN: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(10);

/// The right to write a file, among all processes that ask for it. It is a file beside the other, which only one can
/// create; locks of the operating system would stay with the old file when the new one takes its place.
pub(super) struct Turn {
    target: PathBuf,
    mark: PathBuf,
}

impl Turn {
    /// Waits for the turn to write `path`. Blocks.
    pub(super) fn wait(path: &Path) -> Result<Turn> {
        // A link stays a link, and what it points to is replaced.
        let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if let Some(folder) = target.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mark = beside(&target, "busy");
        let begun = Instant::now();
        loop {
            match std::fs::File::create_new(&mark) {
                Ok(_) => return Ok(Turn { target, mark }),
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                Err(_) if is_forgotten(&mark) => _ = std::fs::remove_file(&mark),
                Err(_) if begun.elapsed() > PATIENCE => {
                    let what =
                        format!("another process is writing it; if there is none, remove {}", mark.display());
                    return Err(Error::new(ErrorKind::TimedOut, what));
                }
                Err(_) => std::thread::sleep(LOOK),
            }
        }
    }

    /// Puts a text in the place of what was there.
    pub(super) fn write(self, text: &str) -> Result<()> {
        static DRAFTS: AtomicU64 = AtomicU64::new(0);
        let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
        let draft = beside(&self.target, &format!("{}-{number}", std::process::id()));
        let written = std::fs::File::create_new(&draft).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        let placed = written.and_then(|()| std::fs::rename(&draft, &self.target));
        if placed.is_err() {
            let _ = std::fs::remove_file(&draft);
        }
        placed
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.mark);
    }
}

fn is_forgotten(mark: &Path) -> bool {
    let changed = std::fs::metadata(mark).and_then(|about| about.modified());
    changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age > FORGOTTEN))
}

/// `tidegate.lock` and `busy` make `.tidegate.lock.busy` in the same folder.
fn beside(target: &Path, ending: &str) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!(".{name}.{ending}"))
}

#[cfg(test)]
mod tests {
    use tidegate_protocol::Json;

    use crate::pins::{Lock, Pin};

    #[test]
    fn writers_at_the_same_time_lose_nothing_and_leave_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        // A folder that is not there yet is made.
        let path = folder.path().join("new/tidegate.lock");
        std::thread::scope(|scope| {
            for writer in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    for tool in 0..5 {
                        let pin = Pin::of(&Json::trusted(format!("{{\"name\":\"{tool}\"}}")));
                        Lock::update(path, |lock| lock.set(&format!("s{writer}"), &tool.to_string(), pin))
                            .unwrap();
                    }
                });
            }
        });
        let lock = Lock::load(&path).unwrap();
        assert_eq!(lock.servers().map(|server| lock.tools(server).count()).collect::<Vec<_>>(), [5; 8]);
        let left: Vec<_> = std::fs::read_dir(path.parent().unwrap())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, ["tidegate.lock"]);
    }

    #[test]
    fn a_file_that_is_broken_is_never_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tidegate.lock");
        std::fs::write(&path, "{\n  oops").unwrap();
        let pin = Pin::of(&Json::empty_object());
        let error = Lock::update(&path, |lock| lock.set("s", "t", pin)).unwrap_err();
        assert!(error.to_string().contains("tidegate.lock:2: "), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\n  oops");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "the turn is given back");
    }
}

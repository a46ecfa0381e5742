//! Stories in a file, so that they outlive the process: one JSON object in each line.
//!
//! There are two: when the file has half of the room, it takes the place of the older one. A thread of its own writes, so that nobody waits
//! for a disk. Whatever cannot be written is left out; that it cannot is said once.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use tidegate_service::appended::is_in_place;

use super::shelf::Kept;

/// How many bytes may wait to be written. What is more is left out.
const MOST_WAITING: usize = 8 << 20;
/// How much is read of each file when it is opened: its end.
const MOST_READ: u64 = 64 << 20;
/// Longer lines are no stories.
const LONGEST_LINE: usize = 1 << 20;

/// The thread that writes.
pub(super) struct StoryFile {
    queue: Option<Sender<Arc<Kept>>>,
    waiting: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl StoryFile {
    /// Begins to write to a file, of which there are two with so many bytes together.
    pub(super) fn open(path: PathBuf, room: usize) -> io::Result<StoryFile> {
        let (queue, stories) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let mut writer = Writer { path, most: (room / 2) as u64, open: None, is_broken: false };
        let counted = waiting.clone();
        let thread = std::thread::Builder::new()
            .name("stories".to_owned())
            .spawn(move || writer.run(&stories, &counted))?;
        Ok(StoryFile { queue: Some(queue), waiting, thread: Some(thread) })
    }

    /// Has a story written, if the disk can keep up.
    pub(super) fn write(&self, story: &Arc<Kept>) {
        let size = story.size;
        if self.waiting.fetch_add(size, Ordering::Relaxed) + size > MOST_WAITING {
            self.waiting.fetch_sub(size, Ordering::Relaxed);
            return;
        }
        if let Some(queue) = &self.queue {
            let _ = queue.send(story.clone());
        }
    }
}

impl Drop for StoryFile {
    /// Waits until everything is written.
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Writer {
    path: PathBuf,
    /// How large the file may become.
    most: u64,
    /// The file, and how large it is.
    open: Option<(File, u64)>,
    /// Whether it could not be written the last time.
    is_broken: bool,
}

impl Writer {
    fn run(&mut self, stories: &Receiver<Arc<Kept>>, waiting: &AtomicUsize) {
        while let Ok(first) = stories.recv() {
            // What has come meanwhile is written at once, as far as it fits into one file.
            let (mut lines, mut bytes) = (Vec::new(), 0);
            for story in std::iter::once(first).chain(stories.try_iter().take(256)) {
                bytes += story.size;
                let line = story.told();
                if (lines.len() + line.len() + 1) as u64 > self.most {
                    self.write_or_tell(&lines);
                    lines.clear();
                }
                if (line.len() as u64) < self.most {
                    lines.extend_from_slice(line.as_str().as_bytes());
                    lines.push(b'\n');
                }
            }
            self.write_or_tell(&lines);
            waiting.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// Writes lines, and says once that it cannot.
    fn write_or_tell(&mut self, lines: &[u8]) {
        if lines.is_empty() {
            return;
        }
        match self.write(lines) {
            Ok(()) if std::mem::take(&mut self.is_broken) => {
                tracing::info!("Stories of calls are written to {} again", self.path.display());
            }
            Ok(()) => {}
            Err(error) => {
                self.open = None;
                if !std::mem::replace(&mut self.is_broken, true) {
                    let path = self.path.display();
                    tracing::warn!(
                        "Stories of calls cannot be written to {path}: {error}. They are kept in memory only"
                    );
                }
            }
        }
    }

    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        // Somebody may have removed it, or put another one in its place.
        if self.open.as_ref().is_some_and(|(file, _)| !is_in_place(file, &self.path)) {
            self.open = None;
        }
        if self.open.as_ref().is_some_and(|(_, size)| *size > 0 && size + lines.len() as u64 > self.most) {
            self.open = None;
            std::fs::rename(&self.path, older(&self.path))?;
        }
        let (file, size) = match &mut self.open {
            Some(open) => open,
            None => {
                let mut file = append_to(&self.path)?;
                let size = file.metadata()?.len();
                // A process that was killed may have left a part of a line behind.
                let size = size + end_line(&mut file, size)?;
                self.open.insert((file, size))
            }
        };
        // What a full disk has cut off is taken back.
        let whole = file.write_all(lines);
        if whole.is_err() {
            let _ = file.set_len(*size);
        }
        *size += lines.len() as u64;
        whole
    }
}

/// The file of the stories before those of the newer one.
fn older(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".old");
    name.into()
}

/// Ends a line that was cut off, so that the next one begins on a line of its own. By how many bytes the file has grown.
fn end_line(file: &mut File, size: u64) -> io::Result<u64> {
    if size == 0 {
        return Ok(0);
    }
    let mut last = [0];
    file.seek(SeekFrom::Start(size - 1))?;
    file.read_exact(&mut last)?;
    match last {
        [b'\n'] => Ok(0),
        _ => file.write_all(b"\n").map(|()| 1),
    }
}

/// A file that only its owner can read.
fn append_to(path: &Path) -> io::Result<File> {
    // Whoever opens a pipe may wait forever.
    if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
        options.mode(0o600);
        let file = options.open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_file() && metadata.permissions().mode() & 0o077 != 0 {
            file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        }
        Ok(file)
    }
    #[cfg(not(unix))]
    options.open(path)
}

/// The lines of both files, the older ones first: as much of their ends as there is room for. What is not there has none.
pub(super) fn lines(path: &Path, room: usize, mut line: impl FnMut(&str)) -> io::Result<()> {
    let most = (room as u64).min(MOST_READ);
    for path in [older(path), path.to_owned()] {
        // Whoever reads a pipe may wait forever.
        match std::fs::metadata(&path) {
            Ok(metadata) if !metadata.is_file() => {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            other => other?,
        };
        let mut file = File::open(&path)?;
        let size = file.metadata()?.len();
        let begin = size.saturating_sub(most);
        file.seek(SeekFrom::Start(begin))?;
        let mut text = Vec::new();
        file.take(most).read_to_end(&mut text)?;
        let mut all = text.split(|byte| *byte == b'\n');
        if begin > 0 {
            // The rest of a line.
            all.next();
        }
        for one in all.filter(|one| !one.is_empty() && one.len() <= LONGEST_LINE) {
            if let Ok(one) = std::str::from_utf8(one) {
                line(one);
            }
        }
    }
    Ok(())
}

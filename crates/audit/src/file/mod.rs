//! The file of a trail: it is appended to, put aside when it is large, and continued after a restart.

pub(crate) mod head;
mod lock;
pub(crate) mod names;
mod recover;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tidegate_config::AuditFile;
use tidegate_service::appended::{create_folder_of, is_in_place, open};

use crate::backlog::Output;
use crate::batch::Batch;
use crate::chain::Position;
use crate::error::AuditError;
use names::{aside, beside, put_aside};

/// What was found of a trail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    /// The record that the next one follows.
    pub(crate) last: Position,
    /// How many bytes at the end were no record.
    pub(crate) torn: u64,
    /// How many records the head knows that are not there any more.
    pub(crate) missing: u64,
}

/// Appends records to a file.
#[derive(Debug)]
pub(crate) struct FileOutput {
    settings: AuditFile,
    file: File,
    /// How many bytes of it are good.
    length: u64,
    /// Whether there is something after these, because it could not be written as a whole.
    is_torn: bool,
    /// The number of its first record; 0 if there is none.
    first: u64,
    /// The last record that is in it, and whether the head says so.
    last: Position,
    is_head_old: bool,
    /// Whether it was said that it cannot be put aside.
    is_stuck: bool,
    /// The lock, for as long as this lives.
    _lock: File,
}

impl FileOutput {
    /// Opens a trail to be continued.
    pub(crate) fn open(settings: &AuditFile) -> Result<(FileOutput, Found), AuditError> {
        let path = settings.path.as_path();
        let failed = |error| AuditError::Open { path: path.to_owned(), error };
        create_folder_of(path).map_err(failed)?;
        // A pipe would be waited for, and a device has no end.
        if std::fs::metadata(path).is_ok_and(|about| !about.is_file()) {
            return Err(AuditError::NoFile(path.to_owned()));
        }
        let lock = lock::acquire(&beside(path, "lock")).map_err(failed)?;
        let lock = lock.ok_or_else(|| AuditError::InUse(path.to_owned()))?;
        let mut file = open(path).map_err(failed)?;
        let unreadable = |error: io::Error| match error.kind() {
            io::ErrorKind::InvalidData => AuditError::Unreadable { path: path.to_owned(), error },
            _ => AuditError::Open { path: path.to_owned(), error },
        };
        let end = recover::end(&mut file).map_err(unreadable)?;
        let head =
            head::read(path).map_err(|error| AuditError::Head { path: beside(path, "head"), error })?;
        let known = match &end {
            Some(end) => Some(end.last),
            None => recover::end_of_aside(path).map_err(unreadable)?,
        };
        let known = known.unwrap_or(Position::START);
        let (last, missing) = match head {
            Some(head) if head.seq > known.seq => (head, head.seq - known.seq),
            _ => (known, 0),
        };
        let first = first_record(path).map_err(failed)?;
        let mut length = file.metadata().map_err(failed)?.len();
        let torn = match &end {
            Some(end) => end.torn,
            None => length,
        };
        // What was torn stays, on a line of its own.
        if length > 0 && end.as_ref().is_none_or(|end| end.is_open) {
            file.write_all(b"\n").map_err(failed)?;
            length += 1;
        }
        let settings = settings.clone();
        let output = FileOutput {
            settings,
            file,
            length,
            is_torn: false,
            first,
            last,
            is_head_old: false,
            is_stuck: false,
            _lock: lock,
        };
        Ok((output, Found { last, torn, missing }))
    }

    fn path(&self) -> &Path {
        &self.settings.path
    }

    /// Appends, or leaves everything as it was.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_torn {
            self.file.set_len(self.length)?;
            self.is_torn = false;
        }
        if let Err(error) = self.file.write_all(bytes) {
            self.is_torn = true;
            return Err(error);
        }
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Puts the file aside and begins another. At no time is there a record that is in neither.
    fn rotate(&mut self) -> io::Result<()> {
        let to = aside(self.path(), self.first);
        if to.exists() {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                format!("{} is there already", to.display()),
            ));
        }
        self.settle()?;
        let new = beside(self.path(), "new");
        drop(head::create(&new)?);
        let file = open(&new)?;
        std::fs::rename(self.path(), &to)?;
        std::fs::rename(&new, self.path())?;
        self.begin(file);
        let mut old = put_aside(self.path())?;
        let many = old.len().saturating_sub(self.settings.keep);
        old.drain(..many).try_for_each(|(_, path)| std::fs::remove_file(path))
    }

    fn begin(&mut self, file: File) {
        (self.file, self.length, self.first, self.is_torn) = (file, 0, 0, false);
    }

    /// What was written stays written, and the head says so.
    fn settle(&mut self) -> io::Result<()> {
        if self.is_head_old {
            self.file.sync_data()?;
            head::write(self.path(), self.last)?;
            self.is_head_old = false;
        }
        Ok(())
    }
}

impl Output for FileOutput {
    fn deliver(&mut self, batch: &Batch, done: &mut usize) -> io::Result<()> {
        let size = batch.bytes.len() as u64;
        if self.first > 0 && self.length + size > self.settings.max_size {
            match self.rotate() {
                Ok(()) => self.is_stuck = false,
                Err(error) if !std::mem::replace(&mut self.is_stuck, true) => {
                    let path = self.path().display();
                    tracing::warn!(
                        "The audit trail {path} cannot be put aside as it should, and may grow: {error}"
                    );
                }
                Err(_) => {}
            }
        }
        // A file that begins says what it follows, also after a torn line.
        match self.first {
            0 => {
                let before = Position { seq: batch.first - 1, hash: batch.previous };
                self.append(&[head::opening(before).as_bytes(), &batch.bytes].concat())?;
                self.first = batch.first;
            }
            _ => self.append(&batch.bytes)?,
        }
        (self.last, self.is_head_old) = (batch.last, true);
        *done = batch.records.len();
        Ok(())
    }

    fn tick(&mut self) {
        // Somebody may have moved or removed it.
        if !is_in_place(&self.file, self.path()) {
            let path = self.path().display();
            tracing::warn!(
                "The audit trail {path} was moved or removed while it was written; beginning another"
            );
            match open(self.path()) {
                Ok(file) => self.begin(file),
                Err(error) => tracing::warn!("The audit trail cannot be begun anew: {error}"),
            }
        }
        if let Err(error) = self.settle() {
            tracing::debug!(%error, "the head of the audit trail cannot be written");
        }
    }

    fn close(&mut self) {
        self.tick();
    }
}

/// The number of the first record of a file; 0 if it does not say.
fn first_record(path: &Path) -> io::Result<u64> {
    use std::io::BufRead;
    let mut line = Vec::new();
    let file = io::BufReader::new(File::open(path)?);
    io::Read::take(file, 1024).read_until(b'\n', &mut line)?;
    let line = line.strip_suffix(b"\n").unwrap_or(&line);
    Ok(head::read_opening(line).map_or(0, |before| before.seq + 1))
}

/// A path for people.
pub(crate) fn shown(path: &Path) -> String {
    PathBuf::from(path).display().to_string()
}

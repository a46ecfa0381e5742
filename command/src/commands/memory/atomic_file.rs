//! [`AtomicFile`]: a file that is there as a whole or not at all.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use crate::commands::failure::Failure;

/// A file that is being written: beside the one that it takes the place of when all of it is there.
pub(super) struct AtomicFile<'a> {
    file: &'a Path,
    /// Where it is written to.
    pub(super) to: PathBuf,
}

impl<'a> AtomicFile<'a> {
    pub(super) fn new(file: &'a Path) -> Result<AtomicFile<'a>, Failure> {
        let name = file.file_name().ok_or_else(|| Failure::usage("FILE must have a file name"))?;
        let to = match file.metadata() {
            Ok(there) if there.is_dir() => {
                return Err(Failure::usage(format!("{} is a directory: add a file name", file.display())));
            }
            // A device or a pipe stays what it is.
            Ok(there) if !there.is_file() => file.to_owned(),
            _ => {
                let mut name = name.to_owned();
                // Two who write to the same file do not write into each other's.
                name.push(format!(".{}.part", std::process::id()));
                file.with_file_name(name)
            }
        };
        Ok(AtomicFile { file, to })
    }

    fn cannot(&self, error: &std::io::Error) -> Failure {
        Failure::usage(format!("cannot write {}: {error}", self.file.display()))
    }

    /// Opens it, for nobody else to read: a memory is as private as a diary.
    pub(super) fn open(&self) -> Result<File, Failure> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&self.to).map_err(|error| self.cannot(&error))
    }

    pub(super) fn finish(&self) -> Result<(), Failure> {
        match self.to == self.file {
            true => Ok(()),
            false => std::fs::rename(&self.to, self.file).map_err(|error| self.cannot(&error)),
        }
    }
}

impl Drop for AtomicFile<'_> {
    fn drop(&mut self) {
        // What is finished is not there any more.
        if self.to != self.file {
            let _ = std::fs::remove_file(&self.to);
        }
    }
}

/// Refuses to write over the memory itself, or over what SQLite keeps beside it.
pub(super) fn not_the_memory(file: &Path, memory: &Path) -> Result<(), Failure> {
    // The file itself may not be there yet; its folder is.
    let whole = |path: &Path| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let place = || Some(folder.canonicalize().ok()?.join(path.file_name()?));
        path.canonicalize().ok().or_else(place)
    };
    let ours = ["", "-wal", "-shm", "-journal"].iter().any(|ending| {
        let mut name = memory.as_os_str().to_owned();
        name.push(ending);
        whole(file).is_some_and(|file| whole(Path::new(&name)) == Some(file))
    });
    match ours {
        true => Err(Failure::usage(format!(
            "{} is part of the memory itself: choose another file",
            file.display()
        ))),
        false => Ok(()),
    }
}

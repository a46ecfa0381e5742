//! One process writes a trail. The lock ends with the process that holds it, however it ends.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Takes the lock at `path`; `None` if another process has it. It is held as long as the file is open.
#[cfg(unix)]
pub(super) fn acquire(path: &Path) -> io::Result<Option<File>> {
    use std::os::unix::fs::OpenOptionsExt;

    use rustix::fs::{FlockOperation, flock};

    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A file that is open for nobody else is a lock.
#[cfg(windows)]
pub(super) fn acquire(path: &Path) -> io::Result<Option<File>> {
    use std::os::windows::fs::OpenOptionsExt;

    const SHARING_VIOLATION: i32 = 32;
    match OpenOptions::new().write(true).create(true).truncate(false).share_mode(0).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.raw_os_error() == Some(SHARING_VIOLATION) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(not(any(unix, windows)))]
pub(super) fn acquire(path: &Path) -> io::Result<Option<File>> {
    OpenOptions::new().write(true).create(true).truncate(false).open(path).map(Some)
}

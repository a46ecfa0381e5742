//! Standard output as a place for records: one line each. A reader that does not read is waited for, by nobody but this.

use std::fs::File;
use std::io::{self, Write};

use crate::backlog::Output;
use crate::batch::Batch;

/// Writes records to standard output.
#[derive(Debug)]
pub(crate) struct StdoutOutput {
    file: File,
    /// How many bytes of a batch were written when it failed: a line is not begun twice.
    written: usize,
}

impl StdoutOutput {
    /// On a handle of its own, so that nobody else who prints has to wait for it.
    pub(crate) fn open() -> io::Result<StdoutOutput> {
        #[cfg(unix)]
        let handle = std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned()?;
        #[cfg(windows)]
        let handle = std::os::windows::io::AsHandle::as_handle(&io::stdout()).try_clone_to_owned()?;
        Ok(StdoutOutput::to(File::from(handle)))
    }

    pub(crate) fn to(file: File) -> StdoutOutput {
        StdoutOutput { file, written: 0 }
    }
}

impl Output for StdoutOutput {
    fn deliver(&mut self, batch: &Batch, done: &mut usize) -> io::Result<()> {
        while self.written < batch.bytes.len() {
            match self.file.write(&batch.bytes[self.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.written = 0;
        *done = batch.records.len();
        Ok(())
    }
}

//! The child's standard input, as two ends of the same pipe: one that writes now or not at all, one that waits.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::process::ChildStdin;

#[cfg(not(unix))]
pub(super) use other::{Direct, Patient, open};
#[cfg(unix)]
pub(super) use unix::{Direct, Patient, open};

#[cfg(unix)]
mod unix {
    use std::sync::Arc;

    use tokio::net::unix::pipe::Sender;

    use super::*;

    /// Writes at once as much as the pipe takes, so that a lone message needs no other task.
    pub(in super::super) struct Direct(Arc<Sender>);
    /// Writes everything and waits for it.
    pub(in super::super) struct Patient(Arc<Sender>);

    pub(in super::super) fn open(stdin: ChildStdin) -> io::Result<(Direct, Patient)> {
        let sender = Arc::new(Sender::from_owned_fd(stdin.into_owned_fd()?)?);
        Ok((Direct(sender.clone()), Patient(sender)))
    }

    impl Direct {
        /// Writes as much of the message and its line end as goes without waiting.
        pub(in super::super) fn write_line(&self, message: &[u8]) -> io::Result<usize> {
            let line = [io::IoSlice::new(message), io::IoSlice::new(b"\n")];
            match self.0.try_write_vectored(&line) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(0),
                written => written,
            }
        }

        /// How many of the bytes that were written nobody has read, once nobody can: every end to read from is closed.
        #[cfg(target_os = "linux")]
        pub(in super::super) fn unread(&self) -> Option<u64> {
            use rustix::event::{PollFd, PollFlags, Timespec, poll};
            let mut polled = [PollFd::new(&*self.0, PollFlags::empty())];
            poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).ok()?;
            // A pipe says so to who writes when the last reader has gone (pipe(7), poll(2)).
            let nobody_reads = polled[0].revents().contains(PollFlags::ERR);
            nobody_reads.then(|| rustix::io::ioctl_fionread(&*self.0).ok()).flatten()
        }

        /// Elsewhere the writing end does not tell.
        #[cfg(not(target_os = "linux"))]
        pub(in super::super) fn unread(&self) -> Option<u64> {
            None
        }
    }

    impl Patient {
        pub(in super::super) async fn write_all(
            &mut self,
            mut bytes: &[u8],
            count: &AtomicU64,
        ) -> io::Result<()> {
            while !bytes.is_empty() {
                match self.0.try_write(bytes) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(written) => {
                        count.fetch_add(written as u64, Ordering::Relaxed);
                        bytes = &bytes[written..];
                    }
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => self.0.writable().await?,
                    Err(e) => return Err(e),
                }
            }
            Ok(())
        }
    }
}

#[cfg(not(unix))]
mod other {
    use tokio::io::AsyncWriteExt;

    use super::*;

    /// There is no writing without waiting here.
    pub(in super::super) struct Direct;
    /// Writes everything and waits for it.
    pub(in super::super) struct Patient(ChildStdin);

    pub(in super::super) fn open(stdin: ChildStdin) -> io::Result<(Direct, Patient)> {
        Ok((Direct, Patient(stdin)))
    }

    impl Direct {
        pub(in super::super) fn write_line(&self, _: &[u8]) -> io::Result<usize> {
            Ok(0)
        }

        pub(in super::super) fn unread(&self) -> Option<u64> {
            None
        }
    }

    impl Patient {
        pub(in super::super) async fn write_all(
            &mut self,
            bytes: &[u8],
            count: &AtomicU64,
        ) -> io::Result<()> {
            count.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            self.0.write_all(bytes).await?;
            self.0.flush().await
        }
    }
}

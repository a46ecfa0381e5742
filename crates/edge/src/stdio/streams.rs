//! The process's standard streams, without a thread between them and the runtime where that is possible.
//!
//! Clients connect a server's standard streams to pipes or sockets, which the runtime can poll directly. Anything
//! else (a terminal, a file) goes through a thread of its own, which unlike the runtime's own stdin does not keep the
//! process from ending.

use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

/// The input.
pub(super) type Input = Pin<Box<dyn AsyncRead + Send>>;
/// The output.
pub(super) type Out = Pin<Box<dyn AsyncWrite + Send>>;

pub(super) fn standard() -> (Input, Out) {
    #[cfg(unix)]
    {
        (
            unix::input().unwrap_or_else(threaded_input),
            unix::output().unwrap_or_else(|| Box::pin(tokio::io::stdout())),
        )
    }
    #[cfg(not(unix))]
    {
        (threaded_input(), Box::pin(tokio::io::stdout()))
    }
}

/// Reads on a thread and passes the bytes on.
fn threaded_input() -> Input {
    use std::io::Read;
    let (sender, receiver) = tokio::sync::mpsc::channel::<std::io::Result<bytes::Bytes>>(4);
    let reading = std::thread::Builder::new().name("stdin".to_owned()).spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut chunk = vec![0u8; 64 * 1024];
        loop {
            let read = match stdin.read(&mut chunk) {
                Ok(0) => return,
                Ok(n) => Ok(bytes::Bytes::copy_from_slice(&chunk[..n])),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(e) => Err(e),
            };
            let failed = read.is_err();
            if sender.blocking_send(read).is_err() || failed {
                return;
            }
        }
    });
    if let Err(e) = reading {
        tracing::error!(error = %e, "cannot start the thread that reads the input");
    }
    let chunks = futures_util::stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|chunk| (chunk, receiver))
    });
    Box::pin(tokio_util::io::StreamReader::new(Box::pin(chunks)))
}

#[cfg(unix)]
mod unix {
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::fs::FileTypeExt;
    use std::os::unix::net::UnixStream;

    use tokio::net::unix::pipe;

    use super::{Input, Out};

    enum Kind {
        Pipe(std::fs::File),
        Socket(UnixStream),
    }

    /// What a standard stream is connected to, if it can be polled.
    fn kind(stream: &impl AsFd) -> Option<Kind> {
        let fd: OwnedFd = stream.as_fd().try_clone_to_owned().ok()?;
        let file = std::fs::File::from(fd);
        let kind = file.metadata().ok()?.file_type();
        if kind.is_fifo() {
            Some(Kind::Pipe(file))
        } else if kind.is_socket() {
            Some(Kind::Socket(UnixStream::from(OwnedFd::from(file))))
        } else {
            None
        }
    }

    fn socket(stream: UnixStream) -> Option<tokio::net::UnixStream> {
        stream.set_nonblocking(true).ok()?;
        tokio::net::UnixStream::from_std(stream).ok()
    }

    pub(super) fn input() -> Option<Input> {
        Some(match kind(&std::io::stdin())? {
            Kind::Pipe(file) => Box::pin(pipe::Receiver::from_file(file).ok()?),
            Kind::Socket(stream) => Box::pin(socket(stream)?),
        })
    }

    pub(super) fn output() -> Option<Out> {
        Some(match kind(&std::io::stdout())? {
            Kind::Pipe(file) => Box::pin(pipe::Sender::from_file(file).ok()?),
            Kind::Socket(stream) => Box::pin(socket(stream)?),
        })
    }
}

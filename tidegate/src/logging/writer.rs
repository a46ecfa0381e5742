//! [`LogWriter`]: where log lines go. Most are written at once; those about calls, one for each, are gathered for a moment and written by a
//! thread, so that no call waits for whoever reads them. Their order stays: a line that is written at once takes with it what was gathered.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// For how long lines are gathered.
const GATHER: Duration = Duration::from_millis(20);
/// How many bytes may wait. Lines beyond are left out, and counted.
const MOST: usize = 1 << 20;
/// A buffer that was larger than this is given back.
const KEPT: usize = 64 << 10;

/// Where log lines go. Clones are handles on the same.
#[derive(Clone)]
pub(super) struct LogWriter(Arc<Shared>);

struct Shared {
    gathered: Mutex<Gathered>,
    wake: Condvar,
    /// Whoever holds this writes. It is taken before the lines are, so that these keep their order.
    output: Mutex<Output>,
}

#[derive(Default)]
struct Gathered {
    lines: Vec<u8>,
    left_out: u64,
    /// Whether the thread knows that there is something.
    is_known: bool,
}

struct Output {
    to: Box<dyn Write + Send>,
    /// What is being written: kept, so that lines that come next need no room of their own.
    lines: Vec<u8>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LogWriter {
    pub(super) fn new(to: impl Write + Send + 'static) -> LogWriter {
        let output = Output { to: Box::new(to), lines: Vec::new() };
        LogWriter(Arc::new(Shared {
            gathered: Mutex::default(),
            wake: Condvar::new(),
            output: Mutex::new(output),
        }))
    }

    /// Starts the thread that writes what was gathered.
    pub(super) fn start(&self) -> io::Result<()> {
        let writer = self.clone();
        let work = move || {
            loop {
                writer.wait();
                thread::sleep(GATHER);
                writer.flush();
            }
        };
        thread::Builder::new().name("log".to_owned()).spawn(work).map(drop)
    }

    /// Gathers a line, which is given in pieces. It waits for nothing but others who do the same.
    pub(super) fn gather(&self, pieces: &[&str]) {
        let length: usize = pieces.iter().map(|piece| piece.len()).sum();
        let mut gathered = lock(&self.0.gathered);
        if gathered.lines.len() + length > MOST {
            gathered.left_out += 1;
        } else {
            gathered.lines.reserve(length);
            pieces.iter().for_each(|piece| gathered.lines.extend_from_slice(piece.as_bytes()));
        }
        if !gathered.is_known {
            gathered.is_known = true;
            drop(gathered);
            self.0.wake.notify_one();
        }
    }

    /// Writes what was gathered.
    pub(super) fn flush(&self) {
        let _ = self.write_now(&mut lock(&self.0.output), b"");
    }

    /// The same, unless somebody is writing.
    pub(super) fn try_flush(&self) {
        if let Ok(mut output) = self.0.output.try_lock() {
            let _ = self.write_now(&mut output, b"");
        }
    }

    /// Waits until something was gathered.
    fn wait(&self) {
        let is_idle = |gathered: &mut Gathered| {
            gathered.is_known = !gathered.lines.is_empty() || gathered.left_out > 0;
            !gathered.is_known
        };
        let waited = self.0.wake.wait_while(lock(&self.0.gathered), is_idle);
        drop(waited);
    }

    /// Writes what was gathered, and then this.
    fn write_now(&self, output: &mut Output, more: &[u8]) -> io::Result<()> {
        let Output { to, lines } = output;
        lines.clear();
        if lines.capacity() > KEPT {
            *lines = Vec::new();
        }
        let mut gathered = lock(&self.0.gathered);
        std::mem::swap(&mut gathered.lines, lines);
        let left_out = std::mem::take(&mut gathered.left_out);
        drop(gathered);
        if left_out > 0 {
            let note = format!("{left_out} lines about calls were left out, because too many were waiting\n");
            lines.extend_from_slice(note.as_bytes());
        }
        match lines.is_empty() {
            true => to.write_all(more)?,
            false => {
                lines.extend_from_slice(more);
                to.write_all(lines)?;
            }
        }
        to.flush()
    }
}

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.write_now(&mut lock(&self.0.output), line).map(|()| line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = LogWriter;

    fn make_writer(&'a self) -> LogWriter {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Tells what is written, and writes it when it may.
    struct Watched(Sender<String>, Receiver<()>);

    impl Write for Watched {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(String::from_utf8_lossy(bytes).into_owned()).unwrap();
            self.1.recv().map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_keep_their_order() {
        let (told, tells) = channel();
        let (allow, allowed) = channel();
        let mut writer = LogWriter::new(Watched(told, allowed));
        writer.gather(&["a", "b\n"]);
        writer.gather(&["c\n"]);
        allow.send(()).unwrap();
        writer.write_all(b"d\n").unwrap();
        assert_eq!(tells.try_recv().unwrap(), "ab\nc\nd\n");
        writer.flush();
        assert!(tells.try_recv().is_err(), "there is nothing");
    }

    #[test]
    fn nobody_waits_for_a_reader_who_does_not_read() {
        let (told, tells) = channel();
        let (allow, allowed) = channel();
        let writer = LogWriter::new(Watched(told, allowed));
        writer.start().unwrap();
        writer.gather(&["first\n"]);
        assert_eq!(tells.recv().unwrap(), "first\n");
        // It is being written, and that does not end.
        let line = "x".repeat(1023) + "\n";
        for _ in 0..MOST / 1024 + 7 {
            writer.gather(&[&line]);
        }
        writer.try_flush();
        allow.send(()).unwrap();
        let rest = tells.recv().unwrap();
        assert_eq!(rest.lines().filter(|line| line.starts_with('x')).count(), MOST / 1024);
        assert!(rest.ends_with("\n7 lines about calls were left out, because too many were waiting\n"));
        allow.send(()).unwrap();
    }
}

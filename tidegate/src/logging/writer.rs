//! [`LogWriter`]: where log lines go. A thread writes them, so that nobody waits for a reader who does not read. Lines about calls, one for
//! each, are gathered for a moment; whoever writes another line waits until it is written, but not for long, and not again as long as
//! nothing gets through. All of them keep their order.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tracing::Level;

/// For how long lines are gathered.
const GATHER: Duration = Duration::from_millis(20);
/// For how long somebody waits for a line to be written.
const PATIENCE: Duration = Duration::from_millis(250);
/// How many bytes may wait. Lines beyond are left out, and counted.
const MOST: usize = 1 << 20;
/// The same for lines that are not about calls: these are seldom, and worth more.
const MOST_OTHERS: usize = 2 * MOST;
/// A buffer that was larger than this is given back.
const KEPT: usize = 64 << 10;

/// Where log lines go. Clones are handles on the same.
#[derive(Clone)]
pub(super) struct LogWriter(Arc<Shared>);

struct Shared {
    gathered: Mutex<Gathered>,
    /// Wakes the thread.
    wake: Condvar,
    /// Wakes those who wait for their lines.
    written: Condvar,
    /// Whoever holds this writes.
    output: Mutex<Output>,
    /// Makes a line of something that is to be said about lines.
    note: Note,
}

/// Makes a line of something that no event says.
pub(super) type Note = Box<dyn Fn(Level, &str) -> String + Send + Sync>;

#[derive(Default)]
struct Gathered {
    lines: Vec<u8>,
    left_out: u64,
    /// How many bytes were ever gathered, and written.
    in_all: u64,
    done: u64,
    /// Whether a thread writes.
    has_thread: bool,
    /// Whether it knows that there is something.
    is_known: bool,
    /// Whether somebody waits for it.
    is_urgent: bool,
    /// Whether somebody has waited in vain.
    is_stuck: bool,
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
    pub(super) fn new(to: impl Write + Send + 'static, note: Note) -> LogWriter {
        let output = Output { to: Box::new(to), lines: Vec::new() };
        LogWriter(Arc::new(Shared {
            gathered: Mutex::default(),
            wake: Condvar::new(),
            written: Condvar::new(),
            output: Mutex::new(output),
            note,
        }))
    }

    /// Starts the thread that writes what was gathered. Without it, lines are written where they come from.
    pub(super) fn start(&self) -> io::Result<()> {
        let writer = self.clone();
        let work = move || {
            loop {
                writer.wait();
                writer.write_gathered();
            }
        };
        thread::Builder::new().name("log".to_owned()).spawn(work)?;
        lock(&self.0.gathered).has_thread = true;
        Ok(())
    }

    /// Gathers a line about a call, which is given in pieces. It waits for nothing but others who do the same.
    pub(super) fn gather(&self, pieces: &[&str]) {
        self.add(pieces, MOST);
    }

    /// Gathers a line that is not about a call.
    pub(super) fn leave(&self, line: &str) {
        self.add(&[line], MOST_OTHERS);
    }

    fn add(&self, pieces: &[&str], most: usize) {
        let mut gathered = lock(&self.0.gathered);
        gathered.add(pieces.iter().map(|piece| piece.as_bytes()), most);
        if !gathered.is_known {
            gathered.is_known = true;
            drop(gathered);
            self.0.wake.notify_one();
        }
    }

    /// Writes a line that is not about a call, and waits for it for a moment.
    pub(super) fn say(&self, line: &str) {
        let mut gathered = lock(&self.0.gathered);
        gathered.add(std::iter::once(line.as_bytes()), MOST_OTHERS);
        match (gathered.has_thread, gathered.is_stuck) {
            (false, _) => {
                drop(gathered);
                self.write_gathered();
            }
            (true, true) => {}
            (true, false) => {
                let all = gathered.in_all;
                let mut gathered = self.wait_for(gathered, PATIENCE);
                gathered.is_stuck = gathered.done < all;
            }
        }
    }

    /// Has everything written, but waits no longer than this.
    pub(super) fn flush(&self, patience: Duration) {
        let gathered = lock(&self.0.gathered);
        if gathered.has_thread {
            drop(self.wait_for(gathered, patience));
        } else {
            drop(gathered);
            self.write_gathered();
        }
    }

    /// Waits until everything that was gathered so far is written.
    fn wait_for<'a>(
        &'a self,
        mut gathered: MutexGuard<'a, Gathered>,
        patience: Duration,
    ) -> MutexGuard<'a, Gathered> {
        let all = gathered.in_all;
        (gathered.is_known, gathered.is_urgent) = (true, true);
        self.0.wake.notify_one();
        let waited = self.0.written.wait_timeout_while(gathered, patience, |gathered| gathered.done < all);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits until there is something to write, and a moment longer, unless somebody waits for it.
    fn wait(&self) {
        let is_idle = |gathered: &mut Gathered| {
            gathered.is_known = !gathered.lines.is_empty() || gathered.left_out > 0;
            !gathered.is_known
        };
        let gathered = self.0.wake.wait_while(lock(&self.0.gathered), is_idle);
        let gathered = gathered.unwrap_or_else(PoisonError::into_inner);
        drop(self.0.wake.wait_timeout_while(gathered, GATHER, |gathered| !gathered.is_urgent));
    }

    /// Writes what was gathered.
    fn write_gathered(&self) {
        let mut output = lock(&self.0.output);
        let Output { to, lines } = &mut *output;
        lines.clear();
        if lines.capacity() > KEPT {
            *lines = Vec::new();
        }
        let mut gathered = lock(&self.0.gathered);
        std::mem::swap(&mut gathered.lines, lines);
        gathered.is_urgent = false;
        let (all, left_out) = (gathered.in_all, std::mem::take(&mut gathered.left_out));
        drop(gathered);
        if left_out > 0 {
            let note = format!("{left_out} lines were left out, because too many were waiting");
            lines.extend_from_slice((self.0.note)(Level::WARN, &note).as_bytes());
        }
        // A line that cannot be written is lost. Saying so on the same stream would not help.
        let _ = to.write_all(lines).and_then(|()| to.flush());
        let mut gathered = lock(&self.0.gathered);
        (gathered.done, gathered.is_stuck) = (all, false);
        drop(gathered);
        self.0.written.notify_all();
    }
}

impl Gathered {
    /// Adds a line, if there is room for it.
    fn add<'a>(&mut self, pieces: impl Iterator<Item = &'a [u8]> + Clone, most: usize) {
        let length: usize = pieces.clone().map(<[u8]>::len).sum();
        if self.lines.len() + length > most {
            self.left_out += 1;
            return;
        }
        self.lines.reserve(length);
        pieces.for_each(|piece| self.lines.extend_from_slice(piece));
        self.in_all += length as u64;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    fn note() -> Note {
        Box::new(|level, message| format!("{level} {message}\n"))
    }

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
        for has_thread in [false, true] {
            let (told, tells) = channel();
            let (allow, allowed) = channel();
            let writer = LogWriter::new(Watched(told, allowed), note());
            (0..10).for_each(|_| allow.send(()).unwrap());
            if has_thread {
                writer.start().unwrap();
            }
            writer.gather(&["a", "b\n"]);
            writer.gather(&["c\n"]);
            writer.say("d\n");
            let written: String = tells.try_iter().collect();
            assert_eq!(written, "ab\nc\nd\n", "it is there when it was written");
            writer.gather(&["e\n"]);
            writer.flush(Duration::from_secs(30));
            assert_eq!(tells.try_iter().collect::<String>(), "e\n");
        }
    }

    #[test]
    fn nobody_waits_for_a_reader_who_does_not_read() {
        let (told, tells) = channel();
        let (allow, allowed) = channel();
        let writer = LogWriter::new(Watched(told, allowed), note());
        writer.start().unwrap();
        writer.gather(&["first\n"]);
        assert_eq!(tells.recv().unwrap(), "first\n");
        // It is being written, and that does not end.
        let line = "x".repeat(1023) + "\n";
        for _ in 0..MOST / 1024 + 7 {
            writer.gather(&[&line]);
        }
        for _ in 0..1000 {
            writer.say("a warning\n");
        }
        writer.flush(Duration::from_millis(1));
        allow.send(()).unwrap();
        let rest = tells.recv().unwrap();
        assert_eq!(rest.lines().filter(|line| line.starts_with('x')).count(), MOST / 1024);
        assert_eq!(rest.lines().filter(|line| *line == "a warning").count(), 1000);
        assert!(rest.ends_with("\nWARN 7 lines were left out, because too many were waiting\n"));
        allow.send(()).unwrap();
        // And when somebody reads again, everything is as before.
        allow.send(()).unwrap();
        writer.say("last\n");
        assert_eq!(tells.recv().unwrap(), "last\n");
    }
}

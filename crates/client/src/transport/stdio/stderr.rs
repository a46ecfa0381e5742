//! What the child says on standard error: its log, and often the reason why it ends.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use tidegate_protocol::lines::{Line, Lines};
use tokio::io::AsyncReadExt;
use tokio::process::ChildStderr;

use super::excerpt::excerpt_of;
use super::last_words::LastWords;
use super::printed::Printed;

/// The longest line that is read whole.
const LONGEST: usize = 4 * 1024;
/// How many characters of a line go to the log.
const LOGGED: usize = 1000;

/// The log of one server's programs. Clones are handles on the same.
#[derive(Clone)]
pub(crate) struct StderrLog(Arc<Log>);

struct Log {
    server: Arc<str>,
    printed: Mutex<Printed>,
}

impl StderrLog {
    pub(crate) fn new(server: Arc<str>) -> StderrLog {
        StderrLog(Arc::new(Log { server, printed: Mutex::default() }))
    }

    /// Takes a line that a program wrote, or that is about it.
    pub(super) fn line(&self, line: &[u8]) {
        let now = Instant::now();
        let line = self.0.printed().line(excerpt_of(line, LOGGED), now);
        line.iter().for_each(|line| self.0.log(line));
    }

    /// Tells what is due by now.
    fn tell(&self) {
        let told = self.0.printed().tell(Instant::now());
        told.iter().for_each(|line| self.0.log(line));
    }

    /// Waits until something is to be told.
    async fn due(&self) {
        let due = self.0.printed().due();
        match due {
            Some(due) => tokio::time::sleep_until(due.into()).await,
            None => std::future::pending().await,
        }
    }
}

impl Log {
    fn printed(&self) -> MutexGuard<'_, Printed> {
        self.printed.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn log(&self, line: &str) {
        tracing::info!(target: "tidegate::child", server = &*self.server, "{line}");
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let rest = self.printed().rest();
        rest.iter().for_each(|line| self.log(line));
    }
}

/// Reads to the end, whatever comes: a full pipe would stop the child.
pub(super) async fn read(
    log: StderrLog,
    mut stderr: ChildStderr,
    last: LastWords,
    also: Option<super::OnStderr>,
) {
    let take = |line: Line| {
        let (Line::Text(text) | Line::TooLong { head: text, .. }) = line;
        log.line(&text);
        if let Some(also) = &also {
            also(&String::from_utf8_lossy(&text));
        }
        last.push(&text);
    };
    let mut lines = Lines::new(LONGEST);
    loop {
        let read = tokio::select! {
            read = stderr.read_buf(lines.room()) => read,
            () = log.due() => {
                log.tell();
                continue;
            }
        };
        match read {
            Ok(0) => break,
            Ok(_) => {}
            Err(e) => {
                tracing::debug!(server = &*log.0.server, error = %e, "cannot read standard error");
                break;
            }
        }
        while let Some(line) = lines.next() {
            take(line);
        }
        log.tell();
    }
    lines.last().into_iter().for_each(take);
    log.tell();
}

//! The keeper: one task that owns the process from its start to the end of its group.

use std::future::Future;
use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tidegate_protocol::{Error, Symbol};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::input::Input;
use super::last_words::LastWords;
use super::process::Process;
use super::stderr::StderrLog;
use crate::counted::Counted;
use crate::transport::inbox::Inbox;

/// How long streams and process may differ about the end. What a process wrote before it ended is in the pipes by then,
/// and one that ends closes its streams a moment before; but somebody else may hold them open.
const SETTLE: Duration = Duration::from_millis(250);

/// Everything that belongs to a child. Dropped half-way (with the runtime), it leaves nothing behind: first the process
/// is killed, then the tasks are stopped, then those who wait are told.
pub(super) struct Keeper {
    pub(super) process: Process,
    /// That the process is there.
    pub(super) _counted: Counted,
    pub(super) input: Input,
    pub(super) writer: Task,
    pub(super) output: Task,
    pub(super) errors: Task,
    pub(super) last_words: LastWords,
    pub(super) grace: Duration,
    /// Cancelled when the child is to be ended.
    pub(super) asked: CancellationToken,
    pub(super) ending: Ending,
}

/// What ended a child.
enum End {
    Asked,
    Exited(io::Result<ExitStatus>),
    OutputClosed,
    InputClosed,
}

impl Keeper {
    /// Waits for the end, whatever brings it, and sees to it that it is one.
    pub(super) async fn keep(mut self) {
        let end = self.first_end().await;
        self.input.close(|| self.ending.why(&end, &self.last_words));
        if matches!(end, End::OutputClosed) {
            // Nothing more can come, however long the process takes to end.
            self.ending.tell(&end, &self.last_words);
        }
        if !matches!(end, End::Exited(_)) {
            // The end of its input is how a server is asked to end.
            if timeout(self.grace, self.process.exited()).await.is_err() {
                self.writer.stop().await;
                self.process.end_leader(self.grace).await;
            }
        }
        let rest = async {
            let read = async { tokio::join!(self.output.done(), self.errors.done()) };
            let _ = timeout(SETTLE, read).await;
            self.output.stop().await;
            self.ending.tell(&end, &self.last_words);
        };
        tokio::join!(self.process.end_group(self.grace), rest);
        tracing::debug!(server = &*self.ending.name, id = self.process.id(), "the server process is gone");
    }

    async fn first_end(&mut self) -> End {
        let end = tokio::select! {
            biased;
            () = self.asked.cancelled() => return End::Asked,
            status = self.process.exited() => return End::Exited(status),
            () = self.output.done() => End::OutputClosed,
            () = self.input.broken() => End::InputClosed,
        };
        // Usually the process is about to end, and how it does says more.
        match timeout(SETTLE, self.process.exited()).await {
            Ok(status) => End::Exited(status),
            Err(_) => end,
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.input.close(|| closed(&self.ending.name));
    }
}

/// Tells the inbox, exactly once, and then those who wait for the end.
pub(super) struct Ending {
    name: Arc<str>,
    log: StderrLog,
    input: Input,
    inbox: Option<Arc<dyn Inbox>>,
    done: CancellationToken,
}

impl Ending {
    pub(super) fn new(
        name: Arc<str>,
        log: StderrLog,
        input: Input,
        inbox: Arc<dyn Inbox>,
        done: CancellationToken,
    ) -> Ending {
        Ending { name, log, input, inbox: Some(inbox), done }
    }

    fn tell(&mut self, end: &End, last_words: &LastWords) {
        if let Some(inbox) = self.inbox.take() {
            let why = self.why(end, last_words);
            if !matches!(end, End::Asked) {
                self.log.line(why.detail().as_bytes());
            }
            inbox.closed(why, self.input.unread());
        }
    }

    fn why(&self, end: &End, last_words: &LastWords) -> Error {
        let name = &self.name;
        let mut what = match end {
            End::Asked => return closed(name),
            End::Exited(Ok(status)) => format!("the server process {name:?} {}", outcome(*status)),
            End::Exited(Err(e)) => format!("the server process {name:?} is gone ({e})"),
            End::OutputClosed => format!("the server process {name:?} closed its output while still running"),
            End::InputClosed => format!("the server process {name:?} closed its input while still running"),
        };
        if let Some(line) = last_words.reason() {
            what = format!("{what}; it wrote: {line}");
        }
        Error::new(Symbol::Unavailable, format!("The server {name:?} has ended")).with_detail(what)
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(inbox) = self.inbox.take() {
            inbox.closed(closed(&self.name), None);
        }
        self.done.cancel();
    }
}

/// Why nothing comes from a child that was ended from here.
pub(super) fn closed(name: &str) -> Error {
    Error::new(Symbol::Unavailable, format!("the connection to the server process {name:?} was closed"))
}

fn outcome(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("exited with status {code}"),
        // "signal: 9 (SIGKILL)"
        None => format!("was killed by {}", status.to_string().replacen(": ", " ", 1)),
    }
}

/// A task that ends with its owner.
pub(super) struct Task(JoinHandle<()>);

impl Task {
    pub(super) fn spawn(run: impl Future<Output = ()> + Send + 'static) -> Task {
        Task(tokio::spawn(run))
    }

    /// Waits for its end. May be called again.
    async fn done(&mut self) {
        if !self.0.is_finished()
            && let Err(e) = (&mut self.0).await
            && e.is_panic()
        {
            tracing::error!(error = %e, "an internal task of a server process failed");
        }
    }

    /// Ends it where it waits.
    async fn stop(&mut self) {
        self.0.abort();
        self.done().await;
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

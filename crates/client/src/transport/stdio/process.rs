//! The process and everything it has started: told to end, waited for, and never left behind.
//!
//! A child leads a [`group`](super::group) of its own, because what is started is often only a launcher (`npx`, `uvx`, a
//! shell) with the server behind it.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::time::Instant;

use super::group::{Ask, Group};

/// A process with its group. Dropped while something of it still lives, it is killed on the spot.
pub(super) struct Process {
    leader: tokio::process::Child,
    id: Option<u32>,
    group: Group,
    /// Until when the processes may end by themselves, once they have been told to.
    patience: Option<Instant>,
    /// Nothing is left of the group. From then on its number may belong to somebody else.
    gone: bool,
}

impl Process {
    /// Starts the program. Only within a Tokio runtime.
    pub(super) fn start(mut command: tokio::process::Command) -> io::Result<Process> {
        let mut group = Group::found(&mut command);
        let leader = command.spawn()?;
        let id = leader.id();
        group.is_led_by(id);
        Ok(Process { leader, id, group, patience: None, gone: false })
    }

    /// The process id, also when the process is over.
    pub(super) fn id(&self) -> Option<u32> {
        self.id
    }

    /// The child's ends of its three standard streams, once.
    pub(super) fn take_streams(
        &mut self,
    ) -> io::Result<(tokio::process::ChildStdin, tokio::process::ChildStdout, tokio::process::ChildStderr)>
    {
        match (self.leader.stdin.take(), self.leader.stdout.take(), self.leader.stderr.take()) {
            (Some(stdin), Some(stdout), Some(stderr)) => Ok((stdin, stdout, stderr)),
            _ => Err(io::Error::other("its standard streams are not pipes")),
        }
    }

    /// Waits for the end of the process that was started itself. May be called again.
    pub(super) async fn exited(&mut self) -> io::Result<ExitStatus> {
        self.leader.wait().await
    }

    /// Waits until the process and its whole group are gone.
    async fn gone(&mut self) {
        let _ = self.exited().await;
        let mut pause = Duration::from_millis(1);
        while !self.gone && self.group.lives() {
            // There is no way to be told of the end of processes that are not our own children.
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(Duration::from_millis(100));
        }
        self.gone = true;
    }

    fn signal(&mut self, ask: Ask) {
        if !self.gone {
            self.group.signal(ask, &mut self.leader);
        }
    }

    /// Tells the whole group to end, once, and says how long it may take for that.
    pub(super) fn terminate(&mut self, grace: Duration) -> Instant {
        if let Some(patience) = self.patience {
            return patience;
        }
        self.signal(Ask::Terminate);
        *self.patience.insert(Instant::now() + grace)
    }

    /// Ends the leader: politely, then by force.
    pub(super) async fn end_leader(&mut self, grace: Duration) {
        let patience = self.terminate(grace);
        if tokio::time::timeout_at(patience, self.exited()).await.is_err() {
            self.signal(Ask::Kill);
            let _ = self.exited().await;
        }
    }

    /// Ends what is left of the group when its leader is over: politely, then by force.
    pub(super) async fn end_group(&mut self, grace: Duration) {
        let patience = self.terminate(grace);
        if tokio::time::timeout_at(patience, self.gone()).await.is_err() {
            self.signal(Ask::Kill);
            // Only a process that hangs in the kernel can outlast this. It dies as soon as it comes back.
            if tokio::time::timeout(grace, self.gone()).await.is_err() {
                tracing::warn!(id = self.id, "a killed process of this group is still running");
                self.gone = true;
            }
        }
    }
}

impl Drop for Process {
    /// Comes to pass only when the runtime goes away, or a start fails half-way: usually everything is gone by now.
    fn drop(&mut self) {
        if self.gone {
            return;
        }
        self.signal(Ask::Kill);
        // Nobody will be there to collect the process later.
        for _ in 0..100 {
            if !matches!(self.leader.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

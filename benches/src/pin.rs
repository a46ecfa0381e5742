//! Keeps the load generator and the servers off each other's core.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

#[derive(Clone, Copy)]
pub(crate) enum Core {
    Server,
    Load,
}

impl Core {
    pub(crate) fn number(self) -> &'static str {
        match self {
            Self::Server => "0",
            Self::Load => "1",
        }
    }

    /// A command that runs on this core, or just a command where it cannot be pinned.
    pub(crate) fn command(self, program: &OsStr) -> Command {
        let possible =
            Command::new("taskset").args(["-c", self.number(), "true"]).stderr(Stdio::null()).status();
        if !possible.is_ok_and(|status| status.success()) {
            return Command::new(program);
        }
        let mut command = Command::new("taskset");
        command.args(["-c", self.number()]).arg(program);
        command
    }
}

/// Moves this process to its core; what cannot be done becomes a note under the table.
pub(crate) fn pin_load_generator() -> Vec<String> {
    let done = Command::new("taskset")
        .args(["-a", "-c", "-p", Core::Load.number(), &std::process::id().to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if done {
        vec![]
    } else {
        vec!["no second core or no taskset: nothing is pinned, the times mean little".into()]
    }
}

//! [`Core`]: keeps those who load and those who are loaded off each other's core.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

/// Who runs where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Core {
    /// Servers.
    Server,
    /// What calls them: the load generator, or a client program.
    Load,
}

impl Core {
    /// Its number, as the kernel counts.
    pub fn number(self) -> &'static str {
        match self {
            Self::Server => "0",
            Self::Load => "1",
        }
    }

    /// The words before a command line that make it run on this core; none where it cannot be pinned.
    pub fn prefix(self) -> Vec<&'static str> {
        let words = ["taskset", "-c", self.number()];
        let tried = Command::new(words[0]).args(&words[1..]).arg("true").stderr(Stdio::null()).status();
        if tried.is_ok_and(|status| status.success()) { words.to_vec() } else { Vec::new() }
    }

    /// A command that runs on this core, or just a command where it cannot be pinned.
    pub fn command(self, program: &OsStr) -> Command {
        match *self.prefix() {
            [first, ref rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(program);
                command
            }
            [] => Command::new(program),
        }
    }
}

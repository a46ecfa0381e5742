//! The servers that are compared, and where each keeps its memory.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

#[derive(Clone)]
pub(crate) enum Server {
    /// This one: the same program, told to serve.
    Ours,
    /// `@modelcontextprotocol/server-memory`.
    Official { node: PathBuf, script: PathBuf },
}

impl Server {
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Server::Ours => "ours",
            Server::Official { .. } => "server-memory",
        }
    }

    pub(crate) fn is_ours(&self) -> bool {
        matches!(self, Server::Ours)
    }

    /// How many calls are made at once. The other reads and writes its whole file in each, and loses changes that are
    /// made meanwhile.
    pub(crate) fn at_once(&self) -> usize {
        if self.is_ours() { 8 } else { 1 }
    }

    pub(crate) fn file(&self, folder: &Path) -> PathBuf {
        folder.join(if self.is_ours() { "memory.db" } else { "memory.jsonl" })
    }

    pub(crate) fn command(&self, folder: &Path) -> Result<Command> {
        Ok(match self {
            Server::Ours => {
                let mut command = Command::new(std::env::current_exe()?);
                command.arg("--serve").arg(self.file(folder));
                command
            }
            Server::Official { node, script } => {
                let mut command = Command::new(node);
                command.arg(script).env("MEMORY_FILE_PATH", self.file(folder));
                command
            }
        })
    }
}

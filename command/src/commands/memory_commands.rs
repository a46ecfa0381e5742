//! The commands that come with the memory.

use clap::Subcommand;

use super::server_commands::ServerCommands;
use super::{Exit, Failure, memory, model};

/// What can be done with a memory besides serving it.
#[derive(Subcommand)]
pub(crate) enum MemoryCommand {
    Memory(memory::Memory),
    Model(model::Model),
}

impl ServerCommands for MemoryCommand {
    fn is_json(&self) -> bool {
        match self {
            MemoryCommand::Memory(memory) => memory.is_json(),
            MemoryCommand::Model(model) => model.json,
        }
    }

    async fn run(self) -> Result<Exit, Failure> {
        match self {
            MemoryCommand::Memory(memory) => memory::run(memory).await,
            MemoryCommand::Model(model) => model::run(model).await,
        }
        .map(|()| Exit::Fine)
    }
}

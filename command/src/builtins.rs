//! The servers that are part of the program. A line in [`builtins`] is all that it takes to add one.

use std::sync::OnceLock;

use tidegate_builtin::{Builtin, Builtins};

use crate::commands::memory_commands::MemoryCommand;
use crate::commands::server_commands::{CommandSet, ServerCommands};

/// The servers that are part of `tidegate`.
pub fn builtins() -> Vec<Registered> {
    vec![
        tidegate_demo::builtin().into(),
        Registered::from(tidegate_memory::builtin()).with_commands::<MemoryCommand>("Memory"),
    ]
}

/// A server of the program, and the commands that come with it.
pub struct Registered {
    builtin: Builtin,
    commands: Option<CommandSet>,
}

impl From<Builtin> for Registered {
    /// A server that brings no commands.
    fn from(builtin: Builtin) -> Registered {
        Registered { builtin, commands: None }
    }
}

impl Registered {
    /// The same with commands, which `tidegate help` lists under this title.
    pub(crate) fn with_commands<C: ServerCommands>(mut self, title: &'static str) -> Registered {
        self.commands = Some(CommandSet::of::<C>(title));
        self
    }
}

/// What all parts of the program know of the servers that are part of it.
pub(crate) struct Registry {
    pub(crate) builtins: Builtins,
    pub(crate) commands: Vec<CommandSet>,
}

static REGISTRY: OnceLock<Registry> = OnceLock::new();

/// Says which servers are part of the program, before anybody asks.
pub(crate) fn register(all: impl IntoIterator<Item = Registered>) {
    let _ = REGISTRY.set(Registry::new(all));
}

/// The servers that are part of the program.
pub(crate) fn registry() -> &'static Registry {
    REGISTRY.get_or_init(|| Registry::new(builtins()))
}

impl Registry {
    fn new(all: impl IntoIterator<Item = Registered>) -> Registry {
        let (builtins, commands): (Vec<_>, Vec<_>) =
            all.into_iter().map(|one| (one.builtin, one.commands)).unzip();
        Registry { builtins: Builtins::new(builtins), commands: commands.into_iter().flatten().collect() }
    }
}

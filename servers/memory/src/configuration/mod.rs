//! The memory as part of the `tidegate` program: what `[memory]` of a configuration looks like (`written.rs`), what it means
//! (`meaning.rs`, `settings.rs`), and how a memory is opened that is described so (`opening.rs`).

mod meaning;
mod opening;
mod settings;
mod written;

use tidegate_builtin::{Builtin, BuiltinServer, Host, Opened, Pages, Reading};
use tidegate_protocol::Error;

pub use opening::usual_models;
pub use settings::{AgentBounds, ApiKey, Embeddings, MemorySettings, MemoryStore, ModelProvider};

/// The memory as part of a program.
pub fn builtin() -> Builtin {
    Builtin::of::<MemoryServer>()
}

struct MemoryServer;

impl BuiltinServer for MemoryServer {
    const NAME: &'static str = "memory";
    const DESCRIPTION: &'static str = "The built-in memory.";
    type Written = written::Memory;
    type Settings = MemorySettings;

    fn settings(written: &written::Memory, reading: &mut Reading<'_>) -> MemorySettings {
        meaning::settings(written, reading)
    }

    fn open(settings: &MemorySettings, host: Host) -> Result<Opened, Error> {
        opening::opened(settings, host)
    }

    fn pages(endpoint: &str) -> Option<Pages> {
        let files = crate::server::page::page(endpoint);
        Some(Pages { title: "Memory", link: "Browse the memory", files })
    }
}

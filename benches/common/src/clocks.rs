//! [`Clocks`]: who used the cores, a client or its server or somebody else.

use std::time::Duration;

use anyhow::{Context, Result};

use crate::core::Core;
use crate::process;

/// What the kernel's clocks say.
pub struct Clocks {
    /// CPU time of this process, which is the client.
    pub client: Duration,
    /// CPU time of the server.
    pub server: Duration,
    /// Busy time of the client's core.
    pub client_core: Duration,
    /// Busy time of the server's core.
    pub server_core: Duration,
}

impl Clocks {
    /// The clocks of this process, of a server and of their cores.
    pub fn read(server: u32) -> Result<Clocks> {
        Ok(Clocks {
            client: process::cpu_time(std::process::id())?,
            server: process::cpu_time(server).context("the server has gone")?,
            client_core: process::core_time(Core::Load.number())?,
            server_core: process::core_time(Core::Server.number())?,
        })
    }

    /// What was spent since then.
    pub fn since(&self, before: &Clocks) -> Clocks {
        Clocks {
            client: self.client.saturating_sub(before.client),
            server: self.server.saturating_sub(before.server),
            client_core: self.client_core.saturating_sub(before.client_core),
            server_core: self.server_core.saturating_sub(before.server_core),
        }
    }

    /// The time that others used of the client's or of the server's core, whichever is more.
    pub(crate) fn others(&self) -> Duration {
        let on_clients = self.client_core.saturating_sub(self.client);
        let on_servers = self.server_core.saturating_sub(self.server);
        on_clients.max(on_servers)
    }
}

//! People apart: whatever is kept for one of them, the others get nothing of it by asking for it.
//!
//! [`features`] has a row for each thing that is kept: how it comes to be, and how it is used. Every row is tried by everybody
//! else, and then by its owner, who must still have it. [`doors`] has a row for each way in. [`changes`] is about what is heard.

mod changes;
mod doors;
mod features;

use tidegate::edge::Eras;

use crate::http::until;
use crate::rig::{ANN, AUTH, Gateway, SERVERS};
use crate::upstreams::{NotebookServer, workshop};

/// The gateway with all kinds of servers behind it.
pub(crate) struct World {
    pub(crate) gateway: Gateway,
    pub(crate) notebook: NotebookServer,
}

impl World {
    /// Starts everything. `more` goes to the top of the configuration.
    pub(crate) fn start(more: &str) -> World {
        let notebook = NotebookServer::start();
        let (new, old) = (workshop(Eras::Modern), workshop(Eras::Legacy));
        let mounts = [("notebook", notebook.address), ("new", new), ("old", old)];
        let mounts =
            mounts.map(|(name, address)| format!("[servers.{name}]\nurl = \"http://{address}/mcp\"\n"));
        let config = format!("http_sse = true\n{more}\n{}{SERVERS}{AUTH}", mounts.concat());
        let world = World { gateway: Gateway::start_exactly(&config), notebook };
        until("all servers are there", || {
            let listed = world.all_tools();
            ["notebook_read", "new_work", "old_work", "demo_echo", "read_graph"]
                .iter()
                .all(|tool| listed.contains(tool))
        });
        world
    }

    /// The names of all tools, page by page.
    fn all_tools(&self) -> String {
        let (mut all, mut params) = (String::new(), serde_json::json!({}));
        loop {
            let page = self.gateway.as_user(ANN).modern("tools/list", params);
            all += &page.body;
            match &page.json()["result"]["nextCursor"] {
                serde_json::Value::String(cursor) => params = serde_json::json!({"cursor": cursor}),
                _ => return all,
            }
        }
    }
}

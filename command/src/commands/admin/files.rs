//! What files say of servers when no gateway runs: the configuration, and the last known lists.

use serde_json::{Value, json};
use tidegate_config::Settings;
use tidegate_gateway::kept_tools;
use tidegate_service::secrets::mask;

/// The servers of a configuration, in the form in which a running gateway tells of them, as far as that is known.
pub(crate) fn servers(settings: &Settings) -> Vec<Value> {
    let used = settings.servers.iter().map(|server| {
        let tools = kept_tools(settings.state_dir.as_deref(), server);
        json!({"name": server.name, "state": "configured", "what": mask(&server.shown), "tools": tools})
    });
    let disabled = settings.disabled.iter().map(|server| {
        json!({"name": server.name, "state": "disabled", "why": mask(&server.reason), "advice": server.advice})
    });
    used.chain(disabled).collect()
}

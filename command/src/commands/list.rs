//! `tidegate list`: the servers, one line each, as a running gateway or the configuration has them.

use clap::Args;
use serde_json::{Value, json};
use tidegate_protocol::text::escaped_json;

use super::admin::client::AskError;
use super::admin::files;
use super::admin::target::GatewayArgs;
use super::exit::Exit;
use super::failure::Failure;
use super::output;
use crate::term::style::Paint;
use crate::term::table::Table;

/// List the servers behind the gateway, one line each
///
/// Asks the gateway that runs with the configuration. If none runs, lists what the configuration and the last known lists say.
#[derive(Args)]
pub(crate) struct List {
    #[command(flatten)]
    gateway: GatewayArgs,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn run(list: List) -> Result<Exit, Failure> {
    let target = list.gateway.find().await?;
    let (servers, is_running) = match target.client.get("/api/servers", &[]).await {
        Ok(said) => (said["servers"].as_array().cloned().unwrap_or_default(), true),
        Err(AskError::NoGateway(_)) if list.gateway.url.is_none() => {
            (files::servers(&target.settings), false)
        }
        Err(error) => return Err(target.client.failure(error, "list its servers")),
    };
    if list.json {
        let said = json!({"running": is_running, "servers": servers});
        output::text(&escaped_json(&said.to_string()))?;
    } else {
        output::text(&table(&servers))?;
        if !is_running {
            output::note("note: no gateway runs; this is what the configuration says");
        }
    }
    Ok(Exit::Fine)
}

/// Servers as a gateway or files tell of them.
pub(super) fn table(servers: &[Value]) -> String {
    if servers.is_empty() {
        return "No servers yet. Add one with tidegate add NAME URL or tidegate add NAME -- COMMAND.\n"
            .to_owned();
    }
    let mut table = Table::new(&["Server", "State", "Tools", "Calls", "Speaks", ""]);
    for server in servers {
        let text = |name: &str| server[name].as_str().unwrap_or_default();
        let number = |name: &str| server[name].as_u64().map(|number| number.to_string()).unwrap_or_default();
        let circuit = match text("circuit") {
            "OPEN" => "its circuit breaker is open",
            "HALF_OPEN" => "its circuit breaker is half open",
            _ => "",
        };
        let more: Vec<&str> = [text("what"), text("why"), circuit, text("advice")]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect();
        let is_off = text("state") == "disabled";
        let tools = if is_off { String::new() } else { number("tools") };
        let running = if is_off { String::new() } else { number("running") };
        table.row([text("name"), text("state"), &tools, &running, text("revision"), &more.join("; ")]);
    }
    table.show(crate::term::width(), Paint::stdout())
}

//! What the servers list now.

use std::path::Path;

use tidegate_config::{ServerSettings, Settings};
use tidegate_gateway::Pin;

use super::changes::Selection;
use crate::commands::display::Display;
use crate::commands::exit::Exit;
use crate::commands::failure::Failure;
use crate::commands::inspect::inspect;
use crate::commands::jobs;
use crate::commands::resolve::ResolvedServer;

/// What a server lists now.
pub(super) struct ServerTools {
    pub(super) server: String,
    /// All its tools, or why they are not known.
    pub(super) tools: Result<Vec<Tool>, Failure>,
}

pub(super) struct Tool {
    pub(super) name: String,
    /// Whether the configuration lets it through.
    pub(super) offered: bool,
    pub(super) pin: Pin,
}

/// Asks all servers that are selected, a few at a time. They come back in the order of the configuration.
pub(super) async fn list_all(
    settings: &Settings,
    file: &Path,
    selection: &Selection,
    display: &Display,
) -> Vec<ServerTools> {
    let servers = settings.servers.iter().filter(|server| selection.server(&server.name)).cloned();
    let (names, jobs): (Vec<_>, Vec<_>) = servers
        .map(|server| {
            let file = file.to_owned();
            (server.name.clone(), (server.name.clone(), async move { tools(&server, &file).await }))
        })
        .unzip();
    let none = || Err(Failure::new(Exit::Unavailable, "the attempt ended unexpectedly"));
    let listed = jobs::run_all("Reading the tools of", jobs, display).await;
    let listed = names.into_iter().zip(listed);
    listed.map(|(server, tools)| ServerTools { server, tools: tools.unwrap_or_else(none) }).collect()
}

async fn tools(server: &ServerSettings, file: &Path) -> Result<Vec<Tool>, Failure> {
    let inspected = inspect(&ResolvedServer::configured(server, file)?).await?;
    let each = inspected.tools.iter().map(|tool| Tool {
        name: tool.name().to_owned(),
        offered: server.offers(tool.name()),
        pin: Pin::of(tool.definition()),
    });
    Ok(each.collect())
}

//! What the servers list now.

use tidegate::protocol::Profile;
use tidegate_config::{ServerSettings, Settings, Source};
use tidegate_gateway::Pin;
use tokio::task::JoinSet;

use super::changes::Wanted;
use crate::commands::builtin::Builtin;
use crate::commands::connection;
use crate::commands::exit::Exit;
use crate::commands::failure::Failure;
use crate::commands::target::Place;

/// What a server lists now.
pub(super) struct Listed {
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

/// Asks all servers that are wanted at once. They come back in the order of the configuration.
pub(super) async fn all(settings: &Settings, wanted: &Wanted) -> Vec<Listed> {
    let servers: Vec<_> = settings.servers.iter().filter(|server| wanted.server(&server.name)).collect();
    let mut asking = JoinSet::new();
    for (index, server) in servers.iter().enumerate() {
        let server = (*server).clone();
        asking.spawn(async move { (index, tools(&server).await) });
    }
    let none = || Err(Failure::new(Exit::Unavailable, "the attempt ended without a result"));
    let mut listed: Vec<Listed> =
        servers.iter().map(|server| Listed { server: server.name.clone(), tools: none() }).collect();
    while let Some(joined) = asking.join_next().await {
        if let Ok((index, tools)) = joined {
            listed[index].tools = tools;
        }
    }
    listed
}

async fn tools(server: &ServerSettings) -> Result<Vec<Tool>, Failure> {
    let (target, builtin) = match &server.source {
        Source::Target(target) => (target.clone(), None),
        Source::Builtin(name) => {
            let builtin = Builtin::new(name, server, Profile::Strict, None)?;
            builtin.open().await?;
            (builtin.target.clone(), Some(builtin))
        }
    };
    let place = Place { name: server.name.clone(), target, file: None };
    let (builder, words) = connection::builder(&place, server.options.clone(), false)?;
    let client = match builtin {
        Some(builtin) => builtin.ends_with(builder),
        None => builder,
    };
    let client = client.lazy()?;
    let read = async {
        let facts = client.server().await?;
        if facts.has_capability("tools") { client.tools().await } else { Ok(Vec::new()) }
    };
    let read = read.await;
    client.close().await;
    let tools = read.map_err(|error| Failure::from(error).said(words.get()))?;
    let each = tools.iter().map(|tool| Tool {
        name: tool.name().to_owned(),
        offered: server.offers(tool.name()),
        pin: Pin::of(tool.definition()),
    });
    Ok(each.collect())
}

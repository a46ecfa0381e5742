//! Trying every server of a configuration.

use std::time::Duration;

use tidegate::protocol::Profile;
use tidegate::service::layers::RetryPolicy;
use tidegate_client::Client;
use tidegate_config::{ServerSettings, Settings, Source};
use tokio::task::JoinSet;

use crate::commands::builtin::Builtin;
use crate::commands::connection;
use crate::commands::exit::Exit;
use crate::commands::failure::Failure;
use crate::commands::target::Place;

/// How long a server may take.
const LIMIT: Duration = Duration::from_secs(10);

/// What a server turned out to be.
pub(super) struct Reached {
    /// The revision that is spoken with it.
    pub(super) revision: &'static str,
    /// Whether that is a modern one.
    pub(super) modern: bool,
    /// How many tools it has.
    pub(super) tools: usize,
    /// How many of them are offered.
    pub(super) offered: usize,
}

/// Connects to all servers at once, and says what came of each, in their order.
pub(super) async fn all(settings: &Settings) -> Vec<Result<Reached, Failure>> {
    let mut running = JoinSet::new();
    for (index, server) in settings.servers.iter().enumerate() {
        let server = server.clone();
        running.spawn(async move { (index, reach(&server).await) });
    }
    let mut states: Vec<_> = settings
        .servers
        .iter()
        .map(|_| Err(Failure::new(Exit::Unavailable, "the attempt ended without a result")))
        .collect();
    while let Some(joined) = running.join_next().await {
        if let Ok((index, state)) = joined {
            states[index] = state;
        }
    }
    states
}

/// Connects to one server as a plain client.
///
/// This is the place to connect through the gateway instead, once there is one in this process.
async fn reach(server: &ServerSettings) -> Result<Reached, Failure> {
    let (target, builtin) = match &server.source {
        Source::Target(target) => (target.clone(), None),
        Source::Builtin(name) => {
            let builtin = Builtin::new(name, server, Profile::Strict, None)?;
            builtin.open().await?;
            (builtin.target.clone(), Some(builtin))
        }
    };
    let place = Place { name: server.name.clone(), target, file: None };
    let mut options = server.options.clone();
    options.init_timeout = options.init_timeout.min(LIMIT);
    options.connect_timeout = options.connect_timeout.min(LIMIT);
    // Whoever looks for faults wants to see the first one.
    options.retry = RetryPolicy::never();
    let (builder, words) = connection::builder(&place, options, false)?;
    let client = match builtin {
        Some(builtin) => builtin.ends_with(builder),
        None => builder,
    };
    let client = client.lazy()?;
    let late = |_| {
        let sentence = format!("it did not answer within {}", humantime::format_duration(LIMIT));
        Err(Failure::new(Exit::TimedOut, sentence))
    };
    let reached = tokio::time::timeout(LIMIT, look(&client, server)).await.unwrap_or_else(late);
    client.close().await;
    reached.map_err(|failure| failure.said(words.get()))
}

async fn look(client: &Client, server: &ServerSettings) -> Result<Reached, Failure> {
    let facts = client.server().await?;
    let tools = if facts.has_capability("tools") { client.tools().await? } else { Vec::new() };
    Ok(Reached {
        revision: facts.revision.as_str(),
        modern: facts.revision.is_modern(),
        tools: tools.len(),
        offered: tools.iter().filter(|tool| server.offers(tool.name())).count(),
    })
}

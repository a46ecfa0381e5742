//! Trying a server of the gateway's configuration: what it is, and what it offers.

use std::sync::Arc;

use tidegate::protocol::{Error, Symbol};
use tidegate::service::layers::RetryPolicy;
use tidegate_client::{Client, ClientSettings, ElicitAnswer, Handlers, Instances, ServerInfo, Tool};

use super::connection::{self, StartLimit};
use super::exit::Exit;
use super::failure::Failure;
use super::resolve::ResolvedServer;

/// What a server turned out to be.
pub(crate) struct Inspection {
    /// What it says of itself.
    pub(crate) facts: ServerInfo,
    /// Its tools.
    pub(crate) tools: Vec<Arc<Tool>>,
    /// How many resources and prompts it lists, if it has no tools.
    pub(crate) resources: usize,
    pub(crate) prompts: usize,
}

/// Connects to a server as the gateway would, and lists what it has. It may take as long to start as its `start_timeout`
/// says.
pub(crate) async fn inspect(server: &ResolvedServer) -> Result<Inspection, Failure> {
    let mut options = match &server.settings {
        Some(settings) => settings.options.clone(),
        None => ClientSettings::from_env(),
    };
    options.sessions.instances = Instances::Own;
    // Whoever looks for a fault wants to see the first one.
    options.retry = RetryPolicy::never();
    let limit = StartLimit::new(&options, None);
    let patience = options.timeout;
    let (builder, stderr) = connection::builder(server, options, false)?;
    // Some servers choose their tools by what their client can be asked for.
    let client = builder.handlers(declining()).lazy()?;
    let inspected = async {
        let facts = connection::connected(&client, server, limit).await?;
        match tokio::time::timeout(patience, look(&client, facts)).await {
            Ok(inspected) => inspected,
            Err(_) => {
                let time = humantime::format_duration(patience);
                let what =
                    format!("The server started, but did not list what it offers within {time} (timeout)");
                Err(Failure::new(Exit::TimedOut, what))
            }
        }
    };
    let inspected = inspected.await;
    client.close().await;
    inspected.map_err(|failure| failure.with_stderr(stderr.get()))
}

/// Declares what the gateway declares, so that a server offers what it will offer there. Nobody is asked anything.
fn declining() -> Handlers {
    let nobody = || Error::new(Symbol::InvalidRequest, "tidegate only looks at what the server offers");
    Handlers::new()
        .on_elicit(true, |_| std::future::ready(ElicitAnswer::Decline))
        .on_sample(true, move |_| std::future::ready(Err(nobody())))
        .roots(Vec::new())
}

async fn look(client: &Client, facts: ServerInfo) -> Result<Inspection, Failure> {
    let tools = if facts.has_capability("tools") { client.tools().await? } else { Vec::new() };
    let (mut resources, mut prompts) = (0, 0);
    // Tools are what matters; where there are none, something else does. `doctor` looks for what is wrong with that.
    if tools.is_empty() && facts.has_capability("resources") {
        resources = client.raw_resources().await.map_or(0, |all| all.len());
    }
    if tools.is_empty() && facts.has_capability("prompts") {
        prompts = client.raw_prompts().await.map_or(0, |all| all.len());
    }
    Ok(Inspection { facts, tools, resources, prompts })
}

impl Inspection {
    /// What it offers in a few words: `2 tools`, or `3 resources, 1 prompt`.
    pub(crate) fn offers(&self) -> String {
        let counted = |count: usize, what: &str| match count {
            1 => format!("1 {what}"),
            count => format!("{count} {what}s"),
        };
        let mut parts = Vec::new();
        if !self.tools.is_empty() || self.resources + self.prompts == 0 {
            parts.push(counted(self.tools.len(), "tool"));
        }
        for (count, what) in [(self.resources, "resource"), (self.prompts, "prompt")] {
            if count > 0 {
                parts.push(counted(count, what));
            }
        }
        parts.join(", ")
    }
}

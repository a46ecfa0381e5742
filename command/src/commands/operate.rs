//! `tidegate restart` and `tidegate reset`: what is done to one server of a running gateway.

use clap::Args;
use tidegate_protocol::text::escaped_json;

use super::admin::target::GatewayArgs;
use super::exit::Exit;
use super::failure::Failure;
use super::output;
use crate::term::clean::line as clean;
use crate::term::style::Paint;

/// Restart a server of the running gateway
///
/// It gets another connection or process. Its tools stay listed, and calls that are running finish where they began. Ends with 1 if it
/// does not answer.
#[derive(Args)]
pub(crate) struct Restart {
    #[command(flatten)]
    on: On,
}

/// Close the circuit breaker of a server, and try it at once
///
/// Forgets its failures, so that calls are sent to it again. Ends with 1 if it does not answer.
#[derive(Args)]
pub(crate) struct Reset {
    #[command(flatten)]
    on: On,
}

/// Which server, and how to say what came of it.
#[derive(Args)]
struct On {
    /// The name of the server
    name: String,

    #[command(flatten)]
    gateway: GatewayArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Restart {
    pub(crate) fn is_json(&self) -> bool {
        self.on.json
    }
}

impl Reset {
    pub(crate) fn is_json(&self) -> bool {
        self.on.json
    }
}

pub(crate) async fn restart(restart: Restart) -> Result<Exit, Failure> {
    tried(&restart.on, "restart", "Restarted").await
}

pub(crate) async fn reset(reset: Reset) -> Result<Exit, Failure> {
    tried(&reset.on, "reset", "Reset").await
}

/// Has something done to a server, and says whether it answers afterwards.
async fn tried(on: &On, what: &str, done: &str) -> Result<Exit, Failure> {
    let target = on.gateway.find().await?;
    let said = target.client.post(&path(&on.name, what)?).await;
    let said = said.map_err(|error| target.client.failure(error, &format!("{what} servers")))?;
    let why = said["why"].as_str().map(clean);
    if on.json {
        output::text(&escaped_json(&said.to_string()))?;
    } else {
        let paint = Paint::stdout();
        let how = match &why {
            None => "it answers".to_owned(),
            Some(why) => format!("it does not answer: {why}"),
        };
        output::text(&format!("{} {}: {how}", paint.good(done), paint.name(clean(&on.name))))?;
    }
    Ok(if why.is_none() { Exit::Fine } else { Exit::ToolError })
}

/// The path of what is to be done to a server; of the server itself, if that is nothing.
pub(super) fn path(name: &str, what: &str) -> Result<String, Failure> {
    tidegate_config::check_server_name(name)
        .map_err(|why| Failure::usage(format!("{name:?} is no name of a server: {why}")))?;
    Ok(match what {
        "" => format!("/api/servers/{name}"),
        what => format!("/api/servers/{name}/{what}"),
    })
}

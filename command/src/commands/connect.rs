//! `tidegate connect`: a stdio server for local clients in front of any one server, either era on either side.

use clap::Args;
use tidegate::edge::stdio;

use super::connection::builder;
use super::exit::Exit;
use super::failure::Failure;
use super::target::{ConnectionArgs, TargetArgs};

/// Connect a stdio client to any one server
///
/// For clients that can only start programs: this program speaks stdio to the client and whatever the server needs to the
/// server, whichever protocol versions they speak. It ends when standard input is closed. Logs go to standard error.
#[derive(Args)]
#[command(
    override_usage = "tidegate connect [OPTIONS] TARGET\n       tidegate connect [OPTIONS] -- COMMAND [ARG]...",
    after_help = format!("{IN_A_FILE}\n\n{}", super::exit::after_help())
)]
pub(crate) struct Connect {
    #[command(flatten)]
    words: TargetArgs,
    #[command(flatten)]
    pub(crate) common: ConnectionArgs,
}

const IN_A_FILE: &str = r#"In an mcpServers file:
  "example": {"command": "tidegate", "args": ["connect", "https://example.com/mcp"]}"#;

pub(crate) async fn run(connect: Connect) -> Result<Exit, Failure> {
    let Connect { words, common } = connect;
    let (server, rest) = words.split(&common)?;
    super::nothing_more(rest)?;
    let (builder, _) = builder(&server, common.options(&server), common.login)?;
    // The first message of the client opens the connection, on that client's terms. A server that cannot be reached is
    // then an error that the client shows to its user, and may be reached later.
    let client = builder.lazy()?;
    tracing::info!(server = server.name, target = %server.target, "Waiting for a client on standard input");
    let ended = stdio::serve(client.door(), stdio::Settings::default()).await;
    tracing::info!(?ended, "Closing the connection");
    tidegate::logging::hush();
    client.close().await;
    Ok(match ended {
        stdio::Ended::Signal(_) => Exit::Cancelled,
        stdio::Ended::Eof | stdio::Ended::OutputClosed => Exit::Fine,
    })
}

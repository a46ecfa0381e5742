//! `conformance-server`: the server that the official MCP conformance suite is run against.
//!
//! It is written with the framework and nothing else, so that what the suite sees is what every server made with
//! Tidegate does. Here are the command line and the serving; [`tools`], [`resources`] and [`prompts`] hold what the
//! suite expects to find, under the names that it expects.

mod media;
mod prompts;
mod resources;
mod tools;

use std::net::SocketAddr;

use clap::Parser;
use tidegate::{Eras, Server, ServerDoor, http, logging, stdio};
use tokio::net::TcpListener;

/// The fixture server of the MCP conformance suite.
#[derive(Parser)]
#[command(name = "conformance-server", version)]
struct Cli {
    /// Serve Streamable HTTP at this address, under /mcp.
    #[arg(long, value_name = "ADDRESS", required_unless_present = "stdio", conflicts_with = "stdio")]
    listen: Option<SocketAddr>,

    /// Serve the standard streams.
    #[arg(long)]
    stdio: bool,

    /// Which eras of the protocol to speak: both, legacy or modern.
    #[arg(long, default_value = "both")]
    era: Eras,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    logging::init(logging::Format::Pretty, None);
    let server = server();
    tokio::spawn(resources::keep_updating(server.handle()));
    match cli.listen {
        Some(address) => {
            let settings = http::Settings::default().eras(cli.era);
            let listener = TcpListener::bind(address).await?;
            tracing::info!("listening at http://{}{}", listener.local_addr()?, settings.path);
            http::serve_on(server, listener, settings).await?;
        }
        None => {
            let mut settings = stdio::Settings::default();
            settings.edge.eras = cli.era;
            stdio::serve(server, settings).await;
        }
    }
    Ok(())
}

fn server() -> ServerDoor {
    let server =
        Server::new("tidegate-conformance", env!("CARGO_PKG_VERSION")).title("Tidegate conformance fixture");
    prompts::add(resources::add(tools::add(server))).build()
}

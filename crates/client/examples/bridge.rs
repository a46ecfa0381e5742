//! Puts Streamable HTTP, in every revision, in front of any one server.
//!
//! ```sh
//! cargo run --example bridge -- "npx -y @modelcontextprotocol/server-everything" 127.0.0.1:8765
//! ```
//!
//! A modern client can then use a legacy server and the other way round, questions included.

use tidegate_client::Client;
use tidegate_edge::http;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let target = arguments.next().ok_or("say which server: a command line or a URL")?;
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:8765".to_owned());
    // Many callers: lists and those who cannot be asked anything share one session.
    let client = Client::builder(target)?
        .configure(|options| options.sessions.instances = tidegate_client::Instances::PerUser)
        .connect()
        .await?;
    let listener = TcpListener::bind(address).await?;
    eprintln!("http://{}/mcp", listener.local_addr()?);
    let interrupted = async { _ = tokio::signal::ctrl_c().await };
    http::serve_door(client.door(), listener, http::Settings::default(), interrupted).await?;
    client.close().await;
    Ok(())
}

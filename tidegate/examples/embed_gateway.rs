//! A gateway inside a program: a server of its own, and any others, behind one endpoint for clients of both eras.
//!
//! ```sh
//! cargo run --example embed_gateway --features gateway -- "npx -y @modelcontextprotocol/server-everything"
//! ```

use std::time::Duration;

use tidegate::client::Target;
use tidegate::gateway::Gateway;
use tidegate::{Server, edge, tool};

/// Tells the length of a text.
#[tool(read_only, idempotent)]
async fn measure(
    /// The text to measure.
    text: String,
) -> String {
    format!("{} characters", text.chars().count())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tidegate::logging::init(Default::default(), None);
    // Its tool is called `ruler_measure`.
    let mut builder =
        Gateway::builder().mount("ruler", Server::new("ruler", "1.0.0").tool(measure()).build());
    for (n, target) in std::env::args().skip(1).enumerate() {
        builder = builder.connect(format!("server{n}"), Target::parse(&target)?);
    }
    let gateway = builder.start()?;
    gateway.settled(Duration::from_secs(10)).await;
    for server in gateway.status() {
        tracing::info!(server = server.name, tools = server.tools, "{}", server.health.as_str());
    }

    let listener = tokio::net::TcpListener::bind("127.0.0.1:8765").await?;
    let ending = gateway.clone();
    let shutdown = async move {
        edge::stdio::signals().await;
        // Subscriptions end first; else they would keep their connections open.
        ending.shut_down();
    };
    edge::http::serve_door(gateway.clone(), listener, edge::http::Settings::default(), shutdown).await?;
    gateway.close().await;
    Ok(())
}

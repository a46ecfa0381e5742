//! The vocabulary of the tests (tests/servers/vocabulary.rs), spoken by rmcp.
//!
//! Usage: rmcp-server stdio | http, and then `legacy` to serve nothing newer than 2025-11-25. The variable PORT
//! chooses a port.

mod asking;
mod vocabulary;

use std::io::Write as _;
use std::net::Ipv4Addr;
use std::sync::Arc;

use rmcp::ServiceExt;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use vocabulary::Vocabulary;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let server = Vocabulary::new(words.iter().any(|word| word == "legacy"));
    if words.first().is_some_and(|transport| transport == "stdio") {
        server.serve(rmcp::transport::io::stdio_pipes()).await?.waiting().await?;
        return Ok(());
    }
    let port = std::env::var("PORT").ok().and_then(|port| port.parse().ok()).unwrap_or(0);
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    writeln!(std::io::stdout(), "listening on http://{}/mcp", listener.local_addr()?)?;
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}

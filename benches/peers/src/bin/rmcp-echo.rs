//! rmcp with an `echo` tool, configured the way that is fastest for it and still serves both eras.
//!
//! JSON replies instead of a stream for the stateless revision, sessions for the legacy ones, the non-blocking pipe
//! transport for stdio, `TCP_NODELAY` (without which its two-write SSE replies wait for delayed acknowledgements).
//! Host checks are on by default, Origin checks are switched on, tracing is at info level like ours.

use std::io::Write;
use std::sync::Arc;

use axum::serve::ListenerExt;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{ServerCapabilities, ServerConfig};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use serde::Deserialize;
use tokio::net::TcpListener;
use tracing_subscriber::filter::LevelFilter;

#[derive(Deserialize, schemars::JsonSchema)]
struct EchoArguments {
    /// What to say back.
    message: String,
}

#[derive(Clone)]
struct Echo {
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl Echo {
    fn new() -> Self {
        Self { tool_router: Self::tool_router() }
    }

    #[tool(description = "Says back what it is told")]
    async fn echo(&self, Parameters(arguments): Parameters<EchoArguments>) -> String {
        arguments.message
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // rmcp writes several lines per stateless request at info level; BENCH_LOG=warn shows what that costs it.
    let level = std::env::var("BENCH_LOG").ok().and_then(|level| level.parse().ok());
    tracing_subscriber::fmt()
        .with_max_level(level.unwrap_or(LevelFilter::INFO))
        .with_ansi(false)
        .with_writer(std::io::stderr)
        .init();
    match std::env::args().nth(1).as_deref() {
        Some("--stdio") => {
            Echo::new().serve(rmcp::transport::io::stdio_pipes()).await?.waiting().await?;
            Ok(())
        }
        Some("--listen") => http(&std::env::args().nth(2).unwrap_or_else(|| "127.0.0.1:0".into())).await,
        _ => anyhow::bail!("usage: rmcp-echo --stdio | --listen ADDR"),
    }
}

async fn http(addr: &str) -> anyhow::Result<()> {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(true)
        .with_json_response(true)
        .enforce_origin_validation();
    // The router of tools is built once and cloned per request or session, which is cheaper for rmcp than building it
    // in the factory as its examples do.
    let echo = Echo::new();
    let service = StreamableHttpService::new(
        move || Ok(echo.clone()),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    let router = axum::Router::new().nest_service("/mcp", service);

    let listener = TcpListener::bind(addr).await?;
    {
        let mut out = std::io::stdout().lock();
        writeln!(out, "listening on {}", listener.local_addr()?)?;
        out.flush()?;
    }
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, router).await?;
    Ok(())
}

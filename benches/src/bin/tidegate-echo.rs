//! This framework with an `echo` tool, set up as for production.
//!
//! Arguments are validated, Host, Origin and the mirrored headers are checked, calls are correlated and traced at info
//! level: all of that is the default, and nothing is switched off here.

use std::io::Write;

use tidegate::{Cx, Server, ServerDoor, Tool, http, logging, stdio};
use tokio::net::TcpListener;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    /// What to say back.
    message: String,
}

fn server() -> ServerDoor {
    let echo = Tool::new("echo")
        .description("Says back what it is told")
        .handler(|arguments: Echo, _cx: Cx| async move { arguments.message });
    Server::new("echo", "1.0.0").tool(echo).build()
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    logging::init(logging::Format::Pretty, std::env::var("BENCH_LOG").ok().as_deref());
    match std::env::args().nth(1).as_deref() {
        Some("--stdio") => {
            stdio::serve(server(), stdio::Settings::default()).await;
            Ok(())
        }
        Some("--listen") => listen(&std::env::args().nth(2).unwrap_or_else(|| "127.0.0.1:0".into())).await,
        _ => anyhow::bail!("usage: tidegate-echo --stdio | --listen ADDR"),
    }
}

async fn listen(addr: &str) -> anyhow::Result<()> {
    let listener = TcpListener::bind(addr).await?;
    {
        let mut out = std::io::stdout().lock();
        writeln!(out, "listening on {}", listener.local_addr()?)?;
        out.flush()?;
    }
    http::serve_on(server(), listener, http::Settings::default()).await?;
    Ok(())
}

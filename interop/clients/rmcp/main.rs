//! A client on rmcp, the official Rust SDK, for the matrix (`tests/matrix`).
//!
//! Usage: rmcp-client URL NAME PLAN modern | legacy

mod steps;
mod user;

use rmcp::model::ProtocolVersion;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{ClientLifecycleMode, ClientServiceExt as _};

use steps::{Client, Plan, tell};
use user::User;

// On one thread: rmcp makes a task of each notification, and several threads would bring progress out of order.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [url, name, plan, era] = &words[..] else {
        return Err("usage: rmcp-client URL NAME PLAN modern|legacy".into());
    };
    let plan: Plan = serde_json::from_str(plan)?;
    let (version, lifecycle) = match era.as_str() {
        "modern" => {
            let version = ProtocolVersion::V_2026_07_28;
            (version.clone(), ClientLifecycleMode::Discover { preferred_versions: vec![version] })
        }
        _ => (ProtocolVersion::V_2025_11_25, ClientLifecycleMode::Initialize),
    };
    let user = User::new(name, version);
    let seen = user.seen.clone();
    // Built together with the memory, reqwest has TLS and no provider for it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let transport = StreamableHttpClientTransport::from_uri(url.as_str());
    let client = Client { service: user.serve_with_lifecycle(transport, lifecycle).await?, seen };
    tell("", "connect", Ok(serde_json::to_value(client.version())?));
    client.run(&plan).await;
    client.service.cancel().await?;
    Ok(())
}

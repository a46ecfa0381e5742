//! rmcp's client, configured the way that is fastest for it.
//!
//! Connections are kept: its default HTTP client opens one for every call. All calls may be in flight at once, where
//! its default is 16. A call is made by `call_tool_once`, which does not copy its arguments for questions that the
//! server might ask. Over stdio it has the pipes of the child, which is what its own child process transport is made of.

use std::process::Stdio;

use anyhow::{Context, Result};
use rmcp::model::{CallToolRequestParams, CallToolResponse, JsonObject, ProtocolVersion};
use rmcp::service::{Peer, RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientLifecycleMode, ClientServiceExt};
use tidegate_benches_common::plan::{Plan, Target};
use tidegate_benches_common::{MESSAGE, drive};
use tokio::process::{Child, Command};

#[tokio::main]
async fn main() -> Result<()> {
    let plan = Plan::begin();
    let (service, child) = match plan.target() {
        Target::Url(url) => (over_http(url, plan.in_flight).await?, None),
        Target::Command(program, arguments) => {
            let (service, child) = over_stdio(program, arguments).await?;
            (service, Some(child))
        }
    };
    let peer = service.peer().clone();
    let revision =
        peer.peer_info().context("nothing is known about the server")?.protocol_version.to_string();

    let call = move || call(peer.clone());
    drive::run(&plan, &revision, call).await?.print()?;
    service.cancel().await?;
    if let Some(mut child) = child {
        child.wait().await?;
    }
    Ok(())
}

fn modern() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
}

async fn over_http(url: &str, in_flight: usize) -> Result<RunningService<RoleClient, ()>> {
    let config = StreamableHttpClientTransportConfig::with_uri(url).max_concurrent_requests(in_flight);
    let transport = StreamableHttpClientTransport::with_client(reqwest::Client::new(), config);
    Ok(().serve_with_lifecycle(transport, modern()).await?)
}

async fn over_stdio(program: &str, arguments: &[String]) -> Result<(RunningService<RoleClient, ()>, Child)> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn()?;
    let pipes = (child.stdout.take().context("no stdout")?, child.stdin.take().context("no stdin")?);
    Ok((().serve_with_lifecycle(pipes, modern()).await?, child))
}

async fn call(peer: Peer<RoleClient>) -> Result<()> {
    let arguments = JsonObject::from_iter([("message".to_owned(), MESSAGE.into())]);
    let params = CallToolRequestParams::new("echo").with_arguments(arguments);
    match peer.call_tool_once(params).await? {
        CallToolResponse::Complete(result) => {
            let text = result.content.first().and_then(|content| content.as_text());
            drive::check(text.map(|text| &*text.text))
        }
        _ => anyhow::bail!("no result"),
    }
}
